#include "kernels/cpu/copy_strided.h"

#include <map>
#include <numeric>

#include "kernels/cpu/test_util.h"

namespace tenon::cpu {
namespace {

// Offsets are taken from the middle of the buffers, so that negative strides stay inside.
void check(const std::vector<int64_t>& dims, const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
  const int rank = static_cast<int>(dims.size());
  int64_t total = 1;
  int64_t span = 1;
  for (int d = 0; d < rank; ++d) {
    total *= dims[d];
    span += std::max<int64_t>(dims[d] - 1, 0) * std::max(std::abs(from[d]), std::abs(to[d]));
  }
  for (const int size : {1, 2, 4, 8}) {
    std::vector<unsigned char> input(2 * span * size);
    for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<unsigned char>(i * 2654435761u >> 13);
    std::vector<unsigned char> expected(2 * span * size, 0xff);
    for (int64_t i = 0; i < total; ++i) {
      int64_t rest = i;
      int64_t source = span;
      int64_t target = span;
      for (int d = rank - 1; d >= 0; --d) {
        source += rest % dims[d] * from[d];
        target += rest % dims[d] * to[d];
        rest /= dims[d];
      }
      std::copy_n(input.begin() + source * size, size, expected.begin() + target * size);
    }
    for (const int threads : {1, 2, 3}) {
      Buffer output(expected.size(), size);
      copy_strided(rank, dims.data(), from.data(), to.data(), size, input.data() + span * size,
                   output.data<unsigned char>() + span * size, make_parallel(threads));
      EXPECT_TRUE(output.intact());
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), output.data<unsigned char>()))
          << "rank " << rank << " size " << size << " threads " << threads;
    }
  }
}

TEST(CopyStrided, SliceConcatFlipBroadcast) {
  check({}, {}, {});
  check({9}, {1}, {1});
  check({9}, {-1}, {1});
  check({9}, {2}, {3});
  check({4, 5}, {20, 2}, {5, 1});
  check({3, 4, 5}, {20, 5, 1}, {60, 5, 1});
  check({3, 4, 5}, {0, 5, 1}, {20, 5, 1});
  check({3, 4, 50}, {4, 1, 0}, {200, 50, 1});
  check({3, 4, 5}, {20, -5, -1}, {20, 5, 1});
  check({2, 2, 2, 2, 2, 2, 2, 3}, {400, 200, 100, 50, 24, 12, 6, 2}, {192, 96, 48, 24, 12, 6, 3, 1});
  check({2, 2, 2, 1, 2, 2, 1, 2, 2, 1, 1, 2, 2, 2, 2, 2}, {0, 512, 0, 9, 256, 0, 9, 128, 0, 9, 9, 64, 0, 32, 0, 5},
        {4096, 2048, 1024, 9, 512, 256, 9, 128, 64, 9, 9, 32, 16, 8, 4, 2});
  check({3, 0, 5}, {20, 5, 1}, {20, 5, 1});
  check({1, 1}, {99, 7}, {5, 3});
  check({200, 300}, {400, 1}, {300, 1});
  check({70000}, {1}, {1});
}

}  // namespace
}  // namespace tenon::cpu
