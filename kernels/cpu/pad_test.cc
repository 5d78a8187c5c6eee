#include "kernels/cpu/pad.h"

#include "kernels/cpu/test_util.h"

namespace tenon::cpu {
namespace {

// maps[d] says for each position of the output which of the input's `input_dims[d]` it is, or -1.
void check(const std::vector<int64_t>& input_dims, const std::vector<std::vector<int64_t>>& maps, int64_t inner,
           int64_t begin, int64_t end) {
  PadShape shape;
  shape.rank = static_cast<int>(maps.size());
  shape.inner = inner;
  shape.begin = begin;
  shape.end = end;
  int64_t step = inner, outputs = 1;
  for (size_t d = maps.size(); d-- > 0;) {
    shape.dims[d] = static_cast<int64_t>(maps[d].size());
    shape.maps[d] = maps[d].data();
    shape.strides[d] = step;
    step *= input_dims[d];
    outputs *= shape.dims[d];
  }
  for (const int size : {1, 2, 4, 8}) {
    std::vector<unsigned char> input(static_cast<size_t>(step * size)), expected;
    for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<unsigned char>(i * 2654435761u >> 13);
    const std::vector<unsigned char> fill(static_cast<size_t>(size), 0x5a);
    for (int64_t n = 0; n < outputs; ++n) {
      int64_t rest = n, from = 0;
      bool outside = false;
      for (size_t d = maps.size(); d-- > 0;) {
        const int64_t at = maps[d][static_cast<size_t>(rest % shape.dims[d])];
        rest /= shape.dims[d];
        outside = outside || at < 0;
        from += at * shape.strides[d];
      }
      for (int64_t i = 0; i < inner; ++i) {
        const auto source = outside ? fill.begin() : input.begin() + (from + i) * size;
        expected.insert(expected.end(), source, source + size);
      }
    }
    for (const int threads : {1, 3}) {
      Buffer output(expected.size(), static_cast<size_t>(size));
      pad(shape, size, input.data(), fill.data(), output.data<unsigned char>(), make_parallel(threads));
      EXPECT_TRUE(output.intact());
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), output.data<unsigned char>())) << size << " " << threads;
    }
  }
}

TEST(Pad, Maps) {
  check({4}, {{-1, -1, 0, 1, 2, 3, -1}}, 1, 2, 6);
  check({4}, {{2, 1, 0, 1, 2, 3, 2}}, 3, 2, 6);
  check({2, 3}, {{-1, 0, 1}, {0, 0, 1, 2, 2}}, 1, 1, 4);
  check({2, 3}, {{1, -1}, {-1, -1}}, 20, 0, 0);
  check({2, 0}, {{0, 1}, {-1, -1}}, 1, 0, 0);
  check({3}, {{}}, 1, 0, 0);
  std::vector<int64_t> rows(300), columns(200);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = i < 20 ? -1 : static_cast<int64_t>(i) - 20;
  for (size_t i = 0; i < columns.size(); ++i) columns[i] = std::min<int64_t>(static_cast<int64_t>(i), 149);
  check({280, 150}, {rows, columns}, 2, 0, 150);
}

}  // namespace
}  // namespace tenon::cpu
