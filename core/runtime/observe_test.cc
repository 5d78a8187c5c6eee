// Observing the runs of hand-made plans: what is shown, when, and that nothing else changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/runtime/test_plugin.h"

namespace tenon {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder's tests

using Floats = std::vector<float>;
using Shown = std::vector<std::pair<std::string, Floats>>;

class ObserveTest : public ::testing::Test {
 protected:
  std::shared_ptr<Engine> engine(const Plan& plan) {
    EngineOptions options;
    options.device = device_;
    options.registry = registry_;
    options.logger = &logger_;
    Result<std::shared_ptr<Engine>> result = load(plan, options);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return *result;
  }
  /// A context with memory for x and y.
  std::shared_ptr<ExecutionContext> context(const Plan& plan) {
    auto result = engine(plan)->create_context().value();
    EXPECT_TRUE(result->set_tensor("x", x_.data()).ok());
    EXPECT_TRUE(result->set_tensor("y", y_.data()).ok());
    return result;
  }
  ExecutionContext::Observer recorder() {
    return [this](const std::string& name, const TnTensor& tensor) {
      EXPECT_EQ(tensor.dtype, TN_F32);
      EXPECT_EQ(dims_text(tensor.dims), "[2,3]");
      EXPECT_EQ(tensor.strides[0], 3);
      EXPECT_EQ(tensor.strides[1], 1);
      const auto* data = static_cast<const float*>(tensor.data);
      shown_.emplace_back(name, Floats(data, data + 6));
    };
  }

