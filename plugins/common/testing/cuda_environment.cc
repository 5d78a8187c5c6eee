// Linked into a program of op tests: it skips itself where there is no GPU, and fails if a CUDA kernel that it loads
// never runs.
#include <gtest/gtest.h>

#include "plugins/common/testing/device.h"

namespace tenon::testing {
namespace {

class CudaEnvironment : public ::testing::Environment {
 public:
  void SetUp() override {
    if (!have_gpu()) GTEST_SKIP() << "no CUDA device";
    cuda_tests().enabled = true;
  }
  void TearDown() override {
    if (::testing::GTEST_FLAG(filter) != "*") return;
    for (const std::string& kernel : cuda_tests().loaded) {
      EXPECT_TRUE(cuda_tests().ran.count(kernel)) << kernel << " was in no test";
    }
  }
};

const ::testing::Environment* const kEnvironment = ::testing::AddGlobalTestEnvironment(new CudaEnvironment);

}  // namespace
}  // namespace tenon::testing
