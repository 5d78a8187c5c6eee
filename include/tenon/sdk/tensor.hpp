/// Dims and Tensor: light views that never allocate.
#ifndef TENON_SDK_TENSOR_HPP
#define TENON_SDK_TENSOR_HPP

#include <cstring>
#include <initializer_list>
#include <string>

#include "dtype.hpp"

namespace tenon {
inline namespace sdk {

/// A shape; a TnDims with manners.
struct Dims : TnDims {
  Dims() : TnDims{0, 0, {}} {}
  Dims(const TnDims& dims) : TnDims(dims) {}
  Dims(std::initializer_list<int64_t> sizes) : TnDims{0, 0, {}} {
    for (int64_t size : sizes) push_back(size);
  }

  int size() const { return rank; }
  bool empty() const { return rank == 0; }
  int64_t& operator[](int axis) { return d[axis]; }
  int64_t operator[](int axis) const { return d[axis]; }
  const int64_t* begin() const { return d; }
  const int64_t* end() const { return d + rank; }
  /// Appends an axis. Invalid beyond TN_MAX_RANK.
  void push_back(int64_t size) {
    if (rank >= TN_MAX_RANK) throw Invalid(text("a tensor has at most ", TN_MAX_RANK, " dims"));
    d[rank++] = size;
  }
  /// Product of the axes [first, last); 1 if there are none.
  /// 0 if any of them is, however large the others are.
  int64_t product(int first, int last) const {
    int64_t product = 1;
    for (int axis = first; axis < last; ++axis) {
      if (d[axis] == 0) return 0;
    }
    for (int axis = first; axis < last; ++axis) product *= d[axis];
    return product;
  }
  int64_t elements() const { return product(0, rank); }
};

inline bool operator==(const Dims& a, const Dims& b) {
  return a.rank == b.rank && std::memcmp(a.d, b.d, static_cast<size_t>(a.rank) * sizeof a.d[0]) == 0;
}
inline bool operator!=(const Dims& a, const Dims& b) { return !(a == b); }

/// "[1,3,224,224]".
inline std::string to_text(const TnDims& dims) {
  std::string result = "[";
  for (int axis = 0; axis < dims.rank; ++axis) result += text(axis ? "," : "", dims.d[axis]);
  return result + "]";
}

/// Strides in elements of a packed row-major tensor.
inline void row_strides(const TnDims& dims, int64_t* strides) {
  int64_t step = 1;
  for (int axis = dims.rank - 1; axis >= 0; --axis) {
    strides[axis] = step;
    step *= dims.d[axis];
  }
}

/// `axis` in [-rank, rank) as one in [0, rank); Invalid otherwise, naming attribute, expected and found.
inline int normalize_axis(int64_t axis, int rank, const char* attribute = "axis") {
  if (axis < -rank || axis >= rank) {
    throw Invalid(
        text("attribute '", attribute, "': expected ", -rank, " to ", rank - 1, " for rank ", rank, ", found ", axis));
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

/// A view of a TnTensor, which must outlive it.
class Tensor {
 public:
  explicit Tensor(const TnTensor& tensor) : tensor_(&tensor) {}

  bool present() const { return tensor_->dtype != TN_DTYPE_NONE; }
  bool has_data() const { return tensor_->data != nullptr; }
  int32_t dtype() const { return tensor_->dtype; }
  int rank() const { return tensor_->dims.rank; }
  int64_t dim(int axis) const { return tensor_->dims.d[axis]; }
  Dims dims() const { return tensor_->dims; }
  int64_t elements() const { return dims().elements(); }
  int64_t stride(int axis) const { return tensor_->strides[axis]; }
  const TnFormat& format() const { return tensor_->format; }
  const TnTensor& raw() const { return *tensor_; }
  void* data() const { return tensor_->data; }
  /// The elements as T. Invalid if the tensor holds another type.
  template <class T>
  T* data() const {
    if (tensor_->dtype != dtype_of<std::remove_const_t<T>>()) {
      throw Invalid(text("expected ", dtype_name(dtype_of<std::remove_const_t<T>>()), " data, found ",
                         dtype_name(tensor_->dtype)));
    }
    return static_cast<T*>(tensor_->data);
  }
  /// Element n of an integer tensor (shapes, axes) as int64_t. REQUIRES: host data.
  int64_t integer(int64_t n) const {
    int64_t value = 0;
    visit_number(dtype(), [&](auto zero) { value = static_cast<int64_t>(data<decltype(zero)>()[n]); });
    return value;
  }

 private:
  const TnTensor* tensor_;
};

}  // namespace sdk
}  // namespace tenon

#endif  // TENON_SDK_TENSOR_HPP
