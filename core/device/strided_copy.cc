#include "core/device/strided_copy.h"

#include <cstring>

namespace tenon {
namespace {

template <class Element>
void copy_row(char* destination, std::int64_t destination_stride, const char* source, std::int64_t source_stride,
              std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(destination + i * destination_stride * static_cast<std::int64_t>(sizeof(Element)),
                source + i * source_stride * static_cast<std::int64_t>(sizeof(Element)), sizeof(Element));
  }
}

void copy_row(char* destination, std::int64_t destination_stride, const char* source, std::int64_t source_stride,
              std::int64_t count, std::size_t element_bytes) {
  if (destination_stride == 1 && source_stride == 1) {
    std::memcpy(destination, source, static_cast<std::size_t>(count) * element_bytes);
    return;
  }
  switch (element_bytes) {
    case 1:
      return copy_row<std::uint8_t>(destination, destination_stride, source, source_stride, count);
    case 2:
      return copy_row<std::uint16_t>(destination, destination_stride, source, source_stride, count);
    case 4:
      return copy_row<std::uint32_t>(destination, destination_stride, source, source_stride, count);
    default:
      return copy_row<std::uint64_t>(destination, destination_stride, source, source_stride, count);
  }
}

}  // namespace

void strided_copy(void* destination, const std::int64_t* destination_strides, const void* source,
                  const std::int64_t* source_strides, const TnDims& dims, std::size_t element_bytes) {
  for (int axis = 0; axis < dims.rank; ++axis) {
    if (dims.d[axis] == 0) return;
  }
  auto* to = static_cast<char*>(destination);
  const auto* from = static_cast<const char*>(source);
  if (dims.rank == 0) {
    std::memcpy(to, from, element_bytes);
    return;
  }
  const int last = dims.rank - 1;
  const auto bytes = static_cast<std::int64_t>(element_bytes);
  std::int64_t index[TN_MAX_RANK] = {};
  for (;;) {
    std::int64_t to_offset = 0, from_offset = 0;
    for (int axis = 0; axis < last; ++axis) {
      to_offset += index[axis] * destination_strides[axis];
      from_offset += index[axis] * source_strides[axis];
    }
    copy_row(to + to_offset * bytes, destination_strides[last], from + from_offset * bytes, source_strides[last],
             dims.d[last], element_bytes);
    int axis = last - 1;
    while (axis >= 0 && ++index[axis] == dims.d[axis]) index[axis--] = 0;
    if (axis < 0) return;
  }
}

bool is_packed(const TnDims& dims, const std::int64_t* strides) {
  std::int64_t expected = 1;
  bool packed = true;
  for (int axis = dims.rank - 1; axis >= 0; --axis) {
    if (dims.d[axis] == 0) return true;
    if (dims.d[axis] != 1 && strides[axis] != expected) packed = false;
    expected *= dims.d[axis];
  }
  return packed;
}

}  // namespace tenon
