#include "core/graph/tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <limits>

#include "core/base/text.h"

namespace tenon {
namespace {

struct DTypeInfo {
  std::int32_t dtype;
  const char* name;
  int bits;
};

constexpr DTypeInfo kDTypes[] = {
    {TN_F32, "f32", 32},
    {TN_U8, "u8", 8},
    {TN_I8, "i8", 8},
    {TN_U16, "u16", 16},
    {TN_I16, "i16", 16},
    {TN_I32, "i32", 32},
    {TN_I64, "i64", 64},
    {TN_STRING, "string", 0},
    {TN_BOOL, "bool", 8},
    {TN_F16, "f16", 16},
    {TN_F64, "f64", 64},
    {TN_U32, "u32", 32},
    {TN_U64, "u64", 64},
    {TN_BF16, "bf16", 16},
    {TN_F8E4M3FN, "f8e4m3fn", 8},
    {TN_F8E4M3FNUZ, "f8e4m3fnuz", 8},
    {TN_F8E5M2, "f8e5m2", 8},
    {TN_F8E5M2FNUZ, "f8e5m2fnuz", 8},
    {TN_U4, "u4", 4},
    {TN_I4, "i4", 4},
    {TN_F4E2M1, "f4e2m1", 4},
    {TN_F8E8M0, "f8e8m0", 8},
    {TN_U2, "u2", 2},
    {TN_I2, "i2", 2},
};

const DTypeInfo* find_dtype(std::int32_t dtype) {
  for (const DTypeInfo& info : kDTypes) {
    if (info.dtype == dtype) return &info;
  }
  return nullptr;
}

/// Two spellings of one format come out equal: row-major axes are "row", and padding means nothing without blocks.
TnFormat normalized(const TnFormat& format) {
  TnFormat out{};
  out.kind = format.kind;
  if (format.kind == TN_FORMAT_OPAQUE) {
    std::copy(std::begin(format.opaque), std::end(format.opaque), std::begin(out.opaque));
    out.opaque[sizeof(out.opaque) - 1] = 0;
    const std::size_t length = std::strlen(out.opaque);
    std::fill(out.opaque + length, std::end(out.opaque), '\0');
    return out;
  }
  if (format.kind != TN_FORMAT_AXES) return out;
  out.rank = std::min<std::uint8_t>(format.rank, TN_MAX_RANK);
  out.num_blocks = std::min<std::uint8_t>(format.num_blocks, TN_MAX_BLOCKS);
  bool in_order = true;
  for (int i = 0; i < out.rank; ++i) {
    out.order[i] = format.order[i];
    in_order = in_order && out.order[i] == i;
  }
  if (in_order && out.num_blocks == 0) return row_format();
  for (int i = 0; i < out.num_blocks; ++i) {
    out.block_axis[i] = format.block_axis[i];
    out.block_size[i] = format.block_size[i];
  }
  if (out.num_blocks > 0) out.padding = format.padding;
  return out;
}

bool well_formed_axes(const TnFormat& format) {
  if (format.rank > TN_MAX_RANK || format.num_blocks > TN_MAX_BLOCKS) return false;
  unsigned seen = 0;
  for (int i = 0; i < format.rank; ++i) {
    if (format.order[i] >= format.rank || (seen >> format.order[i] & 1u) != 0) return false;
    seen |= 1u << format.order[i];
  }
  for (int i = 0; i < format.num_blocks; ++i) {
    if (format.block_axis[i] >= format.rank || format.block_size[i] == 0) return false;
  }
  return true;
}

/// Product of the block sizes along an axis. Four 16-bit sizes fit 64 bits, but not as a signed number.
std::uint64_t block_of_axis(const TnFormat& format, int axis) {
  std::uint64_t block = 1;
  for (int i = 0; i < format.num_blocks; ++i) {
    if (format.block_axis[i] == axis) block *= format.block_size[i];
  }
  return block;
}

std::int64_t saturating_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::int64_t>::max() : product;
}

const char* padding_suffix(const TnFormat& format) {
  if (format.num_blocks == 0 || format.padding == TN_PAD_ZERO) return "";
  return format.padding == TN_PAD_UNDEFINED ? ".undefined" : ".unpadded";
}

Status bad_format(std::string_view text, const std::string& why) {
  return {Code::kInvalid,
          fmt::format("format \"{}\": {}; expected row, nhwc, nchw<n>c, axis letters with blocks such as "
                      "abcd8b, or an opaque id such as vendor.x/1",
                      text, why)};
}

}  // namespace

std::string dtype_name(std::int32_t dtype) {
  if (dtype == TN_DTYPE_NONE) return "none";
  const DTypeInfo* info = find_dtype(dtype);
  return info != nullptr ? info->name : "dtype" + std::to_string(dtype);
}

