#include "core/site/view.h"

#include <fmt/format.h>
#include <tenon/plugin/ext/ids.h>
#include <tenon/plugin/ext/parallel.h>
#include <tenon/plugin/ext/placement.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/base/failure.h"
#include "core/site/layout.h"

namespace tenon {
namespace {

const TnOpPlacement* placement_interface(const TnOp& op) {
  if (op.get_interface == nullptr) return nullptr;
  return static_cast<const TnOpPlacement*>(op.get_interface(&op, TN_IFACE_OP_PLACEMENT));
}

TnStatus TN_CALL collect(TnPlacementSink* self, const TnPlacement* placement) {
  if (placement == nullptr) return TN_INVALID;
  static_cast<std::vector<TnPlacement>*>(self->context)->push_back(*placement);
  return TN_OK;
}

Result<Share> share_of(const TnPlacement& placement, const SiteDesc& desc, const Combo& combo) {
  const TnPort& in = combo.inputs[placement.input];
  const TnPort& out = combo.outputs[placement.output];
  const TnDims& input = desc.dims[placement.input];
  const TnDims& output = desc.dims[desc.num_read() + placement.output];
  if (in.dtype != out.dtype || !same_format(in.format, out.format)) {
    return Status(Code::kDeclined, "the tensors have different formats");
  }
  const std::uint64_t bits = static_cast<std::uint64_t>(dtype_bits(in.dtype));
  if (bits % 8 != 0) return Status(Code::kDeclined, "elements of less than a byte");
  Share share{placement.input, placement.output, placement.kind != TN_INPUT_IN_OUTPUT, 0};
  if (placement.kind == TN_SAME_ELEMENTS) {
    TENON_ASSIGN(const std::int64_t from, element_count(input));
    TENON_ASSIGN(const std::int64_t to, element_count(output));
    if (from == to && in.format.kind == TN_FORMAT_ROW) return share;
    return Status(Code::kDeclined, "dims may change in row-major order only");
  }
  const TnDims& inner = share.output_inside ? output : input;
  const TnDims& outer = share.output_inside ? input : output;
  const std::optional<std::int64_t> offset = contiguous_offset(outer, inner, placement.start, in.format);
  if (!offset) return Status(Code::kDeclined, "a part is not contiguous in this format");
  share.offset = static_cast<std::uint64_t>(*offset) * (bits / 8);
  return share;
}

struct ViewKernel {
  TnKernel kernel{};  // first: callbacks get a pointer to it
  OpRef op;
  std::string name;
  Device* device = nullptr;
};

struct ViewInstance {
  struct Part {
    Share share;
    std::uint64_t bytes;
  };
  std::vector<Part> parts;
  Device* device = nullptr;
};

const ViewKernel& self(const TnKernel* kernel) { return *reinterpret_cast<const ViewKernel*>(kernel); }

/// What a site of the ABI says, as far as placements ask.
Result<SiteDesc> desc_of(const TnSite& site) {
  SiteDesc desc;
  desc.attrs = *site.attrs;
  desc.num_inputs = site.num_inputs;
  desc.num_extra = site.num_extra;
  desc.num_outputs = site.num_outputs;
  const std::uint32_t count = desc.num_read() + site.num_outputs;
  desc.dims.assign(site.max_dims, site.max_dims + count);
  desc.dtypes.assign(site.dtypes, site.dtypes + count);
  for (std::uint32_t i = 0; i < desc.num_read(); ++i) {
    const TnTensor& constant = site.constants[i];
    std::shared_ptr<const HostTensor> tensor;
    if (constant.data != nullptr) {
      TENON_ASSIGN(const std::uint64_t bytes, tensor_bytes(constant.dtype, constant.dims, row_format()));
      TENON_ASSIGN(tensor, HostTensor::create(constant.dtype, constant.dims, constant.data, bytes));
    }
    desc.constants.push_back(std::move(tensor));
  }
  return desc;
}

Result<std::unique_ptr<ViewInstance>> make_instance(const ViewKernel& kernel, const TnConfig& config) {
  TENON_ASSIGN(const SiteDesc desc, desc_of(*config.site));
  Combo combo;
  const TnPort* ports = config.combo->ports;
  combo.inputs.assign(ports, ports + config.combo->num_inputs);
  combo.outputs.assign(ports + config.combo->num_inputs, ports + config.combo->num_inputs + config.combo->num_outputs);
  TENON_ASSIGN(const std::vector<Share> shares, shares_of(kernel.op, desc, combo));
  auto instance = std::make_unique<ViewInstance>();
  instance->device = kernel.device->info().on_host() ? nullptr : kernel.device;
  for (const Share& share : shares) {
    const std::uint32_t smaller = share.output_inside ? desc.num_read() + share.output : share.input;
    const TnPort& port = combo.outputs[share.output];
    TENON_ASSIGN(const std::uint64_t bytes, tensor_bytes(port.dtype, desc.dims[smaller], port.format));
    instance->parts.push_back({share, bytes});
  }
  return instance;
}

TnStatus TN_CALL configure(const TnHost* host, const TnKernel* kernel, const TnConfig* config, TnInst** out) {
  auto instance = make_instance(self(kernel), *config);
  if (!instance.ok()) return TN_FAIL(host, TN_DECLINED, instance.status().message().c_str());
  *out = reinterpret_cast<TnInst*>(instance->release());
  return TN_OK;
}

constexpr std::int64_t kChunk = 256 * 1024;  // bytes that one thread copies at a time

void copy_on_host(char* to, const char* from, std::uint64_t bytes, const TnExec& exec) {
  struct Job {
    char* to;
    const char* from;
    std::int64_t bytes;
  } job{to, from, static_cast<std::int64_t>(bytes)};
  const auto body = [](void* argument, std::int64_t chunk) {
    const auto& self = *static_cast<const Job*>(argument);
    const std::int64_t begin = chunk * kChunk;
    std::memcpy(self.to + begin, self.from + begin, static_cast<std::size_t>(std::min(kChunk, self.bytes - begin)));
  };
  const std::int64_t chunks = (job.bytes + kChunk - 1) / kChunk;
  const auto* parallel = static_cast<const TnParallel*>(exec.parallel);
  if (parallel != nullptr && chunks > 1) return parallel->run(parallel->context, chunks, body, &job);
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) body(&job, chunk);
}

Status copy_on_device(Device& device, char* to, const char* from, std::uint64_t bytes, const TnExec& exec) {
  const auto bits = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from) | bytes;
  const std::uint64_t word = bits % 8 == 0 ? 8 : bits % 4 == 0 ? 4 : 1;
  TENON_ASSIGN(const std::unique_ptr<Stream> stream, device.wrap_stream(exec.stream));
  const std::int64_t stride = 1;
  return device.copy_strided(to, &stride, from, &stride, make_dims({static_cast<std::int64_t>(bytes / word)}), word,
                             *stream);
}

