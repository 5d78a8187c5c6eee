// tenon.requantize/1: 32-bit sums of products of quantized numbers, quantized again.
#include "plugins/common/parallel.h"
#include "plugins/quantize/quantize.h"

namespace tenon::plugins {
namespace {

void requantize_infer(const Infer& question) {
  const Tensor x = question.input(kQuantizeX);
  const Tensor multiplier = question.input(kQuantizeScale);
  const Tensor zero = question.input(kQuantizeZeroPoint);
  if (x.dtype() != TN_I32) throw Invalid(text("input x: expected i32, found ", dtype_name(x.dtype())));
  if (multiplier.dtype() != TN_F32) {
    throw Invalid(text("input multiplier: expected f32, found ", dtype_name(multiplier.dtype())));
  }
  if (zero.dtype() != TN_U8 && zero.dtype() != TN_I8) {
    throw Invalid(text("input zero_point: expected u8 or i8, found ", dtype_name(zero.dtype())));
  }
  for (const Tensor& small : {multiplier, zero}) {
    if (broadcast_dims(x.dims(), small.dims()) != x.dims()) {
      throw Invalid(
          text("expected shapes that broadcast to ", to_text(x.dims()), " of x, found ", to_text(small.dims())));
    }
  }
  question.output(0, zero.dtype(), x.dims());
}

void requantize_reference(const Reference& call) {
  const Dims dims = call.output(0).dims();
  const int32_t* x = call.input(kQuantizeX).data<int32_t>();
  const float* multipliers = call.input(kQuantizeScale).data<float>();
  int64_t multiplier_strides[TN_MAX_RANK] = {}, zero_strides[TN_MAX_RANK] = {};
  broadcast_strides(call.input(kQuantizeScale).dims(), dims, multiplier_strides);
  broadcast_strides(call.input(kQuantizeZeroPoint).dims(), dims, zero_strides);
  const IntegerRange range = quantized_range(call.output(0).dtype());
  visit_number(call.output(0).dtype(), [&](auto result) {
    using T = decltype(result);
    const T* zeros = call.input(kQuantizeZeroPoint).data<T>();
    call.fill<T>(0, [&](const int64_t* index, int64_t linear) {
      const double multiplier = static_cast<double>(multipliers[offset_of(index, multiplier_strides, dims.rank)]);
      const auto zero = static_cast<int32_t>(zeros[offset_of(index, zero_strides, dims.rank)]);
      return static_cast<T>(saturated(x[linear] * multiplier, zero, range));
    });
  });
}

// x around the only axis along which the multipliers differ. Declined if there are several.
cpu::QuantizeShape requantize_shape(const Dims& x, const Dims& multiplier) {
  int axis = -1;
  for (int n = 0; n < multiplier.rank; ++n) {
    if (multiplier[n] == 1) continue;
    if (axis >= 0) throw Declined("the multipliers differ along several axes");
    axis = n + x.rank - multiplier.rank;
  }
  if (axis < 0) return {1, 1, x.elements()};
  return {x.product(0, axis), x[axis], x.product(axis + 1, x.rank)};
}

template <class T>
class RequantizeKernel final : public IPlugin {
 public:
  static void supports(const Site& site) {
    requantize_shape(site.dims(kQuantizeX), site.dims(kQuantizeScale));
    if (site.dims(kQuantizeZeroPoint).elements() != 1) throw Declined("there are several zero points");
  }
  void configure(const Config& config) override {
    shape_ = requantize_shape(config.site().max_dims(kQuantizeX), config.site().max_dims(kQuantizeScale));
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    cpu::requantize(shape_, static_cast<const int32_t*>(inputs[kQuantizeX].data),
                    static_cast<const float*>(inputs[kQuantizeScale].data),
                    *static_cast<const T*>(inputs[kQuantizeZeroPoint].data), static_cast<T*>(outputs[0].data),
                    to_parallel(exec));
  }

 private:
  cpu::QuantizeShape shape_;
};

template <class T>
Kernel make_kernel() {
  const int32_t dtype = dtype_of<T>();
  return kernel<RequantizeKernel<T>>("tenon.requantize/1", text("tenon.requantize.vector.", dtype_name(dtype)))
      .combo({row(TN_I32), f32_row(), row(dtype)}, {row(dtype)})
      .supports(RequantizeKernel<T>::supports)
      .deterministic();
}

}  // namespace

Definitions requantize_definitions() {
  return {op("tenon.requantize/1")
              .doc("Sums of products of quantized numbers, quantized again: the last step of ONNX's QLinearMatMul and "
                   "QLinearConv. y = saturate(round(x * multiplier) + zero_point), ties to even, the product in f64")
              .input("x", "any shape, i32")
              .input("multiplier", "f32, broadcast to x's shape")
              .input("zero_point", "u8 or i8, broadcast to x's shape")
              .output("y", "x's shape, zero_point's dtype")
              .infer(requantize_infer)
              .reference(requantize_reference),
          make_kernel<uint8_t>(), make_kernel<int8_t>()};
}

}  // namespace tenon::plugins
