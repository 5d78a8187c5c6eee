#include "core/site/layout.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/graph/convert.h"
#include "core/graph/tensor.h"

namespace tenon {
namespace {

template <class Word>
void copy_elements(const TnTensor& from, const TnTensor& to) {
  const int rank = from.dims.rank;
  const auto* source = static_cast<const Word*>(from.data);
  auto* target = static_cast<Word*>(to.data);
  std::int64_t index[TN_MAX_RANK] = {};
  if (rank == 0) {
    *target = *source;
    return;
  }
  for (int axis = 0; axis < rank; ++axis) {
    if (from.dims.d[axis] == 0) return;
  }
  do {
    target[element_offset(to, index)] = source[element_offset(from, index)];
  } while (next_index(index, from.dims.d, rank));
}

/// Elements below a byte. What no element is stored to, is 0.
void copy_small_elements(const TnTensor& from, const TnTensor& to) {
  const int bits = dtype_bits(from.dtype);
  const std::int64_t cells = physical_elements(to.dims, to.format);
  if (std::any_of(from.dims.d, from.dims.d + from.dims.rank, [](std::int64_t d) { return d == 0; })) return;
  std::memset(to.data, 0, static_cast<std::size_t>((cells * bits + 7) / 8));
  std::int64_t index[TN_MAX_RANK] = {};
  do {
    store_bits(to.data, bits, element_offset(to, index), load_bits(from.data, bits, element_offset(from, index)));
  } while (next_index(index, from.dims.d, from.dims.rank));
}

int element_bytes(const TnTensor& tensor) { return std::max(1, dtype_bits(tensor.dtype) / 8); }

}  // namespace

bool next_index(std::int64_t* index, const std::int64_t* extents, int rank) {
  for (int axis = rank - 1; axis >= 0; --axis) {
    if (++index[axis] < extents[axis]) return true;
    index[axis] = 0;
  }
  return false;
}

std::int64_t physical_elements(const TnDims& dims, const TnFormat& format) {
  std::int64_t count = 1;
  for (int axis = 0; axis < dims.rank; ++axis) {
    std::int64_t block = 1;
    for (int i = 0; i < format.num_blocks; ++i) {
      if (format.block_axis[i] == axis) block *= format.block_size[i];
    }
    count *= (dims.d[axis] + block - 1) / block * block;
  }
  return count;
}

std::int64_t element_offset(const TnTensor& tensor, const std::int64_t* index) {
  const TnFormat& format = tensor.format;
  std::int64_t outer[TN_MAX_RANK] = {};
  std::copy(index, index + tensor.dims.rank, outer);
  std::int64_t offset = 0, inner_stride = 1;
  for (int i = format.num_blocks - 1; i >= 0; --i) {
    const int axis = format.block_axis[i];
    const std::int64_t size = format.block_size[i];
    offset += outer[axis] % size * inner_stride;
    outer[axis] /= size;
    inner_stride *= size;
  }
  for (int axis = 0; axis < tensor.dims.rank; ++axis) offset += outer[axis] * tensor.strides[axis];
  return offset;
}

std::optional<std::int64_t> contiguous_offset(const TnDims& outer, const TnDims& inner, const std::int64_t* start,
                                              const TnFormat& format) {
  if (format.kind == TN_FORMAT_OPAQUE || outer.rank != inner.rank) return std::nullopt;
  struct Axis {
    std::int64_t outer, inner, start;
  };
  std::vector<Axis> axes;  // as they lie in memory, the blocks last
  for (int i = 0; i < outer.rank; ++i) {
    const int axis = format.kind == TN_FORMAT_AXES ? format.order[i] : i;
    std::int64_t block = 1;
    for (int b = 0; format.kind == TN_FORMAT_AXES && b < format.num_blocks; ++b) {
      if (format.block_axis[b] == axis) block *= format.block_size[b];
    }
    const std::int64_t end = start[axis] + inner.d[axis];
    if (start[axis] < 0 || end > outer.d[axis] || start[axis] % block != 0) return std::nullopt;
    if (inner.d[axis] % block != 0 && end != outer.d[axis]) return std::nullopt;
    axes.push_back({(outer.d[axis] + block - 1) / block, (inner.d[axis] + block - 1) / block, start[axis] / block});
  }
  for (int b = 0; format.kind == TN_FORMAT_AXES && b < format.num_blocks; ++b) {
    axes.push_back({format.block_size[b], format.block_size[b], 0});
  }
  std::int64_t offset = 0, stride = 1;
  bool cut = false;  // an axis behind is not taken whole
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    if (cut && axis->inner != 1) return std::nullopt;
    cut = cut || axis->inner != axis->outer;
    offset += axis->start * stride;
    stride *= axis->outer;
  }
  return offset;
}

void zero_padding(const TnTensor& tensor) {
  const int bytes = element_bytes(tensor);
  for (int i = 0; i < tensor.format.num_blocks; ++i) {
    const int axis = tensor.format.block_axis[i];
    const std::int64_t block = tensor.format.block_size[i];
    const std::int64_t extent = tensor.dims.d[axis];
    const std::int64_t padded = (extent + block - 1) / block * block;
    if (padded == extent) continue;
    TnDims region = tensor.dims;
    region.d[axis] = padded - extent;
    std::int64_t index[TN_MAX_RANK] = {};
    if (std::any_of(region.d, region.d + region.rank, [](std::int64_t d) { return d == 0; })) continue;
    do {
      std::int64_t full[TN_MAX_RANK];
      std::copy(index, index + region.rank, full);
      full[axis] += extent;
      std::memset(static_cast<char*>(tensor.data) + element_offset(tensor, full) * bytes, 0,
                  static_cast<std::size_t>(bytes));
    } while (next_index(index, region.d, region.rank));
  }
}

void reformat_host(const TnTensor& from, const TnTensor& to) {
  if (dtype_bits(from.dtype) < 8) {
    copy_small_elements(from, to);
    return;
  }
  switch (element_bytes(from)) {
    case 1:
      copy_elements<std::uint8_t>(from, to);
      break;
    case 2:
      copy_elements<std::uint16_t>(from, to);
      break;
    case 4:
      copy_elements<std::uint32_t>(from, to);
      break;
    default:
      copy_elements<std::uint64_t>(from, to);
      break;
  }
  zero_padding(to);
}

}  // namespace tenon