TnStatus TN_CALL enqueue(const TnHost* host, const TnInst* inst, const TnExec* exec, const TnTensor* inputs,
                         const TnTensor* outputs) {
  const auto& instance = *reinterpret_cast<const ViewInstance*>(inst);
  for (const ViewInstance::Part& part : instance.parts) {
    const auto* from = static_cast<const char*>(inputs[part.share.input].data);
    auto* to = static_cast<char*>(outputs[part.share.output].data);
    if (part.share.output_inside) {
      from += part.share.offset;
    } else {
      to += part.share.offset;
    }
    if (from == to) continue;
    if (instance.device == nullptr) {
      copy_on_host(to, from, part.bytes, *exec);
      continue;
    }
    const Status status = copy_on_device(*instance.device, to, from, part.bytes, *exec);
    if (!status.ok()) return TN_FAIL(host, static_cast<TnStatus>(status.code()), status.message().c_str());
  }
  return TN_OK;
}

void TN_CALL destroy(const TnHost*, TnInst* inst) { delete reinterpret_cast<ViewInstance*>(inst); }

}  // namespace

Result<std::vector<TnPlacement>> placements_of(const OpRef& op, const SiteDesc& desc) {
  const TnOpPlacement* interface = placement_interface(*op.op);
  if (interface == nullptr) return Status(Code::kDeclined, "the op has no " TN_IFACE_OP_PLACEMENT);
  const InferredSite inferred(desc);
  std::vector<TnPlacement> placements;
  TnPlacementSink sink{TN_HEADER(TnPlacementSink), 0, &placements, &collect};
  clear_failure();
  TENON_RETURN_IF_ERROR(take_failure(interface->describe(op.host, op.op, &inferred.abi(), &sink), "placement"));
  for (const TnPlacement& placement : placements) {
    if (placement.input < desc.num_inputs && placement.output < desc.num_outputs) continue;
    return Status(Code::kInternal, "placement: it names no such tensor; that is a fault of the plugin");
  }
  if (placements.empty()) return Status(Code::kDeclined, "the op places nothing");
  return placements;
}

