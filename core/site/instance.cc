#include "core/site/instance.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include <tenon/plugin/ext/parallel.h>

#include "core/base/failure.h"
#include "core/site/layout.h"

namespace tenon {
namespace {

struct BytesReader {
  const std::vector<std::uint8_t>* bytes;
  std::size_t position = 0;
};

std::int64_t TN_CALL read_bytes(TnReader* self, void* out, std::uint64_t size) {
  auto& reader = *static_cast<BytesReader*>(self->context);
  const std::uint64_t left = reader.bytes->size() - reader.position;
  const std::uint64_t count = size < left ? size : left;
  if (count != 0) std::memcpy(out, reader.bytes->data() + reader.position, count);
  reader.position += count;
  return static_cast<std::int64_t>(count);
}

std::int64_t TN_CALL write_bytes(TnWriter* self, const void* bytes, std::uint64_t size) {
  auto& out = *static_cast<std::vector<std::uint8_t>*>(self->context);
  const auto* first = static_cast<const std::uint8_t*>(bytes);
  out.insert(out.end(), first, first + size);
  return static_cast<std::int64_t>(size);
}

constexpr std::int64_t kEpilogueChunk = 16 * 1024;  // 64 KiB: stays in L2

/// Applies an epilogue in place, in chunks over the pool. `operands`: 1, 2... of the epilogue, `count` elements each.
void apply_on_host(const Expression& epilogue, const TnTensor* operands, std::size_t num_operands, float* data,
                   std::int64_t count, const TnExec& exec) {
  struct Job {
    const Expression* epilogue;
    const TnTensor* operands;
    std::size_t num_operands;
    float* data;
    std::int64_t count;
  } job{&epilogue, operands, num_operands, data, count};
  const auto body = [](void* argument, std::int64_t chunk) {
    const auto& self = *static_cast<const Job*>(argument);
    const std::int64_t begin = chunk * kEpilogueChunk;
    float* part = self.data + begin;
    std::array<const float*, 1 + kMostExtra> parts{part};
    for (std::size_t i = 0; i < self.num_operands; ++i) {
      parts[i + 1] = static_cast<const float*>(self.operands[i].data) + begin;
    }
    evaluate_f32(*self.epilogue, {parts.data(), 1 + self.num_operands}, part,
                 std::min(kEpilogueChunk, self.count - begin));
  };
  const std::int64_t chunks = (count + kEpilogueChunk - 1) / kEpilogueChunk;
  const auto* parallel = static_cast<const TnParallel*>(exec.parallel);
  if (parallel != nullptr && chunks > 1) {
    parallel->run(parallel->context, chunks, body, &job);
  } else {
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) body(&job, chunk);
  }
}

}  // namespace

Instance::Instance(std::shared_ptr<const Site> site, const Candidate& candidate)
    : site_(std::move(site)), candidate_(candidate) {}

Instance::~Instance() {
  if (!configured_) return;
  const TnKernel& kernel = *candidate_.kernel.kernel;
  if (initialized_ && kernel.terminate != nullptr) kernel.terminate(candidate_.kernel.host, inst_);
  if (kernel.destroy != nullptr) kernel.destroy(candidate_.kernel.host, inst_);
}

std::string Instance::where(const char* call) const {
  return fmt::format("kernel {} ({}): {}", candidate_.kernel.kernel->name, candidate_.tactic.params, call);
}

Result<std::unique_ptr<Instance>> Instance::configure(std::shared_ptr<const Site> site, const Candidate& candidate) {
  return deserialize(std::move(site), candidate, candidate.kernel.kernel->revision, {});
}

Result<std::unique_ptr<Instance>> Instance::deserialize(std::shared_ptr<const Site> site, const Candidate& candidate,
                                                        std::uint32_t revision,
                                                        const std::vector<std::uint8_t>& bytes) {
  std::unique_ptr<Instance> instance(new Instance(std::move(site), candidate));
  const KernelRef& ref = instance->candidate_.kernel;
  std::vector<TnPort> storage;
  const TnCombo combo = instance->candidate_.combo.abi(&storage);
  const TnTactic tactic = instance->candidate_.tactic.abi();
  const TnSite& view = candidate.fused_epilogue ? instance->site_->abi() : instance->site_->abi_plain();
  const TnConfig config{TN_HEADER(TnConfig), revision, &view, &combo, &tactic};
  clear_failure();
  TnStatus code = TN_OK;
  if (!bytes.empty() && ref.kernel->deserialize != nullptr) {
    BytesReader source{&bytes};
    TnReader reader{TN_HEADER(TnReader), &source, &read_bytes};
    code = ref.kernel->deserialize(ref.host, ref.kernel, &reader, &config, &instance->inst_);
  } else {
    code = ref.kernel->configure(ref.host, ref.kernel, &config, &instance->inst_);
  }
  TENON_RETURN_IF_ERROR(take_failure(code, instance->where(bytes.empty() ? "configure" : "deserialize")));
  instance->configured_ = true;
  TENON_RETURN_IF_ERROR(instance->read_sizes());
  return instance;
}

