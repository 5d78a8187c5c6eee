// Engines whose inputs have other dims at run time than those they were tuned for.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "tests/e2e/e2e_testing.h"

namespace tenon::e2e {
namespace {

using Dims = std::vector<std::int64_t>;

std::vector<float> values_of(const Dims& dims, std::uint32_t seed) {
  std::size_t count = 1;
  for (const std::int64_t d : dims) count *= static_cast<std::size_t>(d);
  std::vector<float> values(count);
  for (float& value : values) {
    seed = seed * 1664525u + 1013904223u;
    value = static_cast<float>(seed >> 8) / static_cast<float>(1 << 24) - 0.5f;
  }
  return values;
}

class Profile : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(library_.discover().ok());
    const std::string reason = why_not(library_, test_device());
    if (!reason.empty()) GTEST_SKIP() << reason;
  }

  static TensorId integers(Network* network, const std::string& name, const std::vector<std::int64_t>& values) {
    const TnDims dims = detail::dims({static_cast<std::int64_t>(values.size())});
    TensorId id = TN_NO_TENSOR;
    EXPECT_EQ(
        tn_network_add_constant(network->get(), name.c_str(), TN_I64, &dims, values.data(), values.size() * 8, &id),
        TN_OK);
    return id;
  }

  /// A convolution, its result flattened to a shape that is computed from x's, a product, and the batch size added.
  Network network(const Dims& x_dims) const {
    Network n = Network::create(library_).value();
    const TensorId x = n.add_input("x", x_dims).value();
    const TensorId w = n.add_constant("w", {8, 3, 3, 3}, values_of({8, 3, 3, 3}, 1)).value();
    const TensorId conv = n.add_layer("tenon.conv2d/1", "conv", {x, w}, R"({"pads": [1, 1, 1, 1]})").value();
    const TensorId relu = n.add_layer("tenon.relu/1", "relu", {conv}).value();
    const TensorId shape = n.add_layer("tenon.shape/1", "shape", {x}).value();
    const TensorId batch =
        n.add_layer("tenon.slice/1", "batch", {shape}, R"({"starts": [0], "ends": [1], "axes": [0]})").value();
    const TensorId flat_shape =
        n.add_layer("tenon.concat/1", "flat_shape", {batch, integers(&n, "rest", {-1})}, R"({"axis": 0})").value();
    const TensorId flat = n.add_layer("tenon.reshape/1", "flat", {relu, flat_shape}).value();
    const TensorId m = n.add_constant("m", {8 * 4 * 5, 10}, values_of({8 * 4 * 5, 10}, 2)).value();
    const TensorId product = n.add_layer("tenon.matmul/1", "product", {flat, m}).value();
    const TensorId number = n.add_layer("tenon.cast/1", "number", {batch}, R"({"to": "f32"})").value();
    const TensorId y = n.add_layer("tenon.add/1", "y", {product, number}).value();
    EXPECT_TRUE(n.mark_output(y).ok());
    return n;
  }

  BuilderConfig config(TimingCache* cache = nullptr) const {
    BuilderConfig result = BuilderConfig::create().value();
    EXPECT_TRUE(result.set("device", test_device()).ok());
    if (cache != nullptr) {
      EXPECT_TRUE(result.set_cache(*cache).ok());
    }
    return result;
  }

  Engine engine(const Dims& min = {1, 3, 4, 5}, const Dims& max = {8, 3, 4, 5}) {
    Network n = network({4, 3, 4, 5});
    EXPECT_TRUE(n.set_profile("x", min, {4, 3, 4, 5}, max).ok());
    const Result<BuiltEngine> built = Builder(library_).build(n, config());
    EXPECT_TRUE(built.ok()) << built.status().message();
    return Runtime(library_, test_device()).create(built->data(), built->size()).value();
  }

