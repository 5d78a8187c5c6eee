#include "core/runtime/engine.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <thread>

#include "core/runtime/test_plugin.h"

namespace tenon {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder's tests

const std::vector<float> kInput = {0, 1, 2, 3, 4, 5};

std::vector<float> times(float factor) {
  std::vector<float> result = kInput;
  for (float& value : result) value *= factor;
  return result;
}

std::vector<float> run(ExecutionContext* context) {
  std::vector<float> x = kInput, y(6, -1);
  EXPECT_TRUE(context->set_tensor("x", x.data()).ok());
  EXPECT_TRUE(context->set_tensor("y", y.data()).ok());
  const Status status = context->execute();
  EXPECT_TRUE(status.ok()) << status.message();
  return y;
}

class EngineTest : public ::testing::Test {
 protected:
  void SetUp() override { reset_counters(); }
  EngineOptions options() const {
    EngineOptions result;
    result.device = device_;
    result.registry = registry_;
    return result;
  }
  std::shared_ptr<Device> device_ = make_cpu_device({2, nullptr});
  std::shared_ptr<Registry> registry_ = registry_with(all_plugins());
};

TEST_F(EngineTest, RunsWhatWasSaved) {
  const std::filesystem::path path =
      std::filesystem::path(::testing::TempDir()) / ("engine_test_" + std::to_string(::getpid()) + ".tenon");
  const std::vector<std::uint8_t> bytes = write_plan(residual_plan(*device_)).value();
  ASSERT_TRUE(write_file_atomically(path, bytes.data(), bytes.size()).ok());
  const Result<std::shared_ptr<Engine>> engine = Engine::load_file(path, options());
  std::filesystem::remove(path);  // stays mapped
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  EXPECT_EQ(counters().deserialized, 2);
  ASSERT_EQ((*engine)->inputs().size(), 1u);
  EXPECT_EQ((*engine)->inputs()[0].name, "x");
  EXPECT_EQ(dims_text((*engine)->outputs()[0].dims), "[2,3]");
  EXPECT_EQ((*engine)->scratch_bytes(), 512u + 64u);  // a, b and the workspace
  const auto context = (*engine)->create_context().value();
  EXPECT_EQ(run(context.get()), times(8));
  EXPECT_EQ(run(context.get()), times(8));
}

TEST_F(EngineTest, RunsAReferenceKernel) {
  PlanBuilder builder(*device_);
  const std::uint32_t x = builder.input("x", {2, 3});
  builder.node("neg", "test.neg/1", "test.neg.reference", {x}, builder.output("y", {2, 3}));
  const auto engine = load(builder.plan, options());
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  EXPECT_EQ(run((*engine)->create_context().value().get()), times(-1));
}

TEST_F(EngineTest, AnOutputMayBeReadByLaterNodes) {
  PlanBuilder builder(*device_);
  const std::uint32_t x = builder.input("x", {2, 3});
  const std::uint32_t middle = builder.output("middle", {2, 3});
  builder.node("first", "test.add/1", "test.add.plain", {x, x}, middle);
  builder.node("second", "test.add/1", "test.add.plain", {middle, x}, builder.output("y", {2, 3}));
  const auto context = load(builder.plan, options()).value()->create_context().value();
  std::vector<float> seen(6);
  ASSERT_TRUE(context->set_tensor("middle", seen.data()).ok());
  EXPECT_EQ(run(context.get()), times(3));
  EXPECT_EQ(seen, times(2));
}

TEST_F(EngineTest, OtherDevicesAreVersionErrors) {
  const auto refused = [&](Plan plan, const std::vector<std::string>& words) {
    const Status status = load(plan, options()).status();
    EXPECT_EQ(status.code(), Code::kVersion) << status.message();
    for (const std::string& word : words) EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
  };
  Plan plan = residual_plan(*device_);
  plan.device_signature = "cpu:avx10:64:Other";
  refused(plan, {"cpu:avx10:64:Other", device_->info().signature, "build it again"});
  plan.device_kind = "cuda";
  refused(plan, {"cuda", "cpu"});
  plan = residual_plan(*device_);
  plan.threads = 7;
  refused(plan, {"7 threads", "has 2"});
  plan.plugins.push_back({"acme.gone", "3", "gone.tnp.so", "0x77"});
  refused(plan, {"7 threads", "acme.gone"});  // both problems at once
}

TEST_F(EngineTest, MissingPluginsAreListedAndMayBeLoadedLater) {
  PlanBuilder builder(*device_);
  const std::uint32_t x = builder.input("x", {2, 3});
  const std::uint32_t w = builder.constant("w", {2, 3}, times(0));
  const std::uint32_t a = builder.inner("a", {2, 3}), b = builder.inner("b", {2, 3});
  builder.node("scale", "test.affine/1", "test.affine.packed", {x, w}, a);
  builder.node("sum", "test.add/1", "test.add.plain", {a, x}, b);
  builder.node("neg", "test.neg/1", "test.neg.reference", {b}, builder.output("y", {2, 3}));

  registry_ = registry_with({});
  Status status = load(builder.plan, options()).status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  for (const char* word : {"test.affine version 1.0", "affine.tnp.so", "test.add version 1.0", "test.neg version 1.0",
                           "0xabc", "3 plugins"}) {
    EXPECT_NE(status.message().find(word), std::string::npos) << word << ": " << status.message();
  }
  ASSERT_TRUE(registry_->add_linked(add_plugin()).ok());
  status = load(builder.plan, options()).status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_NE(status.message().find("test.affine"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("test.neg"), std::string::npos) << status.message();
  EXPECT_EQ(status.message().find("test.add"), std::string::npos) << status.message();
  EXPECT_NE(inspect_oneline(builder.plan).find("Name: scale"), std::string::npos);  // needs no plugin
  ASSERT_TRUE(registry_->add_linked(affine_plugin()).ok());
  ASSERT_TRUE(registry_->add_linked(neg_plugin()).ok());
  const auto engine = load(builder.plan, options());
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  EXPECT_EQ(run((*engine)->create_context().value().get()), times(-1));
}

TEST_F(EngineTest, AKernelThatIsGoneIsNamed) {
  Plan plan = single_plan(*device_, "test.affine.strided");
  plan.nodes[0].kernel = "test.affine.retired";
  const Status status = load(plan, options()).status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  for (const char* word : {"layer 'only'", "test.affine.retired", "test.affine/1"}) {
    EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
  }
}

TEST_F(EngineTest, BadKernelStateIsNamed) {
  Plan plan = residual_plan(*device_);
  plan.nodes[1].state = {'x'};
  const Status status = load(plan, options()).status();
  EXPECT_EQ(status.code(), Code::kInvalid);
  for (const char* word : {"layer 'scale2'", "test.affine.packed", "not AFF1"}) {
    EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
  }
  EXPECT_EQ(counters().created, counters().destroyed);
}

TEST_F(EngineTest, NodesThatDoNotFitTheirOpOrKernelAreNamed) {
  const auto refused = [&](const std::function<void(Plan*)>& change, const std::vector<std::string>& words) {
    Plan plan = single_plan(*device_, "test.affine.strided");
    change(&plan);
    const Status status = load(plan, options()).status();
    EXPECT_EQ(status.code(), Code::kInvalid) << status.message();
    for (const std::string& word : words) EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
  };
  refused([](Plan* plan) { plan->nodes[0].kernel = "test.add.plain"; },
          {"layer 'only'", "test.add.plain", "it is one of test.add/1, the node is test.affine/1"});
  refused(
      [](Plan* plan) {
        PlanTensor& y = plan->tensors[plan->nodes[0].outputs[0]];
        y.dims = plan->outputs[0].min = plan->outputs[0].max = make_dims({2, 4});
        y.bytes = 32;
      },
      {"layer 'only'", "output 0 is f32[2,4] in the engine, but test.affine/1 makes it f32[2,3]"});
  refused([](Plan* plan) { plan->nodes[0].attrs.values["beta"] = 1.0; }, {"layer 'only'", "beta"});
  refused(
      [](Plan* plan) {
        plan->nodes[0].inputs.resize(1);
        plan->nodes[0].combo.inputs.resize(1);
      },
      {"layer 'only'", "test.affine/1"});
  const TnFormat columns{TN_FORMAT_AXES, TN_PAD_NONE, 2, 0, {1, 0}, {}, {}, {}};
  refused(
      [&](Plan* plan) {
        PlanNode& node = plan->nodes[0];
        PlanTensor& y = plan->tensors[node.outputs[0]];
        y.storage = Storage::kArena;
        y.format = node.combo.outputs[0].format = columns;
        plan->arena_bytes = 64;
        plan->outputs.clear();
      },
      {"layer 'only'", "test.affine.strided", "combo f32:row,f32:row>f32:ba, it takes f32:row,f32:row>f32:row"});
  refused(
      [](Plan* plan) {
        plan->tensors[plan->nodes[0].inputs[0]].storage = Storage::kArena;
        plan->arena_bytes = 64;
        plan->inputs.clear();
      },
      {"layer 'only'", "it reads tensor 'x' before anything writes it"});
}

TEST_F(EngineTest, EqualPackKeysShareMemory) {
  const auto other = load(residual_plan(*device_), options()).value();
  EXPECT_EQ(counters().packed, 2);
  EXPECT_EQ(counters().filled, 0);
  reset_counters();
  const auto engine = load(residual_plan(*device_, "test.affine.packed", 2), options()).value();
  EXPECT_EQ(counters().packed, 1);
  EXPECT_EQ(counters().filled, 1);
  EXPECT_EQ(run(engine->create_context().value().get()), times(6));
}

TEST_F(EngineTest, StoredPersistentBytesArePackedBytes) {
  Plan plan = single_plan(*device_, "test.affine.packed");
  const std::vector<float> doubled(6, 10.0f);  // unlike the constants, so that one sees where they came from
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(doubled.data());
  plan.nodes[0].has_persistent = true;
  plan.nodes[0].persistent.assign(bytes, bytes + 24);
  auto engine = load(plan, options()).value();
  EXPECT_EQ(counters().packed, 0);
  EXPECT_EQ(counters().filled, 1);
  EXPECT_EQ(run(engine->create_context().value().get()), times(5));

  // Another revision of the kernel may pack differently: its bytes are made anew.
  plan.nodes[0].kernel_revision = 0;
  engine = load(plan, options()).value();
  EXPECT_EQ(counters().packed, 1);
  EXPECT_EQ(run(engine->create_context().value().get()), times(2));
}

TEST_F(EngineTest, AnyOrderOfDestruction) {
  int order[] = {0, 1, 2, 3};
  do {
    reset_counters();
    std::shared_ptr<Device> device = make_cpu_device({2, nullptr});
    std::shared_ptr<Registry> registry = registry_with(all_plugins());
    EngineOptions options;
    options.device = device;
    options.registry = registry;
    std::shared_ptr<Engine> engine = load(residual_plan(*device), std::move(options)).value();
    std::shared_ptr<ExecutionContext> context = engine->create_context().value();
    for (const int what : order) {
      if (context != nullptr) {
        EXPECT_EQ(run(context.get()), times(8));
      }
      if (what == 0) device.reset();
      if (what == 1) registry.reset();
      if (what == 2) engine.reset();
      if (what == 3) context.reset();
    }
    EXPECT_EQ(counters().created, 2);
    EXPECT_EQ(counters().destroyed, 2);
    EXPECT_EQ(counters().terminated, 2);
  } while (std::next_permutation(std::begin(order), std::end(order)));
}

TEST_F(EngineTest, UnloadedPluginsStayUsableForWhoHoldsThem) {
  const auto engine = load(residual_plan(*device_), options()).value();
  ASSERT_TRUE(registry_->unload("test.affine").ok());
  EXPECT_EQ(run(engine->create_context().value().get()), times(8));
  EXPECT_EQ(load(residual_plan(*device_), options()).status().code(), Code::kNotFound);
}

TEST_F(EngineTest, ThreadsShareWeights) {
  const auto engine = load(residual_plan(*device_), options()).value();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&engine, t] {
      const auto context = engine->create_context().value();
      for (int i = 0; i < 200; ++i) {
        std::vector<float> x(6, static_cast<float>(t)), y(6);
        ASSERT_TRUE(context->set_tensor("x", x.data()).ok());
        ASSERT_TRUE(context->set_tensor("y", y.data()).ok());
        ASSERT_TRUE(context->execute().ok());
        ASSERT_EQ(y, std::vector<float>(6, static_cast<float>(8 * t)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counters().packed, 2);
}

TEST_F(EngineTest, LoadsInSeveralThreads) {
  const Plan plan = residual_plan(*device_);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i)
        EXPECT_EQ(run(load(plan, options()).value()->create_context().value().get()), times(8));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

class CountingAllocator final : public Allocator {
 public:
  void* allocate(std::size_t bytes, std::size_t alignment) override {
    if (calls_++ == fail_at) return nullptr;
    void* memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    const std::lock_guard lock(mutex_);
    live_.insert(memory);
    return memory;
  }
  void free(void* memory) override {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(live_.erase(memory), 1u);
    std::free(memory);
  }
  std::size_t live() const { return live_.size(); }
  int calls() const { return calls_; }
  int fail_at = -1;

 private:
  std::mutex mutex_;
  std::set<void*> live_;
  std::atomic<int> calls_{0};
};

TEST_F(EngineTest, UserAllocatorGetsEverythingBack) {
  int calls = 1;
  for (int fail_at = -1; fail_at < calls; ++fail_at) {
    CountingAllocator allocator;
    allocator.fail_at = fail_at;
    EngineOptions with_allocator = options();
    with_allocator.device = make_cpu_device({2, &allocator});
    Status status;
    {
      const auto engine = load(residual_plan(*device_), std::move(with_allocator));
      status = engine.status();
      if (engine.ok()) {
        const auto context = (*engine)->create_context();
        status = context.status();
        if (context.ok()) {
          EXPECT_EQ(run(context->get()), times(8));
        }
      }
    }
    EXPECT_EQ(allocator.live(), 0u);
    if (fail_at < 0) {
      EXPECT_TRUE(status.ok()) << status.message();
      calls = allocator.calls();
      EXPECT_GE(calls, 6);  // two persistent memories, two init scratches, scratch and context memory
    } else {
      EXPECT_EQ(status.code(), Code::kNoMemory) << status.message();
    }
  }
}

TEST_F(EngineTest, LoadFailuresGoToRecorderOrLogger) {
  RecordingLogger logger;
  ListRecorder recorder;
  EngineOptions with_logger = options();
  with_logger.logger = &logger;
  const char junk[] = "junk";
  EXPECT_EQ(Engine::load(junk, 4, nullptr, with_logger).status().code(), Code::kInvalid);
  EXPECT_EQ(logger.errors().size(), 1u);
  EngineOptions with_recorder = with_logger;
  with_recorder.recorder = &recorder;
  EXPECT_EQ(Engine::load(junk, 4, nullptr, with_recorder).status().code(), Code::kInvalid);
  EXPECT_EQ(Engine::load_file("/nonexistent/e.tenon", with_recorder).status().code(), Code::kNotFound);
  EXPECT_EQ(Engine::load_file(::testing::TempDir(), with_recorder).status().code(), Code::kIo);
  EXPECT_EQ(logger.errors().size(), 1u);
  EXPECT_EQ(recorder.list().size(), 3u);
  with_recorder.registry = nullptr;
  EXPECT_EQ(Engine::load(junk, 4, nullptr, with_recorder).status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace tenon
