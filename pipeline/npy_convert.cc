// convert_npy: every pair of element types goes through double or 64-bit integers, whichever is exact.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "pipeline/npy.h"

namespace tenon::pipeline {
namespace {

/// IEEE 754 binary16, which C++20 has no type for.
struct Half {
  std::uint16_t bits;
};

double to_double(Half half) {
  const int exponent = (half.bits >> 10) & 31;
  const int fraction = half.bits & 1023;
  double value = 0;
  if (exponent == 31) {
    value = fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    value = std::ldexp(fraction, -24);
  } else {
    value = std::ldexp(1024 + fraction, exponent - 25);
  }
  return (half.bits & 0x8000) != 0 ? -value : value;
}

/// Rounds to nearest, ties to even, straight from double, so that no value is rounded twice.
Half to_half(double value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::fabs(value);
  if (std::isnan(value)) return {static_cast<std::uint16_t>(sign | 0x7e00)};
  if (size >= 65520.0) return {static_cast<std::uint16_t>(sign | 0x7c00)};  // halfway between the largest and 2^16
  if (size < std::ldexp(1.0, -14)) {
    return {static_cast<std::uint16_t>(sign | static_cast<int>(std::nearbyint(std::ldexp(size, 24))))};
  }
  int exponent = 0;
  const double fraction = std::frexp(size, &exponent);  // [0.5, 1)
  const int mantissa = static_cast<int>(std::nearbyint(std::ldexp(fraction, 11)));
  // A mantissa rounded up to 2048 carries into the exponent, as it should.
  return {static_cast<std::uint16_t>(sign | (((exponent + 14) << 10) + (mantissa - 1024)))};
}

template <class T>
struct Tag {
  using Type = T;
};

/// Calls function with the Tag of the C++ type that holds an element.
template <class Function>
auto with_type(NpyType type, Function function) {
  switch (type) {
    case NpyType::kF2:
      return function(Tag<Half>{});
    case NpyType::kF4:
      return function(Tag<float>{});
    case NpyType::kF8:
      return function(Tag<double>{});
    case NpyType::kI1:
      return function(Tag<std::int8_t>{});
    case NpyType::kI2:
      return function(Tag<std::int16_t>{});
    case NpyType::kI4:
      return function(Tag<std::int32_t>{});
    case NpyType::kI8:
      return function(Tag<std::int64_t>{});
    case NpyType::kU1:
      return function(Tag<std::uint8_t>{});
    case NpyType::kU2:
      return function(Tag<std::uint16_t>{});
    case NpyType::kU4:
      return function(Tag<std::uint32_t>{});
    case NpyType::kU8:
      return function(Tag<std::uint64_t>{});
    case NpyType::kB1:
      break;
  }
  return function(Tag<bool>{});
}

/// Converts one value; false when To cannot hold it.
template <class To, class From>
bool convert(From from, To& to) {
  if constexpr (std::is_same_v<From, Half>) {
    return convert(to_double(from), to);
  } else if constexpr (std::is_same_v<To, Half>) {
    to = to_half(static_cast<double>(from));
    return true;
  } else if constexpr (std::is_same_v<To, bool>) {
    to = from != From{};
    return true;
  } else if constexpr (std::is_floating_point_v<To>) {
    if constexpr (std::is_same_v<From, double> && std::is_same_v<To, float>) {
      // A double that rounds beyond the largest float becomes infinity; the plain cast would be undefined.
      constexpr double kLimit = 0x1.ffffffp127;
      if (std::fabs(from) >= kLimit && std::isfinite(from)) {
        to = std::copysign(std::numeric_limits<float>::infinity(), static_cast<float>(from > 0 ? 1 : -1));
        return true;
      }
    }
    to = static_cast<To>(from);
    return true;
  } else if constexpr (std::is_floating_point_v<From>) {
    const double rounded = std::nearbyint(static_cast<double>(from));
    // 2^digits is exact in double, the largest integer itself may not be.
    const double limit = std::ldexp(1.0, std::numeric_limits<To>::digits);
    if (!(rounded < limit && rounded >= (std::is_signed_v<To> ? -limit : 0.0))) return false;
    to = static_cast<To>(rounded);
    return true;
  } else if constexpr (std::is_same_v<From, bool>) {
    to = from ? 1 : 0;
    return true;
  } else {
    if (!std::in_range<To>(from)) return false;
    to = static_cast<To>(from);
    return true;
  }
}

template <class T>
T load(const std::uint8_t* from) {
  if constexpr (std::is_same_v<T, bool>) {
    return *from != 0;  // a byte other than 0 and 1 is no valid bool to copy
  } else {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
}

template <class T>
std::string value_text(T value) {
  if constexpr (std::is_same_v<T, Half>) {
    return std::to_string(to_double(value));
  } else {
    return std::to_string(value);
  }
}

template <class To, class From>
Result<NpyArray> convert_all(const NpyArray& array, NpyType type) {
  const std::size_t count = array.elements();
  NpyArray result{type, array.dims, std::vector<std::uint8_t>(count * sizeof(To))};
  for (std::size_t i = 0; i < count; ++i) {
    const From from = load<From>(array.bytes.data() + i * sizeof(From));
    To to{};
    if (!convert(from, to)) {
      return Status(Code::kInvalid, "element " + std::to_string(i) + " is " + value_text(from) + ", which " +
                                        npy_type_name(type) + " cannot hold; give an array of that type");
    }
    std::memcpy(result.bytes.data() + i * sizeof(To), &to, sizeof to);
  }
  return result;
}

}  // namespace

Result<NpyArray> convert_npy(const NpyArray& array, NpyType type) {
  if (array.type == type) return array;
  return with_type(type, [&](auto to) {
    return with_type(array.type, [&](auto from) {
      return convert_all<typename decltype(to)::Type, typename decltype(from)::Type>(array, type);
    });
  });
}

}  // namespace tenon::pipeline
