#include "kernels/cpu/transpose.h"

#include <algorithm>
#include <numeric>

#include "kernels/cpu/test_util.h"

namespace tenon::cpu {
namespace {

void check(const std::vector<int64_t>& dims, const std::vector<int>& perm) {
  const int rank = static_cast<int>(dims.size());
  int64_t total = 1;
  for (const int64_t d : dims) total *= d;
  for (const int size : {1, 2, 4, 8}) {
    std::vector<unsigned char> input(total * size);
    for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<unsigned char>(i * 2654435761u >> 13);
    std::vector<unsigned char> expected;
    for (int64_t i = 0; i < total; ++i) {
      int64_t rest = i;
      std::vector<int64_t> index(rank);  // by input dimension
      for (int d = rank - 1; d >= 0; --d) {
        index[perm[d]] = rest % dims[perm[d]];
        rest /= dims[perm[d]];
      }
      int64_t from = 0;
      for (int d = 0; d < rank; ++d) from = from * dims[d] + index[d];
      expected.insert(expected.end(), input.begin() + from * size, input.begin() + (from + 1) * size);
    }
    for (const int threads : {1, 2, 3}) {
      Buffer output(expected.size(), size);
      transpose(rank, dims.data(), perm.data(), size, input.data(), output.data(), make_parallel(threads));
      EXPECT_TRUE(output.intact());
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), output.data<unsigned char>()))
          << "rank " << rank << " size " << size << " threads " << threads;
    }
  }
}

TEST(Transpose, EveryPermutationOfFourDimensions) {
  std::vector<int> perm = {0, 1, 2, 3};
  do {
    check({3, 17, 5, 20}, perm);
    check({1, 4, 1, 33}, perm);
  } while (std::next_permutation(perm.begin(), perm.end()));
}

TEST(Transpose, RanksAndEmpty) {
  check({}, {});
  check({5}, {0});
  check({2, 3, 2, 2, 3, 2, 2, 2}, {7, 0, 5, 2, 6, 1, 4, 3});
  check({2, 3, 2, 2, 3, 2, 2, 2}, {0, 1, 2, 3, 4, 5, 7, 6});
  check({4, 0, 3}, {2, 1, 0});
}

TEST(Transpose, Large) {
  check({300, 257}, {1, 0});
  check({16, 4096}, {1, 0});
  check({2, 64, 30, 30}, {0, 2, 3, 1});
  check({70000}, {0});
}

}  // namespace
}  // namespace tenon::cpu
