// tenon.cum_sum/1 and tenon.cum_prod/1: running sums and products along an axis, and Tenon's kernels for them.
#include <cstring>
#include <tenon/sdk/plugin.hpp>

#include "kernels/cpu/cumulate.h"
#include "plugins/common/integers.h"
#include "plugins/common/parallel.h"
#include "plugins/common/tolerance.h"

namespace tenon::plugins {
namespace {

struct Sum {
  static constexpr int start = 0;
  template <class A>
  A operator()(A a, A b) const {
    return a + b;
  }
};
struct Product {
  static constexpr int start = 1;
  template <class A>
  A operator()(A a, A b) const {
    return a * b;
  }
};

int cumulate_axis(const Tensor& axis, int rank) {
  if (axis.elements() != 1) throw Invalid(text("input 'axis': expected one number, found dims ", to_text(axis.dims())));
  return normalize_axis(axis.integer(0), rank);
}

cpu::CumulateShape cumulate_shape(const Attrs& attrs, const Dims& x, int axis) {
  cpu::CumulateShape shape;
  shape.outer = x.product(0, axis);
  shape.size = x[axis];
  shape.inner = x.product(axis + 1, x.rank);
  shape.exclusive = attrs.flag("exclusive");
  shape.reverse = attrs.flag("reverse");
  return shape;
}

void cumulate_infer(const Infer& question) {
  const Tensor x = question.input(0);
  visit_number(x.dtype() == TN_F16 || x.dtype() == TN_BF16 ? TN_F32 : x.dtype(), [](auto) {});
  // The axis does not change the shape; where it is known it is checked.
  const Tensor axis = question.input(1);
  check_index_dtype(axis, "axis");
  if (axis.has_data()) cumulate_axis(axis, x.rank());
  question.output(0, x.dtype(), x.dims());
}

template <class Combine>
void cumulate_reference(const Reference& call) {
  const Dims x = call.input(0).dims();
  const cpu::CumulateShape shape = cumulate_shape(call.attrs(), x, cumulate_axis(call.input(1), x.rank));
  visit_number(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* data = call.input(0).data<T>();
    const int64_t skip = shape.exclusive ? 1 : 0;
    call.fill<T>(0, [&](const int64_t*, int64_t linear) {
      const int64_t at = linear / shape.inner % shape.size;
      cpu::Accumulator<T> sum = Combine::start;
      const int64_t from = shape.reverse ? at + skip : 0, to = shape.reverse ? shape.size : at + 1 - skip;
      for (int64_t n = from; n < to; ++n) {
        sum = Combine()(sum, static_cast<cpu::Accumulator<T>>(data[linear + (n - at) * shape.inner]));
      }
      return static_cast<T>(sum);
    });
  });
}

template <class Combine>
class CumulateKernel final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Dims x = config.site().dims(0);
    shape_ = cumulate_shape(config.site().attrs(), x, cumulate_axis(config.site().constant(1), x.rank));
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    visit_number(inputs[0].dtype, [&](auto zero) {
      using T = decltype(zero);
      cpu::cumulate<T>(shape_, Combine::start, Combine(), static_cast<const T*>(inputs[0].data),
                       static_cast<T*>(outputs[0].data), to_parallel(exec));
    });
  }

 private:
  cpu::CumulateShape shape_;
};

/// The first axis: a random number is none.
void cumulate_generate(const Generate& question) {
  const TnTensor& axis = question.inputs[1];
  if (axis.data != nullptr) std::memset(axis.data, 0, axis.dtype == TN_I64 ? sizeof(int64_t) : sizeof(int32_t));
}

template <class Combine>
Definitions cumulate(const std::string& name, const std::string& doc) {
  const std::string id = "tenon." + name + "/1";
  return {op(id)
              .doc(doc)
              .attr_i64("exclusive", "1: without the element itself")
              .default_value("0")
              .range("0|1")
              .attr_i64("reverse", "1: from the end of the axis")
              .default_value("0")
              .range("0|1")
              .input("x", "numbers; integers wrap around")
              .input("axis", "i64 or i32, one number; negative: counted from the end")
              .host_value()
              .output("y")
              .infer(cumulate_infer)
              .reference(cumulate_reference<Combine>)
              .generate(cumulate_generate)
              .tolerance([](const Attrs&, int32_t dtype) { return sum_tolerance(dtype); }),
          kernel<CumulateKernel<Combine>>(id, "tenon." + name + ".scalar")
              .deterministic()
              .supports([](const Site& site) {
                if (!site.is_constant(1)) throw Declined("the axis is computed at run time");
              })
              .more_combos([](const Site& site, Combos& combos) {
                const int32_t dtype = site.dtype(0);
                if (dtype == TN_F16 || dtype == TN_BF16) throw Declined(text("no sums in ", dtype_name(dtype)));
                combos.add(ComboSpec({row(dtype), any_constant()}, {row(dtype)}));
              })};
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.cum_sum", "1", "Apache-2.0",
             tenon::plugins::cumulate<tenon::plugins::Sum>("cum_sum", "y[i] = x[0] + .. + x[i] (ONNX CumSum-14)"),
             tenon::plugins::cumulate<tenon::plugins::Product>("cum_prod", "y[i] = x[0] * .. * x[i] (ONNX CumProd-26)"))