  /// By the ops' references, with the batch fixed.
  std::vector<float> reference(std::int64_t batch, const std::vector<float>& x) const {
    const Network n = network({batch, 3, 4, 5});
    const void* inputs[] = {x.data()};
    TnReferenceRun* run = nullptr;
    EXPECT_EQ(tn_reference_run(n.get(), inputs, 1, &run), TN_OK);
    std::vector<float> result;
    for (std::uint32_t i = 0; i < tn_reference_num_values(run); ++i) {
      const char* name = "";
      TnTensor tensor{};
      EXPECT_EQ(tn_reference_value(run, i, &name, &tensor), TN_OK);
      if (std::string(name) != "y") continue;
      const auto* data = static_cast<const float*>(tensor.data);
      result.assign(data, data + batch * 10);
    }
    tn_reference_release(run);
    return result;
  }

  void expect_batch(ExecutionContext* context, std::int64_t batch) const {
    std::vector<float> x = values_of({batch, 3, 4, 5}, static_cast<std::uint32_t>(batch)),
                       y(static_cast<std::size_t>(batch) * 10);
    Status status = context->set_input_dims("x", {batch, 3, 4, 5});
    ASSERT_TRUE(status.ok()) << status.message();
    const Result<Dims> dims = context->dims("y");
    ASSERT_TRUE(dims.ok()) << dims.status().message();
    EXPECT_EQ(*dims, (Dims{batch, 10}));
    ASSERT_TRUE(context->set_tensor("x", x.data()).ok());
    ASSERT_TRUE(context->set_tensor("y", y.data()).ok());
    status = context->execute();
    ASSERT_TRUE(status.ok()) << status.message();
    const std::vector<float> expected = reference(batch, x);
    ASSERT_EQ(expected.size(), y.size());
    for (std::size_t i = 0; i < y.size(); ++i) {
      ASSERT_NEAR(y[i], expected[i], 1e-4) << "batch " << batch << ", element " << i;
    }
  }

  Library library_ = Library::create().value();
};

TEST_F(Profile, EveryBatchGivesWhatTheReferencesGive) {
  const Engine e = engine();
  EXPECT_EQ(e.inputs()[0].min, (Dims{1, 3, 4, 5}));
  EXPECT_EQ(e.inputs()[0].dims, (Dims{4, 3, 4, 5}));
  EXPECT_EQ(e.inputs()[0].max, (Dims{8, 3, 4, 5}));
  EXPECT_EQ(e.outputs()[0].min, (Dims{1, 10}));
  EXPECT_EQ(e.outputs()[0].max, (Dims{8, 10}));
  ExecutionContext context = ExecutionContext::create(e).value();
  for (std::int64_t batch = 1; batch <= 8; ++batch) expect_batch(&context, batch);
  for (const std::int64_t batch : {4, 1, 8, 4}) expect_batch(&context, batch);
}

// More kinds of dims than the engine keeps, from several threads, each with a context of its own.
TEST_F(Profile, ContextsHaveDimsOfTheirOwn) {
  const Engine e = engine({1, 3, 4, 5}, {12, 3, 4, 5});
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      ExecutionContext context = ExecutionContext::create(e).value();
      for (int i = 0; i < 12; ++i) expect_batch(&context, 1 + (i * 5 + t * 3) % 12);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Profile, OtherDimsAreNamed) {
  const Engine e = engine();
  ExecutionContext context = ExecutionContext::create(e).value();
  const auto message = [&](const std::string& name, const Dims& dims) {
    return context.set_input_dims(name, dims).message();
  };
  for (const Dims& dims : {Dims{9, 3, 4, 5}, Dims{0, 3, 4, 5}, Dims{4, 3, 4, 6}, Dims{4, 3, 4}}) {
    const std::string text = message("x", dims);
    EXPECT_NE(text.find("'x'"), std::string::npos) << text;
    EXPECT_NE(text.find("[1,3,4,5] to [8,3,4,5]"), std::string::npos) << text;
  }
  EXPECT_NE(message("z", {4, 3, 4, 5}).find("no input 'z'"), std::string::npos);
  expect_batch(&context, 3);  // a refusal changes nothing

  const Result<BuiltEngine> built = Builder(library_).build(network({4, 3, 4, 5}), config());
  ASSERT_TRUE(built.ok()) << built.status().message();
  const Engine fixed = Runtime(library_, test_device()).create(built->data(), built->size()).value();
  ExecutionContext other = ExecutionContext::create(fixed).value();
  EXPECT_TRUE(other.set_input_dims("x", {4, 3, 4, 5}).ok());
  const std::string text = other.set_input_dims("x", {5, 3, 4, 5}).message();
  EXPECT_NE(text.find("expected [4,3,4,5], found [5,3,4,5]"), std::string::npos) << text;
}

