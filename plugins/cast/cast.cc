// tenon.cast/1: elements in another dtype.
#include "plugins/cast/cast.h"

#include <cmath>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "kernels/cpu/cast.h"
#include "plugins/common/parallel.h"
#include "plugins/common/small_float.h"
#include "plugins/common/tolerance.h"

namespace tenon::plugins {
namespace {

struct CastType {
  int32_t dtype;
  cpu::ElementType element;
};
constexpr CastType kCastTypes[] = {
    {TN_F32, cpu::ElementType::kF32},   {TN_F64, cpu::ElementType::kF64}, {TN_F16, cpu::ElementType::kF16},
    {TN_BF16, cpu::ElementType::kBf16}, {TN_I32, cpu::ElementType::kI32}, {TN_I64, cpu::ElementType::kI64},
    {TN_I8, cpu::ElementType::kI8},     {TN_U8, cpu::ElementType::kU8},   {TN_BOOL, cpu::ElementType::kBool},
    {TN_I16, cpu::ElementType::kI16},   {TN_U16, cpu::ElementType::kU16}, {TN_U32, cpu::ElementType::kU32},
    {TN_U64, cpu::ElementType::kU64},
};

cpu::ElementType element_type(int32_t dtype) {
  for (const CastType& type : kCastTypes) {
    if (type.dtype == dtype) return type.element;
  }
  throw Declined(text("no cast from or to ", dtype_name(dtype)));
}

// Integers keep the low bits; floats are truncated and saturate, NaN gives 0.
template <class To, class From>
To convert(From value) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (std::isnan(value)) return 0;
    if (value <= static_cast<From>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    if (value >= static_cast<From>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
  }
  return static_cast<To>(value);
}

template <class Body>
void visit_stored(int32_t dtype, Body&& body) {
  if (dtype == TN_BOOL) return body(bool());
  visit_number(dtype, body);
}

// A number as f32 such that rounding the result to at most 22 bits of fraction rounds the number itself: what f32
// cannot hold is cut off, and the last bit tells that there was more ("round to odd", Boldo and Melquiond 2008).
template <class From>
float to_odd(From value) {
  // 64 bits of fraction, so that it holds every From.
  using Wide = std::conditional_t<std::is_same_v<From, float>, float, long double>;
  const auto wide = static_cast<Wide>(value);
  float result = static_cast<float>(value);
  if (std::isnan(result) || std::isinf(wide) || static_cast<Wide>(result) == wide) return result;
  if (std::abs(static_cast<Wide>(result)) > std::abs(wide)) result = std::nextafter(result, 0.0f);
  uint32_t bits;
  std::memcpy(&bits, &result, sizeof bits);
  bits |= 1;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

enum class RoundMode { kUp, kDown, kNearest };

RoundMode round_mode_of(const Attrs& attrs) {
  const std::string name = attrs.str("round_mode");
  return name == "up" ? RoundMode::kUp : name == "down" ? RoundMode::kDown : RoundMode::kNearest;
}

// The power of two that f8e8m0 stores.
float to_e8m0(float value, bool saturate, RoundMode mode) {
  constexpr int kLargest = 127;
  if (std::isnan(value)) return value;
  int exponent = -kLargest - 1;  // below all
  if (std::isinf(value) && value > 0) {
    exponent = kLargest + 1;
  } else if (value > 0) {
    exponent = std::ilogb(value);
    const float significand = std::ldexp(value, -exponent);
    if (mode != RoundMode::kDown && significand >= (mode == RoundMode::kUp ? std::nextafter(1.0f, 2.0f) : 1.5f)) {
      ++exponent;
    }
  }
  const int held = std::clamp(exponent, -kLargest, kLargest);
  return held == exponent || saturate ? std::ldexp(1.0f, held) : std::numeric_limits<float>::quiet_NaN();
}

// What the host rounds to the small float `to`.
float to_small_float(float value, int32_t to, bool saturate, RoundMode mode) {
  if (to == TN_F8E8M0) return to_e8m0(value, saturate, mode);
  if (!is_float8(to) || !saturate || std::isnan(value)) return value;
  const float largest = largest_of(to);
  return std::clamp(value, -largest, largest);
}

void cast_reference(const Reference& call) {
  const int32_t target = call.attrs().dtype("to");
  const bool saturate = call.attrs().i64("saturate") != 0;
  const RoundMode mode = round_mode_of(call.attrs());
  const bool small_integer = target == TN_U4 || target == TN_I4 || target == TN_U2 || target == TN_I2;
  visit_stored(call.input(0).dtype(), [&](auto from) {
    using From = decltype(from);
    // bool is any byte.
    using Stored = std::conditional_t<std::is_same_v<From, bool>, unsigned char, From>;
    const auto* x = static_cast<const Stored*>(call.input(0).data());
    const auto number = [&](int64_t n) { return std::is_same_v<From, bool> ? static_cast<Stored>(x[n] != 0) : x[n]; };
    visit_stored(call.output(0).dtype(), [&](auto to) {
      using To = decltype(to);
      call.fill<To>(0, [&](const int64_t*, int64_t n) -> To {
        if constexpr (std::is_same_v<To, bool>) {
          return !(number(n) == Stored());
        } else if constexpr (std::is_same_v<To, float>) {
          return target == TN_F32 ? static_cast<float>(number(n))
                                  : to_small_float(to_odd(number(n)), target, saturate, mode);
        } else {
          return small_integer ? static_cast<To>(convert<int64_t>(number(n))) : convert<To>(number(n));
        }
      });
    });
  });
}

class CastKernel final : public IPlugin {
 public:
  void configure(const Config& config) override {
    from_ = element_type(config.combo().input(0).dtype);
    to_ = element_type(config.combo().output(0).dtype);
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    cpu::cast(from_, to_, Tensor(inputs[0]).elements(), inputs[0].data, outputs[0].data, to_parallel(exec),
              cpu::detect_isa());
  }

 private:
  cpu::ElementType from_ = cpu::ElementType::kF32;
  cpu::ElementType to_ = cpu::ElementType::kF32;
};

}  // namespace

Definitions cast_definitions() {
  Kernel definition = kernel<CastKernel>("tenon.cast/1", "tenon.cast.vector");
  for (const CastType& from : kCastTypes) {
    for (const CastType& to : kCastTypes) {
      definition.combo({row(from.dtype)}, {row(to.dtype)});
      if (dtype_size(from.dtype) == dtype_size(to.dtype)) definition.may_alias(0, 0);
    }
  }
  return {op("tenon.cast/1")
              .doc("Elements in another dtype, as ONNX's Cast. Floats to integers are truncated toward zero and "
                   "saturate (those below a byte keep the low bits), NaN gives 0; integers to integers keep the low "
                   "bits; floats to floats round to nearest even; anything but 0 is true")
              .attr_dtype("to", "dtype of the result")
              .required()
              .attr_i64("saturate",
                        "1: what is beyond the largest number of an 8-bit float becomes it; 0: infinity "
                        "or NaN")
              .default_value("1")
              .range("[0,1]")
              .attr_str("round_mode", "to f8e8m0 only: away from zero, toward zero, or nearest with ties up")
              .default_value("up")
              .range("up|down|nearest")
              .input("x", "any shape")
              .output("y", "x's shape, dtype `to`")
              .elementwise()
              .infer([](const Infer& question) {
                const int32_t to = question.attrs().dtype("to");
                for (const int32_t dtype : {to, question.input(0).dtype()}) {
                  if (dtype == TN_STRING) throw Invalid("expected numbers or bool, found string");
                }
                question.output(0, to, question.input(0).dims());
              })
              .reference(cast_reference)
              .tolerance([](const Attrs&, int32_t dtype) { return pointwise_tolerance(dtype); }),
          definition.deterministic()};
}

}  // namespace tenon::plugins

TENON_PLUGIN("tenon.cast", "1", "Apache-2.0", tenon::plugins::cast_definitions(),
             tenon::plugins::bit_cast_definitions())
