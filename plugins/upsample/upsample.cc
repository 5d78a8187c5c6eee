// tenon.upsample/1: nearest neighbour by whole factors (Darknet [upsample]), and Tenon's kernel for it.
#include <tenon/sdk/plugin.hpp>

#include "kernels/cpu/upsample.h"
#include "plugins/common/checked.h"
#include "plugins/common/layout.h"
#include "plugins/common/parallel.h"
#include "plugins/common/tolerance.h"

namespace tenon::plugins {
namespace {

void upsample_infer(const Infer& question) {
  const Tensor x = question.input(0, 4);
  const List<int64_t> factors = question.attrs().i64s("factors", 2, 1);
  if (!is_floating(x.dtype())) throw Invalid(text("input x: expected a floating dtype, found ", dtype_name(x.dtype())));
  question.output(0, x.dtype(),
                  {x.dim(0), x.dim(1), checked_product(x.dim(2), factors[0], "height of the output"),
                   checked_product(x.dim(3), factors[1], "width of the output")});
}

void upsample_reference(const Reference& call) {
  const List<int64_t> factors = call.attrs().i64s("factors", 2, 1);
  const double scale = call.attrs().f64("scale");
  const Dims x_dims = call.input(0).dims();
  visit_floating(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = call.input(0).data<T>();
    call.fill<T>(0, [&](const int64_t* index, int64_t) {
      const int64_t row = (index[0] * x_dims[1] + index[1]) * x_dims[2] + index[2] / factors[0];
      return static_cast<T>(scale * static_cast<double>(x[row * x_dims[3] + index[3] / factors[1]]));
    });
  });
}

class UpsampleKernel final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const List<int64_t> factors = config.site().attrs().i64s("factors", 2, 1);
    factor_h_ = factors[0];
    factor_w_ = factors[1];
    scale_ = static_cast<float>(config.site().attrs().f64("scale"));
    layout_ = to_layout(config.combo().input(0).format);
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const int64_t* d = inputs[0].dims.d;
    cpu::upsample_nearest(layout_, d[0], d[1], d[2], d[3], factor_h_, factor_w_, scale_,
                          static_cast<const float*>(inputs[0].data), static_cast<float*>(outputs[0].data),
                          to_parallel(exec));
  }

 private:
  int64_t factor_h_ = 1, factor_w_ = 1;
  float scale_ = 1;
  cpu::Layout layout_ = cpu::Layout::kNchw;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.upsample", "1", "Apache-2.0",
             tenon::op("tenon.upsample/1")
                 .doc("Nearest neighbour by whole factors. y[n,c,i,j] = scale * x[n,c,i/factor_h,j/factor_w]")
                 .attr_i64s("factors", "[vertical, horizontal]")
                 .required()
                 .attr_f64("scale", "multiplies every value")
                 .default_value("1")
                 .input("x", "[N,C,H,W], floating")
                 .output("y", "[N,C,H*factor_h,W*factor_w]")
                 .infer(tenon::plugins::upsample_infer)
                 .reference(tenon::plugins::upsample_reference)
                 .tolerance([](const tenon::Attrs&, int32_t dtype) {
                   return tenon::plugins::pointwise_tolerance(dtype);
                 }),
             tenon::kernel<tenon::plugins::UpsampleKernel>("tenon.upsample/1", "tenon.upsample.nearest.f32")
                 .combo({tenon::f32_row()}, {tenon::f32_row()})
                 .combo({tenon::f32_nhwc()}, {tenon::f32_nhwc()})
                 .combo({tenon::f32_nchw8c()}, {tenon::f32_nchw8c()})
                 .combo({tenon::f32_nchw16c()}, {tenon::f32_nchw16c()})
                 .deterministic())