TEST_F(Profile, MemoryIsSetAgainWhereDimsHaveChanged) {
  const Engine e = engine();
  ExecutionContext context = ExecutionContext::create(e).value();
  expect_batch(&context, 4);
  ASSERT_TRUE(context.set_input_dims("x", {5, 3, 4, 5}).ok());
  const std::string text = context.execute().message();
  EXPECT_NE(text.find("input 'x', output 'y'"), std::string::npos) << text;
  expect_batch(&context, 5);
}

TEST_F(Profile, TheCallersScratchMemoryIsEnoughForTheLargestDims) {
  const Engine e = engine();
  ExecutionContext context = ExecutionContext::create(e, false).value();
  const std::shared_ptr<void> scratch = e.allocate(e.scratch_bytes()).value();
  ASSERT_TRUE(context.set_scratch(scratch.get(), e.scratch_bytes()).ok());
  for (const std::int64_t batch : {8, 1, 5}) expect_batch(&context, batch);
}

TEST_F(Profile, AFullCacheGivesTheSameBytes) {
  Network n = network({4, 3, 4, 5});
  ASSERT_TRUE(n.set_profile("x", {1, 3, 4, 5}, {4, 3, 4, 5}, {8, 3, 4, 5}).ok());
  TimingCache cache = TimingCache::create(library_, "", 0, test_device()).value();
  const BuiltEngine first = Builder(library_).build(n, config(&cache)).value();
  BuilderConfig frozen = config(&cache);
  ASSERT_TRUE(frozen.set("frozen_cache", "1").ok());
  const Result<BuiltEngine> second = Builder(library_).build(n, frozen);
  ASSERT_TRUE(second.ok()) << second.status().message();
  ASSERT_EQ(first.size(), second->size());
  EXPECT_EQ(std::memcmp(first.data(), second->data(), first.size()), 0);
}

TEST_F(Profile, ImpossibleProfilesAreNamedWhenTheEngineIsBuilt) {
  Network n = network({4, 3, 4, 5});
  const auto message = [&](const Dims& min, const Dims& max) {
    return n.set_profile("x", min, {4, 3, 4, 5}, max).message();
  };
  EXPECT_NE(message({5, 3, 4, 5}, {8, 3, 4, 5}).find("min <= opt <= max"), std::string::npos);
  EXPECT_NE(message({1, 3, 4}, {8, 3, 4, 5}).find("min <= opt <= max"), std::string::npos);
  EXPECT_NE(message({-1, 3, 4, 5}, {8, 3, 4, 5}).find("\"x\""), std::string::npos);
  // The product has room for pictures of 4 x 5 only.
  ASSERT_TRUE(n.set_profile("x", {1, 3, 4, 5}, {4, 3, 4, 5}, {8, 3, 8, 5}).ok());
  const std::string text = Builder(library_).build(n, config()).status().message();
  EXPECT_NE(text.find("largest dims of the profile"), std::string::npos) << text;
  EXPECT_NE(text.find("product"), std::string::npos) << text;
}

