/// Element types: names, sizes, and the way from a dtype number to a C++ type.
#ifndef TENON_SDK_DTYPE_HPP
#define TENON_SDK_DTYPE_HPP

#include <cstdint>
#include <type_traits>

#include "error.hpp"

namespace tenon {
inline namespace sdk {

/// "f32", "i64", ...; "none" for an absent tensor and "dtype?" for a number that this header does not know.
inline const char* dtype_name(int32_t dtype) {
  switch (dtype) {
    case TN_DTYPE_NONE:
      return "none";
    case TN_F32:
      return "f32";
    case TN_U8:
      return "u8";
    case TN_I8:
      return "i8";
    case TN_U16:
      return "u16";
    case TN_I16:
      return "i16";
    case TN_I32:
      return "i32";
    case TN_I64:
      return "i64";
    case TN_STRING:
      return "string";
    case TN_BOOL:
      return "bool";
    case TN_F16:
      return "f16";
    case TN_F64:
      return "f64";
    case TN_U32:
      return "u32";
    case TN_U64:
      return "u64";
    case TN_BF16:
      return "bf16";
    case TN_F8E4M3FN:
      return "f8e4m3fn";
    case TN_F8E4M3FNUZ:
      return "f8e4m3fnuz";
    case TN_F8E5M2:
      return "f8e5m2";
    case TN_F8E5M2FNUZ:
      return "f8e5m2fnuz";
    case TN_F8E8M0:
      return "f8e8m0";
    case TN_U4:
      return "u4";
    case TN_I4:
      return "i4";
    case TN_F4E2M1:
      return "f4e2m1";
    case TN_U2:
      return "u2";
    case TN_I2:
      return "i2";
    default:
      return "dtype?";
  }
}

/// Bytes of one element; 0 for types without whole bytes of their own.
inline int dtype_size(int32_t dtype) {
  switch (dtype) {
    case TN_U8:
    case TN_I8:
    case TN_BOOL:
    case TN_F8E4M3FN:
    case TN_F8E4M3FNUZ:
    case TN_F8E5M2:
    case TN_F8E5M2FNUZ:
    case TN_F8E8M0:
      return 1;
    case TN_U16:
    case TN_I16:
    case TN_F16:
    case TN_BF16:
      return 2;
    case TN_F32:
    case TN_I32:
    case TN_U32:
      return 4;
    case TN_F64:
    case TN_I64:
    case TN_U64:
      return 8;
    default:
      return 0;
  }
}

inline bool is_floating(int32_t dtype) {
  return dtype == TN_F32 || dtype == TN_F64 || dtype == TN_F16 || dtype == TN_BF16;
}

/// The dtype number of a C++ type; TN_DTYPE_NONE for types that have none.
template <class T>
constexpr int32_t dtype_of() {
  if constexpr (std::is_same_v<T, float>)
    return TN_F32;
  else if constexpr (std::is_same_v<T, double>)
    return TN_F64;
  else if constexpr (std::is_same_v<T, bool>)
    return TN_BOOL;
  else if constexpr (std::is_same_v<T, int8_t>)
    return TN_I8;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return TN_U8;
  else if constexpr (std::is_same_v<T, int16_t>)
    return TN_I16;
  else if constexpr (std::is_same_v<T, uint16_t>)
    return TN_U16;
  else if constexpr (std::is_same_v<T, int32_t>)
    return TN_I32;
  else if constexpr (std::is_same_v<T, uint32_t>)
    return TN_U32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return TN_I64;
  else if constexpr (std::is_same_v<T, uint64_t>)
    return TN_U64;
  else
    return TN_DTYPE_NONE;
}

/// Calls body(T()) with the C++ number type of `dtype`: visit_number(d, [&](auto zero) { using T = decltype(zero); ...
/// }). bool and the 16-bit floats are not numbers here: Invalid.
template <class Body>
void visit_number(int32_t dtype, Body&& body) {
  switch (dtype) {
    case TN_F32:
      return body(float());
    case TN_F64:
      return body(double());
    case TN_I8:
      return body(int8_t());
    case TN_U8:
      return body(uint8_t());
    case TN_I16:
      return body(int16_t());
    case TN_U16:
      return body(uint16_t());
    case TN_I32:
      return body(int32_t());
    case TN_U32:
      return body(uint32_t());
    case TN_I64:
      return body(int64_t());
    case TN_U64:
      return body(uint64_t());
    default:
      throw Invalid(text("expected a number type, found ", dtype_name(dtype)));
  }
}

/// float and double only.
template <class Body>
void visit_floating(int32_t dtype, Body&& body) {
  if (dtype == TN_F32) return body(float());
  if (dtype == TN_F64) return body(double());
  throw Invalid(text("expected f32 or f64, found ", dtype_name(dtype)));
}

}  // namespace sdk
}  // namespace tenon

#endif  // TENON_SDK_DTYPE_HPP
