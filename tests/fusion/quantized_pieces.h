// Pieces of quantized networks.
#ifndef TENON_TESTS_FUSION_QUANTIZED_PIECES_H
#define TENON_TESTS_FUSION_QUANTIZED_PIECES_H

#include <string>
#include <vector>

#include "tests/fusion/network_maker.h"

namespace tenon::fusion {

/// How numbers and integers belong together.
struct Quantization {
  std::vector<float> scales = {0.02f};  ///< several: one for each position of the axis
  std::vector<std::int64_t> zeros;      ///< empty: absent, so 0
  std::string dtype = "u8";             ///< or "i8", "u16", "i16"
  std::int64_t axis = 1;
};

/// The integers of x.
Value quantize(NetworkMaker& make, const Value& x, const Quantization& how);
/// What integers stand for.
Value dequantize(NetworkMaker& make, const Value& x, const Quantization& how);
/// Both, as networks have them around every op.
inline Value rounded(NetworkMaker& make, const Value& x, const Quantization& how) {
  return dequantize(make, quantize(make, x, how), how);
}

}  // namespace tenon::fusion

#endif  // TENON_TESTS_FUSION_QUANTIZED_PIECES_H
