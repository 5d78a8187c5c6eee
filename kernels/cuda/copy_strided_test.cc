#include "kernels/cuda/copy_strided.h"

#include <numeric>

#include "kernels/cuda/test_util.h"

namespace tenon::cuda {
namespace {

class CopyTest : public CudaTest {
 protected:
  // Offsets are taken from the middle of the buffers, so that negative strides stay inside.
  void check(const std::vector<int64_t>& dims, const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
    const int rank = static_cast<int>(dims.size());
    int64_t total = 1;
    int64_t span = 1;
    for (int d = 0; d < rank; ++d) {
      total *= dims[d];
      span += std::max<int64_t>(dims[d] - 1, 0) * std::max(std::abs(from[d]), std::abs(to[d]));
    }
    span = (span + 15) / 16 * 16;  // so that wide elements are possible
    for (const int size : {1, 2, 4, 8}) {
      for (const int shift : {0, 1}) {
        SCOPED_TRACE(testing::Message() << testing::PrintToString(dims) << " size " << size << " shift " << shift);
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
        const Input device(input, shift * size);
        const Output output(expected.size(), shift * size);
        launch([&](cudaStream_t stream) {
          return copy_strided(rank, dims.data(), from.data(), to.data(), size, device.data<char>() + span * size,
                              output.data<char>() + span * size, stream);
        });
        EXPECT_TRUE(output.get<unsigned char>() == expected);
      }
    }
  }

  void check_transpose(const std::vector<int64_t>& dims, const std::vector<int>& perm) {
    SCOPED_TRACE(testing::PrintToString(dims) + " " + testing::PrintToString(perm));
    const int rank = static_cast<int>(dims.size());
    const int64_t total = std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
    std::vector<int64_t> input(total);
    std::iota(input.begin(), input.end(), 1);
    std::vector<int64_t> expected;
    for (int64_t i = 0; i < total; ++i) {
      std::vector<int64_t> index(rank);
      int64_t rest = i;
      for (int d = rank - 1; d >= 0; --d) {
        index[perm[d]] = rest % dims[perm[d]];
        rest /= dims[perm[d]];
      }
      int64_t at = 0;
      for (int d = 0; d < rank; ++d) at = at * dims[d] + index[d];
      expected.push_back(input[at]);
    }
    const auto check_type = [&](auto element) {
      using T = decltype(element);
      const std::vector<T> x(input.begin(), input.end());
      const Input device(x);
      const Output output(total * sizeof(T));
      launch([&](cudaStream_t stream) {
        return transpose(rank, dims.data(), perm.data(), sizeof(T), device.data(), output.data(), stream);
      });
      EXPECT_TRUE(output.get<T>() == std::vector<T>(expected.begin(), expected.end())) << "size " << sizeof(T);
    };
    check_type(uint8_t{});
    check_type(uint16_t{});
    check_type(uint32_t{});
    check_type(uint64_t{});
  }
};

TEST_F(CopyTest, SliceConcatFlipBroadcast) {
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
  check({3, 0, 5}, {20, 5, 1}, {20, 5, 1});
  check({1, 1}, {99, 7}, {5, 3});
  check({20, 48}, {64, 1}, {48, 1});
  check({20, 48}, {48, 1}, {-64, 1});
  check({5000}, {1}, {1});
}

TEST_F(CopyTest, TiledTransposes) {
  check({40, 70}, {1, 40}, {70, 1});
  check({40, 70}, {1, 48}, {80, 1});
  check({2, 40, 3, 33}, {4000, 1, 1320, 40}, {4000, 99, 33, 1});
  check({33, 40, 9}, {1, 400, 40}, {360, 9, 1});
  check({70, 40}, {40, 1}, {1, 70});  // the output's contiguous dimension is not the last
}

TEST_F(CopyTest, Transpose) {
  check_transpose({}, {});
  check_transpose({5}, {0});
  check_transpose({33, 65}, {1, 0});
  check_transpose({2, 17, 9, 11}, {0, 2, 3, 1});
  check_transpose({2, 9, 11, 17}, {0, 3, 1, 2});
  check_transpose({3, 4, 5, 6}, {3, 2, 1, 0});
  check_transpose({3, 1, 40, 8}, {2, 0, 1, 3});
  check_transpose({2, 0, 4}, {2, 1, 0});
  check_transpose({2, 3, 2, 3, 2, 3, 2, 3}, {7, 0, 6, 1, 5, 2, 4, 3});
}

TEST(CopyStrided, RefusesUnknownSizes) {
  const int64_t one = 2;
  EXPECT_EQ(copy_strided(1, &one, &one, &one, 3, nullptr, nullptr, nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(copy_strided(kCopyMaxRank + 1, &one, &one, &one, 4, nullptr, nullptr, nullptr), cudaErrorInvalidValue);
}

}  // namespace
}  // namespace tenon::cuda