Result<std::vector<Share>> shares_of(const OpRef& op, const SiteDesc& desc, const Combo& combo) {
  for (std::size_t i = 0; i < desc.dims.size(); ++i) {
    if (desc.dtypes[i] == TN_DTYPE_NONE) continue;
    TENON_ASSIGN(const std::int64_t count, element_count(desc.dims[i]));
    if (count == 0) return Status(Code::kDeclined, "a tensor is empty");
  }
  if (!desc.epilogues.empty()) return Status(Code::kDeclined, "the node has an epilogue");
  TENON_ASSIGN(const std::vector<TnPlacement> placements, placements_of(op, desc));
  std::vector<Share> shares;
  for (const TnPlacement& placement : placements) {
    // Constants lie in memory of their own.
    if (desc.constants[placement.input] != nullptr) return Status(Code::kDeclined, "an input is constant");
    TENON_ASSIGN(const Share share, share_of(placement, desc, combo));
    shares.push_back(share);
  }
  return shares;
}

void add_views(const Site& site, const OpRef& op, Enumeration* enumeration) {
  if (placement_interface(*op.op) == nullptr) return;
  const KernelRef kernel = view_kernel(op, site.device());
  std::vector<Candidate> views;
  for (const Candidate& known : enumeration->candidates) {
    const auto same = [&](const Candidate& view) { return view.combo_text == known.combo_text; };
    if (std::any_of(views.begin(), views.end(), same)) continue;
    Candidate view;
    view.kernel = kernel;
    view.combo = known.combo;
    view.combo.aliases.clear();
    view.combo_text = known.combo_text;
    view.hash = tactic_hash(kernel.kernel->name, "");
    const Status status = shares_of(op, site.desc(), view.combo).status();
    if (status.ok()) {
      views.push_back(std::move(view));
    } else {
      enumeration->declines.push_back({kernel.kernel->name, known.combo_text, "", status.message()});
    }
  }
  enumeration->candidates.insert(enumeration->candidates.end(), views.begin(), views.end());
}

KernelRef view_kernel(const OpRef& op, Device& device) {
  auto owner = std::make_shared<ViewKernel>();
  owner->op = op;
  owner->device = &device;
  const std::string id = op.op->id;
  owner->name = id.substr(0, id.rfind('/')) + ".view";
  TnKernel& kernel = owner->kernel;
  kernel.struct_size = TN_HEADER(TnKernel);
  kernel.flags = unsigned{TN_KERNEL_DETERMINISTIC} | unsigned{TN_KERNEL_GRAPH_CAPTURABLE};
  kernel.op_id = op.op->id;
  kernel.name = owner->name.c_str();
  kernel.device = device.info().kind;
  kernel.configure = &configure;
  kernel.enqueue = &enqueue;
  kernel.destroy = &destroy;
  KernelRef ref;
  ref.kernel = &kernel;
  ref.host = op.host;
  ref.library = owner;
  return ref;
}

bool is_view_kernel(const KernelRef& ref) { return ref.kernel->enqueue == &enqueue; }

const OpRef& op_of_view(const KernelRef& ref) { return self(ref.kernel).op; }

}  // namespace tenon
