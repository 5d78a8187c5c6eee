// Layers whose output size depends on data: the sizes are right for every input, and layers behind them follow.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "tests/e2e/e2e_testing.h"

namespace tenon::e2e {
namespace {

using Dims = std::vector<std::int64_t>;

class DataSize : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(library_.discover().ok());
    const std::string reason = why_not(library_, test_device());
    if (!reason.empty()) GTEST_SKIP() << reason;
  }

  /// Where x is not 0, as a matrix with a row for each place, doubled; and how many such places there are.
  Engine places(bool varying_rows = false) {
    Network n = Network::create(library_).value();
    const TensorId x = n.add_input("x", {2, 3}).value();
    const TensorId negative = n.add_layer("tenon.neg/1", "negative", {x}).value();
    const TensorId found = n.add_layer("tenon.non_zero/1", "found", {negative}).value();
    const TensorId rows = n.add_layer("tenon.transpose/1", "rows", {found}, R"({"perm": [1, 0]})").value();
    const TensorId doubled = n.add_layer("tenon.add/1", "doubled", {rows, rows}).value();
    const TensorId shape = n.add_layer("tenon.shape/1", "shape", {found}).value();
    const TensorId count =
        n.add_layer("tenon.slice/1", "count", {shape}, R"({"starts": [1], "ends": [2], "axes": [0]})").value();
    EXPECT_TRUE(n.mark_output(doubled).ok());
    EXPECT_TRUE(n.mark_output(n.add_layer("tenon.cast/1", "number", {count}, R"({"to": "f32"})").value()).ok());
    if (varying_rows) {
      EXPECT_TRUE(n.set_profile("x", {1, 3}, {2, 3}, {4, 3}).ok());
    }
    return load(n);
  }

  Engine load(const Network& network) {
    BuilderConfig config = BuilderConfig::create().value();
    EXPECT_TRUE(config.set("device", test_device()).ok());
    EXPECT_TRUE(config.set("on_fallback", "allow").ok());
    const Result<BuiltEngine> built = Builder(library_).build(network, config);
    EXPECT_TRUE(built.ok()) << built.status().message();
    return Runtime(library_, test_device()).create(built->data(), built->size()).value();
  }

  Library library_ = Library::create().value();
};

/// The places of a matrix with three columns that are not 0, doubled.
std::vector<std::int64_t> expected_places(const std::vector<float>& x) {
  std::vector<std::int64_t> result;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] != 0)
      result.insert(result.end(), {2 * static_cast<std::int64_t>(i / 3), 2 * static_cast<std::int64_t>(i % 3)});
  }
  return result;
}

void expect_places(ExecutionContext* context, std::vector<float> x) {
  std::vector<std::int64_t> y(2 * x.size(), -1);
  float number = -1;
  ASSERT_TRUE(context->set_tensor("x", x.data()).ok());
  ASSERT_TRUE(context->set_tensor("doubled", y.data()).ok());
  ASSERT_TRUE(context->set_tensor("number", &number).ok());
  const Status status = context->execute();
  ASSERT_TRUE(status.ok()) << status.message();
  std::vector<std::int64_t> expected = expected_places(x);
  const auto count = static_cast<std::int64_t>(expected.size() / 2);
  EXPECT_EQ(context->dims("doubled").value(), (Dims{count, 2}));
  EXPECT_EQ(number, static_cast<float>(count));
  expected.resize(y.size(), -1);  // nothing is written beyond them
  EXPECT_EQ(y, expected);
  const std::string times = context->profile().value();
  EXPECT_NE(times.find("\"found\""), std::string::npos) << times;
  EXPECT_EQ(y, expected);
}

TEST_F(DataSize, EachRunHasItsOwn) {
  const Engine engine = places();
  ASSERT_EQ(engine.outputs()[0].name, "doubled");
  EXPECT_EQ(engine.outputs()[0].min, (Dims{0, 0}));
  EXPECT_EQ(engine.outputs()[0].dims, (Dims{6, 2}));
  EXPECT_EQ(engine.outputs()[0].max, (Dims{6, 2}));
  ExecutionContext context = ExecutionContext::create(engine).value();
  EXPECT_EQ(context.dims("doubled").value(), (Dims{6, 2}));
  expect_places(&context, {1, 0, 2, 0, 0, 3});
  expect_places(&context, {0, 0, 0, 0, 0, 0});
  expect_places(&context, {1, 1, 1, 1, 1, 1});
  expect_places(&context, {0, 5, 0, 0, 0, 0});
}

TEST_F(DataSize, GoesWithDimsThatVary) {
  const Engine engine = places(true);
  ExecutionContext context = ExecutionContext::create(engine).value();
  for (const std::int64_t rows : {2, 4, 1, 3}) {
    ASSERT_TRUE(context.set_input_dims("x", {rows, 3}).ok());
    std::vector<float> x(static_cast<std::size_t>(rows) * 3, 0);
    for (std::size_t i = 0; i < x.size(); i += 2) x[i] = 1;
    expect_places(&context, x);
    x[0] = 0;
    expect_places(&context, x);
  }
}

