#include "plugins/common/testing/op_tester.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <random>
#include <tenon/sdk/box.hpp>
#include <tenon/sdk/format.hpp>
#include <tenon/sdk/kernel.hpp>
#include <thread>

#include "plugins/common/small_float.h"
#include "plugins/common/testing/device.h"
#include "plugins/common/testing/formatted_memory.h"

namespace tenon::testing {
namespace {

void run_threads(void* context, int64_t count, void(TN_CALL* body)(void*, int64_t), void* argument) {
  const int threads = *static_cast<int*>(context);
  std::atomic<int64_t> next{0};
  std::vector<std::thread> pool;
  for (int n = 0; n < threads; ++n) {
    pool.emplace_back([&] {
      for (int64_t index; (index = next++) < count;) body(argument, index);
    });
  }
  for (std::thread& thread : pool) thread.join();
}

// What references see of a dtype.
int32_t reference_dtype(int32_t dtype) {
  switch (dtype) {
    case TN_F16:
    case TN_BF16:
    case TN_F8E4M3FN:
    case TN_F8E4M3FNUZ:
    case TN_F8E5M2:
    case TN_F8E5M2FNUZ:
    case TN_F8E8M0:
    case TN_F4E2M1:
      return TN_F32;
    case TN_U4:
    case TN_U2:
      return TN_U8;
    case TN_I4:
    case TN_I2:
      return TN_I8;
    default:
      return dtype;
  }
}

bool is_half(int32_t dtype) { return dtype == TN_F16 || dtype == TN_BF16; }

// What kernels see: f16 or bf16 where the reference sees f32 that is declared so.
HostArray as_declared(const HostArray& array) {
  if (!is_half(array.declared)) return array;
  HostArray result = array;
  result.dtype = array.declared;
  const std::vector<float> values = array.values<float>();
  result.bytes.resize(values.size() * sizeof(uint16_t));
  for (size_t n = 0; n < values.size(); ++n) {
    const auto bits = static_cast<uint16_t>(plugins::small_float_bits(array.declared, values[n]));
    std::memcpy(result.bytes.data() + n * sizeof bits, &bits, sizeof bits);
  }
  return result;
}

std::vector<double> as_double(const HostArray& array) {
  std::vector<double> result;
  if (is_half(array.dtype)) {
    for (const uint16_t bits : array.values<uint16_t>())
      result.push_back(plugins::small_float_value(array.dtype, bits));
    return result;
  }
  visit_number(array.dtype == TN_BOOL ? static_cast<int32_t>(TN_U8) : array.dtype, [&](auto zero) {
    for (auto value : array.values<decltype(zero)>()) result.push_back(static_cast<double>(value));
  });
  return result;
}

}  // namespace

TnTensor HostArray::tensor() const {
  TnTensor tensor{};
  tensor.data = const_cast<char*>(bytes.data());
  tensor.dtype = dtype;
  tensor.memory = TN_MEMORY_HOST;
  tensor.format = row_format();
  tensor.dims = dims;
  row_strides(dims, tensor.strides);
  return tensor;
}

struct OpTester::Job {
  const TnKernel* kernel;
  const TnSite* site;
  const TnCombo* combo;
};

OpTester::OpTester(TestHost& host, const std::string& op_id) : host_(host), op_id_(op_id), op_(host.find_op(op_id)) {
  EXPECT_NE(op_, nullptr) << "no op " << op_id;
}

OpTester& OpTester::attr(const std::string& name, AttrValue value) { return attrs_[name] = std::move(value), *this; }

OpTester& OpTester::random_input(const Dims& dims, double scale) {
  std::mt19937 engine(static_cast<uint32_t>(inputs_.size()) + 17);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(dims.elements()));
  for (float& value : values) value = static_cast<float>(scale) * normal(engine);
  return input(dims, values);
}

OpTester& OpTester::absent() { return inputs_.emplace_back(), *this; }
OpTester& OpTester::constant() { return inputs_.back().constant = true, *this; }
OpTester& OpTester::declared_as(int32_t dtype) { return inputs_.back().declared = dtype, *this; }
OpTester& OpTester::epilogue(const Activation& activation) { return epilogue_.push_back(activation), *this; }

OpTester& OpTester::outputs(int count, int checked) {
  num_outputs_ = count;
  checked_ = checked;
  return *this;
}