// A shape that the network gives and uses itself, and a constant that is computed, given and used.
TEST_F(Profile, KnownValuesMayBeOutputsToo) {
  Network n = Network::create(library_).value();
  const TensorId x = n.add_input("x", {2, 6}).value();
  const TensorId shape = n.add_layer("tenon.shape/1", "shape", {x}).value();
  const TensorId rows = n.add_layer("tenon.slice/1", "rows", {shape}, R"({"starts": [0], "ends": [1]})").value();
  const TensorId dims =
      n.add_layer("tenon.concat/1", "dims", {rows, integers(&n, "rest", {3, 2})}, R"({"axis": 0})").value();
  const TensorId w = n.add_constant("w", {4}, {1, 2, 3, 4}).value();
  const TensorId matrix = n.add_layer("tenon.reshape/1", "matrix", {w}, R"({"shape": [2, 2]})").value();
  const TensorId cubes = n.add_layer("tenon.reshape/1", "cubes", {x, dims}).value();
  ASSERT_TRUE(n.mark_output(n.add_layer("tenon.matmul/1", "y", {cubes, matrix}).value()).ok());
  ASSERT_TRUE(n.mark_output(dims).ok());
  ASSERT_TRUE(n.mark_output(matrix).ok());
  ASSERT_TRUE(n.set_profile("x", {1, 6}, {2, 6}, {5, 6}).ok());
  const Result<BuiltEngine> built = Builder(library_).build(n, config());
  ASSERT_TRUE(built.ok()) << built.status().message();
  const Result<Engine> loaded = Runtime(library_, test_device()).create(built->data(), built->size());
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  ExecutionContext context = ExecutionContext::create(*loaded).value();
  for (const std::int64_t batch : {2, 5, 1}) {
    std::vector<float> input(static_cast<std::size_t>(batch) * 6, 1), y(input.size()), m(4);
    std::vector<std::int64_t> d(3);
    ASSERT_TRUE(context.set_input_dims("x", {batch, 6}).ok());
    ASSERT_TRUE(context.set_tensor("x", input.data()).ok());
    ASSERT_TRUE(context.set_tensor("y", y.data()).ok());
    ASSERT_TRUE(context.set_tensor("dims", d.data()).ok());
    ASSERT_TRUE(context.set_tensor("matrix", m.data()).ok());
    const Status status = context.execute();
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(d, (std::vector<std::int64_t>{batch, 3, 2}));
    EXPECT_EQ(m, (std::vector<float>{1, 2, 3, 4}));
    for (std::size_t i = 0; i < y.size(); i += 2) {
      EXPECT_EQ(y[i], 4);
      EXPECT_EQ(y[i + 1], 6);
    }
  }
}

// Dims of one input that need those of another: nothing is inferred before both are there.
TEST_F(Profile, SeveralInputsChangeTogether) {
  Network n = Network::create(library_).value();
  const TensorId a = n.add_input("a", {2, 3}).value(), b = n.add_input("b", {2, 3}).value();
  ASSERT_TRUE(n.mark_output(n.add_layer("tenon.sub/1", "y", {a, b}).value()).ok());
  for (const char* name : {"a", "b"}) ASSERT_TRUE(n.set_profile(name, {2, 1}, {2, 3}, {2, 6}).ok());
  const Result<BuiltEngine> built = Builder(library_).build(n, config());
  ASSERT_TRUE(built.ok()) << built.status().message();
  const Engine e = Runtime(library_, test_device()).create(built->data(), built->size()).value();
  ExecutionContext context = ExecutionContext::create(e).value();
  ASSERT_TRUE(context.set_input_dims("a", {2, 5}).ok());
  const std::string text = context.dims("y").status().message();
  EXPECT_NE(text.find("[2,5]"), std::string::npos) << text;
  EXPECT_NE(text.find("[2,3]"), std::string::npos) << text;
  ASSERT_TRUE(context.set_input_dims("b", {2, 5}).ok());
  std::vector<float> x = {9, 8, 7, 6, 5, 4, 3, 2, 1, 0}, ones(10, 1), y(10);
  ASSERT_TRUE(context.set_tensor("a", x.data()).ok());
  ASSERT_TRUE(context.set_tensor("b", ones.data()).ok());
  ASSERT_TRUE(context.set_tensor("y", y.data()).ok());
  ASSERT_TRUE(context.execute().ok());
  EXPECT_EQ(y, (std::vector<float>{8, 7, 6, 5, 4, 3, 2, 1, 0, -1}));
}

}  // namespace
}  // namespace tenon::e2e
