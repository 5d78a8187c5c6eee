// What the ops of quantized networks share, and one function for each source file that defines some.
#ifndef TENON_PLUGINS_QUANTIZE_QUANTIZE_H_
#define TENON_PLUGINS_QUANTIZE_QUANTIZE_H_

#include <algorithm>
#include <cmath>
#include <random>
#include <tenon/sdk/plugin.hpp>

#include "kernels/cpu/quantize.h"

namespace tenon::plugins {

// Input numbers of tenon.quantize/1, tenon.dequantize/1 and tenon.requantize/1.
inline constexpr int kQuantizeX = 0, kQuantizeScale = 1, kQuantizeZeroPoint = 2;

struct IntegerRange {
  int32_t low = 0, high = 0;
  bool is_integer() const { return high != 0; }
};

// Of the integers that quantization gives; {0, 0} for other dtypes.
inline IntegerRange quantized_range(int32_t dtype) {
  switch (dtype) {
    case TN_U2:
      return {0, 3};
    case TN_I2:
      return {-2, 1};
    case TN_U4:
      return {0, 15};
    case TN_I4:
      return {-8, 7};
    case TN_U8:
      return {0, 255};
    case TN_I8:
      return {-128, 127};
    case TN_U16:
      return {0, 65535};
    case TN_I16:
      return {-32768, 32767};
    default:
      return {};
  }
}

// saturate(round(value) + zero_point), ties to even; NaN gives the smallest number.
inline int32_t saturated(double value, int32_t zero_point, IntegerRange range) {
  if (std::isnan(value)) return range.low;
  return static_cast<int32_t>(std::clamp<double>(std::nearbyint(value) + zero_point, range.low, range.high));
}

// Which scale and zero point an element of x has: one for all, one for each position of an axis, or one for each block
// of `block` positions along an axis.
struct ScalePlaces {
  int rank = 0, axis = -1;
  int64_t block = 1;
  int64_t strides[TN_MAX_RANK] = {};

  // Invalid unless `scale` has one element, or [x.d[axis]], or with blocks x's shape with the blocks on `axis`.
  static ScalePlaces make(const Attrs& attrs, const Dims& x, const Dims& scale);
  int64_t of(const int64_t* index) const {
    int64_t place = 0;
    for (int n = 0; n < rank; ++n) place += (n == axis ? index[n] / block : index[n]) * strides[n];
    return place;
  }
};

// The same as the kernels want it. Declined for blocks.
cpu::QuantizeShape quantize_shape(const Attrs& attrs, const Dims& x, const Dims& scale);

// Every byte and, for 32-bit sums, small numbers: what the generators of the integer products give.
inline void generate_bytes(const Generate& call) {
  std::mt19937_64 engine(call.seed);
  for (uint32_t n = 0; n < call.num_inputs; ++n) {
    const Tensor tensor(call.inputs[n]);
    if (!tensor.present()) continue;
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      if (tensor.dtype() == TN_I32) {
        tensor.data<int32_t>()[i] = static_cast<int32_t>(engine() % 2001) - 1000;
      } else {
        static_cast<uint8_t*>(tensor.data())[i] = static_cast<uint8_t>(engine());
      }
    }
  }
}

Definitions quantize_definitions();
Definitions quantize_kernels();
Definitions quantize_rules();
Definitions requantize_definitions();
Definitions dynamic_quantize_definitions();
Definitions matmul_integer_definitions();
Definitions conv_integer_definitions();

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_QUANTIZE_QUANTIZE_H_