TEST_F(DataSize, TheCallerAllocatesWhenTheSizeIsKnown) {
  const Engine engine = places();
  ExecutionContext context = ExecutionContext::create(engine).value();
  std::vector<float> x = {1, 0, 2, 0, 0, 3};
  float number = -1;
  std::vector<std::int64_t> memory;
  Dims asked;
  ASSERT_TRUE(context.set_tensor("x", x.data()).ok());
  ASSERT_TRUE(context.set_tensor("number", &number).ok());
  const auto allocate = [&](const std::string& name, std::uint64_t bytes, const TnDims& dims) -> void* {
    EXPECT_EQ(name, "doubled");
    EXPECT_EQ(bytes, static_cast<std::uint64_t>(dims.d[0] * dims.d[1] * 8));
    asked = detail::list(dims);
    memory.assign(static_cast<std::size_t>(bytes / 8), -1);
    return memory.data();
  };
  ASSERT_TRUE(context.set_output_allocator("doubled", allocate).ok());
  ASSERT_TRUE(context.execute().ok());
  EXPECT_EQ(asked, (Dims{3, 2}));
  EXPECT_EQ(memory, expected_places(x));
  x = {0, 0, 0, 4, 0, 0};
  ASSERT_TRUE(context.execute().ok());
  EXPECT_EQ(asked, (Dims{1, 2}));
  EXPECT_EQ(memory, expected_places(x));

  ASSERT_TRUE(context
                  .set_output_allocator(
                      "doubled", [](const std::string&, std::uint64_t, const TnDims&) -> void* { return nullptr; })
                  .ok());
  const std::string text = context.execute().message();
  EXPECT_NE(text.find("'doubled'"), std::string::npos) << text;
  EXPECT_NE(text.find("16 bytes"), std::string::npos) << text;
  EXPECT_NE(context.set_output_allocator("y", allocate).message().find("no output 'y'"), std::string::npos);
  // Without an allocator it is an output without memory again.
  ASSERT_TRUE(context.set_output_allocator("doubled", {}).ok());
  EXPECT_NE(context.execute().message().find("output 'doubled'"), std::string::npos);
  expect_places(&context, {0, 1, 0, 1, 0, 1});
}

// The output of an engine whose dims do not vary may be allocated in the same way.
TEST_F(DataSize, AnAllocatorWorksForFixedSizes) {
  Network n = Network::create(library_).value();
  const TensorId x = n.add_input("x", {3}).value();
  ASSERT_TRUE(n.mark_output(n.add_layer("tenon.neg/1", "y", {x}).value()).ok());
  const Engine engine = load(n);
  ExecutionContext context = ExecutionContext::create(engine).value();
  std::vector<float> input = {1, 2, 3}, output;
  int asked = 0;
  ASSERT_TRUE(context.set_tensor("x", input.data()).ok());
  ASSERT_TRUE(context
                  .set_output_allocator("y",
                                        [&](const std::string&, std::uint64_t bytes, const TnDims&) -> void* {
                                          ++asked;
                                          output.assign(static_cast<std::size_t>(bytes / 4), 0);
                                          return output.data();
                                        })
                  .ok());
  for (int run = 0; run < 2; ++run) {
    ASSERT_TRUE(context.execute().ok());
    EXPECT_EQ(output, (std::vector<float>{-1, -2, -3}));
    EXPECT_EQ(asked, run + 1);
  }
}

// One size that depends on data behind another.
TEST_F(DataSize, OneBehindAnother) {
  Network n = Network::create(library_).value();
  const TensorId x = n.add_input("x", {4}).value();
  const TensorId first = n.add_layer("tenon.non_zero/1", "first", {x}).value();  // [1, n]: places
  const TensorId second =
      n.add_layer("tenon.non_zero/1", "second", {first}).value();  // [2, m]: those that are not place 0
  ASSERT_TRUE(n.mark_output(n.add_layer("tenon.add/1", "y", {second, second}).value()).ok());
  const Engine engine = load(n);
  EXPECT_EQ(engine.outputs()[0].max, (Dims{2, 4}));
  ExecutionContext context = ExecutionContext::create(engine).value();
  std::vector<float> input = {1, 0, 1, 1};
  std::vector<std::int64_t> y(8, -1);
  ASSERT_TRUE(context.set_tensor("x", input.data()).ok());
  ASSERT_TRUE(context.set_tensor("y", y.data()).ok());
  const Status status = context.execute();
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(context.dims("y").value(), (Dims{2, 2}));
  EXPECT_EQ(std::vector<std::int64_t>(y.begin(), y.begin() + 4), (std::vector<std::int64_t>{0, 0, 2, 4}));
}

}  // namespace
}  // namespace tenon::e2e
