// tenon.top_k/1: the largest or smallest elements along an axis, and Tenon's kernel for it.
#include "kernels/cpu/top_k.h"

#include <cmath>
#include <numeric>
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/integers.h"
#include "plugins/common/parallel.h"

namespace tenon::plugins {
namespace {

cpu::TopKShape top_k_shape(const Attrs& attrs, const Dims& x, const Dims& y) {
  const int axis = normalize_axis(attrs.i64("axis"), x.rank);
  cpu::TopKShape shape;
  shape.outer = x.product(0, axis);
  shape.size = x[axis];
  shape.inner = x.product(axis + 1, x.rank);
  shape.k = y[axis];
  shape.largest = attrs.flag("largest");
  return shape;
}

void top_k_infer(const Infer& question) {
  const Tensor x = question.input(0);
  const int axis = normalize_axis(question.attrs().i64("axis"), x.rank());
  const std::vector<int64_t> k = shape_integers(question, 1, "k");
  if (k.size() != 1 || k[0] < 0 || k[0] > x.dim(axis)) {
    throw Invalid(text("input 'k': expected one number of 0 to ", x.dim(axis), ", the size of axis ", axis, ", found ",
                       k.size() == 1 ? text(k[0]) : text(k.size(), " numbers")));
  }
  Dims dims = x.dims();
  dims[axis] = k[0];
  question.output(0, x.dtype(), dims);
  question.output(1, TN_I64, dims);
}

template <class T>
bool is_nan(T value) {
  return value != value;
}

void top_k_reference(const Reference& call) {
  const Dims y = call.wants(0) ? call.output(0).dims() : call.output(1).dims();
  const cpu::TopKShape shape = top_k_shape(call.attrs(), call.input(0).dims(), y);
  visit_number(call.input(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = call.input(0).data<T>();
    std::vector<int64_t> best(static_cast<size_t>(y.elements()));  // which element of x each of y is
    std::vector<int64_t> order(static_cast<size_t>(shape.size));
    for (int64_t lane = 0; lane < shape.outer * shape.inner && shape.k > 0; ++lane) {
      const int64_t outer = lane / shape.inner, inner = lane % shape.inner;
      const auto at = [&](int64_t i) { return (outer * shape.size + i) * shape.inner + inner; };
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        const T p = x[at(shape.largest ? a : b)], q = x[at(shape.largest ? b : a)];
        return p > q || (is_nan(p) && !is_nan(q));
      });
      for (int64_t n = 0; n < shape.k; ++n) {
        best[static_cast<size_t>((outer * shape.k + n) * shape.inner + inner)] = at(order[static_cast<size_t>(n)]);
      }
    }
    if (call.wants(0)) {
      call.fill<T>(0, [&](const int64_t*, int64_t linear) { return x[best[static_cast<size_t>(linear)]]; });
    }
    if (call.wants(1)) {
      call.fill<int64_t>(1, [&](const int64_t*, int64_t linear) {
        return best[static_cast<size_t>(linear)] / shape.inner % shape.size;
      });
    }
  });
}

class TopKKernel final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Site site = config.site();
    shape_ = top_k_shape(site.attrs(), site.dims(0), site.output_dims(0));
    workspace_ = cpu::top_k_workspace(shape_, site.threads());
  }
  Sizes sizes() const override {
    Sizes sizes;
    sizes.workspace = workspace_;
    return sizes;
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    cpu::top_k(shape_, static_cast<const float*>(inputs[0].data), static_cast<float*>(outputs[0].data),
               static_cast<int64_t*>(outputs[1].data), exec.workspace<void>(), to_parallel(exec));
  }

 private:
  cpu::TopKShape shape_;
  uint64_t workspace_ = 0;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.top_k", "1", "Apache-2.0",
             tenon::op("tenon.top_k/1")
                 .doc("The k best elements along an axis, the best first (ONNX TopK-24). Of equal ones that with the "
                      "lower index comes first; NaN is larger than every number")
                 .attr_i64("axis", "negative: counted from the end")
                 .default_value("-1")
                 .attr_i64("largest", "1: the largest are the best, 0: the smallest")
                 .default_value("1")
                 .range("0|1")
                 .input("x", "numbers")
                 .input("k", "i64 or i32, one number")
                 .host_value()
                 .output("values", "x's dims with k for the axis")
                 .output("indices", "i64: where they stand along the axis")
                 .infer(tenon::plugins::top_k_infer)
                 .reference(tenon::plugins::top_k_reference)
                 .tolerance(0, 0),
             tenon::kernel<tenon::plugins::TopKKernel>("tenon.top_k/1", "tenon.top_k.select.f32")
                 .combo({tenon::f32_row(), tenon::any_constant()}, {tenon::f32_row(), tenon::row(TN_I64)})
                 .deterministic()
                 .supports([](const tenon::Site& site) {
                   using namespace tenon::plugins;
                   if (top_k_shape(site.attrs(), site.dims(0), site.output_dims(0)).size >= tenon::cpu::kTopKMostSize) {
                     throw tenon::Declined("expected an axis of less than 2^32 - 1 elements");
                   }
                 })
                 .tactics([](const tenon::Site& site, const tenon::Combo&, tenon::Tactics& tactics) {
                   using namespace tenon::plugins;
                   const auto shape = top_k_shape(site.attrs(), site.dims(0), site.output_dims(0));
                   tactics.add("", tenon::cpu::top_k_workspace(shape, site.threads()));
                 }))
