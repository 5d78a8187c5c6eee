#include "tests/fusion/quantized_pieces.h"

namespace tenon::fusion {
namespace {

template <class T>
Value integers(NetworkMaker& make, const Dims& dims, std::int32_t dtype, const std::vector<std::int64_t>& values) {
  std::vector<T> numbers;
  for (const std::int64_t value : values) numbers.push_back(static_cast<T>(value));
  return make.raw_constant(dims, dtype, numbers);
}

Value zero_point(NetworkMaker& make, const Dims& dims, const Quantization& how) {
  if (how.zeros.empty()) return {};
  if (how.dtype == "u8") return integers<std::uint8_t>(make, dims, TN_U8, how.zeros);
  if (how.dtype == "i8") return integers<std::int8_t>(make, dims, TN_I8, how.zeros);
  if (how.dtype == "u16") return integers<std::uint16_t>(make, dims, TN_U16, how.zeros);
  if (how.dtype == "i16") return integers<std::int16_t>(make, dims, TN_I16, how.zeros);
  throw std::runtime_error("no such dtype: " + how.dtype);
}

std::vector<Value> inputs_of(NetworkMaker& make, const Value& x, const Quantization& how) {
  const auto count = static_cast<std::int64_t>(how.scales.size());
  const Dims dims = count == 1 ? Dims{} : Dims{count};
  std::vector<Value> inputs = {x, make.constant(dims, how.scales), zero_point(make, dims, how)};
  if (how.zeros.empty()) inputs.pop_back();
  return inputs;
}

}  // namespace

Value quantize(NetworkMaker& make, const Value& x, const Quantization& how) {
  return make.op("quantize", inputs_of(make, x, how), {{"to", how.dtype}, {"precision", "f32"}, {"axis", how.axis}});
}

Value dequantize(NetworkMaker& make, const Value& x, const Quantization& how) {
  return make.op("dequantize", inputs_of(make, x, how),
                 {{"to", make.dtype() == TN_F64 ? "f64" : "f32"}, {"axis", how.axis}});
}

}  // namespace tenon::fusion
