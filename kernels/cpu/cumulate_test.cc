#include "kernels/cpu/cumulate.h"

#include "kernels/cpu/test_util.h"

namespace tenon::cpu {
namespace {

void check(int64_t outer, int64_t size, int64_t inner, bool exclusive, bool reverse) {
  const CumulateShape shape = {outer, size, inner, exclusive, reverse};
  std::vector<int32_t> input(static_cast<size_t>(outer * size * inner)), expected(input.size());
  for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<int32_t>(i * 2654435761u >> 4);
  for (int64_t n = 0; n < static_cast<int64_t>(input.size()); ++n) {
    uint32_t sum = 0;
    for (int64_t j = 0; j < size; ++j) {
      const int64_t at = n / inner % size, from = n + (j - at) * inner;
      const bool counts = reverse ? j >= at : j <= at;
      if (counts && !(exclusive && j == at)) sum += static_cast<uint32_t>(input[static_cast<size_t>(from)]);
    }
    expected[static_cast<size_t>(n)] = static_cast<int32_t>(sum);
  }
  for (const int threads : {1, 3}) {
    Buffer output(input.size() * sizeof(int32_t));
    cumulate<int32_t>(
        shape, 0, [](uint64_t a, uint64_t b) { return a + b; }, input.data(), output.data<int32_t>(),
        make_parallel(threads));
    EXPECT_TRUE(output.intact());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), output.data<int32_t>())) << size << " " << inner;
  }
}

TEST(Cumulate, Lanes) {
  for (const bool exclusive : {false, true}) {
    for (const bool reverse : {false, true}) {
      check(1, 1, 1, exclusive, reverse);
      check(3, 7, 1, exclusive, reverse);
      check(2, 5, 200, exclusive, reverse);
      check(40, 30, 33, exclusive, reverse);
      check(2, 0, 3, exclusive, reverse);
      check(0, 4, 3, exclusive, reverse);
      check(3, 4, 0, exclusive, reverse);
    }
  }
}

}  // namespace
}  // namespace tenon::cpu
