// Concatenations, slices and reshapes that launch nothing: producers and consumers share memory.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/e2e/e2e_testing.h"

namespace tenon::e2e {
namespace {

using Dims = std::vector<std::int64_t>;
using Names = std::vector<std::string>;

class Views : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(library_.discover().ok());
    const std::string reason = why_not(library_, test_device());
    if (!reason.empty()) GTEST_SKIP() << reason;
    x_ = network_.add_input("x", {1, 2, 1, 3}).value();
  }

  TensorId op(const std::string& name, const std::string& op, const std::vector<TensorId>& inputs,
              const std::string& attrs = "{}") {
    return network_.add_layer("tenon." + op + "/1", name, inputs, attrs).value();
  }
  void output(TensorId id, const std::string& name) {
    ASSERT_TRUE(network_.rename(id, name).ok());
    ASSERT_TRUE(network_.mark_output(id).ok());
  }

  void build() {
    BuilderConfig config = BuilderConfig::create().value();
    ASSERT_TRUE(config.set("device", test_device()).ok());
    const auto built = Builder(library_).build(network_, config);
    ASSERT_TRUE(built.ok()) << built.status().message();
    const json report = parse_json(built->report());
    for (const json& layer : report["layers"]) layers_.push_back(layer["name"]);
    for (const json& layer : report["views"]) views_.push_back(layer["name"]);
    const auto engine = Runtime(library_, test_device()).create(built->data(), built->size());
    ASSERT_TRUE(engine.ok()) << engine.status().message();
    context_ = ExecutionContext::create(*engine).value();
  }

  std::vector<float> run(std::vector<float> x, const std::string& name, std::size_t count) {
    std::vector<float> y(count, -99);
    EXPECT_TRUE(context_->set_tensor("x", x.data()).ok());
    EXPECT_TRUE(context_->set_tensor(name, y.data()).ok());
    const Status status = context_->execute();
    EXPECT_TRUE(status.ok()) << status.message();
    return y;
  }

  Library library_ = Library::create({}).value();
  Network network_ = Network::create(library_).value();
  TensorId x_{};
  Names layers_, views_;
  std::optional<ExecutionContext> context_;
};

TEST_F(Views, ConcatenationSliceAndReshapeOfOnePicture) {
  const TensorId negative = op("negative", "neg", {x_});
  const TensorId absolute = op("absolute", "abs", {x_});
  const TensorId all = op("all", "concat", {negative, absolute, negative}, R"({"axis": 1})");
  const TensorId middle = op("middle", "slice", {all}, R"({"starts": [1], "ends": [3], "axes": [1]})");
  const TensorId flat = op("flat", "reshape", {middle}, R"({"shape": [6]})");
  output(op("y", "neg", {flat}), "y");
  build();
  // The third part is the first one again: that has to be copied, so the concatenation is a launch.
  EXPECT_EQ(layers_, (Names{"negative", "absolute", "all", "y"}));
  EXPECT_EQ(views_, (Names{"middle", "flat"}));
  // all = -x0 -x1 |x0| |x1| -x0 -x1, its channels 1 and 2 negated: x1 -|x0|.
  EXPECT_EQ(run({1, -2, 3, -4, 5, -6}, "y", 6), (std::vector<float>{-4, 5, -6, -1, -2, -3}));
}

TEST_F(Views, WhatLiesInAConcatenationIsNotOverwritten) {
  // The kernels of abs may write over their input; that lies in `both`, which is read later.
  const TensorId negative = op("negative", "neg", {x_});
  const TensorId absolute = op("absolute", "abs", {negative});
  const TensorId both = op("both", "concat", {negative, absolute}, R"({"axis": 1})");
  const TensorId more = op("more", "abs", {negative});
  output(op("sum", "add", {more, absolute}), "sum");
  output(op("y", "neg", {both}), "y");
  build();
  EXPECT_EQ(views_, Names{"both"});
  std::vector<float> sum(6);
  ASSERT_TRUE(context_->set_tensor("sum", sum.data()).ok());
  EXPECT_EQ(run({1, -2, 3, -4, 5, -6}, "y", 12), (std::vector<float>{1, -2, 3, -4, 5, -6, -1, -2, -3, -4, -5, -6}));
  EXPECT_EQ(sum, (std::vector<float>{2, 4, 6, 8, 10, 12}));
}

TEST_F(Views, ConcatenationsInConcatenations) {
  const TensorId a = op("a", "neg", {x_}), b = op("b", "abs", {x_}), c = op("c", "neg", {b});
  const TensorId ab = op("ab", "concat", {a, b}, R"({"axis": 1})");
  const TensorId all = op("all", "concat", {c, ab}, R"({"axis": 1})");
  const TensorId flat = op("flat", "reshape", {all}, R"({"shape": [2, 9]})");
  output(op("y", "neg", {flat}), "y");
  build();
  EXPECT_EQ(layers_, (Names{"a", "b", "c", "y"}));
  EXPECT_EQ(views_, (Names{"ab", "all", "flat"}));
  EXPECT_EQ(run({1, -2, 3, -4, 5, -6}, "y", 18),
            (std::vector<float>{1, 2, 3, 4, 5, 6, 1, -2, 3, -4, 5, -6, -1, -2, -3, -4, -5, -6}));
}

TEST_F(Views, WhatIsTheCallersIsCopied) {
  // An input, an output, and a part that is not contiguous.
  const TensorId negative = op("negative", "neg", {x_});
  const TensorId with_input = op("with_input", "concat", {x_, negative}, R"({"axis": 1})");
  const TensorId apart = op("apart", "concat", {negative, negative}, R"({"axis": 3})");
  output(op("y", "neg", {with_input}), "y");
  output(apart, "apart");
  build();
  EXPECT_EQ(views_, Names{});
  std::vector<float> apart_values(12);
  ASSERT_TRUE(context_->set_tensor("apart", apart_values.data()).ok());
  EXPECT_EQ(run({1, -2, 3, -4, 5, -6}, "y", 12), (std::vector<float>{-1, 2, -3, 4, -5, 6, 1, -2, 3, -4, 5, -6}));
  EXPECT_EQ(apart_values, (std::vector<float>{-1, 2, -3, -1, 2, -3, 4, -5, 6, 4, -5, 6}));
}

TEST_F(Views, FollowTheDimsOfAProfile) {
  network_ = Network::create(library_).value();
  x_ = network_.add_input("x", {2, 3}).value();
  ASSERT_TRUE(network_.set_profile("x", {1, 3}, {2, 3}, {4, 3}).ok());
  const TensorId a = op("a", "neg", {x_}), b = op("b", "abs", {x_});
  const TensorId all = op("all", "concat", {a, b}, R"({"axis": 0})");
  output(op("y", "neg", {all}), "y");
  build();
  EXPECT_EQ(views_, Names{"all"});
  for (std::int64_t n = 1; n <= 4; ++n) {
    ASSERT_TRUE(context_->set_input_dims("x", {n, 3}).ok());
    std::vector<float> x, expected;
    for (int i = 0; i < 3 * n; ++i) x.push_back(static_cast<float>(i % 2 == 0 ? i + 1 : -i));
    expected = x;
    for (const float value : x) expected.push_back(-std::fabs(value));
    EXPECT_EQ(run(x, "y", expected.size()), expected) << n;
  }
}

}  // namespace
}  // namespace tenon::e2e