bool OpTester::infer(Question ask, std::vector<HostArray>* outputs) {
  std::vector<TnTensor> tensors;
  for (const HostArray& array : inputs_) {
    tensors.push_back(array.tensor());
    if (array.declared != TN_DTYPE_NONE) tensors.back().dtype = array.declared;
    if (!array.constant) tensors.back().data = nullptr;
  }
  std::vector<TnTensor> results(static_cast<size_t>(num_outputs_));
  TnAttrs* attrs = host_.make_attrs(*op_, attrs_);
  TnInfer question = {TN_HEADER(TnInfer),
                      static_cast<uint32_t>(tensors.size()),
                      static_cast<uint32_t>(num_outputs_),
                      0,
                      attrs,
                      tensors.data(),
                      results.data()};
  const TnStatus status = ask(host_.host(), op_, &question);
  host_.host()->attrs->destroy(attrs);
  outputs->resize(results.size());
  for (size_t n = 0; n < results.size(); ++n) {
    (*outputs)[n].dtype = reference_dtype(results[n].dtype);
    if (is_half(results[n].dtype)) (*outputs)[n].declared = results[n].dtype;
    (*outputs)[n].dims = results[n].dims;
  }
  return status == TN_OK;
}

bool OpTester::evaluate(std::vector<HostArray> outputs, const TnBox& box, HostArray* checked) {
  std::vector<TnTensor> tensors, results;
  std::vector<TnBox> boxes;
  for (const HostArray& array : inputs_) tensors.push_back(array.tensor());
  for (HostArray& array : outputs) {
    const bool asked = &array == &outputs[static_cast<size_t>(checked_)];
    boxes.push_back(asked ? box : whole(array.dims));
    Dims extent = array.dims;
    for (int axis = 0; axis < extent.rank; ++axis) extent[axis] = boxes.back().size[axis];
    array.bytes.assign(static_cast<size_t>(extent.elements() * dtype_size(array.dtype)), '\x7f');
    results.push_back(array.tensor());
  }
  TnAttrs* attrs = host_.make_attrs(*op_, attrs_);
  const TnReference call = {TN_HEADER(TnReference),
                            static_cast<uint32_t>(tensors.size()),
                            static_cast<uint32_t>(results.size()),
                            0,
                            attrs,
                            tensors.data(),
                            results.data(),
                            boxes.data()};
  const TnStatus status = op_->reference(host_.host(), op_, &call);
  host_.host()->attrs->destroy(attrs);
  EXPECT_EQ(status, TN_OK) << op_id_ << ": " << host_.take_failure();
  *checked = outputs[static_cast<size_t>(checked_)];
  return status == TN_OK;
}

std::vector<HostArray> OpTester::references(Question question) {
  std::vector<HostArray> outputs;
  const bool inferred = infer(question, &outputs);
  EXPECT_TRUE(inferred) << op_id_ << ": " << host_.take_failure();
  HostArray& checked = outputs[static_cast<size_t>(checked_)];
  if (inferred) evaluate(outputs, whole(checked.dims), &checked);
  return outputs;
}

HostArray OpTester::reference() { return references(op_->infer)[static_cast<size_t>(checked_)]; }

OpTester& OpTester::expect(const Dims& dims, const std::vector<double>& values, double tolerance) {
  return compare(references(op_->infer), dims, values, tolerance);
}

OpTester& OpTester::expect_bound(const Dims& dims, const std::vector<double>& values, double tolerance) {
  if (op_->infer_bound == nullptr) {
    ADD_FAILURE() << op_id_ << " has no infer_bound";
    return *this;
  }
  return compare(references(op_->infer_bound), dims, values, tolerance);
}

OpTester& OpTester::compare(const std::vector<HostArray>& all, const Dims& dims, const std::vector<double>& values,
                            double tolerance) {
  const HostArray& output = all[static_cast<size_t>(checked_)];
  EXPECT_EQ(to_text(output.dims), to_text(dims)) << op_id_;
  const std::vector<double> found = as_double(output);
  if (found.size() != values.size()) {
    ADD_FAILURE() << op_id_ << ": expected " << values.size() << " elements, found " << found.size();
    return *this;
  }
  for (size_t n = 0; n < values.size(); ++n) {
    if (std::isnan(values[n]) && std::isnan(found[n])) continue;
    if (values[n] == found[n]) continue;  // infinities
    EXPECT_NEAR(found[n], values[n], tolerance) << op_id_ << ": element " << n;
  }
  std::mt19937 engine(7);
  for (int round = 0; round < 8 && output.dims.elements() > 0; ++round) {
    TnBox box{};
    for (int axis = 0; axis < dims.rank; ++axis) {
      box.start[axis] = static_cast<int64_t>(engine() % static_cast<uint64_t>(dims[axis]));
      box.size[axis] = 1 + static_cast<int64_t>(engine() % static_cast<uint64_t>(dims[axis] - box.start[axis]));
    }
    HostArray part;
    evaluate(all, box, &part);
    const std::vector<double> some = as_double(part);
    for_each_in_box(dims, box, [&](const int64_t*, int64_t linear, int64_t packed) {
      EXPECT_TRUE(some[static_cast<size_t>(packed)] == found[static_cast<size_t>(linear)] ||
                  std::isnan(found[static_cast<size_t>(linear)]))
          << op_id_ << ": element " << linear << " differs when a box is asked for";
    });
  }
  return *this;
}

