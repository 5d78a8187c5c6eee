// tenon.arg_max/1, tenon.arg_min/1: where along an axis the extreme element is. tenon.hardmax/1: the same as ones and
// zeros.
#include <climits>
#include <memory>
#include <string>
#include <tenon/sdk/plugin.hpp>

#include "kernels/cpu/reduce.h"
#include "plugins/common/parallel.h"
#include "plugins/common/tolerance.h"

namespace tenon::plugins {
namespace {

int checked_axis(const Attrs& attrs, const Dims& x) {
  const int axis = normalize_axis(attrs.i64("axis"), x.rank);
  if (x[axis] < 1) {
    throw Invalid(
        text("attribute 'axis': expected an axis of at least 1 element, found axis ", axis, " of ", to_text(x)));
  }
  return axis;
}

// Position of the extreme one of `length` elements `step` apart; NaN is extreme, as in numpy.
template <class T>
int64_t find_extreme(bool smallest, bool last, const T* x, int64_t length, int64_t step) {
  int64_t best = 0;
  for (int64_t n = 1; n < length; ++n) {
    const T a = x[best * step], b = x[n * step];
    const bool a_nan = a != a, b_nan = b != b;
    const bool better = a_nan ? false : b_nan || (smallest ? b < a : a < b);
    const bool equal = a_nan ? b_nan : a == b;
    if (better || (last && equal)) best = n;
  }
  return best;
}

void arg_infer(const Infer& question) {
  const Tensor x = question.input(0);
  if (dtype_size(x.dtype()) == 0 || x.dtype() == TN_BOOL) {
    throw Invalid(text("input x: expected a number type, found ", dtype_name(x.dtype())));
  }
  const int axis = checked_axis(question.attrs(), x.dims());
  Dims dims;
  for (int n = 0; n < x.rank(); ++n) {
    if (n != axis) dims.push_back(x.dim(n));
    if (n == axis && question.attrs().flag("keepdims")) dims.push_back(1);
  }
  question.output(0, TN_I64, dims);
}

void arg_reference(bool smallest, const Reference& call) {
  const Dims dims = call.input(0).dims();
  const int axis = checked_axis(call.attrs(), dims);
  const int64_t inner = dims.product(axis + 1, dims.rank);
  const bool last = call.attrs().flag("select_last_index");
  visit_number(call.input(0).dtype(), [&](auto zero) {
    const auto* x = call.input(0).data<decltype(zero)>();
    call.fill<int64_t>(0, [&](const int64_t*, int64_t linear) {
      const int64_t first = linear / inner * dims[axis] * inner + linear % inner;
      return find_extreme(smallest, last, x + first, dims[axis], inner);
    });
  });
}

class ArgKernel final : public IPlugin {
 public:
  explicit ArgKernel(bool smallest) : smallest_(smallest) {}
  void configure(const Config& config) override { axis_ = checked_axis(config.site().attrs(), config.site().dims(0)); }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims dims = inputs[0].dims;
    cpu::arg_extreme(smallest_, dims.product(0, axis_), dims[axis_], dims.product(axis_ + 1, dims.rank),
                     static_cast<const float*>(inputs[0].data), static_cast<int64_t*>(outputs[0].data),
                     to_parallel(exec), cpu::detect_isa());
  }

 private:
  bool smallest_;
  int axis_ = 0;
};

void arg_supports(const Site& site) {
  if (site.attrs().flag("select_last_index")) throw Declined("it finds the first of equal elements");
  if (site.max_dims(0)[checked_axis(site.attrs(), site.max_dims(0))] > INT32_MAX)
    throw Declined("the axis is too long");
}

void hardmax_infer(const Infer& question) {
  const Tensor x = question.input(0);
  if (!is_floating(x.dtype())) throw Invalid(text("input x: expected a floating dtype, found ", dtype_name(x.dtype())));
  normalize_axis(question.attrs().i64("axis"), x.rank());
  question.output(0, x.dtype(), x.dims());
}

void hardmax_reference(const Reference& call) {
  const Dims dims = call.input(0).dims();
  const int axis = normalize_axis(call.attrs().i64("axis"), dims.rank);
  const int64_t inner = dims.product(axis + 1, dims.rank);
  visit_floating(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = call.input(0).data<T>();
    int64_t row = -1;  // the one that `best` belongs to; neighbours mostly share it
    int64_t best = 0;
    call.fill<T>(0, [&](const int64_t* index, int64_t linear) {
      const int64_t first = linear - index[axis] * inner;
      if (first != row) {
        row = first;
        best = find_extreme(false, false, x + first, dims[axis], inner);
      }
      return T(index[axis] == best ? 1 : 0);
    });
  });
}

Definitions arg_max_definitions() {
  Definitions all;
  for (const bool smallest : {false, true}) {
    const std::string name = smallest ? "tenon.arg_min" : "tenon.arg_max";
    all.add(op(name + "/1")
                .doc(std::string("Position of the ") + (smallest ? "smallest" : "largest") +
                     " element along an axis. NaN counts as " + (smallest ? "smallest" : "largest"))
                .attr_i64("axis", "negative: counted from the end")
                .default_value("0")
                .attr_i64("keepdims", "1: the axis stays with size 1; 0: it goes")
                .default_value("1")
                .range("[0,1]")
                .attr_i64("select_last_index", "of equal elements, 0: the first; 1: the last")
                .default_value("0")
                .range("[0,1]")
                .input("x", "any number type")
                .output("y", "i64")
                .infer(arg_infer)
                .reference([smallest](const Reference& call) { arg_reference(smallest, call); })
                .tolerance(0, 0));
    all.add(kernel(name + "/1", name + ".vector.f32", [smallest] { return std::make_unique<ArgKernel>(smallest); })
                .combo({f32_row()}, {row(TN_I64)})
                .deterministic()
                .supports(arg_supports));
  }
  all.add(op("tenon.hardmax/1")
              .doc("1 at the first largest element along an axis and 0 elsewhere")
              .attr_i64("axis", "negative: counted from the end")
              .default_value("-1")
              .input("x", "floating")
              .output("y", "as x")
              .infer(hardmax_infer)
              .reference(hardmax_reference)
              .tolerance(0, 0));
  return all;
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.arg_max", "1", "Apache-2.0", tenon::plugins::arg_max_definitions())
