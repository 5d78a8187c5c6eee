// tenon.lp_norm/1: vectors along an axis divided by their length.
#include <cmath>
#include <tenon/sdk/plugin.hpp>

#include "kernels/cpu/normalize.h"
#include "plugins/common/parallel.h"
#include "plugins/common/tolerance.h"

namespace tenon::plugins {
namespace {

void lp_norm_infer(const Infer& question) {
  const Tensor x = question.input(0);
  if (!is_floating(x.dtype())) throw Invalid(text("input x: expected a floating dtype, found ", dtype_name(x.dtype())));
  normalize_axis(question.attrs().i64("axis"), x.rank());
  question.output(0, x.dtype(), x.dims());
}

void lp_norm_reference(const Reference& call) {
  const Dims dims = call.input(0).dims();
  const int axis = normalize_axis(call.attrs().i64("axis"), dims.rank);
  const int64_t inner = dims.product(axis + 1, dims.rank);
  const bool squares = call.attrs().i64("p") == 2;
  visit_floating(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = call.input(0).data<T>();
    // Neighbours in the box mostly share their vector, so its norm is kept until another one is asked for.
    int64_t vector = -1;
    double norm = 0;
    call.fill<T>(0, [&](const int64_t* index, int64_t linear) {
      if (const int64_t first = linear - index[axis] * inner; first != vector) {
        vector = first;
        norm = 0;
        for (int64_t n = 0; n < dims[axis]; ++n) {
          const double value = std::abs(static_cast<double>(x[first + n * inner]));
          norm += squares ? value * value : value;
        }
        if (squares) norm = std::sqrt(norm);
      }
      return norm == 0 ? T{0} : static_cast<T>(static_cast<double>(x[linear]) / norm);
    });
  });
}

class LpNormKernel final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Site site = config.site();
    axis_ = normalize_axis(site.attrs().i64("axis"), site.dims(0).rank);
    p_ = static_cast<int>(site.attrs().i64("p"));
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims dims = inputs[0].dims;
    cpu::normalize_length(p_, dims.product(0, axis_), dims[axis_], dims.product(axis_ + 1, dims.rank),
                          static_cast<const float*>(inputs[0].data), static_cast<float*>(outputs[0].data),
                          to_parallel(exec), cpu::detect_isa());
  }

 private:
  int axis_ = 0;
  int p_ = 2;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.lp_norm", "1", "Apache-2.0",
             tenon::op("tenon.lp_norm/1")
                 .doc("Vectors along an axis divided by their length. y = x / (sum |x|^p)^(1/p), 0 where that sum is 0")
                 .attr_i64("axis", "negative: counted from the end")
                 .default_value("-1")
                 .attr_i64("p", "1: sum of magnitudes; 2: Euclidean")
                 .default_value("2")
                 .range("[1,2]")
                 .input("x", "floating")
                 .output("y", "as x")
                 .infer(tenon::plugins::lp_norm_infer)
                 .reference(tenon::plugins::lp_norm_reference)
                 .tolerance([](const tenon::Attrs&, int32_t dtype) {
                   return tenon::plugins::pointwise_tolerance(dtype);
                 }),
             tenon::kernel<tenon::plugins::LpNormKernel>("tenon.lp_norm/1", "tenon.lp_norm.vector.f32")
                 .combo({tenon::f32_row()}, {tenon::f32_row()})
                 .may_alias(0, 0)
                 .deterministic())