OpTester& OpTester::expect_invalid(const std::vector<std::string>& words) {
  std::vector<HostArray> outputs;
  EXPECT_FALSE(infer(op_->infer, &outputs)) << op_id_;
  TnStatus code = TN_OK;
  const std::string message = host_.take_failure(&code);
  EXPECT_EQ(code, TN_INVALID);
  for (const std::string& word : words) EXPECT_NE(message.find(word), std::string::npos) << message;
  return *this;
}

OpTester& OpTester::expect_kernels(const std::vector<std::string>& required) {
  const std::set<std::string> ran = run_kernels(false);
  for (const std::string& name : required) EXPECT_TRUE(ran.count(name)) << name << " took no site: " << declined_[name];
  if (!cuda_tests().enabled) return *this;
  OpTester halves = *this;
  if (halves.to_halves()) halves.run_kernels(true);
  return *this;
}

// Declares every f32 input that is not constant to be f16. False if there is none, or the op does not take the result.
bool OpTester::to_halves() {
  bool any = false;
  for (HostArray& array : inputs_) {
    if (array.dtype != TN_F32 || array.constant || array.declared != TN_DTYPE_NONE) continue;
    any = true;
    array.declared = TN_F16;
    std::vector<float> values = array.values<float>();
    for (float& value : values) {
      value = plugins::small_float_value(TN_F16, plugins::small_float_bits(TN_F16, value));
    }
    if (!values.empty()) std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  }
  std::vector<HostArray> outputs;
  const bool accepted = any && infer(op_->infer, &outputs);
  host_.take_failure();
  return accepted;
}

// The names of the kernels that ran.
std::set<std::string> OpTester::run_kernels(bool cuda_only) {
  std::vector<HostArray> outputs = references(op_->infer);
  if (!epilogue_.empty()) {
    HostArray& expected = outputs[static_cast<size_t>(checked_)];
    std::vector<float> values = expected.values<float>();
    for (float& value : values) {
      for (const Activation& activation : epilogue_) value = static_cast<float>(apply_activation(activation, value));
    }
    std::memcpy(expected.bytes.data(), values.data(), expected.bytes.size());
  }
  std::set<std::string> ran;
  const std::vector<HostArray> inputs = inputs_;
  for (HostArray& array : outputs) array = as_declared(array);
  for (HostArray& array : inputs_) array = as_declared(array);
  for (const TnKernel* kernel : host_.kernels(op_id_)) {
    if (!cuda_only || kernel->device == TN_CUDA) run_kernel(*kernel, outputs, &ran);
  }
  inputs_ = inputs;
  return ran;
}

