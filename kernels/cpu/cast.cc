#include "kernels/cpu/cast.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/cpu/internal/cast_isa.h"

namespace tenon::cpu {
namespace {

// Storage types that have no C++ type of their own.
struct Half {
  uint16_t bits;
};
struct Bfloat {
  uint16_t bits;
};
struct Bool {
  uint8_t byte;
};

uint64_t bits_of(double x) {
  uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

uint32_t bits_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

float float_of(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

float widen(Half h) {
  const uint32_t sign = static_cast<uint32_t>(h.bits & 0x8000) << 16;
  const uint32_t exponent = h.bits >> 10 & 0x1f;
  const uint32_t fraction = h.bits & 0x3ff;
  if (exponent == 31) {
    const uint32_t quiet = fraction != 0 ? 0x400000 : 0;
    return float_of(sign | 0x7f800000 | fraction << 13 | quiet);
  }
  if (exponent != 0) return float_of(sign | (exponent + 112) << 23 | fraction << 13);
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return sign != 0 ? -magnitude : magnitude;
}

float widen(Bfloat b) {
  const uint32_t bits = static_cast<uint32_t>(b.bits) << 16;
  return float_of((bits & 0x7fffffff) > 0x7f800000 ? bits | 0x400000 : bits);
}

// A double to a format of 16 bits with the given fraction bits, one rounding to nearest, ties to even.
template <int kFractionBits>
uint16_t narrow(double x) {
  constexpr int kExponentBits = 15 - kFractionBits;
  constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  constexpr uint16_t kInfinity = ((1 << kExponentBits) - 1) << kFractionBits;
  const uint64_t bits = bits_of(x);
  const uint16_t sign = static_cast<uint16_t>(bits >> 48 & 0x8000);
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023;
  const uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
  if (exponent == 1024) {
    if (fraction == 0) return sign | kInfinity;
    return sign | kInfinity | (1 << (kFractionBits - 1)) | static_cast<uint16_t>(fraction >> (52 - kFractionBits));
  }
  if (exponent > kBias) return sign | kInfinity;
  // Below the normal range the unit in the last place stays that of the smallest normal number.
  const int lowest = 1 - kBias;
  const int drop = 52 - kFractionBits + (exponent < lowest ? lowest - exponent : 0);
  if (drop > 54) return sign;
  const uint64_t significand = fraction | (exponent == -1023 ? 0 : uint64_t{1} << 52);
  uint64_t kept = significand >> drop;
  const uint64_t rest = significand & ((uint64_t{1} << drop) - 1);
  const uint64_t half = uint64_t{1} << (drop - 1);
  if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;
  // A carry out of the fraction moves into the exponent field, up to infinity, by itself.
  const uint64_t base = exponent < lowest ? 0 : static_cast<uint64_t>(exponent - lowest) << kFractionBits;
  return static_cast<uint16_t>(sign | (base + kept));
}

// A 64-bit integer as a double that rounds to the same 16-bit number: the bits beyond 53 are gathered in the last one.
double sticky_double(uint64_t magnitude) {
  const uint64_t sticky =
      magnitude >> 53 == 0 ? magnitude : (magnitude & ~uint64_t{0xfff}) | ((magnitude & 0xfff) != 0) << 12;
  return static_cast<double>(sticky);
}

double sticky_double(int64_t x) {
  return x < 0 ? -sticky_double(~static_cast<uint64_t>(x) + 1) : sticky_double(static_cast<uint64_t>(x));
}

template <class To, class From>
To saturate(From x) {
  if (std::isnan(x)) return 0;
  // The limits as powers of two are exact in every floating type.
  constexpr From kAbove = static_cast<From>(std::numeric_limits<To>::max() / 2 + 1) * 2;
  if (x >= kAbove) return std::numeric_limits<To>::max();
  if (x <= static_cast<From>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  return static_cast<To>(x);
}

template <class To, class From>
To convert(From x) {
  if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, Bfloat>) {
    return convert<To>(widen(x));
  } else if constexpr (std::is_same_v<From, Bool>) {
    return convert<To>(static_cast<uint8_t>(x.byte != 0));
  } else if constexpr (std::is_same_v<To, Bool>) {
    return {static_cast<uint8_t>(x != 0)};
  } else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, Bfloat>) {
    constexpr int kFractionBits = std::is_same_v<To, Half> ? 10 : 7;
    if constexpr (sizeof(From) == 8 && std::is_integral_v<From>) return {narrow<kFractionBits>(sticky_double(x))};
    return {narrow<kFractionBits>(static_cast<double>(x))};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return saturate<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

// Rounds to nearest even by carrying into the kept half.
void f32_to_bf16(int64_t count, const float* from, Bfloat* to) {
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = bits_of(from[i]);
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    const uint32_t nan = bits >> 16 | 0x40;
    to[i].bits = static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded);
  }
}

template <class From, class To>
void convert_range(int64_t count, const void* input, void* output, const CastTable& table) {
  const From* from = static_cast<const From*>(input);
  To* to = static_cast<To*>(output);
  int64_t i = 0;
  if constexpr (std::is_same_v<From, To>) {
    if constexpr (!std::is_same_v<From, Bool>) {
      std::memmove(to, from, count * sizeof(To));
      return;
    }
  } else if constexpr (std::is_same_v<From, Half> && std::is_same_v<To, float>) {
    i = table.f16_to_f32(count, static_cast<const uint16_t*>(input), to);
  } else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, Half>) {
    i = table.f32_to_f16(count, from, static_cast<uint16_t*>(output));
  } else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, Bfloat>) {
    return f32_to_bf16(count, from, to);
  }
  static_cast<void>(table);
  for (; i < count; ++i) to[i] = convert<To>(from[i]);
}

template <class Function>
void with_type(ElementType type, const Function& function) {
  switch (type) {
    case ElementType::kF32:
      return function(float{});
    case ElementType::kF64:
      return function(double{});
    case ElementType::kF16:
      return function(Half{});
    case ElementType::kBf16:
      return function(Bfloat{});
    case ElementType::kI32:
      return function(int32_t{});
    case ElementType::kI64:
      return function(int64_t{});
    case ElementType::kI8:
      return function(int8_t{});
    case ElementType::kU8:
      return function(uint8_t{});
    case ElementType::kBool:
      return function(Bool{});
    case ElementType::kI16:
      return function(int16_t{});
    case ElementType::kU16:
      return function(uint16_t{});
    case ElementType::kU32:
      return function(uint32_t{});
    case ElementType::kU64:
      return function(uint64_t{});
  }
}

}  // namespace

int element_type_size(ElementType type) noexcept {
  int size = 0;
  with_type(type, [&](auto element) { size = sizeof element; });
  return size;
}

void cast(ElementType from, ElementType to, int64_t count, const void* input, void* output, const Parallel& parallel,
          Isa isa) noexcept {
  const CastTable& table = isa == Isa::kAvx512 ? avx512::kCastTable
                           : isa == Isa::kAvx2 ? avx2::kCastTable
                                               : baseline::kCastTable;
  with_type(from, [&](auto source) {
    with_type(to, [&](auto target) {
      using From = decltype(source);
      using To = decltype(target);
      parallel_ranges(parallel, count, 16 * 1024, [&](int64_t begin, int64_t end) {
        convert_range<From, To>(end - begin, static_cast<const From*>(input) + begin, static_cast<To*>(output) + begin,
                                table);
      });
    });
  });
}

}  // namespace tenon::cpu
