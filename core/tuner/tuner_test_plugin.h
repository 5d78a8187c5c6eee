// A small linked plugin for the tuner's tests: an op that doubles a vector, with a reference and kernels whose speed
// and results the tests set.
#pragma once

#include <tenon/plugin/all.h>

#include <chrono>
#include <map>
#include <string>

namespace tenon {

inline constexpr const char* kOp = "test.twice/1";

/// How a test kernel behaves; the key is kernel name + " " + params.
struct Behaviour {
  int spin_us = 0;
  float factor = 2;  // 2 is right
  TnStatus configure = TN_OK;
  TnStatus run = TN_OK;
  double estimate = -1;
  std::uint64_t workspace = 0;
  bool breaks_device = false;
  int runs = 0;
};

/// What FragileDevice of the tests says of itself.
inline bool device_is_broken = false;

inline std::map<std::string, Behaviour>& behaviours() {
  static std::map<std::string, Behaviour> all;
  return all;
}

struct TestInstance {
  Behaviour* behaviour;
};

inline std::string behaviour_key(const TnKernel* kernel, const char* params) {
  return std::string(kernel->name) + " " + params;
}

inline TnStatus TN_CALL infer(const TnHost*, const TnOp*, TnInfer* question) {
  question->outputs[0].dims = question->inputs[0].dims;
  question->outputs[0].dtype = question->inputs[0].dtype;
  return TN_OK;
}

inline TnStatus TN_CALL reference(const TnHost*, const TnOp*, const TnReference* call) {
  const TnBox& box = call->boxes[0];
  const auto* x = static_cast<const float*>(call->inputs[0].data);
  auto* y = static_cast<float*>(call->outputs[0].data);
  for (std::int64_t i = 0; i < box.size[0]; ++i) y[i] = 2 * x[box.start[0] + i];
  return TN_OK;
}

inline TnStatus TN_CALL tactics(const TnHost*, const TnKernel* kernel, const TnSite*, const TnCombo*,
                                TnTacticSink* sink) {
  for (const auto& [key, behaviour] : behaviours()) {
    const std::string name = std::string(kernel->name) + " ";
    if (key.compare(0, name.size(), name) != 0) continue;
    const std::string params = key.substr(name.size());
    const TnTactic tactic{TN_HEADER(TnTactic), 0, params.c_str(), nullptr, behaviour.workspace};
    sink->add(sink, &tactic);
  }
  return TN_OK;
}

inline TnStatus TN_CALL configure(const TnHost* host, const TnKernel* kernel, const TnConfig* config, TnInst** out) {
  Behaviour& behaviour = behaviours()[behaviour_key(kernel, config->tactic->params)];
  if (behaviour.configure != TN_OK) return TN_FAIL(host, behaviour.configure, "not on a day like this");
  *out = reinterpret_cast<TnInst*>(new TestInstance{&behaviour});
  return TN_OK;
}

inline TnStatus TN_CALL enqueue(const TnHost* host, const TnInst* inst, const TnExec*, const TnTensor* inputs,
                                const TnTensor* outputs) {
  Behaviour& behaviour = *reinterpret_cast<const TestInstance*>(inst)->behaviour;
  ++behaviour.runs;
  if (behaviour.breaks_device) device_is_broken = true;
  if (device_is_broken) return TN_FAIL(host, TN_DEVICE, "an illegal memory access was encountered");
  if (behaviour.run != TN_OK) return TN_FAIL(host, behaviour.run, "fell over");
  const auto* x = static_cast<const float*>(inputs[0].data);
  auto* y = static_cast<float*>(outputs[0].data);
  for (std::int64_t i = 0; i < inputs[0].dims.d[0]; ++i) y[i] = behaviour.factor * x[i];
  const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(behaviour.spin_us);
  while (std::chrono::steady_clock::now() < until) {
  }
  return TN_OK;
}

inline TnStatus TN_CALL sizes(const TnHost*, const TnInst* inst, TnSizes* out) {
  out->workspace = reinterpret_cast<const TestInstance*>(inst)->behaviour->workspace;
  return TN_OK;
}

inline void TN_CALL destroy(const TnHost*, TnInst* inst) { delete reinterpret_cast<TestInstance*>(inst); }

inline TnStatus TN_CALL estimate(const TnHost* host, const TnKernel* kernel, const TnConfig* config, double* ms) {
  *ms = behaviours()[behaviour_key(kernel, config->tactic->params)].estimate;
  return *ms >= 0 ? TN_OK : TN_FAIL(host, TN_DECLINED, "no guess");
}

inline const TnPort kPorts[] = {{TN_F32, 0, TN_ROW_INIT, 0, 0}, {TN_F32, 0, TN_ROW_INIT, 0, 0}};
inline const TnCombo kCombo = {kPorts, 1, 1, nullptr, 0, 0};

inline TnKernel make_kernel(const char* name) {
  TnKernel kernel{};
  kernel.struct_size = TN_HEADER(TnKernel);
  kernel.flags = TN_KERNEL_DETERMINISTIC;
  kernel.op_id = kOp;
  kernel.name = name;
  kernel.revision = 1;
  kernel.device = TN_CPU;
  kernel.combos = &kCombo;
  kernel.num_combos = 1;
  kernel.tactics = &tactics;
  kernel.configure = &configure;
  kernel.sizes = &sizes;
  kernel.enqueue = &enqueue;
  kernel.destroy = &destroy;
  kernel.estimate = &estimate;
  return kernel;
}

inline TnKernel fast_kernel = make_kernel("test.twice.fast");
inline TnKernel slow_kernel = make_kernel("test.twice.slow");
inline TnKernel wrong_kernel = make_kernel("test.twice.wrong");
inline TnKernel added_kernel = make_kernel("test.twice.added");

inline TnStatus TN_CALL load_main(const TnHost* host) {
  static const TnPortSpec x = {TN_HEADER(TnPortSpec), 0, "x", "a vector"};
  static const TnPortSpec y = {TN_HEADER(TnPortSpec), 0, "y", "twice x"};
  static const TnPortSpec* const inputs[] = {&x};
  static const TnPortSpec* const outputs[] = {&y};
  static const TnOp op = [] {
    TnOp made{};
    made.struct_size = TN_HEADER(TnOp);
    made.flags = TN_OP_PURE;
    made.id = kOp;
    made.doc = "Doubles a vector. y = 2 x.";
    made.num_inputs = 1;
    made.num_outputs = 1;
    made.inputs = inputs;
    made.outputs = outputs;
    made.infer = &infer;
    made.reference = &reference;
    return made;
  }();
  for (const TnStatus status :
       {host->register_op(host, &op), host->register_kernel(host, &fast_kernel),
        host->register_kernel(host, &slow_kernel), host->register_kernel(host, &wrong_kernel)}) {
    if (status != TN_OK) return status;
  }
  return TN_OK;
}

inline TnStatus TN_CALL load_added(const TnHost* host) { return host->register_kernel(host, &added_kernel); }

inline TnPlugin make_plugin(const char* id, TnStatus(TN_CALL* load)(const TnHost*)) {
  return {TN_HEADER(TnPlugin),
          TN_ABI_MAJOR,
          TN_USE_MINOR,
          TN_ABI_MINOR_LATEST,
          id,
          "1",
          "Apache-2.0",
          "",
          "",
          load,
          nullptr};
}
inline const TnPlugin main_plugin = make_plugin("test.twice", &load_main);
inline const TnPlugin added_plugin = make_plugin("test.added", &load_added);

}  // namespace tenon