Result<std::int32_t> parse_dtype(std::string_view name) {
  std::vector<std::string> names;
  for (const DTypeInfo& info : kDTypes) {
    if (name == info.name) return info.dtype;
    names.emplace_back(info.name);
  }
  const std::string near = nearest(name, names);
  return Status(Code::kInvalid, fmt::format("dtype \"{}\" is unknown; {}", name,
                                            near.empty() ? "known are " + join(names) : "did you mean " + near + "?"));
}

int dtype_bits(std::int32_t dtype) {
  const DTypeInfo* info = find_dtype(dtype);
  return info != nullptr ? info->bits : 0;
}

bool within(const TnDims& min, const TnDims& dims, const TnDims& max) {
  if (min.rank != dims.rank || max.rank != dims.rank) return false;
  for (int i = 0; i < dims.rank; ++i) {
    if (dims.d[i] < min.d[i] || dims.d[i] > max.d[i]) return false;
  }
  return true;
}

bool same_dims(const TnDims& a, const TnDims& b) {
  if (a.rank != b.rank) return false;
  for (int i = 0; i < std::min(a.rank, TN_MAX_RANK); ++i) {
    if (a.d[i] != b.d[i]) return false;
  }
  return true;
}

TnDims make_dims(const std::vector<std::int64_t>& extents) {
  TnDims dims{};
  // The true rank is kept, so that element_count refuses it.
  dims.rank = static_cast<std::int32_t>(extents.size());
  std::copy_n(extents.begin(), std::min<std::size_t>(extents.size(), TN_MAX_RANK), dims.d);
  return dims;
}

std::vector<std::int64_t> to_vector(const TnDims& dims) {
  return {dims.d, dims.d + std::clamp(dims.rank, 0, TN_MAX_RANK)};
}

std::string dims_text(const TnDims& dims) {
  if (dims.rank < 0 || dims.rank > TN_MAX_RANK) return fmt::format("[rank {}]", dims.rank);
  return fmt::format("[{}]", fmt::join(dims.d, dims.d + dims.rank, ","));
}

Result<std::int64_t> element_count(const TnDims& dims) {
  if (dims.rank < 0 || dims.rank > TN_MAX_RANK) {
    return Status(Code::kInvalid, fmt::format("dims have rank {}; expected 0 to {}", dims.rank, TN_MAX_RANK));
  }
  bool empty = false;
  for (int i = 0; i < dims.rank; ++i) {
    if (dims.d[i] < 0) {
      return Status(Code::kInvalid,
                    fmt::format("dims {} have the negative extent {} at axis {}", dims_text(dims), dims.d[i], i));
    }
    empty = empty || dims.d[i] == 0;
  }
  if (empty) return std::int64_t{0};
  std::int64_t count = 1;
  for (int i = 0; i < dims.rank; ++i) {
    if (__builtin_mul_overflow(count, dims.d[i], &count)) {
      return Status(Code::kInvalid, fmt::format("dims {} have more than 2^63 elements", dims_text(dims)));
    }
  }
  return count;
}

TnFormat row_format() { return TN_ROW_INIT; }

std::string format_text(const TnFormat& raw) {
  if (raw.kind == TN_FORMAT_NONE) return "none";
  if (raw.kind > TN_FORMAT_OPAQUE || (raw.kind == TN_FORMAT_AXES && !well_formed_axes(raw))) {
    return fmt::format("format{}?", raw.kind);
  }
  const TnFormat format = normalized(raw);
  if (format.kind == TN_FORMAT_ROW) return "row";
  if (format.kind == TN_FORMAT_OPAQUE) return format.opaque;
  std::string order;
  for (int i = 0; i < format.rank; ++i) order += static_cast<char>('a' + format.order[i]);
  std::string text = order;
  if (order == "acdb" && format.num_blocks == 0) return "nhwc";
  if (order == "abcd" && format.num_blocks == 1 && format.block_axis[0] == 1) {
    return fmt::format("nchw{}c{}", format.block_size[0], padding_suffix(format));
  }
  for (int i = 0; i < format.num_blocks; ++i) {
    text += std::to_string(format.block_size[i]);
    text += static_cast<char>('a' + format.block_axis[i]);
  }
  return text + padding_suffix(format);
}

