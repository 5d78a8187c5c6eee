#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <thread>

#include "core/runtime/test_plugin.h"

namespace {

// Counts what this thread allocates, so that a test can say that enqueue allocates nothing.
thread_local std::size_t thread_allocations = 0;

void* counted(std::size_t bytes) {
  ++thread_allocations;
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes); }
void* operator new[](std::size_t bytes) { return counted(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace tenon {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder's tests

class ContextTest : public ::testing::Test {
 protected:
  std::shared_ptr<Engine> engine(const Plan& plan) {
    EngineOptions options;
    options.device = device_;
    options.registry = registry_;
    options.logger = &logger_;
    options.recorder = recorder_;
    Result<std::shared_ptr<Engine>> result = load(plan, options);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return *result;
  }
  std::shared_ptr<ExecutionContext> context(const Plan& plan) { return engine(plan)->create_context().value(); }

  std::shared_ptr<Device> device_ = make_cpu_device({2, nullptr});
  std::shared_ptr<Registry> registry_ = registry_with(all_plugins());
  RecordingLogger logger_;
  ErrorRecorder* recorder_ = nullptr;
  std::vector<float> x_ = {0, 1, 2, 3, 4, 5};
  std::vector<float> y_ = std::vector<float>(6, -1);
};

void expect_error(const Status& status, Code code, const std::vector<std::string>& words) {
  EXPECT_EQ(status.code(), code) << status.message();
  for (const std::string& word : words) EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
}

TEST_F(ContextTest, SaysWhatIsNotSet) {
  const auto c = context(residual_plan(*device_));
  expect_error(c->execute(), Code::kInvalid, {"input 'x'", "output 'y'", "set_tensor"});
  ASSERT_TRUE(c->set_tensor("x", x_.data()).ok());
  const Status status = c->enqueue();
  expect_error(status, Code::kInvalid, {"output 'y'"});
  EXPECT_EQ(status.message().find("'x'"), std::string::npos);
  expect_error(c->profile().status(), Code::kInvalid, {"output 'y'"});
}

TEST_F(ContextTest, RefusesBadMemory) {
  const auto c = context(residual_plan(*device_));
  expect_error(c->set_tensor("z", x_.data()), Code::kNotFound, {"'z'", "inputs are: x", "outputs: y"});
  expect_error(c->set_tensor("x", nullptr), Code::kInvalid, {"input 'x'", "null"});
  expect_error(c->set_tensor("y", reinterpret_cast<char*>(y_.data()) + 1), Code::kInvalid,
               {"output 'y'", "multiple of 4"});
  const std::int64_t broadcast[] = {0, 1};
  expect_error(c->set_tensor("y", y_.data(), broadcast), Code::kInvalid, {"output 'y'", "stride 0"});
  expect_error(c->enqueue(&x_), Code::kInvalid, {"no memory"});
}

TEST_F(ContextTest, CallersStreamsAreTheDevices) {
  const auto c = context(residual_plan(*device_));
  ASSERT_TRUE(c->set_tensor("x", x_.data()).ok());
  ASSERT_TRUE(c->set_tensor("y", y_.data()).ok());
  expect_error(c->enqueue(&x_), Code::kInvalid, {"stream"});  // the CPU has none
  EXPECT_TRUE(c->enqueue(nullptr).ok());
  EXPECT_EQ(y_[5], 40);
}

TEST_F(ContextTest, KernelFailuresNameLayerAndKernel) {
  const auto c = context(single_plan(*device_, "test.affine.failing"));
  ASSERT_TRUE(c->set_tensor("x", x_.data()).ok());
  ASSERT_TRUE(c->set_tensor("y", y_.data()).ok());
  for (int i = 0; i < 2; ++i) {
    expect_error(c->execute(), Code::kDevice, {"layer 'only'", "test.affine.failing", "the moon is full"});
  }
}

TEST_F(ContextTest, CallersScratchMayBeShared) {
  const auto e = engine(residual_plan(*device_));
  const auto first = e->create_context(false).value(), second = e->create_context(false).value();
  for (const auto& c : {first, second}) {
    ASSERT_TRUE(c->set_tensor("x", x_.data()).ok());
    ASSERT_TRUE(c->set_tensor("y", y_.data()).ok());
  }
  expect_error(first->execute(), Code::kInvalid, {"set_scratch", std::to_string(e->scratch_bytes())});
  alignas(256) static std::uint8_t memory[4096];
  ASSERT_LE(e->scratch_bytes(), sizeof(memory));
  expect_error(first->set_scratch(memory, e->scratch_bytes() - 1), Code::kInvalid,
               {std::to_string(e->scratch_bytes())});
  expect_error(first->set_scratch(memory + 8, e->scratch_bytes()), Code::kInvalid, {"multiple of 256"});
  expect_error(first->set_scratch(nullptr, e->scratch_bytes()), Code::kInvalid, {"null"});
  for (int round = 0; round < 3; ++round) {
    for (const auto& c : {first, second}) {
      ASSERT_TRUE(c->set_scratch(memory, sizeof(memory)).ok());
      y_.assign(6, -1);
      ASSERT_TRUE(c->execute().ok());
      EXPECT_EQ(y_[5], 40);
    }
  }
  const auto own = e->create_context().value();  // may be given other memory later
  ASSERT_TRUE(own->set_scratch(memory, sizeof(memory)).ok());
  ASSERT_TRUE(own->set_tensor("x", x_.data()).ok());
  ASSERT_TRUE(own->set_tensor("y", y_.data()).ok());
  EXPECT_TRUE(own->execute().ok());
}

// x as a 2x3 view of a larger column-major array, y into every second column of a 2x6 one.
class Strided : public ContextTest {
 protected:
  void check(const std::string& kernel) {
    const auto c = context(single_plan(*device_, kernel));
    std::vector<float> columns = {0, 10, 99, 1, 11, 99, 2, 12, 99};  // three columns of three, two rows used
    std::vector<float> wide(12, -1);
    const std::int64_t x_strides[] = {1, 3}, y_strides[] = {6, 2};
    ASSERT_TRUE(c->set_tensor("x", columns.data(), x_strides).ok());
    ASSERT_TRUE(c->set_tensor("y", wide.data(), y_strides).ok());
    ASSERT_TRUE(c->execute().ok());
    EXPECT_EQ(wide, (std::vector<float>{0, -1, 2, -1, 4, -1, 20, -1, 22, -1, 24, -1}));

    columns[0] = 7;  // contents may change between runs
    ASSERT_TRUE(c->execute().ok());
    EXPECT_EQ(wide[0], 14);

    const std::int64_t broadcast[] = {0, 1}, backwards[] = {-3, -1};
    ASSERT_TRUE(c->set_tensor("x", x_.data(), broadcast).ok());  // both rows are 0 1 2
    ASSERT_TRUE(c->set_tensor("y", y_.data() + 5, backwards).ok());
    ASSERT_TRUE(c->execute().ok());
    EXPECT_EQ(y_, (std::vector<float>{4, 2, 0, 4, 2, 0}));

    ASSERT_TRUE(c->set_tensor("x", x_.data()).ok());  // back to packed
    ASSERT_TRUE(c->set_tensor("y", y_.data()).ok());
    ASSERT_TRUE(c->execute().ok());
    EXPECT_EQ(y_, (std::vector<float>{0, 2, 4, 6, 8, 10}));
  }
};

TEST_F(Strided, ThroughPackedBuffers) { check("test.affine.packed"); }
TEST_F(Strided, PassedOnToKernelsThatTakeThem) { check("test.affine.strided"); }

TEST_F(Strided, OneInputForTwoKernels) {
  // x is read by a kernel that takes strides and by one that does not.
  PlanBuilder builder(*device_);
  const std::uint32_t x = builder.input("x", {2, 3});
  const std::uint32_t w = builder.constant("w", {2, 3}, {2, 2, 2, 2, 2, 2});
  const std::uint32_t a = builder.inner("a", {2, 3});
  builder.node("scale", "test.affine/1", "test.affine.strided", {x, w}, a);
  builder.node("sum", "test.add/1", "test.add.plain", {a, x}, builder.output("y", {2, 3}));
  const auto c = context(builder.plan);
  const std::int64_t transposed[] = {1, 2};
  ASSERT_TRUE(c->set_tensor("x", x_.data(), transposed).ok());
  ASSERT_TRUE(c->set_tensor("y", y_.data()).ok());
  ASSERT_TRUE(c->execute().ok());
  EXPECT_EQ(y_, (std::vector<float>{0, 6, 12, 3, 9, 15}));
}

TEST_F(ContextTest, EnqueueAllocatesNothing) {
  const auto c = context(residual_plan(*device_));
  const std::int64_t transposed[] = {1, 2};
  ASSERT_TRUE(c->set_tensor("x", x_.data(), transposed).ok());
  ASSERT_TRUE(c->set_tensor("y", y_.data()).ok());
  ASSERT_TRUE(c->enqueue().ok());
  const std::size_t before = thread_allocations;
  for (int i = 0; i < 10; ++i) {
    if (!c->enqueue().ok()) FAIL();
  }
  EXPECT_EQ(thread_allocations, before);
}

TEST_F(ContextTest, ASecondThreadIsToldSo) {
  const auto c = context(single_plan(*device_, "test.affine.waiting"));
  ASSERT_TRUE(c->set_tensor("x", x_.data()).ok());
  ASSERT_TRUE(c->set_tensor("y", y_.data()).ok());
  waiting_entered = release_waiting = false;
  std::thread first([&] { EXPECT_TRUE(c->execute().ok()); });
  while (!waiting_entered) std::this_thread::yield();
  expect_error(c->execute(), Code::kInvalid, {"two threads"});
  expect_error(c->enqueue(), Code::kInvalid, {"two threads"});
  expect_error(c->set_tensor("x", y_.data()), Code::kInvalid, {"two threads"});
  expect_error(c->set_scratch(nullptr, 0), Code::kInvalid, {"two threads"});
  expect_error(c->profile().status(), Code::kInvalid, {"two threads"});
  release_waiting = true;
  first.join();
  EXPECT_EQ(y_[5], 10);
  EXPECT_TRUE(c->execute().ok());  // and it goes on as before
}

TEST_F(ContextTest, ThreadsMayTakeTurns) {
  const auto c = context(residual_plan(*device_));
  ASSERT_TRUE(c->set_tensor("x", x_.data()).ok());
  ASSERT_TRUE(c->set_tensor("y", y_.data()).ok());
  for (int i = 0; i < 3; ++i) std::thread([&] { EXPECT_TRUE(c->execute().ok()); }).join();
  EXPECT_EQ(y_[5], 40);
}

TEST_F(ContextTest, ErrorsGoToTheLoggerWithoutARecorder) {
  const auto c = context(residual_plan(*device_));
  EXPECT_FALSE(c->execute().ok());
  EXPECT_EQ(logger_.errors().size(), 1u);
}

TEST_F(ContextTest, RecordersOfEngineAndContext) {
  ListRecorder engines, own;
  recorder_ = &engines;
  const auto e = engine(residual_plan(*device_));
  const auto first = e->create_context().value(), second = e->create_context().value();
  EXPECT_FALSE(first->execute().ok());  // handed on by the engine
  EXPECT_EQ(engines.list().size(), 1u);

  second->set_recorder(&own);
  EXPECT_FALSE(second->execute().ok());  // only this context's errors
  EXPECT_FALSE(first->execute().ok());
  EXPECT_EQ(own.list().size(), 1u);
  EXPECT_EQ(own.list()[0].code(), Code::kInvalid);
  EXPECT_EQ(engines.list().size(), 2u);
  EXPECT_TRUE(logger_.errors().empty());

  second->set_recorder(nullptr);
  EXPECT_FALSE(second->execute().ok());
  EXPECT_EQ(logger_.errors().size(), 1u);
}

TEST_F(ContextTest, ProfileTimesEveryLayer) {
  const auto c = context(residual_plan(*device_));
  ASSERT_TRUE(c->set_tensor("x", x_.data()).ok());
  ASSERT_TRUE(c->set_tensor("y", y_.data()).ok());
  const Result<std::vector<LayerTime>> times = c->profile();
  ASSERT_TRUE(times.ok()) << times.status().message();
  ASSERT_EQ(times->size(), 3u);
  EXPECT_EQ((*times)[0].name, "scale1");
  EXPECT_EQ((*times)[2].name, "sum");
  for (const LayerTime& time : *times) EXPECT_GE(time.ms, 0);
  EXPECT_EQ(y_[5], 40);
}

}  // namespace
}  // namespace tenon
