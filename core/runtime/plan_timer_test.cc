#include "core/runtime/plan_timer.h"

#include <gtest/gtest.h>

#include "core/runtime/test_plugin.h"

namespace tenon {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder's tests

class PlanTimerTest : public ::testing::Test {
 protected:
  /// y = -x.
  Plan plan(const std::string& kernel) {
    PlanBuilder builder(*options_.device);
    const std::uint32_t x = builder.input("x", {2, 3});
    builder.node("neg", "test.neg/1", kernel, {x}, builder.output("y", {2, 3}));
    return builder.plan;
  }
  EngineOptions options_{make_cpu_device({1, nullptr}), registry_with(all_plugins())};
};

TEST_F(PlanTimerTest, GivesATimeForEachCallAndOutlivesItsPlan) {
  const auto timer = make_plan_timer(plan("test.neg.reference"), options_);
  ASSERT_TRUE(timer.ok()) << timer.status().message();
  for (int i = 0; i < 3; ++i) {
    const Result<double> ms = (*timer)();
    ASSERT_TRUE(ms.ok()) << ms.status().message();
    EXPECT_GT(*ms, 0);
  }
}

TEST_F(PlanTimerTest, FailsAsLoadingAndRunningDo) {
  EXPECT_EQ(make_plan_timer(plan("test.neg.absent"), options_).status().code(), Code::kNotFound);
  const auto failing = make_plan_timer(single_plan(*options_.device, "test.affine.failing"), options_);
  ASSERT_FALSE(failing.ok());
  EXPECT_NE(failing.status().message().find("the moon is full"), std::string::npos) << failing.status().message();
}

}  // namespace
}  // namespace tenon