  std::shared_ptr<Device> device_ = make_cpu_device({2, nullptr});
  std::shared_ptr<Registry> registry_ = registry_with(all_plugins());
  RecordingLogger logger_;
  Floats x_ = {0, 1, 2, 3, 4, 5}, y_ = Floats(6, -1);
  Shown shown_;
};

Floats times(float factor) { return {0, factor, 2 * factor, 3 * factor, 4 * factor, 5 * factor}; }

void expect_error(const Status& status, Code code, const std::vector<std::string>& words) {
  EXPECT_EQ(status.code(), code) << status.message();
  for (const std::string& word : words) EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
}

TEST_F(ObserveTest, ShowsAllTensorsInTheOrderOfTheRun) {
  const auto c = context(residual_plan(*device_));
  ASSERT_TRUE(c->execute().ok());
  const Floats unobserved = y_;
  ASSERT_TRUE(c->set_observer({}, recorder()).ok());
  ASSERT_TRUE(c->execute().ok());
  // a = 2 x, b = 3 a, y = a + b; the weights are not asked for.
  EXPECT_EQ(shown_, (Shown{{"x", times(1)}, {"a", times(2)}, {"b", times(6)}, {"y", times(8)}}));
  EXPECT_EQ(y_, unobserved);

  shown_.clear();
  x_ = {0, 2, 4, 6, 8, 10};
  ASSERT_TRUE(c->execute().ok());
  ASSERT_EQ(shown_.size(), 4u);
  EXPECT_EQ(shown_[2].second, times(12));

  shown_.clear();
  ASSERT_TRUE(c->set_observer({}, nullptr).ok());
  ASSERT_TRUE(c->execute().ok());
  EXPECT_TRUE(shown_.empty());
}

TEST_F(ObserveTest, ShowsWhatIsNamedAlsoWeights) {
  const auto c = context(residual_plan(*device_));
  ASSERT_TRUE(c->set_observer({"w2", "b"}, recorder()).ok());
  ASSERT_TRUE(c->execute().ok());
  EXPECT_EQ(shown_, (Shown{{"b", times(6)}, {"w2", Floats(6, 3)}}));
}

// The memory of a tensor that nobody reads any more is another's by the end of the run.
TEST_F(ObserveTest, ShowsATensorBeforeItsMemoryIsUsedAgain) {
  PlanBuilder builder(*device_);
  const std::uint32_t x = builder.input("x", {2, 3});
  const std::uint32_t a = builder.inner("a", {2, 3}), b = builder.inner("b", {2, 3});
  const std::uint32_t c = builder.inner("c", {2, 3});
  builder.plan.tensors[c].offset = builder.plan.tensors[a].offset;
  builder.node("first", "test.add/1", "test.add.plain", {x, x}, a);
  builder.node("second", "test.add/1", "test.add.plain", {a, x}, b);
  builder.node("third", "test.add/1", "test.add.plain", {b, b}, c);
  builder.node("fourth", "test.add/1", "test.add.plain", {c, x}, builder.output("y", {2, 3}));
  for (const auto& [id, first, last] : {std::tuple(a, 0, 1), std::tuple(b, 1, 2), std::tuple(c, 2, 3)}) {
    builder.plan.tensors[id].first_use = first;
    builder.plan.tensors[id].last_use = last;
  }
  const auto run = context(builder.plan);
  ASSERT_TRUE(run->set_observer({"a", "c"}, recorder()).ok());
  ASSERT_TRUE(run->execute().ok());
  EXPECT_EQ(shown_, (Shown{{"a", times(2)}, {"c", times(6)}}));
}

TEST_F(ObserveTest, StridesOfTheCallerDoNotShow) {
  for (const char* kernel : {"test.affine.packed", "test.affine.strided"}) {  // through a copy, and directly
    SCOPED_TRACE(kernel);
    shown_.clear();
    const auto c = context(single_plan(*device_, kernel));
    Floats columns = {0, 3, 1, 4, 2, 5}, wide(12, -1);
    const std::int64_t transposed[] = {1, 2}, every_second[] = {6, 2};
    ASSERT_TRUE(c->set_tensor("x", columns.data(), transposed).ok());
    ASSERT_TRUE(c->set_tensor("y", wide.data(), every_second).ok());
    ASSERT_TRUE(c->set_observer({"x", "y"}, recorder()).ok());
    ASSERT_TRUE(c->execute().ok());
    EXPECT_EQ(shown_, (Shown{{"x", times(1)}, {"y", times(2)}}));
    EXPECT_EQ(wide, (Floats{0, -1, 2, -1, 4, -1, 6, -1, 8, -1, 10, -1}));
  }
}

TEST_F(ObserveTest, UnknownAndRemovedTensorsAreToldApart) {
  Plan plan = residual_plan(*device_);
  plan.tensors[plan.nodes[0].outputs[0]].name = "activation_of_block_1";
  plan.metadata["removed_tensors"] = "1 sum_of_block_1\n-1 copy_of_x\n";
  const auto c = context(plan);
  expect_error(c->set_observer({"activation_of_block_2"}, recorder()), Code::kNotFound,
               {"'activation_of_block_2'", "did you mean 'activation_of_block_1'?", "inspect"});
  expect_error(c->set_observer({"b", "sum_of_block_1"}, recorder()), Code::kDeclined,
               {"'sum_of_block_1' (part of layer 'scale2')", "fusion removed it", "marked as an output"});
  expect_error(c->set_observer({"copy_of_x"}, recorder()), Code::kDeclined, {"'copy_of_x'"});
  // What is mistyped may be near to a removed one.
  expect_error(c->set_observer({"sum_of_block_2"}, recorder()), Code::kNotFound, {"did you mean 'sum_of_block_1'?"});
  ASSERT_TRUE(c->execute().ok());  // none of these was set
  EXPECT_TRUE(shown_.empty());
}

TEST_F(ObserveTest, AnEngineWithoutNamesSaysSo) {
  Plan plan = residual_plan(*device_);
  plan.verbosity = Verbosity::kNone;
  expect_error(context(plan)->set_observer({"a"}, recorder()), Code::kInvalid, {"keeps no names", "layer_names"});
  EXPECT_NE(inspect_tensors(plan).find("keeps no names"), std::string::npos);
  EXPECT_EQ(inspect_tensors(plan).find("\"a\""), std::string::npos);
}

TEST_F(ObserveTest, AnObserverCannotRunTheContextItself) {
  const auto c = context(residual_plan(*device_));
  std::vector<Code> codes;
  const auto tries = [&](const std::string&, const TnTensor&) { codes.push_back(c->execute().code()); };
  ASSERT_TRUE(c->set_observer({"a"}, tries).ok());
  EXPECT_TRUE(c->execute().ok());
  EXPECT_EQ(codes, std::vector<Code>{Code::kInvalid});
}

TEST_F(ObserveTest, AKernelsFailureIsStillToldWithItsLayer) {
  const auto c = context(single_plan(*device_, "test.affine.failing"));
  ASSERT_TRUE(c->set_observer({}, recorder()).ok());
  expect_error(c->execute(), Code::kDevice, {"layer 'only'", "the moon is full"});
  EXPECT_EQ(shown_, (Shown{{"x", times(1)}}));
}

}  // namespace
}  // namespace tenon
