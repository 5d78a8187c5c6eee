#include "core/runtime/test_plugin.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "core/base/hash.h"

namespace tenon::testing {

std::atomic<bool> waiting_entered{false};
std::atomic<bool> release_waiting{false};

Counters& counters() {
  static Counters all;
  return all;
}

void reset_counters() {
  Counters& all = counters();
  for (std::atomic<int>* one :
       {&all.packed, &all.filled, &all.deserialized, &all.created, &all.destroyed, &all.terminated}) {
    *one = 0;
  }
}

namespace {

std::int64_t count_of(const TnDims& dims) {
  std::int64_t count = 1;
  for (int i = 0; i < dims.rank; ++i) count *= dims.d[i];
  return count;
}

// --- ops ---

TnStatus TN_CALL same_as_first(const TnHost*, const TnOp*, TnInfer* question) {
  question->outputs[0].dims = question->inputs[0].dims;
  question->outputs[0].dtype = question->inputs[0].dtype;
  return TN_OK;
}

// Boxes are always whole outputs here: only the reference kernel calls this.
TnStatus TN_CALL neg_reference(const TnHost*, const TnOp*, const TnReference* call) {
  const auto* x = static_cast<const float*>(call->inputs[0].data);
  auto* y = static_cast<float*>(call->outputs[0].data);
  for (std::int64_t i = 0; i < count_of(call->outputs[0].dims); ++i) y[i] = -x[i];
  return TN_OK;
}

TnStatus TN_CALL no_reference(const TnHost* host, const TnOp*, const TnReference*) {
  return TN_FAIL(host, TN_INTERNAL, "not used by these tests");
}

const TnPortSpec kPortX = {TN_HEADER(TnPortSpec), 0, "x", ""};
const TnPortSpec kPortW = {TN_HEADER(TnPortSpec), 0, "w", ""};
const TnPortSpec kPortY = {TN_HEADER(TnPortSpec), 0, "y", ""};
const TnPortSpec* const kTwoInputs[] = {&kPortX, &kPortW};
const TnPortSpec* const kOneOutput[] = {&kPortY};

TnOp make_op(const char* id, std::uint32_t inputs,
             TnStatus(TN_CALL* reference)(const TnHost*, const TnOp*, const TnReference*)) {
  TnOp op{};
  op.struct_size = TN_HEADER(TnOp);
  op.flags = TN_OP_PURE;
  op.id = id;
  op.doc = "for tests";
  op.num_inputs = inputs;
  op.num_outputs = 1;
  op.inputs = kTwoInputs;
  op.outputs = kOneOutput;
  op.infer = same_as_first;
  op.reference = reference;
  return op;
}

// --- test.affine.packed ---

constexpr char kState[] = "AFF1";

struct Packed {
  std::int64_t count = 0;
  std::uint64_t key = 0;
  const float* doubled = nullptr;
};

Packed& packed(TnInst* inst) { return *reinterpret_cast<Packed*>(inst); }
const Packed& packed(const TnInst* inst) { return *reinterpret_cast<const Packed*>(inst); }

TnStatus TN_CALL packed_configure(const TnHost*, const TnKernel*, const TnConfig* config, TnInst** out) {
  auto* instance = new Packed;
  instance->count = count_of(config->site->max_dims[0]);
  const TnTensor& w = config->site->constants[1];
  instance->key = hash64({static_cast<const char*>(w.data), static_cast<std::size_t>(count_of(w.dims)) * 4});
  *out = reinterpret_cast<TnInst*>(instance);
  ++counters().created;
  return TN_OK;
}

TnStatus TN_CALL packed_deserialize(const TnHost* host, const TnKernel* kernel, TnReader* reader,
                                    const TnConfig* config, TnInst** out) {
  char state[4];
  if (reader->read(reader, state, 4) != 4 || std::memcmp(state, kState, 4) != 0) {
    return TN_FAIL(host, TN_INVALID, "the state is not AFF1");
  }
  ++counters().deserialized;
  return packed_configure(host, kernel, config, out);
}

TnStatus TN_CALL packed_sizes(const TnHost*, const TnInst* inst, TnSizes* out) {
  out->persistent = static_cast<std::uint64_t>(packed(inst).count) * 4;
  out->workspace = 64;
  out->context_host = 8;
  out->context_device = 16;
  out->init_scratch = 32;
  out->pack_key[0] = packed(inst).key;
  return TN_OK;
}

TnStatus TN_CALL packed_initialize(const TnHost* host, TnInst* inst, const TnInit* init) {
  if (reinterpret_cast<std::uintptr_t>(init->persistent) % 256 != 0) {
    return TN_FAIL(host, TN_INTERNAL, "persistent memory is not aligned");
  }
  if (init->persistent_filled == 0) {
    const auto* w = static_cast<const float*>(init->constants_device[1].data);
    auto* doubled = static_cast<float*>(init->persistent);
    for (std::int64_t i = 0; i < packed(inst).count; ++i) doubled[i] = 2 * w[i];
  }
  ++(init->persistent_filled != 0 ? counters().filled : counters().packed);
  packed(inst).doubled = static_cast<const float*>(init->persistent);
  return TN_OK;
}

TnStatus TN_CALL packed_set_shapes(const TnHost* host, const TnInst* inst, const TnExec* exec, const TnTensor* inputs,
                                   const TnTensor*) {
  if (inputs[0].data != nullptr) return TN_FAIL(host, TN_INTERNAL, "set_shapes got data");
  const std::int64_t count = count_of(inputs[0].dims);
  if (count != packed(inst).count) return TN_FAIL(host, TN_INTERNAL, "other dims than at configure");
  std::memcpy(exec->context_host, &count, sizeof(count));
  std::memset(exec->context_device, 0x5A, 16);
  return TN_OK;
}

TnStatus TN_CALL packed_enqueue(const TnHost* host, const TnInst* inst, const TnExec* exec, const TnTensor* inputs,
                                const TnTensor* outputs) {
  std::int64_t count = 0;
  std::memcpy(&count, exec->context_host, sizeof(count));
  if (static_cast<const std::uint8_t*>(exec->context_device)[15] != 0x5A) {
    return TN_FAIL(host, TN_INTERNAL, "context memory was not kept");
  }
  if (exec->workspace_size != 64) return TN_FAIL(host, TN_INTERNAL, "no workspace");
  std::memset(exec->workspace, 0xFF, 64);
  const auto* x = static_cast<const float*>(inputs[0].data);
  auto* y = static_cast<float*>(outputs[0].data);
  for (std::int64_t i = 0; i < count; ++i) y[i] = x[i] * packed(inst).doubled[i] / 2;
  return TN_OK;
}

TnStatus TN_CALL packed_serialize(const TnHost*, const TnInst*, TnWriter* writer) {
  return writer->write(writer, kState, 4) == 4 ? TN_OK : TN_IO;
}

void TN_CALL packed_terminate(const TnHost*, TnInst*) { ++counters().terminated; }

void TN_CALL packed_destroy(const TnHost*, TnInst* inst) {
  delete &packed(inst);
  ++counters().destroyed;
}

// --- the stateless kernels ---

TnStatus TN_CALL stateless_configure(const TnHost*, const TnKernel*, const TnConfig*, TnInst** out) {
  *out = nullptr;
  return TN_OK;
}

TnStatus TN_CALL strided_enqueue(const TnHost*, const TnInst*, const TnExec*, const TnTensor* inputs,
                                 const TnTensor* outputs) {
  const TnTensor &x = inputs[0], &w = inputs[1], &y = outputs[0];
  for (std::int64_t i = 0; i < x.dims.d[0]; ++i) {
    for (std::int64_t j = 0; j < x.dims.d[1]; ++j) {
      static_cast<float*>(y.data)[i * y.strides[0] + j * y.strides[1]] =
          static_cast<const float*>(x.data)[i * x.strides[0] + j * x.strides[1]] *
          static_cast<const float*>(w.data)[i * w.strides[0] + j * w.strides[1]];
    }
  }
  return TN_OK;
}

TnStatus TN_CALL failing_enqueue(const TnHost* host, const TnInst*, const TnExec*, const TnTensor*, const TnTensor*) {
  return TN_FAIL(host, TN_DEVICE, "the moon is full");
}

TnStatus TN_CALL waiting_enqueue(const TnHost* host, const TnInst* inst, const TnExec* exec, const TnTensor* inputs,
                                 const TnTensor* outputs) {
  waiting_entered = true;
  while (!release_waiting) std::this_thread::yield();
  return strided_enqueue(host, inst, exec, inputs, outputs);
}

TnStatus TN_CALL add_enqueue(const TnHost*, const TnInst*, const TnExec*, const TnTensor* inputs,
                             const TnTensor* outputs) {
  const auto *a = static_cast<const float*>(inputs[0].data), *b = static_cast<const float*>(inputs[1].data);
  auto* y = static_cast<float*>(outputs[0].data);
  for (std::int64_t i = 0; i < count_of(outputs[0].dims); ++i) y[i] = a[i] + b[i];
  return TN_OK;
}

const TnPort kRow[3] = {{TN_F32, 0, TN_ROW_INIT, 0, 0}, {TN_F32, 0, TN_ROW_INIT, 0, 0}, {TN_F32, 0, TN_ROW_INIT, 0, 0}};
const TnCombo kRowCombo = {kRow, 2, 1, nullptr, 0, 0};

TnKernel make_kernel(const char* op_id, const char* name,
                     TnStatus(TN_CALL* enqueue)(const TnHost*, const TnInst*, const TnExec*, const TnTensor*,
                                                const TnTensor*)) {
  TnKernel kernel{};
  kernel.struct_size = TN_HEADER(TnKernel);
  kernel.flags = TN_KERNEL_DETERMINISTIC | TN_KERNEL_RELOCATABLE;
  kernel.op_id = op_id;
  kernel.name = name;
  kernel.revision = 1;
  kernel.device = TN_CPU;
  kernel.combos = &kRowCombo;
  kernel.num_combos = 1;
  kernel.configure = stateless_configure;
  kernel.enqueue = enqueue;
  return kernel;
}

TnKernel make_packed() {
  TnKernel kernel = make_kernel("test.affine/1", "test.affine.packed", packed_enqueue);
  kernel.configure = packed_configure;
  kernel.deserialize = packed_deserialize;
  kernel.sizes = packed_sizes;
  kernel.initialize = packed_initialize;
  kernel.set_shapes = packed_set_shapes;
  kernel.serialize = packed_serialize;
  kernel.terminate = packed_terminate;
  kernel.destroy = packed_destroy;
  return kernel;
}

const TnOp kAffine = make_op("test.affine/1", 2, no_reference);
const TnOp kAdd = make_op("test.add/1", 2, no_reference);
const TnOp kNeg = make_op("test.neg/1", 1, neg_reference);
const TnKernel kPacked = make_packed();
const TnKernel kStrided = make_kernel("test.affine/1", "test.affine.strided", strided_enqueue);
const TnKernel kFailing = make_kernel("test.affine/1", "test.affine.failing", failing_enqueue);
const TnKernel kWaiting = make_kernel("test.affine/1", "test.affine.waiting", waiting_enqueue);
const TnKernel kPlainAdd = make_kernel("test.add/1", "test.add.plain", add_enqueue);

TnStatus TN_CALL load_affine(const TnHost* host) {
  TnStatus status = host->register_op(host, &kAffine);
  for (const TnKernel* kernel : {&kPacked, &kStrided, &kFailing, &kWaiting}) {
    if (status == TN_OK) status = host->register_kernel(host, kernel);
  }
  return status;
}

TnStatus TN_CALL load_add(const TnHost* host) {
  const TnStatus status = host->register_op(host, &kAdd);
  return status == TN_OK ? host->register_kernel(host, &kPlainAdd) : status;
}

TnStatus TN_CALL load_neg(const TnHost* host) { return host->register_op(host, &kNeg); }

TnPlugin make_plugin(const char* id, TnStatus(TN_CALL* load)(const TnHost*)) {
  return {TN_HEADER(TnPlugin),
          TN_ABI_MAJOR,
          TN_USE_MINOR,
          TN_ABI_MINOR_LATEST,
          id,
          "1.0",
          "Apache-2.0",
          "",
          "",
          load,
          nullptr};
}

std::vector<float> repeated(float value) { return std::vector<float>(6, value); }

}  // namespace

const TnPlugin* affine_plugin() {
  static const TnPlugin plugin = make_plugin("test.affine", load_affine);
  return &plugin;
}
const TnPlugin* add_plugin() {
  static const TnPlugin plugin = make_plugin("test.add", load_add);
  return &plugin;
}
const TnPlugin* neg_plugin() {
  static const TnPlugin plugin = make_plugin("test.neg", load_neg);
  return &plugin;
}
std::vector<const TnPlugin*> all_plugins() { return {affine_plugin(), add_plugin(), neg_plugin()}; }

std::shared_ptr<Registry> registry_with(const std::vector<const TnPlugin*>& plugins) {
  std::shared_ptr<Registry> registry = Registry::create(null_logger());
  for (const TnPlugin* plugin : plugins) {
    if (!registry->add_linked(plugin).ok()) return nullptr;
  }
  return registry;
}

PlanBuilder::PlanBuilder(const Device& device) {
  plan.tenon_version = "0.1.0";
  plan.device_kind = "cpu";
  plan.device_signature = device.info().signature;
  plan.verbosity = Verbosity::kDetailed;
}

std::uint32_t PlanBuilder::tensor(const std::string& name, const std::vector<std::int64_t>& dims, Storage storage,
                                  std::size_t index) {
  PlanTensor result;
  result.name = name;
  result.dtype = TN_F32;
  result.dims = make_dims(dims);
  result.format = row_format();
  result.storage = storage;
  result.index = static_cast<std::uint32_t>(index);
  result.bytes = tensor_bytes(TN_F32, result.dims, result.format).value();
  plan.tensors.push_back(result);
  return static_cast<std::uint32_t>(plan.tensors.size() - 1);
}

std::uint32_t PlanBuilder::input(const std::string& name, const std::vector<std::int64_t>& dims) {
  const std::uint32_t id = tensor(name, dims, Storage::kInput, plan.inputs.size());
  plan.inputs.push_back({name, id, plan.tensors[id].dims, plan.tensors[id].dims});
  return id;
}

std::uint32_t PlanBuilder::output(const std::string& name, const std::vector<std::int64_t>& dims) {
  const std::uint32_t id = tensor(name, dims, Storage::kOutput, plan.outputs.size());
  plan.outputs.push_back({name, id, plan.tensors[id].dims, plan.tensors[id].dims});
  return id;
}

std::uint32_t PlanBuilder::constant(const std::string& name, const std::vector<std::int64_t>& dims,
                                    const std::vector<float>& values) {
  const std::uint32_t id = tensor(name, dims, Storage::kConstant, plan.constants.size());
  plan.constants.push_back(HostTensor::create(TN_F32, make_dims(dims), values.data(), values.size() * 4).value());
  return id;
}

std::uint32_t PlanBuilder::inner(const std::string& name, const std::vector<std::int64_t>& dims) {
  const std::uint32_t id = tensor(name, dims, Storage::kArena, 0);
  plan.tensors[id].offset = plan.arena_bytes;
  plan.arena_bytes += (plan.tensors[id].bytes + 255) / 256 * 256;
  return id;
}

PlanNode& PlanBuilder::node(const std::string& name, const std::string& op_id, const std::string& kernel,
                            const std::vector<std::uint32_t>& inputs, std::uint32_t output) {
  PlanNode node;
  node.name = name;
  node.layer_type = op_id.substr(5, op_id.find('/') - 5);
  node.members = {name};
  node.op_id = op_id;
  node.inputs = inputs;
  node.outputs = {output};
  node.kernel = kernel;
  node.kernel_revision = 1;
  node.plugin_id = kernel.find("reference") == std::string::npos ? op_id.substr(0, op_id.find('/')) : "";
  node.combo.inputs.assign(inputs.size(), kRow[0]);
  node.combo.outputs.assign(1, kRow[0]);
  node.tactic_hash = tactic_hash(kernel, "");
  if (kernel == "test.affine.packed") {
    node.state.assign(kState, kState + 4);
    node.persistent_bytes = plan.tensors[inputs[0]].bytes;
  }
  if (kernel == "test.affine.strided") {
    node.combo.inputs[0].flags = node.combo.outputs[0].flags = TN_PORT_ANY_STRIDES;
  }
  plan.nodes.push_back(node);
  const std::string owner = op_id.substr(0, op_id.find('/'));
  const PluginNeed need{owner, "1.0", owner.substr(5) + ".tnp.so", "0xabc"};
  if (std::find(plan.plugins.begin(), plan.plugins.end(), need) == plan.plugins.end()) plan.plugins.push_back(need);
  return plan.nodes.back();
}

Plan residual_plan(const Device& device, const std::string& kernel, float second) {
  PlanBuilder builder(device);
  const std::vector<std::int64_t> dims = {2, 3};
  const std::uint32_t x = builder.input("x", dims);
  const std::uint32_t w1 = builder.constant("w1", dims, repeated(2));
  const std::uint32_t w2 = builder.constant("w2", dims, repeated(second));
  const std::uint32_t a = builder.inner("a", dims), b = builder.inner("b", dims);
  const std::uint32_t y = builder.output("y", dims);
  builder.node("scale1", "test.affine/1", kernel, {x, w1}, a);
  builder.node("scale2", "test.affine/1", kernel, {a, w2}, b);
  builder.node("sum", "test.add/1", "test.add.plain", {a, b}, y);
  return builder.plan;
}

Plan single_plan(const Device& device, const std::string& kernel) {
  PlanBuilder builder(device);
  const std::uint32_t x = builder.input("x", {2, 3});
  const std::uint32_t w = builder.constant("w", {2, 3}, repeated(2));
  builder.node("only", "test.affine/1", kernel, {x, w}, builder.output("y", {2, 3}));
  return builder.plan;
}

Result<std::shared_ptr<Engine>> load(const Plan& plan, EngineOptions options) {
  TENON_ASSIGN(std::vector<std::uint8_t> bytes, write_plan(plan));
  const auto held = std::make_shared<const std::vector<std::uint8_t>>(std::move(bytes));
  return Engine::load(held->data(), held->size(), held, std::move(options));
}

}  // namespace tenon::testing
