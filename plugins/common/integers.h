// Integers that are inputs of ops: the ones that decide shapes, and indices.
#ifndef TENON_PLUGINS_COMMON_INTEGERS_H_
#define TENON_PLUGINS_COMMON_INTEGERS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include <tenon/sdk/questions.hpp>
#include <tenon/sdk/site.hpp>

namespace tenon::plugins {

inline std::vector<int64_t> integers(const Tensor& tensor) {
  std::vector<int64_t> values(static_cast<size_t>(tensor.elements()));
  for (size_t n = 0; n < values.size(); ++n) values[n] = tensor.integer(static_cast<int64_t>(n));
  return values;
}

// For an input whose contents decide a shape: Invalid if they are not known.
inline void check_contents(const Tensor& x, const char* name) {
  if (!x.has_data() && x.elements() > 0) {
    throw Invalid(text("input '", name, "': its contents must be known when the network is built, because they decide ",
                       "the shape of the output; they are computed at run time"));
  }
}

// The contents of input n, which decide a shape. Invalid if they are computed at run time or are no i32 or i64.
inline std::vector<int64_t> shape_integers(const Infer& question, int n, const char* name) {
  const Tensor x = question.input(n);
  if (x.dtype() != TN_I64 && x.dtype() != TN_I32) {
    throw Invalid(text("input '", name, "': expected i64 or i32, found ", dtype_name(x.dtype())));
  }
  check_contents(x, name);
  return x.has_data() ? integers(x) : std::vector<int64_t>();
}

// Indices into an axis count from the end where they are negative. One that is out of range is Invalid where the
// contents are known when the network is built; at run time the nearest valid position is taken.
inline int64_t clamp_index(int64_t index, int64_t size) {
  const int64_t at = index < 0 ? index + size : index;
  return at < 0 ? 0 : at >= size ? size - 1 : at;
}

// Of an input of indices. `size` is that of the axis that they count along.
inline void check_index_dtype(const Tensor& indices, const char* name = "indices") {
  if (indices.dtype() != TN_I64 && indices.dtype() != TN_I32) {
    throw Invalid(text("input '", name, "': expected i64 or i32, found ", dtype_name(indices.dtype())));
  }
}
inline void check_index(int64_t index, int64_t size, const char* name = "indices") {
  if (index < -size || index >= size) {
    throw Invalid(
        text("input '", name, "': expected ", -size, " to ", size - 1, " for an axis of ", size, ", found ", index));
  }
}
// All of them where they are known, and that there is something to point at where they are not.
inline void check_indices(const Tensor& indices, int64_t size, const char* name = "indices") {
  check_index_dtype(indices, name);
  const int64_t count = indices.elements();
  if (count > 0 && size == 0) throw Invalid(text("input '", name, "': ", count, " indices into an axis of size 0"));
  if (!indices.has_data()) return;
  for (int64_t n = 0; n < count; ++n) check_index(indices.integer(n), size, name);
}

// Tuples of `depth` indices into axes of these sizes, as gather_nd and scatter_nd take them.
inline void check_index_tuples(const Tensor& indices, int depth, const int64_t* sizes) {
  check_index_dtype(indices);
  const int64_t count = indices.elements();
  for (int d = 0; d < depth; ++d) {
    if (count > 0 && sizes[d] == 0) throw Invalid("input 'indices': it points into an axis of size 0");
  }
  if (!indices.has_data()) return;
  for (int64_t n = 0; n < count; ++n) check_index(indices.integer(n), sizes[n % depth], "indices");
}

// Indices along `axis` of gather_elements and scatter_elements: x's rank, and no larger but on the axis.
inline void check_element_indices(const Dims& x, const Dims& indices, int axis) {
  bool fits = x.rank == indices.rank;
  for (int n = 0; fits && n < x.rank; ++n) fits = n == axis || indices[n] <= x[n];
  if (!fits) {
    throw Invalid(text("input 'indices': expected dims of at most ", to_text(x), " but for axis ", axis, ", found ",
                       to_text(indices)));
  }
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_INTEGERS_H_