void OpTester::run_kernel(const TnKernel& kernel, const std::vector<HostArray>& outputs, std::set<std::string>* ran) {
  std::vector<TnDims> dims;
  std::vector<int32_t> dtypes;
  std::vector<TnTensor> constants;
  std::vector<uint32_t> alignments;
  for (const HostArray& array : inputs_) {
    dims.push_back(array.dims);
    dtypes.push_back(array.dtype);
    constants.push_back(array.tensor());
    if (!array.constant) constants.back().data = nullptr;
    alignments.push_back(256);
  }
  for (const HostArray& output : outputs) {
    dims.push_back(output.dims);
    dtypes.push_back(output.dtype);
    alignments.push_back(256);
  }
  const TnDevice device = {TN_HEADER(TnDevice), kernel.device, 0, 3, "test", "test"};
  std::unique_ptr<ExprText> text;
  TnExpr expr{};
  std::vector<const TnExpr*> epilogues(outputs.size());
  if (!epilogue_.empty()) {
    text = std::make_unique<ExprText>([&](ExprBuilder& e) {
      int32_t value = e.input();
      for (const Activation& activation : epilogue_) value = emit_activation(e, activation, value);
    });
    expr = text->expr();
    epilogues[0] = &expr;
  }
  TnAttrs* attrs = host_.make_attrs(*op_, attrs_);
  TnSite site{};
  site.struct_size = TN_HEADER(TnSite);
  site.num_inputs = static_cast<uint32_t>(inputs_.size());
  site.num_outputs = static_cast<uint32_t>(outputs.size());
  site.op_id = op_id_.c_str();
  site.attrs = attrs;
  site.min_dims = site.opt_dims = site.max_dims = dims.data();
  site.dtypes = dtypes.data();
  site.alignments = alignments.data();
  site.constants = constants.data();
  site.epilogues = epilogue_.empty() ? nullptr : epilogues.data();
  site.used_outputs = (uint64_t{1} << outputs.size()) - 1;
  site.device = &device;

  const TnHost* host = host_.host();
  bool asked = !kernel.supports || kernel.supports(host, &kernel, &site) == TN_OK;
  if (asked && !epilogue_.empty()) {
    const auto* iface =
        kernel.get_interface
            ? static_cast<const TnKernelEpilogue*>(kernel.get_interface(&kernel, TN_IFACE_KERNEL_EPILOGUE))
            : nullptr;
    asked = iface && iface->accepts(host, &kernel, &site) == TN_OK;
  }
  if (!asked) declined_[kernel.name] = host_.take_failure();
  std::vector<ComboSpec> specs;
  const auto add_combo = [&](const TnCombo& combo) {
    ComboSpec spec({}, {});
    spec.inputs.assign(combo.ports, combo.ports + combo.num_inputs);
    spec.outputs.assign(combo.ports + combo.num_inputs, combo.ports + combo.num_inputs + combo.num_outputs);
    spec.aliases.assign(combo.aliases, combo.aliases + combo.num_aliases);
    specs.push_back(spec);
  };
  if (asked) {
    for (uint32_t n = 0; n < kernel.num_combos; ++n) add_combo(kernel.combos[n]);
    if (kernel.more_combos) {
      auto collect = [&](const TnCombo& combo) { add_combo(combo); };
      TnComboSink sink = {TN_HEADER(TnComboSink), &collect, [](TnComboSink* self, const TnCombo* combo) {
                            (*static_cast<decltype(collect)*>(self->context))(*combo);
                            return static_cast<TnStatus>(TN_OK);
                          }};
      const TnStatus status = kernel.more_combos(host, &kernel, &site, &sink);
      const std::string reason = host_.take_failure();
      if (status == TN_DECLINED) declined_[kernel.name] = reason;
      EXPECT_TRUE(status == TN_OK || status == TN_DECLINED) << reason;
    }
  }
  for (const ComboSpec& spec : specs) {
    // A format of fixed rank is for tensors of that rank.
    const auto rank_fits = [](const TnPort& port, const Dims& shape) {
      return port.format.kind != TN_FORMAT_AXES || port.format.rank == shape.rank;
    };
    bool fits = spec.outputs.size() == outputs.size();  // as hosts have it
    for (size_t n = 0; fits && n < outputs.size(); ++n) {
      const TnPort& port = spec.outputs[n];
      fits = fits && port.dtype == outputs[n].dtype && rank_fits(port, outputs[n].dims);
    }
    for (size_t n = 0; n < inputs_.size(); ++n) {
      const TnPort& port = spec.inputs[std::min(n, spec.inputs.size() - 1)];
      // As the host has it: any port is right for an absent input.
      const bool free = inputs_[n].dtype == TN_DTYPE_NONE || (port.dtype == TN_DTYPE_NONE && inputs_[n].constant);
      fits = fits && rank_fits(port, inputs_[n].dims) && (free || port.dtype == inputs_[n].dtype);
    }
    if (!fits) continue;
    spec.as_c([&](const TnCombo& combo) {
      struct Collected {
        std::vector<std::pair<std::string, uint64_t>> tactics;
      } collected;
      TnTacticSink sink = {
          TN_HEADER(TnTacticSink), &collected, [](TnTacticSink* self, const TnTactic* tactic) {
            static_cast<Collected*>(self->context)->tactics.emplace_back(tactic->params, tactic->workspace);
            return static_cast<TnStatus>(TN_OK);
          }};
      TnStatus status = TN_OK;
      if (kernel.tactics)
        status = kernel.tactics(host, &kernel, &site, &combo, &sink);
      else
        collected.tactics.emplace_back("", 0);
      if (status != TN_OK) {
        EXPECT_EQ(status, TN_DECLINED) << kernel.name;
        declined_[kernel.name] = host_.take_failure();
        EXPECT_FALSE(declined_[kernel.name].empty()) << kernel.name;
        return 0;
      }
      for (const auto& [params, workspace] : collected.tactics) {
        const TnTactic tactic = {TN_HEADER(TnTactic), 0, params.c_str(), nullptr, workspace};
        run_tactic({&kernel, &site, &combo}, tactic, outputs);
        tactics_run_.insert(sdk::text(kernel.name, " ", params));
        ran->insert(kernel.name);
        if (kernel.device == TN_CUDA) cuda_tests().ran.insert(kernel.name);
      }
      return 0;
    });
  }
  host->attrs->destroy(attrs);
}

