#include "core/site/layout.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "core/graph/tensor.h"

namespace tenon {
namespace {

constexpr TnFormat kNhwc = TN_NHWC_INIT;
constexpr TnFormat kBlocked = TN_NCHW_BLOCKED_INIT(2);

TEST(Layout, RowToNhwcByHand) {
  // 1 x 2 channels x 1 x 3: row holds channel 0 then channel 1, nhwc interleaves them.
  const TnDims dims = make_dims({1, 2, 1, 3});
  std::vector<float> row = {0, 1, 2, 10, 11, 12}, nhwc(6);
  reformat_host(tensor_view(row.data(), TN_F32, dims, row_format()), tensor_view(nhwc.data(), TN_F32, dims, kNhwc));
  EXPECT_EQ(nhwc, (std::vector<float>{0, 10, 1, 11, 2, 12}));
}

TEST(Layout, BlockedFormatsFillTheLastBlockWithZeros) {
  // 3 channels in blocks of 2: the fourth place of each pixel is fill.
  const TnDims dims = make_dims({1, 3, 1, 2});
  std::vector<float> row = {0, 1, 10, 11, 20, 21}, blocked(8, -1), back(6);
  EXPECT_EQ(physical_elements(dims, kBlocked), 8);
  const TnTensor row_view = tensor_view(row.data(), TN_F32, dims, row_format());
  const TnTensor blocked_view = tensor_view(blocked.data(), TN_F32, dims, kBlocked);
  reformat_host(row_view, blocked_view);
  EXPECT_EQ(blocked, (std::vector<float>{0, 10, 1, 11, 20, 0, 21, 0}));
  reformat_host(blocked_view, tensor_view(back.data(), TN_F32, dims, row_format()));
  EXPECT_EQ(back, row);
}

TEST(Layout, OffsetsFollowTheCallersStrides) {
  TnTensor tensor = tensor_view(nullptr, TN_F32, make_dims({2, 3}), row_format());
  tensor.strides[0] = 100;
  tensor.strides[1] = 7;
  const std::int64_t index[] = {1, 2};
  EXPECT_EQ(element_offset(tensor, index), 114);
}

TEST(Layout, ScalarsAndEmptyTensorsConvert) {
  float from = 3, to = 0;
  reformat_host(tensor_view(&from, TN_F32, make_dims({}), row_format()),
                tensor_view(&to, TN_F32, make_dims({}), row_format()));
  EXPECT_EQ(to, 3);
  reformat_host(tensor_view(nullptr, TN_F32, make_dims({0, 3}), row_format()),
                tensor_view(nullptr, TN_F32, make_dims({0, 3}), row_format()));
}

TEST(Layout, ElementsBelowAByteMoveOneByOne) {
  // Rows of 3 nibbles 1 2 3, 4 5 6 with the last axis outermost: 1 4, 2 5, 3 6.
  const TnDims dims = make_dims({2, 3});
  std::uint8_t row[3] = {0x21, 0x43, 0x65}, turned[3] = {0xFF, 0xFF, 0xFF};
  const TnFormat format = parse_format("ba").value();
  reformat_host(tensor_view(row, TN_U4, dims, row_format()), tensor_view(turned, TN_U4, dims, format));
  EXPECT_EQ(turned[0], 0x41);
  EXPECT_EQ(turned[1], 0x52);
  EXPECT_EQ(turned[2], 0x63);
}

TEST(Layout, WhereABoxLiesInOnePiece) {
  const auto offset = [](std::initializer_list<std::int64_t> outer, std::initializer_list<std::int64_t> inner,
                         std::initializer_list<std::int64_t> start, const TnFormat& format) {
    return contiguous_offset(make_dims(outer), make_dims(inner), std::data(start), format);
  };
  const TnFormat row = row_format(), blocks_of_8 = TN_NCHW_BLOCKED_INIT(8);
  // Channels 3 and 4 of one picture of 2 x 2; not of two pictures.
  EXPECT_EQ(offset({1, 6, 2, 2}, {1, 2, 2, 2}, {0, 3, 0, 0}, row), 12);
  EXPECT_EQ(offset({2, 6, 2, 2}, {2, 2, 2, 2}, {0, 3, 0, 0}, row), std::nullopt);
  EXPECT_EQ(offset({5, 3}, {2, 3}, {3, 0}, row), 9);
  EXPECT_EQ(offset({5, 3}, {1, 2}, {3, 1}, row), 10);
  EXPECT_EQ(offset({5, 3}, {2, 2}, {3, 1}, row), std::nullopt);
  EXPECT_EQ(offset({5, 3}, {5, 3}, {0, 0}, row), 0);
  EXPECT_EQ(offset({5, 3}, {2, 3}, {4, 0}, row), std::nullopt);  // beyond the end
  // Channels lie innermost: apart, but for a single pixel; rows of pixels lie together.
  EXPECT_EQ(offset({1, 6, 2, 2}, {1, 2, 2, 2}, {0, 3, 0, 0}, kNhwc), std::nullopt);
  EXPECT_EQ(offset({1, 6, 1, 1}, {1, 2, 1, 1}, {0, 3, 0, 0}, kNhwc), 3);
  EXPECT_EQ(offset({1, 3, 4, 2}, {1, 3, 1, 2}, {0, 0, 2, 0}, kNhwc), 12);
  // Whole blocks of channels; a block that is not full only at the end.
  EXPECT_EQ(offset({1, 24, 2, 2}, {1, 8, 2, 2}, {0, 8, 0, 0}, blocks_of_8), 32);
  EXPECT_EQ(offset({1, 24, 2, 2}, {1, 8, 2, 2}, {0, 4, 0, 0}, blocks_of_8), std::nullopt);
  EXPECT_EQ(offset({1, 24, 2, 2}, {1, 12, 2, 2}, {0, 8, 0, 0}, blocks_of_8), std::nullopt);
  EXPECT_EQ(offset({1, 20, 2, 2}, {1, 12, 2, 2}, {0, 8, 0, 0}, blocks_of_8), 32);
}

}  // namespace
}  // namespace tenon
