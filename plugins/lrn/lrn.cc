// tenon.lrn/1: local response normalisation across channels.
#include <algorithm>
#include <cmath>
#include <tenon/sdk/plugin.hpp>

#include "kernels/cpu/normalize.h"
#include "plugins/common/layout.h"
#include "plugins/common/parallel.h"
#include "plugins/common/tolerance.h"

namespace tenon::plugins {
namespace {

void lrn_infer(const Infer& question) {
  const Tensor x = question.input(0);
  if (x.rank() < 2) throw Invalid(text("input x: expected rank of at least 2 [N,C,...], found ", to_text(x.dims())));
  if (!is_floating(x.dtype())) throw Invalid(text("input x: expected a floating dtype, found ", dtype_name(x.dtype())));
  question.output(0, x.dtype(), x.dims());
}

void lrn_reference(const Reference& call) {
  const Dims dims = call.input(0).dims();
  const int64_t inner = dims.product(2, dims.rank);
  const Attrs attrs = call.attrs();
  const double alpha = attrs.f64("alpha"), beta = attrs.f64("beta"), bias = attrs.f64("bias");
  const int64_t size = attrs.i64("size");
  const int64_t before = std::min((size - 1) / 2, dims[1]), after = std::min(size / 2, dims[1]);
  visit_floating(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = call.input(0).data<T>();
    call.fill<T>(0, [&](const int64_t* index, int64_t linear) {
      const int64_t c = index[1];
      double sum = 0;
      for (int64_t k = std::max<int64_t>(0, c - before); k <= std::min(dims[1] - 1, c + after); ++k) {
        const double neighbour = static_cast<double>(x[linear + (k - c) * inner]);
        sum += neighbour * neighbour;
      }
      return static_cast<T>(static_cast<double>(x[linear]) /
                            std::pow(bias + alpha / static_cast<double>(size) * sum, beta));
    });
  });
}

class LrnKernel final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Attrs attrs = config.site().attrs();
    params_ = {attrs.i64("size"), static_cast<float>(attrs.f64("alpha")), static_cast<float>(attrs.f64("beta")),
               static_cast<float>(attrs.f64("bias"))};
    format_ = config.combo().output(0).format;
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims dims = inputs[0].dims;
    if (!is_row(format_)) {
      const int64_t block = is_nhwc(format_) ? dims[1] : channel_block(format_);
      return cpu::local_response_norm_image(params_, {dims[0], dims[1], dims[2] * dims[3], block},
                                            static_cast<const float*>(inputs[0].data),
                                            static_cast<float*>(outputs[0].data), to_parallel(exec), cpu::detect_isa());
    }
    cpu::local_response_norm(params_, dims[0], dims[1], dims.product(2, dims.rank),
                             static_cast<const float*>(inputs[0].data), static_cast<float*>(outputs[0].data),
                             to_parallel(exec), cpu::detect_isa());
  }

 private:
  cpu::LrnParams params_{};
  TnFormat format_{};
};

// The kernel's power is of roots, or exp(beta * log(divisor)).
void lrn_supports(const Site& site) {
  if (!(site.attrs().f64("bias") > 0) || site.attrs().f64("alpha") < 0) throw Declined("the divisor may be negative");
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.lrn", "1", "Apache-2.0",
             tenon::op("tenon.lrn/1")
                 .doc("Local response normalisation (Krizhevsky, Sutskever, Hinton 2012). y[c] = x[c] / (bias + alpha "
                      "/ size * sum(x[i]^2))^beta, i from c - floor((size - 1) / 2) to c + ceil((size - 1) / 2) as far "
                      "as there are channels")
                 .attr_i64("size", "channels of a sum")
                 .required()
                 .range("[1,)")
                 .attr_f64("alpha")
                 .default_value("0.0001")
                 .attr_f64("beta")
                 .default_value("0.75")
                 .attr_f64("bias")
                 .default_value("1")
                 .input("x", "[N,C,...], floating")
                 .output("y", "as x")
                 .infer(tenon::plugins::lrn_infer)
                 .reference(tenon::plugins::lrn_reference)
                 .tolerance([](const tenon::Attrs&, int32_t dtype) {
                   return tenon::plugins::pointwise_tolerance(dtype);
                 }),
             tenon::kernel<tenon::plugins::LrnKernel>("tenon.lrn/1", "tenon.lrn.vector.f32")
                 .more_combos([](const tenon::Site& site, tenon::Combos& combos) {
                   for (const auto make : tenon::plugins::image_ports()) {
                     const tenon::Port port = make(TN_F32);
                     const bool image = site.dims(0).rank == 4 && site.attrs().i64("size") <= tenon::cpu::kLrnMaxSize;
                     if (tenon::is_row(port.format) || image) combos.add(tenon::ComboSpec({port}, {port}));
                   }
                 })
                 .supports(tenon::plugins::lrn_supports)
                 .deterministic())
