// Memory as kernels get it in tests: in a format, aligned, with a canary behind it.
#ifndef TENON_PLUGINS_COMMON_TESTING_FORMATTED_MEMORY_H_
#define TENON_PLUGINS_COMMON_TESTING_FORMATTED_MEMORY_H_

#include <cstdint>
#include <cstring>
#include <tenon/sdk/box.hpp>
#include <tenon/sdk/format.hpp>

#include "plugins/common/testing/device.h"
#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {

// Memory with the alignment that hosts give, and a canary behind it.
class Buffer {
 public:
  explicit Buffer(bool gpu, uint64_t size, unsigned char fill = 0xCD)
      : gpu_(gpu), size_(size), data_(static_cast<unsigned char*>(allocate(size + kCanary, gpu))) {
    std::memset(data_, fill, size);
    std::memset(data_ + size, 0xA5, kCanary);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { release(data_, gpu_); }
  void* get() const { return size_ ? data_ : nullptr; }
  bool canary_intact() const {
    for (uint64_t n = 0; n < kCanary; ++n) {
      if (data_[size_ + n] != 0xA5) return false;
    }
    return true;
  }

 private:
  static constexpr uint64_t kCanary = 64;
  bool gpu_;
  uint64_t size_;
  unsigned char* data_;
};

// Where logical element `index` lies.
inline int64_t physical_offset(const TnFormat& format, const Dims& dims, const int64_t* index) {
  int64_t outer[TN_MAX_RANK] = {};
  int64_t extent[TN_MAX_RANK] = {};
  for (int axis = 0; axis < dims.rank; ++axis) {
    outer[axis] = index[axis];
    extent[axis] = dims[axis];
  }
  int64_t inner = 0;
  int64_t step = 1;
  if (format.kind == TN_FORMAT_AXES) {
    for (int n = format.num_blocks - 1; n >= 0; --n) {
      const int axis = format.block_axis[n];
      const int64_t size = format.block_size[n];
      inner += outer[axis] % size * step;
      step *= size;
      outer[axis] /= size;
      extent[axis] = (extent[axis] + size - 1) / size;
    }
  }
  for (int n = dims.rank - 1; n >= 0; --n) {
    const int axis = format.kind == TN_FORMAT_AXES ? format.order[n] : n;
    inner += outer[axis] * step;
    step *= extent[axis];
  }
  return inner;
}

inline TnBox whole(const Dims& dims) {
  TnBox box{};
  for (int axis = 0; axis < dims.rank; ++axis) box.size[axis] = dims[axis];
  return box;
}

template <class Copy>
void for_each_offset(const TnFormat& format, const Dims& dims, Copy&& copy) {
  for_each_in_box(dims, whole(dims), [&](const int64_t* index, int64_t linear, int64_t) {
    copy(linear, physical_offset(format, dims, index));
  });
}

inline TnTensor formatted(const HostArray& array, const TnFormat& format, void* data) {
  TnTensor tensor = array.tensor();
  tensor.data = data;
  tensor.format = format;
  for (int axis = 0; axis < array.dims.rank; ++axis) {
    int64_t index[TN_MAX_RANK] = {};
    index[axis] = 1;
    if (format.kind == TN_FORMAT_AXES) {
      for (int n = 0; n < format.num_blocks; ++n) {
        if (format.block_axis[n] == axis) index[axis] *= format.block_size[n];
      }
    }
    Dims roomy = array.dims;
    if (roomy[axis] <= index[axis]) roomy[axis] = index[axis] + 1;
    tensor.strides[axis] = physical_offset(format, roomy, index);
  }
  return tensor;
}

inline uint64_t physical_bytes(const HostArray& array, const TnFormat& format) {
  return static_cast<uint64_t>(physical_elements(format, array.dims) * dtype_size(array.dtype));
}

}  // namespace tenon::testing

#endif  // TENON_PLUGINS_COMMON_TESTING_FORMATTED_MEMORY_H_
