// tenon.lp_pool/1: p-norms of windows. On the reference alone.
#include <cmath>
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/pool_windows.h"
#include "plugins/common/tolerance.h"

namespace tenon::plugins {
namespace {

void lp_pool_infer(const Infer& question) {
  const Tensor x = question.input(0);
  if (!is_floating(x.dtype())) throw Invalid(text("input x: expected a floating dtype, found ", dtype_name(x.dtype())));
  if (!(question.attrs().f64("p") > 0)) {
    throw Invalid(text("attribute 'p': expected a number above 0, found ", question.attrs().f64("p")));
  }
  question.output(0, x.dtype(), pooled_dims(x.dims(), pool_windows(question.attrs(), x.dims())));
}

void lp_pool_reference(const Reference& call) {
  const Dims x_dims = call.input(0).dims();
  const cpu::Windows windows = pool_windows(call.attrs(), x_dims);
  const double p = call.attrs().f64("p");
  visit_floating(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = call.input(0).data<T>();
    call.fill<T>(0, [&](const int64_t* index, int64_t) {
      const T* plane = x + (index[0] * x_dims[1] + index[1]) * windows.pixels();
      double sum = 0;
      for (int64_t tap = 0; tap < windows.taps(); ++tap) {
        const int64_t pixel = tap_pixel(windows, index + 2, tap);
        if (pixel < 0) continue;
        const double size = std::fabs(static_cast<double>(plane[pixel]));
        sum += p == 2 ? size * size : p == 1 ? size : std::pow(size, p);
      }
      return static_cast<T>(p == 2 ? std::sqrt(sum) : p == 1 ? sum : std::pow(sum, 1 / p));
    });
  });
}

Definitions lp_pool_definitions() {
  Op definition = op("tenon.lp_pool/1");
  definition
      .doc(
          "p-norm of each window: (sum |x|^p)^(1/p) over its cells inside x "
          "(https://onnx.ai/onnx/operators/onnx__LpPool.html)")
      .attr_f64("p", "the exponent, above 0")
      .default_value("2")
      .input("x", "[N,C,d1,...], floating")
      .output("y", "[N,C,o1,...]")
      .infer(lp_pool_infer)
      .reference(lp_pool_reference)
      .tolerance([](const Attrs&, int32_t dtype) { return sum_tolerance(dtype); });
  add_pool_window_attributes(definition);
  return {definition};
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.lp_pool", "1", "Apache-2.0", tenon::plugins::lp_pool_definitions())
