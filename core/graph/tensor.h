// Host tensors (constants), dtypes and formats: sizes and text forms.
#pragma once

#include <tenon/plugin/abi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tenon/status.hpp>
#include <vector>

namespace tenon {

/// "f32", "i64", "bool"...; "none" for TN_DTYPE_NONE, "dtype99" for a number that is none.
std::string dtype_name(std::int32_t dtype);
Result<std::int32_t> parse_dtype(std::string_view name);
/// Bits of one element; 0 for dtypes without a fixed size (string) and unknown ones.
int dtype_bits(std::int32_t dtype);

bool same_dims(const TnDims& a, const TnDims& b);
/// Whether all three have one rank and each dim lies from that of `min` to that of `max`.
bool within(const TnDims& min, const TnDims& dims, const TnDims& max);
TnDims make_dims(const std::vector<std::int64_t>& extents);
std::vector<std::int64_t> to_vector(const TnDims& dims);
/// "[1,3,320,320]", "[]" for a scalar.
std::string dims_text(const TnDims& dims);
/// Product of the extents; kInvalid if one is negative, the rank is out of range, or the product overflows.
Result<std::int64_t> element_count(const TnDims& dims);

TnFormat row_format();
/// Short text of a format: equal formats give equal text, also when they are written differently. "row", "nhwc",
/// "nchw8c", "nchw16c", other axis orders as letters over "abcdefgh" with blocks as number and letter, such as "acdb"
/// or "abcd8b"; an opaque format gives its id. The cells that fill up blocks are zero unless ".undefined" or
/// ".unpadded" (there are none: the extents are multiples of the block) follows.
std::string format_text(const TnFormat& format);
Result<TnFormat> parse_format(std::string_view text);
bool same_format(const TnFormat& a, const TnFormat& b);

/// Bytes of a packed tensor in a format, padded blocks included, rounded up to whole bytes.
Result<std::uint64_t> tensor_bytes(std::int32_t dtype, const TnDims& dims, const TnFormat& format);
/// Strides in elements of a packed tensor, as TnTensor.strides wants them; zeros for opaque formats and for a format of
/// another rank.
void packed_strides(const TnDims& dims, const TnFormat& format, std::int64_t strides[TN_MAX_RANK]);
/// A TnTensor over packed data.
TnTensor tensor_view(void* data, std::int32_t dtype, const TnDims& dims, const TnFormat& format,
                     std::int32_t memory = TN_MEMORY_DEVICE);

/// Constant contents on the host, row-major. Immutable and shared.
class HostTensor {
 public:
  /// Copies `bytes`. kInvalid if the size does not fit dtype and dims.
  static Result<std::shared_ptr<const HostTensor>> create(std::int32_t dtype, const TnDims& dims, const void* data,
                                                          std::size_t bytes);
  /// Copies a packed row-major tensor on the host; strides that are all zero count as packed. kInvalid otherwise.
  static Result<std::shared_ptr<const HostTensor>> copy_of(const TnTensor& tensor);
  /// Refers to memory that `keep_alive` owns (a mapped file). REQUIRES: the size fits.
  static std::shared_ptr<const HostTensor> borrow(std::int32_t dtype, const TnDims& dims, const void* data,
                                                  std::shared_ptr<const void> keep_alive);
  std::int32_t dtype() const { return dtype_; }
  const TnDims& dims() const { return dims_; }
  const void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  TnTensor view() const;

 private:
  HostTensor() = default;
  std::int32_t dtype_ = TN_DTYPE_NONE;
  TnDims dims_{};
  const void* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::shared_ptr<const void> owner_;
};

}  // namespace tenon
