// tenon.dynamic_quantize/1: f32 as u8 with the scale and zero point that x's own range asks for.
#include "plugins/common/parallel.h"
#include "plugins/common/tolerance.h"
#include "plugins/quantize/quantize.h"

namespace tenon::plugins {
namespace {

struct Parameters {
  float scale = 0;
  uint8_t zero_point = 0;
};

// least <= 0 <= largest. Without a range the scale would be 0: any other one gives the same numbers.
Parameters parameters_of(float least, float largest) {
  Parameters result;
  const float range = largest - least;
  result.scale = (range == 0 ? 1.0f : range) / 255.0f;
  result.zero_point = static_cast<uint8_t>(std::nearbyint(std::clamp(0.0f - least / result.scale, 0.0f, 255.0f)));
  return result;
}

void dynamic_quantize_infer(const Infer& question) {
  const Tensor x = question.input(0);
  if (x.dtype() != TN_F32) throw Invalid(text("input x: expected f32, found ", dtype_name(x.dtype())));
  question.output(0, TN_U8, x.dims());
  question.output(1, TN_F32, {});
  question.output(2, TN_U8, {});
}

void dynamic_quantize_reference(const Reference& call) {
  const float* x = call.input(0).data<float>();
  float least = 0, largest = 0;
  for (int64_t n = 0; n < call.input(0).elements(); ++n) {
    if (x[n] < least) least = x[n];
    if (x[n] > largest) largest = x[n];
  }
  const Parameters parameters = parameters_of(least, largest);
  if (call.wants(0)) {
    call.fill<uint8_t>(0, [&](const int64_t*, int64_t linear) {
      const double quotient = static_cast<double>(x[linear] / parameters.scale);
      return static_cast<uint8_t>(saturated(quotient, parameters.zero_point, quantized_range(TN_U8)));
    });
  }
  // The boxes of scalars hold one element; the data is NULL if it is not asked for.
  if (call.output(1).has_data()) *call.output(1).data<float>() = parameters.scale;
  if (call.output(2).has_data()) *call.output(2).data<uint8_t>() = parameters.zero_point;
}

class DynamicQuantizeKernel final : public IPlugin {
 public:
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const int64_t count = Tensor(inputs[0]).elements();
    const float* x = static_cast<const float*>(inputs[0].data);
    float least = 0, largest = 0;
    cpu::value_range(count, x, &least, &largest, to_parallel(exec));
    const Parameters parameters = parameters_of(least, largest);
    cpu::quantize({1, 1, count}, x, &parameters.scale, &parameters.zero_point, static_cast<uint8_t*>(outputs[0].data),
                  to_parallel(exec));
    *static_cast<float*>(outputs[1].data) = parameters.scale;
    *static_cast<uint8_t*>(outputs[2].data) = parameters.zero_point;
  }
};

}  // namespace

Definitions dynamic_quantize_definitions() {
  return {op("tenon.dynamic_quantize/1")
              .doc("f32 as u8 over x's own range, as ONNX's DynamicQuantizeLinear. scale = (max(x, 0) - min(x, 0)) / "
                   "255, zero_point = round(saturate(-min(x, 0) / scale)), y = saturate(round(x / scale) + zero_point)")
              .input("x", "any shape, f32")
              .output("y", "x's shape, u8")
              .output("scale", "scalar, f32")
              .output("zero_point", "scalar, u8")
              .infer(dynamic_quantize_infer)
              .reference(dynamic_quantize_reference)
              .tolerance(0, 0),
          kernel<DynamicQuantizeKernel>("tenon.dynamic_quantize/1", "tenon.dynamic_quantize.vector")
              .combo({f32_row()}, {row(TN_U8), f32_row(), row(TN_U8)})
              .deterministic()};
}

}  // namespace tenon::plugins
