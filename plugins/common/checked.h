// Sizes that attributes give may be as large as 64 bits allow; here is what keeps arithmetic on them from overflowing.
#ifndef TENON_PLUGINS_COMMON_CHECKED_H_
#define TENON_PLUGINS_COMMON_CHECKED_H_

#include <cstdint>
#include <tenon/sdk/attrs.hpp>
#include <tenon/sdk/error.hpp>

namespace tenon::plugins {

// a + b, or Invalid that begins with `what`.
inline int64_t checked_sum(int64_t a, int64_t b, const char* what) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) throw Invalid(text(what, ": ", a, " + ", b, " does not fit into 64 bits"));
  return sum;
}

// a * b, or Invalid that begins with `what`.
inline int64_t checked_product(int64_t a, int64_t b, const char* what) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) {
    throw Invalid(text(what, ": ", a, " * ", b, " does not fit into 64 bits"));
  }
  return product;
}

// Pixels of a window's geometry: `size` integers of at least `least` and of 31 bits, so that sums of pads and products
// of kernel, stride and dilation fit into 64.
inline List<int64_t> pixels(const Attrs& attrs, const char* name, int size, int64_t least) {
  const List<int64_t> values = attrs.i64s(name, size, least);
  for (const int64_t value : values) {
    if (value > INT32_MAX) {
      throw Invalid(text("attribute '", name, "': expected values of at most ", INT32_MAX, ", found ", value));
    }
  }
  return values;
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_CHECKED_H_
