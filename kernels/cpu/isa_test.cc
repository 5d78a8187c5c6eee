#include "kernels/cpu/isa.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace tenon::cpu {
namespace {

TEST(Isa, NamesAndWidths) {
  EXPECT_STREQ(isa_name(Isa::kBaseline), "baseline");
  EXPECT_STREQ(isa_name(Isa::kAvx2), "avx2");
  EXPECT_STREQ(isa_name(Isa::kAvx512), "avx512");
  EXPECT_EQ(isa_vector_floats(Isa::kBaseline), 4);
  EXPECT_EQ(isa_vector_floats(Isa::kAvx2), 8);
  EXPECT_EQ(isa_vector_floats(Isa::kAvx512), 16);
}

// The compiler's run-time library asks the processor in its own way.
TEST(Isa, AgreesWithTheCompilersLibrary) {
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (std::getenv("TENON_CPU_ISA") != nullptr) GTEST_SKIP() << "TENON_CPU_ISA is set";
  EXPECT_EQ(detect_isa(), avx512 ? Isa::kAvx512 : avx2 ? Isa::kAvx2 : Isa::kBaseline);
}

// Detection happens once in a process, so each value needs a process of its own.
TEST(IsaDeathTest, EnvironmentCaps) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto exit_with_isa = [](const char* cap) {
    setenv("TENON_CPU_ISA", cap, 1);
    std::exit(static_cast<int>(detect_isa()));
  };
  EXPECT_EXIT(exit_with_isa("baseline"), testing::ExitedWithCode(0), "");
  const auto at_most_avx2 = [](int status) { return WIFEXITED(status) && WEXITSTATUS(status) <= 1; };
  EXPECT_EXIT(exit_with_isa("avx2"), at_most_avx2, "");
  const auto any = [](int status) { return WIFEXITED(status) && WEXITSTATUS(status) <= 2; };
  EXPECT_EXIT(exit_with_isa("nonsense"), any, "");
}

}  // namespace
}  // namespace tenon::cpu