Status Instance::read_sizes() {
  sizes_ = TnSizes{};
  sizes_.struct_size = TN_HEADER(TnSizes);
  const TnKernel& kernel = *candidate_.kernel.kernel;
  if (kernel.sizes == nullptr) return {};
  clear_failure();
  return take_failure(kernel.sizes(candidate_.kernel.host, inst_, &sizes_), where("sizes"));
}

Status Instance::initialize(Device& device, Stream& stream, void* persistent, bool filled,
                            const std::vector<void*>& device_constants) {
  device_ = &device;
  const TnKernel& kernel = *candidate_.kernel.kernel;
  if (kernel.initialize == nullptr) {
    initialized_ = true;
    return {};
  }
  const TnSite& site = site_->abi();
  std::vector<TnTensor> on_host(site.constants, site.constants + site.num_inputs);
  std::vector<TnTensor> on_device = on_host;
  for (std::size_t i = 0; i < on_host.size(); ++i) {
    on_host[i].memory = TN_MEMORY_HOST;
    on_device[i].memory = TN_MEMORY_DEVICE;
    on_device[i].data = device_constants[i];
  }
  void* scratch = nullptr;
  if (sizes_.init_scratch != 0) {
    TENON_ASSIGN(scratch, device.allocate(sizes_.init_scratch));
  }
  TnExec exec{};
  device.prepare_exec(stream, &exec);
  const TnInit init{TN_HEADER(TnInit), site.num_inputs,     on_host.data(), on_device.data(),
                    persistent,        sizes_.persistent,   filled ? 1 : 0, 0,
                    scratch,           sizes_.init_scratch, &exec};
  clear_failure();
  Status status = take_failure(kernel.initialize(candidate_.kernel.host, inst_, &init), where("initialize"));
  if (scratch != nullptr) {
    const Status done = stream.synchronize();
    if (status.ok()) status = done;
    device.free(scratch);
  }
  initialized_ = status.ok();
  return status;
}

Status Instance::set_shapes(const TnExec& exec, const TnTensor* inputs, const TnTensor* outputs) const {
  const TnKernel& kernel = *candidate_.kernel.kernel;
  if (kernel.set_shapes == nullptr) return {};
  clear_failure();
  return take_failure(kernel.set_shapes(candidate_.kernel.host, inst_, &exec, inputs, outputs), where("set_shapes"));
}

Status Instance::enqueue(const TnExec& exec, const TnTensor* inputs, const TnTensor* outputs) const {
  const TnKernel& kernel = *candidate_.kernel.kernel;
  const TnStatus code = kernel.enqueue(candidate_.kernel.host, inst_, &exec, inputs, outputs);
  if (code != TN_OK) return take_failure(code, where("enqueue"));
  if (candidate_.fused_epilogue) return {};
  const std::vector<Expression>& epilogues = site_->desc().epilogues;
  for (std::size_t i = 0; i < epilogues.size(); ++i) {
    if (!epilogues[i].empty()) TENON_RETURN_IF_ERROR(apply_epilogue(epilogues[i], inputs, outputs[i], exec));
  }
  return {};
}

/// In place on a packed f32 tensor.
Status Instance::apply_epilogue(const Expression& epilogue, const TnTensor* inputs, const TnTensor& tensor,
                                const TnExec& exec) const {
  const std::int64_t count = physical_elements(tensor.dims, tensor.format);
  auto* data = static_cast<float*>(tensor.data);
  if (device_->info().on_host()) {
    const SiteDesc& desc = site_->desc();
    apply_on_host(epilogue, inputs + desc.num_inputs, desc.num_extra, data, count, exec);
    if (tensor.format.padding == TN_PAD_ZERO) zero_padding(tensor);
    return {};
  }
  if (tensor.format.padding == TN_PAD_ZERO) {
    return {Code::kDeclined, where("the epilogue") + ": only the host keeps padded cells zero"};
  }
  const TnExpr view{TN_HEADER(TnExpr), static_cast<std::uint32_t>(epilogue.instrs().size()), epilogue.instrs().data()};
  return device_->apply_expression(view, data, count, exec.stream).with_context(where("the epilogue"));
}

Result<std::vector<std::uint8_t>> Instance::serialize() const {
  std::vector<std::uint8_t> bytes;
  const TnKernel& kernel = *candidate_.kernel.kernel;
  if (kernel.serialize == nullptr) return bytes;
  TnWriter writer{TN_HEADER(TnWriter), &bytes, &write_bytes};
  clear_failure();
  TENON_RETURN_IF_ERROR(take_failure(kernel.serialize(candidate_.kernel.host, inst_, &writer), where("serialize")));
  return bytes;
}

}  // namespace tenon
