#include "core/graph/tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>

namespace tenon {
namespace {

using Strides = std::array<std::int64_t, 4>;

Strides strides_of(const std::vector<std::int64_t>& dims, const char* format) {
  std::int64_t strides[TN_MAX_RANK];
  packed_strides(make_dims(dims), *parse_format(format), strides);
  return {strides[0], strides[1], strides[2], strides[3]};
}

TEST(DType, NamesAndBits) {
  EXPECT_EQ(dtype_name(TN_BF16), "bf16");
  EXPECT_EQ(dtype_name(TN_DTYPE_NONE), "none");
  EXPECT_EQ(dtype_name(99), "dtype99");
  EXPECT_EQ(dtype_bits(TN_I4), 4);
  EXPECT_EQ(dtype_bits(TN_STRING), 0);
  EXPECT_EQ(dtype_bits(14), 0);
  for (int dtype = 1; dtype <= TN_I2; ++dtype) {
    if (dtype_bits(dtype) == 0) continue;
    EXPECT_EQ(*parse_dtype(dtype_name(dtype)), dtype);
  }
  EXPECT_EQ(parse_dtype("fp32").status().message(), "dtype \"fp32\" is unknown; did you mean f32?");
}

TEST(Dims, TextAndCount) {
  EXPECT_EQ(dims_text(make_dims({1, 3, 320, 320})), "[1,3,320,320]");
  EXPECT_EQ(dims_text(make_dims({})), "[]");
  EXPECT_EQ(*element_count(make_dims({})), 1);
  EXPECT_EQ(*element_count(make_dims({std::numeric_limits<std::int64_t>::max(), 7, 0})), 0);
  EXPECT_EQ(element_count(make_dims({2, -1})).status().message(), "dims [2,-1] have the negative extent -1 at axis 1");
  EXPECT_EQ(element_count(make_dims({std::int64_t{1} << 40, std::int64_t{1} << 40})).status().code(), Code::kInvalid);
  EXPECT_EQ(element_count(make_dims({1, 1, 1, 1, 1, 1, 1, 1, 1})).status().message(),
            "dims have rank 9; expected 0 to 8");
  EXPECT_TRUE(same_dims(make_dims({2, 3}), make_dims({2, 3})));
  EXPECT_FALSE(same_dims(make_dims({2, 3}), make_dims({2, 3, 1})));
}

TEST(Format, TextRoundTrip) {
  for (const char* text : {"row", "nhwc", "nchw8c", "nchw16c", "nchw16c.undefined", "abcd8a", "acdb8b", "bacd",
                           "abcd16a4b2a", "ab32b.unpadded", "vendor.x/1"}) {
    const Result<TnFormat> format = parse_format(text);
    ASSERT_TRUE(format.ok()) << format.status().message();
    EXPECT_EQ(format_text(*format), text);
  }
  EXPECT_EQ(format_text(TN_ROW_INIT), "row");
  EXPECT_EQ(format_text(TN_NHWC_INIT), "nhwc");
  EXPECT_EQ(format_text(TN_NCHW_BLOCKED_INIT(16)), "nchw16c");
  EXPECT_EQ(format_text(*parse_format("acdb")), "nhwc");
  EXPECT_EQ(format_text(*parse_format("abcd")), "row");
}

TEST(Format, Equality) {
  EXPECT_TRUE(same_format(TN_NHWC_INIT, *parse_format("acdb")));
  EXPECT_FALSE(same_format(TN_NHWC_INIT, TN_ROW_INIT));
  EXPECT_FALSE(same_format(*parse_format("nchw8c"), *parse_format("nchw8c.undefined")));
  TnFormat dirty = *parse_format("vendor.x/1");
  dirty.opaque[20] = 'q';
  EXPECT_TRUE(same_format(dirty, *parse_format("vendor.x/1")));
}

TEST(Format, Errors) {
  for (const char* text : {"", "xyz", "acdb8", "acdbb", "aac", "abcd0b", "abcd99999b", "abcd2b2b2b2b2b", "bd", "nchwc",
                           "abcd8b.odd", "abcdefghi", "abcd8z", "a.very.long.vendor.name.for.a.format/1"}) {
    EXPECT_EQ(parse_format(text).status().code(), Code::kInvalid) << text;
  }
}

TEST(Packed, StridesByHand) {
  EXPECT_EQ(strides_of({2, 3, 4, 5}, "row"), (Strides{60, 20, 5, 1}));
  // n, h, w, c: c is innermost, one step of w is 3 channels.
  EXPECT_EQ(strides_of({2, 3, 4, 5}, "nhwc"), (Strides{60, 1, 15, 3}));
  // 20 channels in blocks of 8: 3 blocks; a cell of w is 8 long; the stride of c is that of a block.
  EXPECT_EQ(strides_of({2, 20, 4, 5}, "nchw8c"), (Strides{480, 160, 40, 8}));
  EXPECT_EQ(strides_of({2, 20, 4, 5}, "vendor.x/1"), (Strides{0, 0, 0, 0}));
}

TEST(Packed, BytesByHand) {
  EXPECT_EQ(*tensor_bytes(TN_F32, make_dims({2, 3, 4, 5}), row_format()), 480u);
  EXPECT_EQ(*tensor_bytes(TN_F16, make_dims({2, 20, 4, 5}), *parse_format("nchw8c")), 2u * 2 * 24 * 4 * 5);
  // Axis 0 in blocks of 4 * 2, 5 -> 8; axis 1 in blocks of 4, 6 -> 8.
  EXPECT_EQ(*tensor_bytes(TN_I8, make_dims({5, 6}), *parse_format("ab4a4b2a")), 64u);
  EXPECT_EQ(*tensor_bytes(TN_I4, make_dims({3}), row_format()), 2u);
  EXPECT_EQ(*tensor_bytes(TN_U2, make_dims({5}), row_format()), 2u);
  EXPECT_EQ(*tensor_bytes(TN_F32, make_dims({0, 4}), row_format()), 0u);
  EXPECT_EQ(*tensor_bytes(TN_F32, make_dims({}), row_format()), 4u);
  EXPECT_EQ(tensor_bytes(TN_F32, make_dims({2, 3}), *parse_format("nhwc")).status().message(),
            "format nhwc has rank 4, but the dims are [2,3]");
  EXPECT_EQ(tensor_bytes(TN_STRING, make_dims({2}), row_format()).status().code(), Code::kInvalid);
  EXPECT_EQ(tensor_bytes(TN_F64, make_dims({std::int64_t{1} << 62}), row_format()).status().code(), Code::kInvalid);
  EXPECT_EQ(tensor_bytes(TN_F32, make_dims({3}), *parse_format("vendor.x/1")).status().code(), Code::kInvalid);
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(tensor_bytes(TN_I8, make_dims({1, huge}), *parse_format("ab16b")).status().code(), Code::kInvalid);
}

TEST(HostTensor, CopiesAndChecks) {
  std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const auto tensor = HostTensor::create(TN_F32, make_dims({2, 3}), values.data(), 24);
  ASSERT_TRUE(tensor.ok());
  values[0] = 9;
  EXPECT_EQ(static_cast<const float*>((*tensor)->data())[0], 1);
  const TnTensor view = (*tensor)->view();
  EXPECT_EQ(view.memory, TN_MEMORY_HOST);
  EXPECT_EQ(view.strides[0], 3);
  EXPECT_EQ(HostTensor::create(TN_F32, make_dims({2, 3}), values.data(), 20).status().message(),
            "a tensor of f32[2,3] has 24 bytes, but 20 were given");
  EXPECT_EQ(HostTensor::create(TN_F32, make_dims({1}), nullptr, 4).status().code(), Code::kInvalid);
  const auto empty = HostTensor::create(TN_F32, make_dims({0}), nullptr, 0);
  ASSERT_TRUE(empty.ok());
  EXPECT_NE((*empty)->data(), nullptr);
}

TEST(HostTensor, CopyOfTakesPackedRowMajorOnly) {
  float values[6] = {1, 2, 3, 4, 5, 6};
  TnTensor tensor = tensor_view(values, TN_F32, make_dims({2, 3}), row_format(), TN_MEMORY_HOST);
  EXPECT_TRUE(HostTensor::copy_of(tensor).ok());
  std::fill(std::begin(tensor.strides), std::end(tensor.strides), 0);
  EXPECT_TRUE(HostTensor::copy_of(tensor).ok());
  tensor.strides[0] = 1;
  tensor.strides[1] = 2;
  EXPECT_EQ(HostTensor::copy_of(tensor).status().message(),
            "a constant must be packed, but its strides are [1,2] for dims [2,3]");
  tensor.memory = TN_MEMORY_DEVICE;
  EXPECT_EQ(HostTensor::copy_of(tensor).status().message(), "a constant must lie in host memory");
  tensor.format = TN_NHWC_INIT;
  EXPECT_EQ(HostTensor::copy_of(tensor).status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace tenon
