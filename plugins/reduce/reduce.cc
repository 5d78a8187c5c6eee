// tenon.reduce_sum/1 and its relatives: one number for all elements along some axes.
#include "plugins/common/reduction.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <tenon/sdk/plugin.hpp>
#include <type_traits>

#include "kernels/cpu/reduce.h"
#include "plugins/common/parallel.h"
#include "plugins/common/tolerance.h"

namespace tenon::plugins {
namespace {

using cpu::ReduceKind;

struct ReduceOp {
  const char* name;
  ReduceKind kind;
  const char* doc;
};

constexpr ReduceOp kReduceOps[] = {
    {"sum", ReduceKind::kSum, "Sum along axes. y = sum x; integers wrap, and nothing gives 0"},
    {"mean", ReduceKind::kMean, "Mean along axes. y = (sum x) / n; integers are truncated"},
    {"max", ReduceKind::kMax, "Maximum along axes. NaN wins; nothing gives the type's least value (-inf, false)"},
    {"min", ReduceKind::kMin, "Minimum along axes. NaN wins; nothing gives the type's greatest value (inf, true)"},
    {"prod", ReduceKind::kProd, "Product along axes. Integers wrap, and nothing gives 1"},
    {"l1", ReduceKind::kL1, "Sum of magnitudes along axes. y = sum |x|"},
    {"l2", ReduceKind::kL2, "Euclidean norm along axes. y = sqrt(sum x^2)"},
    {"log_sum", ReduceKind::kLogSum, "Logarithm of the sum along axes. y = log(sum x)"},
    {"log_sum_exp", ReduceKind::kLogSumExp,
     "Logarithm of the sum of exponentials along axes. y = m + log(sum exp(x - m)), m the maximum"},
    {"sum_square", ReduceKind::kSumSquare, "Sum of squares along axes. y = sum x^2"},
};

bool is_extreme(ReduceKind kind) { return kind == ReduceKind::kMax || kind == ReduceKind::kMin; }

// Integers are added up in their own width (at least 32 bits), without the undefined overflow of signed ones.
template <class T, bool kFloating = std::is_floating_point_v<T>>
struct SumOf {
  using Type = double;
};
template <class T>
struct SumOf<T, false> {
  using Type = std::common_type_t<std::make_unsigned_t<T>, uint32_t>;
};

template <class T>
T extreme(ReduceKind kind, T a, T b) {
  if (a != a) return a;  // NaN
  return b != b || (kind == ReduceKind::kMax ? a < b : b < a) ? b : a;
}

// Truncated and clamped for integers.
template <class T>
T from_double(double value) {
  if constexpr (std::is_integral_v<T>) {
    if (!(value > static_cast<double>(std::numeric_limits<T>::lowest()))) return std::numeric_limits<T>::lowest();
    if (value >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  }
  return static_cast<T>(value);
}

// The result for the elements that each(visit) visits.
template <class T, class Each>
T reduce_number(ReduceKind kind, int64_t count, Each&& each) {
  using Sum = typename SumOf<T>::Type;
  Sum sum = kind == ReduceKind::kProd ? 1 : 0;
  double real = 0;
  double most = -std::numeric_limits<double>::infinity();
  switch (kind) {
    case ReduceKind::kSum:
      each([&](T x) { sum += static_cast<Sum>(x); });
      return static_cast<T>(sum);
    case ReduceKind::kProd:
      each([&](T x) { sum *= static_cast<Sum>(x); });
      return static_cast<T>(sum);
    case ReduceKind::kL1:
      each([&](T x) { sum += x < T{0} ? Sum{0} - static_cast<Sum>(x) : static_cast<Sum>(x); });
      return static_cast<T>(sum);
    case ReduceKind::kSumSquare:
      each([&](T x) { sum += static_cast<Sum>(x) * static_cast<Sum>(x); });
      return static_cast<T>(sum);
    case ReduceKind::kMean:
      each([&](T x) { real += static_cast<double>(x); });
      return from_double<T>(real / static_cast<double>(count));
    case ReduceKind::kL2:
      each([&](T x) { real += static_cast<double>(x) * static_cast<double>(x); });
      return from_double<T>(std::sqrt(real));
    case ReduceKind::kLogSum:
      each([&](T x) { real += static_cast<double>(x); });
      return from_double<T>(std::log(real));
    default:
      each([&](T x) { most = extreme(ReduceKind::kMax, most, static_cast<double>(x)); });
      if (std::isinf(most)) most = 0;
      each([&](T x) { real += std::exp(static_cast<double>(x) - most); });
      return from_double<T>(most + std::log(real));
  }
}

template <class T, class Each>
T reduce_extreme(ReduceKind kind, Each&& each) {
  using Limits = std::numeric_limits<T>;
  const T least = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  const T greatest = Limits::has_infinity ? Limits::infinity() : Limits::max();
  T result = kind == ReduceKind::kMax ? least : greatest;
  each([&](T x) { result = extreme<T>(kind, result, x); });
  return result;
}

Reduction reduction_of(const Reference& call) {
  const Tensor axes = call.num_inputs() > 1 ? call.input(1) : call.input(0);
  return {call.attrs(), call.input(0).dims(), call.has_input(1) ? &axes : nullptr};
}

void reduce_infer(const ReduceOp& op, const Infer& question) {
  const Tensor x = question.input(0);
  const Tensor axes = question.num_inputs() > 1 ? question.input(1) : x;
  const Reduction reduction(question.attrs(), x.dims(), question.has_input(1) ? &axes : nullptr);
  if (x.dtype() == TN_BOOL ? !is_extreme(op.kind) : dtype_size(x.dtype()) == 0) {
    throw Invalid(text("input x: expected a number type, found ", dtype_name(x.dtype())));
  }
  if (op.kind == ReduceKind::kMean && !is_floating(x.dtype()) && reduction.count == 0) {
    throw Invalid(text("the mean of no integers: expected sizes of at least 1, found ", to_text(x.dims())));
  }
  question.output(0, x.dtype(), reduction.output);
}

void reduce_reference(const ReduceOp& op, const Reference& call) {
  const Dims x_dims = call.input(0).dims();
  const Reduction reduction = reduction_of(call);
  const bool keep = call.attrs().flag("keepdims");
  int64_t strides[TN_MAX_RANK] = {};
  row_strides(x_dims, strides);
  // The folded axes as a tensor of their own, and where each axis of the output steps in x.
  Dims folded;
  int64_t folded_strides[TN_MAX_RANK] = {};
  Dims output;
  int64_t output_strides[TN_MAX_RANK] = {};
  for (int axis = 0; axis < x_dims.rank; ++axis) {
    if (reduction.reduced[axis]) {
      folded_strides[folded.rank] = strides[axis];
      folded.push_back(x_dims[axis]);
    }
    if (!reduction.reduced[axis] || keep) {
      output_strides[output.rank] = reduction.reduced[axis] ? 0 : strides[axis];
      output.push_back(1);
    }
  }
  TnBox all{};
  for (int axis = 0; axis < folded.rank; ++axis) all.size[axis] = folded[axis];
  const auto run = [&](auto zero, auto&& result) {
    using T = decltype(zero);
    const T* x = call.input(0).data<T>();
    call.fill<T>(0, [&](const int64_t* index, int64_t) {
      const int64_t first = offset_of(index, output_strides, output.rank);
      return result(zero, [&](auto&& visit) {
        for_each_in_box(folded, all, [&](const int64_t* at, int64_t, int64_t) {
          visit(x[first + offset_of(at, folded_strides, folded.rank)]);
        });
      });
    });
  };
  if (is_extreme(op.kind)) {
    const auto result = [&](auto zero, auto&& each) { return reduce_extreme<decltype(zero)>(op.kind, each); };
    if (call.output(0).dtype() == TN_BOOL) return run(false, result);
    return visit_number(call.output(0).dtype(), [&](auto zero) { run(zero, result); });
  }
  visit_number(call.output(0).dtype(), [&](auto zero) {
    run(zero, [&](auto type, auto&& each) { return reduce_number<decltype(type)>(op.kind, reduction.count, each); });
  });
}

bool names_axes(const Site& site) { return site.has_input(1) && site.dims(1).elements() != 0; }

class ReduceKernel final : public IPlugin {
 public:
  explicit ReduceKernel(ReduceKind kind) : kind_(kind) {}

  void configure(const Config& config) override {
    const Site site = config.site();
    const bool has_axes = names_axes(site);
    const Tensor axes = site.constant(has_axes ? 1 : 0);
    const Reduction reduction(site.attrs(), site.dims(0), has_axes ? &axes : nullptr);
    std::copy_n(reduction.reduced, TN_MAX_RANK, reduced_);
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims x = inputs[0].dims;
    cpu::reduce(kind_, cpu::reduce_shape(x.rank, x.d, reduced_), static_cast<const float*>(inputs[0].data),
                static_cast<float*>(outputs[0].data), to_parallel(exec), cpu::detect_isa());
  }

 private:
  ReduceKind kind_;
  bool reduced_[TN_MAX_RANK] = {};
};

void reduce_supports(const Site& site) {
  if (names_axes(site) && !site.is_constant(1)) throw Declined("the axes must be constant");
}

Definitions reduce_definitions() {
  Definitions all;
  for (const ReduceOp& entry : kReduceOps) {
    const ReduceOp* op = &entry;
    const std::string name = std::string("tenon.reduce_") + op->name;
    Op definition(name + "/1");
    definition.doc(op->doc)
        .attr_i64("keepdims", "1: folded axes stay with size 1; 0: they go")
        .default_value("1")
        .range("[0,1]")
        .attr_i64("noop_with_empty_axes", "without axes, 0: all are folded; 1: none is")
        .default_value("0")
        .range("[0,1]")
        .input("x", is_extreme(op->kind) ? "any number type or bool" : "any number type")
        .input("axes", "i64 [k]: axes to fold, negative ones counted from the end")
        .optional()
        .host_value()
        .output("y", "of x's dtype")
        .infer([op](const Infer& question) { reduce_infer(*op, question); })
        .reference([op](const Reference& call) { reduce_reference(*op, call); })
        .tolerance([op](const Attrs&, int32_t dtype) {
          return is_extreme(op->kind) ? TnTolerance{0, 0} : sum_tolerance(dtype);
        });
    const ReduceKind kind = op->kind;
    Kernel kernel(name + "/1", name + ".vector.f32", [kind] { return std::make_unique<ReduceKernel>(kind); });
    kernel.combo({f32_row(), any_constant()}, {f32_row()}).deterministic().supports(reduce_supports);
    all.add(definition);
    all.add(kernel);
  }
  return all;
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.reduce", "1", "Apache-2.0", tenon::plugins::reduce_definitions())