void OpTester::run_tactic(const Job& job, const TnTactic& tactic, const std::vector<HostArray>& all_outputs) {
  const HostArray& expected = all_outputs[static_cast<size_t>(checked_)];
  const TnHost* host = host_.host();
  const TnKernel& kernel = *job.kernel;
  const Combo combo(job.combo);
  const std::string where =
      sdk::text(kernel.name, " \"", tactic.params, "\" ", to_text(expected.dims), " output format ",
                int{combo.output(checked_).format.kind}, "/", channel_block(combo.output(checked_).format));
  const bool gpu = kernel.device == TN_CUDA;
  const TnConfig config = {TN_HEADER(TnConfig), kernel.revision, job.site, job.combo, &tactic};
  TnInst* inst = nullptr;
  if (kernel.configure(host, &kernel, &config, &inst) != TN_OK) {
    ADD_FAILURE() << where << ": " << host_.take_failure();
    return;
  }
  TnSizes sizes{};
  sizes.struct_size = TN_HEADER(TnSizes);
  EXPECT_EQ(kernel.sizes(host, inst, &sizes), TN_OK) << where << host_.take_failure();
  EXPECT_LE(sizes.workspace, tactic.workspace) << where;
  const Buffer persistent(gpu, sizes.persistent), workspace(gpu, sizes.workspace), scratch(gpu, sizes.init_scratch);

  std::vector<TnTensor> constants;
  std::vector<TnTensor> device_constants;
  std::vector<TnTensor> inputs;
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (size_t n = 0; n < inputs_.size(); ++n) {
    const HostArray& array = inputs_[n];
    constants.push_back(job.site->constants[n]);
    const TnFormat format = array.dtype == TN_DTYPE_NONE ? row_format() : combo.input(static_cast<int>(n)).format;
    buffers.push_back(std::make_unique<Buffer>(gpu, array.bytes.empty() ? 0 : physical_bytes(array, format), 0));
    char* data = static_cast<char*>(buffers.back()->get());
    const int size = dtype_size(array.dtype);
    if (!array.bytes.empty()) {
      for_each_offset(format, array.dims, [&](int64_t linear, int64_t offset) {
        std::memcpy(data + offset * size, array.bytes.data() + linear * size, static_cast<size_t>(size));
      });
    }
    inputs.push_back(formatted(array, format, data));
    device_constants.push_back(gpu ? inputs.back() : constants.back());
    if (constants.back().data == nullptr) device_constants.back().data = nullptr;
  }
  TnInit init{};
  init.struct_size = TN_HEADER(TnInit);
  init.num_inputs = static_cast<uint32_t>(constants.size());
  init.constants_host = constants.data();
  init.constants_device = device_constants.data();
  init.persistent = persistent.get();
  init.persistent_size = sizes.persistent;
  init.scratch = scratch.get();
  const auto initialize = [&](void* stream) {
    TnExec exec{};
    exec.struct_size = TN_HEADER(TnExec);
    exec.stream = stream;
    if (gpu) init.exec = &exec;
    EXPECT_EQ(kernel.initialize(host, inst, &init), TN_OK) << where << host_.take_failure();
    init.exec = nullptr;
  };
  if (gpu) {
    run_on_gpu(false, initialize);
  } else {
    initialize(nullptr);
  }
  EXPECT_TRUE(persistent.canary_intact()) << where;

  const TnFormat out_format = combo.output(checked_).format;
  const uint64_t out_bytes = physical_bytes(expected, out_format);
  const auto enqueue = [&](int threads, void* out) {
    const TnParallel parallel = {TN_HEADER(TnParallel), threads, &threads, run_threads};
    TnExec exec{};
    exec.struct_size = TN_HEADER(TnExec);
    exec.threads = threads;
    exec.parallel = &parallel;
    exec.workspace = workspace.get();
    exec.workspace_size = sizes.workspace;
    std::vector<std::unique_ptr<Buffer>> unchecked;
    std::vector<TnTensor> outputs;
    for (size_t n = 0; n < all_outputs.size(); ++n) {
      const HostArray& array = all_outputs[n];
      const TnFormat format = combo.output(static_cast<int>(n)).format;
      if (&array != &expected) unchecked.push_back(std::make_unique<Buffer>(gpu, physical_bytes(array, format)));
      outputs.push_back(formatted(array, format, &array == &expected ? out : unchecked.back()->get()));
    }
    const auto launch = [&](void* stream) {
      exec.stream = stream;
      EXPECT_EQ(kernel.enqueue(host, inst, &exec, inputs.data(), outputs.data()), TN_OK)
          << where << host_.take_failure();
    };
    if (gpu) {
      run_on_gpu(threads > 1 && (kernel.flags & TN_KERNEL_GRAPH_CAPTURABLE) != 0, launch);
    } else {
      launch(nullptr);
    }
    EXPECT_TRUE(workspace.canary_intact()) << where;
  };
  const Buffer first(gpu, out_bytes, 0xFF), second(gpu, out_bytes, 0xFF);
  enqueue(1, first.get());
  enqueue(3, second.get());
  EXPECT_TRUE(first.canary_intact() && second.canary_intact()) << where;
  const std::string name = kernel.name;
  if (out_bytes > 0 && name.find("onednn") == std::string::npos) {
    EXPECT_EQ(std::memcmp(first.get(), second.get(), out_bytes), 0) << where << ": depends on the number of threads";
  }

  TnTolerance tolerance = {1e-5, 1e-4};
  if (op_->tolerance) {
    TnAttrs* attrs = host_.make_attrs(*op_, attrs_);
    EXPECT_EQ(op_->tolerance(host, op_, attrs, expected.dtype, &tolerance), TN_OK);
    host->attrs->destroy(attrs);
  }
  const auto check = [&](const void* out, const char* how) {
    HostArray found = expected;
    const int size = dtype_size(found.dtype);
    std::vector<char> seen(out_bytes / static_cast<size_t>(size), 0);
    for_each_offset(out_format, found.dims, [&](int64_t linear, int64_t offset) {
      seen[static_cast<size_t>(offset)] = 1;
      std::memcpy(found.bytes.data() + linear * size, static_cast<const char*>(out) + offset * size,
                  static_cast<size_t>(size));
    });
    for (size_t n = 0; n < seen.size(); ++n) {
      if (seen[n]) continue;
      const char* cell = static_cast<const char*>(out) + n * static_cast<size_t>(size);
      if (std::any_of(cell, cell + size, [](char byte) { return byte != 0; })) {
        ADD_FAILURE() << where << how << ": filling is not zero";
        return;
      }
    }
    const std::vector<double> want = as_double(expected);
    const std::vector<double> have = as_double(found);
    double squares = 0.0;
    for (double value : want) squares += std::isfinite(value) ? value * value : 0.0;
    const double rms = want.empty() ? 0.0 : std::sqrt(squares / static_cast<double>(want.size()));
    for (size_t n = 0; n < want.size(); ++n) {
      if (want[n] == have[n] || (std::isnan(want[n]) && std::isnan(have[n]))) continue;
      const double limit = tolerance.absolute + tolerance.relative * std::max(std::abs(want[n]), rms);
      if (!(std::abs(want[n] - have[n]) <= limit)) {
        ADD_FAILURE() << where << how << ": element " << n << ": expected " << want[n] << ", found " << have[n];
        return;
      }
    }
  };
  check(first.get(), "");
  check(second.get(), " (3 threads)");
  for (uint32_t n = 0; n < job.combo->num_aliases; ++n) {
    const uint32_t input = job.combo->aliases[n].input;
    if (job.combo->aliases[n].output != static_cast<uint32_t>(checked_)) continue;
    if (physical_bytes(inputs_[input], combo.input(static_cast<int>(input)).format) != out_bytes) continue;
    const Buffer kept(false, out_bytes);
    if (out_bytes > 0) std::memcpy(kept.get(), inputs[input].data, out_bytes);
    enqueue(2, inputs[input].data);
    check(inputs[input].data, " (in place)");
    if (out_bytes > 0) std::memcpy(inputs[input].data, kept.get(), out_bytes);
  }
  kernel.terminate(host, inst);
  kernel.destroy(host, inst);
}

}  // namespace tenon::testing