Result<TnFormat> parse_format(std::string_view text) {
  if (text == "row" || text == "nchw") return row_format();
  if (text == "nhwc") return TnFormat(TN_NHWC_INIT);
  TnFormat format{};
  if (text.find('/') != std::string_view::npos) {
    if (text.size() >= sizeof(format.opaque)) return bad_format(text, "an opaque id has at most 31 characters");
    format.kind = TN_FORMAT_OPAQUE;
    std::copy(text.begin(), text.end(), format.opaque);
    return format;
  }
  std::string letters(text.substr(0, text.find('.')));
  format.kind = TN_FORMAT_AXES;
  format.padding = TN_PAD_ZERO;
  if (const std::size_t dot = text.find('.'); dot != std::string_view::npos) {
    const std::string_view suffix = text.substr(dot + 1);
    if (suffix != "undefined" && suffix != "unpadded") return bad_format(text, "the padding is unknown");
    format.padding = suffix == "undefined" ? TN_PAD_UNDEFINED : TN_PAD_NONE;
  }
  // nchw<n>c is a name for abcd<n>b.
  if (letters.size() > 5 && letters.rfind("nchw", 0) == 0 && letters.back() == 'c') {
    letters = "abcd" + letters.substr(4, letters.size() - 5) + "b";
  }
  std::size_t at = 0;
  for (; at < letters.size() && letters[at] >= 'a' && letters[at] <= 'h'; ++at) {
    if (format.rank == TN_MAX_RANK) return bad_format(text, "there are more than 8 axes");
    format.order[format.rank++] = static_cast<std::uint8_t>(letters[at] - 'a');
  }
  if (format.rank == 0) return bad_format(text, "it is unknown");
  while (at < letters.size()) {
    unsigned size = 0;
    for (; at < letters.size() && std::isdigit(static_cast<unsigned char>(letters[at])) != 0 && size < 65536; ++at) {
      size = size * 10 + static_cast<unsigned>(letters[at] - '0');
    }
    if (size == 0 || size > 65535) return bad_format(text, "a block size is from 1 to 65535");
    if (at == letters.size() || letters[at] < 'a' || letters[at] > 'h') {
      return bad_format(text, "a block size is followed by its axis");
    }
    if (format.num_blocks == TN_MAX_BLOCKS) return bad_format(text, "there are more than 4 blocks");
    format.block_axis[format.num_blocks] = static_cast<std::uint8_t>(letters[at++] - 'a');
    format.block_size[format.num_blocks++] = static_cast<std::uint16_t>(size);
  }
  if (!well_formed_axes(format)) return bad_format(text, "each axis from a on must occur once");
  return normalized(format);
}

bool same_format(const TnFormat& a, const TnFormat& b) {
  const TnFormat x = normalized(a);
  const TnFormat y = normalized(b);
  return std::memcmp(&x, &y, sizeof(x)) == 0;
}

Result<std::uint64_t> tensor_bytes(std::int32_t dtype, const TnDims& dims, const TnFormat& format) {
  const int bits = dtype_bits(dtype);
  if (bits == 0) return Status(Code::kInvalid, fmt::format("elements of {} have no fixed size", dtype_name(dtype)));
  TENON_ASSIGN(const std::int64_t count, element_count(dims));
  TnDims padded = dims;
  if (format.kind == TN_FORMAT_AXES) {
    if (!well_formed_axes(format) || format.rank != dims.rank) {
      return Status(Code::kInvalid, fmt::format("format {} has rank {}, but the dims are {}", format_text(format),
                                                format.rank, dims_text(dims)));
    }
    for (int i = 0; i < dims.rank && count > 0; ++i) {
      const std::uint64_t block = block_of_axis(format, i);
      const std::uint64_t extent = static_cast<std::uint64_t>(dims.d[i]);
      const std::uint64_t blocks = extent / block + (extent % block != 0 ? 1 : 0);
      std::int64_t total;
      if (__builtin_mul_overflow(blocks, block, &total)) {
        return Status(Code::kInvalid, fmt::format("dims {} in format {} have more than 2^63 elements", dims_text(dims),
                                                  format_text(format)));
      }
      padded.d[i] = total;
    }
  } else if (format.kind != TN_FORMAT_ROW) {
    return Status(Code::kInvalid, fmt::format("the size of a tensor in format {} is known to its own kernels only",
                                              format_text(format)));
  }
  TENON_ASSIGN(const std::int64_t cells, element_count(padded));
  std::uint64_t total_bits;
  if (__builtin_mul_overflow(static_cast<std::uint64_t>(cells), static_cast<std::uint64_t>(bits), &total_bits)) {
    // Whole bytes are asked for, so only sizes that overflow as bytes are refused.
    std::uint64_t bytes;
    if (bits < 8 ||
        __builtin_mul_overflow(static_cast<std::uint64_t>(cells), static_cast<std::uint64_t>(bits / 8), &bytes)) {
      return Status(Code::kInvalid,
                    fmt::format("a tensor of {}{} has more than 2^64 bytes", dtype_name(dtype), dims_text(dims)));
    }
    return bytes;
  }
  return total_bits / 8 + (total_bits % 8 != 0 ? 1 : 0);
}

