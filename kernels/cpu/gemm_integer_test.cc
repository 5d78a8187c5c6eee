#include "kernels/cpu/gemm_integer.h"

#include "kernels/cpu/test_util.h"

namespace tenon::cpu {
namespace {

std::vector<uint8_t> random_bytes(int64_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<uint8_t> values(count);
  for (uint8_t& value : values) value = static_cast<uint8_t>(generator());
  return values;
}

void check(int64_t m, int64_t n, int64_t k, Isa isa, int threads) {
  const std::vector<uint8_t> a = random_bytes(m * k, 1), b = random_bytes(k * n, 2);
  const std::vector<uint8_t> a_zeros = random_bytes(m, 3), b_zeros = random_bytes(n, 4);
  IntegerMatrix<uint8_t> left{a.data(), m, k, 1, a_zeros.data(), 1, 0};
  // B is given by columns, which the packer must gather, and by rows.
  for (const bool by_rows : {true, false}) {
    IntegerMatrix<uint8_t> right{b.data(), k, by_rows ? n : 1, by_rows ? 1 : k, b_zeros.data(), 0, 1};
    std::vector<int16_t> packed(m * 2 * integer_pairs(k));
    pack_integer_rows(left, k, 0, m, packed.data());
    const Parallel parallel = make_parallel(threads);
    Buffer scratch(gemm_integer_scratch(threads)), c(m * n * sizeof(int32_t));
    std::fill_n(c.data<int32_t>(), m * n, -5);  // the product is added
    IntegerGemm job{m, n, k, packed.data(), pack_integer_panel<uint8_t>, &right, c.data<int32_t>(), n};
    gemm_integer(job, scratch.data<void>(), parallel, isa);
    EXPECT_TRUE(scratch.intact() && c.intact());
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        int64_t sum = -5;
        for (int64_t p = 0; p < k; ++p) {
          sum += int64_t{a[i * k + p] - a_zeros[i]} * (b[by_rows ? p * n + j : j * k + p] - b_zeros[j]);
        }
        ASSERT_EQ(c.data<int32_t>()[i * n + j], sum) << m << "x" << n << "x" << k << " at " << i << "," << j;
      }
    }
  }
}

TEST(GemmInteger, IsExactForEverySizeOfTile) {
  for (const Isa isa : available_isas()) {
    for (const int64_t m : {1, 2, 7, 8, 19}) {
      for (const int64_t n : {1, 15, 16, 17, 40}) {
        for (const int64_t k : {1, 2, 31}) check(m, n, k, isa, 1);
      }
    }
    check(70, 130, 1027, isa, 3);
    check(200, 16, 64, isa, 4);
    check(3, 500, 513, isa, 2);
  }
}

TEST(GemmInteger, WrapsModulo2To32) {
  const int64_t k = 40000;  // 255 * 255 * 40000 > 2^31
  std::vector<int16_t> a(k, 255);
  const std::vector<uint8_t> b(k, 255);
  for (const Isa isa : available_isas()) {
    IntegerMatrix<uint8_t> right{b.data(), k, 1, 1, nullptr, 0, 0};
    Buffer scratch(gemm_integer_scratch(1));
    int32_t c = 0;
    gemm_integer({1, 1, k, a.data(), pack_integer_panel<uint8_t>, &right, &c, 1}, scratch.data<void>(), {}, isa);
    EXPECT_EQ(c, static_cast<int32_t>(uint32_t{255 * 255} * uint32_t{40000}));
  }
}

TEST(GemmInteger, EmptyProductsLeaveCAsItIs) {
  int32_t c = 7;
  gemm_integer({1, 1, 0, nullptr, pack_integer_panel<int8_t>, nullptr, &c, 1}, nullptr, {}, detect_isa());
  gemm_integer({0, 1, 4, nullptr, pack_integer_panel<int8_t>, nullptr, nullptr, 1}, nullptr, {}, detect_isa());
  EXPECT_EQ(c, 7);
}

}  // namespace
}  // namespace tenon::cpu