void packed_strides(const TnDims& dims, const TnFormat& format, std::int64_t strides[TN_MAX_RANK]) {
  std::fill_n(strides, TN_MAX_RANK, std::int64_t{0});
  if (dims.rank < 0 || dims.rank > TN_MAX_RANK) return;
  if (format.kind == TN_FORMAT_ROW) {
    std::int64_t stride = 1;
    for (int i = dims.rank - 1; i >= 0; --i) {
      strides[i] = stride;
      stride = saturating_multiply(stride, std::max<std::int64_t>(dims.d[i], 1));
    }
    return;
  }
  if (format.kind != TN_FORMAT_AXES || !well_formed_axes(format) || format.rank != dims.rank) return;
  std::int64_t stride = 1;
  for (int i = 0; i < format.num_blocks; ++i) stride = saturating_multiply(stride, format.block_size[i]);
  for (int i = format.rank - 1; i >= 0; --i) {
    const int axis = format.order[i];
    const std::uint64_t block = block_of_axis(format, axis);
    const std::uint64_t extent = static_cast<std::uint64_t>(std::max<std::int64_t>(dims.d[axis], 1));
    strides[axis] = stride;
    stride = saturating_multiply(stride, static_cast<std::int64_t>(extent / block + (extent % block != 0 ? 1 : 0)));
  }
}

TnTensor tensor_view(void* data, std::int32_t dtype, const TnDims& dims, const TnFormat& format, std::int32_t memory) {
  TnTensor tensor{};
  tensor.data = data;
  tensor.dtype = dtype;
  tensor.memory = memory;
  tensor.format = format;
  tensor.dims = dims;
  packed_strides(dims, format, tensor.strides);
  return tensor;
}

Result<std::shared_ptr<const HostTensor>> HostTensor::create(std::int32_t dtype, const TnDims& dims, const void* data,
                                                             std::size_t bytes) {
  TENON_ASSIGN(const std::uint64_t expected, tensor_bytes(dtype, dims, row_format()));
  if (expected != bytes) {
    return Status(Code::kInvalid, fmt::format("a tensor of {}{} has {} bytes, but {} were given", dtype_name(dtype),
                                              dims_text(dims), expected, bytes));
  }
  if (data == nullptr && bytes > 0) return Status(Code::kInvalid, "a constant needs contents, but its data is NULL");
  // At least one byte, so that the data of an empty tensor is not NULL: that would mean "unknown" in the ABI.
  std::shared_ptr<unsigned char[]> copy(new unsigned char[std::max<std::size_t>(bytes, 1)]);
  if (bytes > 0) std::memcpy(copy.get(), data, bytes);
  return borrow(dtype, dims, copy.get(), copy);
}

Result<std::shared_ptr<const HostTensor>> HostTensor::copy_of(const TnTensor& tensor) {
  if (tensor.format.kind != TN_FORMAT_NONE && !same_format(tensor.format, row_format())) {
    return Status(Code::kInvalid, "a constant must be row-major, but its format is " + format_text(tensor.format));
  }
  if (tensor.memory == TN_MEMORY_DEVICE) return Status(Code::kInvalid, "a constant must lie in host memory");
  TENON_ASSIGN(const std::uint64_t bytes, tensor_bytes(tensor.dtype, tensor.dims, row_format()));
  std::int64_t packed[TN_MAX_RANK];
  packed_strides(tensor.dims, row_format(), packed);
  bool any = false;
  bool differs = false;
  for (int i = 0; i < tensor.dims.rank; ++i) {
    any = any || tensor.strides[i] != 0;
    differs = differs || (tensor.strides[i] != packed[i] && tensor.dims.d[i] > 1);
  }
  if (any && differs && bytes > 0) {
    return Status(Code::kInvalid, fmt::format("a constant must be packed, but its strides are [{}] for dims {}",
                                              fmt::join(tensor.strides, tensor.strides + tensor.dims.rank, ","),
                                              dims_text(tensor.dims)));
  }
  return create(tensor.dtype, tensor.dims, tensor.data, bytes);
}

std::shared_ptr<const HostTensor> HostTensor::borrow(std::int32_t dtype, const TnDims& dims, const void* data,
                                                     std::shared_ptr<const void> keep_alive) {
  std::shared_ptr<HostTensor> tensor(new HostTensor());
  const Result<std::uint64_t> bytes = tensor_bytes(dtype, dims, row_format());
  tensor->dtype_ = dtype;
  tensor->dims_ = dims;
  tensor->data_ = data;
  tensor->bytes_ = bytes.ok() ? static_cast<std::size_t>(*bytes) : 0;
  tensor->owner_ = std::move(keep_alive);
  return tensor;
}

TnTensor HostTensor::view() const {
  // The ABI has no const tensors; readers of inputs never write.
  return tensor_view(const_cast<void*>(data_), dtype_, dims_, row_format(), TN_MEMORY_HOST);
}

}  // namespace tenon
