// The op is made up here as the plugin has it: numpy's broadcasting over all inputs.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/graph/convert.h"
#include "core/graph/passes.h"
#include "core/graph/test_ops.h"

namespace tenon {
namespace {

TnStatus infer_numpy(const TnHost* h, const TnOp*, TnInfer* q) {
  TnDims dims{};
  for (std::uint32_t n = 0; n < q->num_inputs; ++n) {
    const TnDims& own = q->inputs[n].dims;
    TnDims wider = dims.rank > own.rank ? dims : own;
    for (std::int32_t i = 1; i <= std::min(dims.rank, own.rank); ++i) {
      const std::int64_t a = dims.d[dims.rank - i], b = own.d[own.rank - i];
      if (a != b && a != 1 && b != 1) return TN_FAIL(h, TN_INVALID, "the shapes do not broadcast");
      wider.d[wider.rank - i] = a == 1 ? b : a;
    }
    dims = wider;
  }
  q->outputs[0].dtype = q->inputs[0].dtype;
  q->outputs[0].dims = dims;
  return TN_OK;
}

const TnParam kExpressionParam = {TN_HEADER(TnParam), TN_ATTR_STR, "expression", 1, nullptr, nullptr, ""};
const TnParam* const kExpressionParams[] = {&kExpressionParam};

/// The ops of test_ops.h, an addition that broadcasts, and tenon.pointwise/1 unless it is left out.
class Ops final : public OpSource {
 public:
  explicit Ops(bool with_pointwise) : with_pointwise_(with_pointwise) {
    add_ = *base_.find_op("test.add/1").op;
    add_.id = "test.wide_add/1";
    add_.infer = infer_numpy;
    all_ = *base_.find_op("test.concat/1").op;
    all_.id = "tenon.pointwise/1";
    all_.infer = infer_numpy;
    all_.params = kExpressionParams;
    all_.num_params = 1;
  }
  OpRef find_op(std::string_view id) const override {
    if (id == add_.id) return {&add_, &test::host(), nullptr};
    if (id == all_.id) return with_pointwise_ ? OpRef{&all_, &test::host(), nullptr} : OpRef{};
    return base_.find_op(id);
  }
  std::vector<std::string> op_ids() const override { return base_.op_ids(); }

 private:
  bool with_pointwise_;
  test::Ops base_;
  TnOp add_{};
  TnOp all_{};
};

class PointwiseChains : public testing::Test {
 protected:
  ValueId relu(const std::string& name, ValueId x) { return test::node(&graph_, "test.relu/1", name, {x}); }
  ValueId leaky(const std::string& name, ValueId x) { return test::node(&graph_, "test.leaky/1", name, {x}); }
  ValueId add(const std::string& name, ValueId a, ValueId b) {
    return test::node(&graph_, "test.wide_add/1", name, {a, b});
  }
  const Node& producer(ValueId value) const { return graph_.node(graph_.value(value).producer); }
  std::string expression_of(ValueId value) const {
    return std::get<std::string>(producer(value).attrs.values.at("expression"));
  }
  /// Fuses and checks the graph, which has `output` then.
  int fuse(ValueId output, const ChainFilter& eligible = {}) {
    EXPECT_TRUE(graph_.add_output(output).ok());
    const int merged = fuse_pointwise_chains(&graph_, eligible);
    EXPECT_TRUE(graph_.verify().ok()) << graph_.verify().message();
    return merged;
  }

  Graph graph_ = Graph(std::make_shared<const Ops>(true));
  ValueId x_ = *graph_.add_input("x", TN_F32, make_dims({2, 3, 4}));
  ValueId z_ = *graph_.add_input("z", TN_F32, make_dims({2, 3, 4}));
};

TEST_F(PointwiseChains, AChainIsOneNode) {
  const ValueId y = leaky("leaky", add("plus", relu("relu", x_), z_));
  EXPECT_EQ(fuse(y), 2);
  EXPECT_EQ(producer(y).op_id(), "tenon.pointwise/1");
  EXPECT_EQ(producer(y).name, "relu+plus+leaky");
  EXPECT_EQ(producer(y).members, (std::vector<std::string>{"relu", "plus", "leaky"}));
  EXPECT_EQ(producer(y).inputs, (std::vector<ValueId>{x_, z_}));
  EXPECT_EQ(expression_of(y), "t1=add(max(x0,0),x1);max(t1,mul(t1,0.1))");
  EXPECT_EQ(graph_.value(y).name, "leaky");
  EXPECT_EQ(graph_.topological_order()->size(), 1u);
  EXPECT_EQ(fuse_pointwise_chains(&graph_, {}), 0);  // nothing is left to do
}

TEST_F(PointwiseChains, AValueWithSeveralReadersInsideIsComputedOnce) {
  const ValueId sum = add("sum", x_, z_);
  const ValueId y = add("y", add("twice", relu("relu", sum), sum), sum);
  EXPECT_EQ(fuse(y), 3);
  EXPECT_EQ(expression_of(y), "t1=add(x0,x1);add(add(max(t1,0),t1),t1)");
  EXPECT_EQ(producer(y).members, (std::vector<std::string>{"sum", "relu", "twice", "y"}));
}

TEST_F(PointwiseChains, ConstantsOfOneElementBecomePartOfIt) {
  const ValueId two = *graph_.add_constant("two", test::f32_tensor({1, 1}, {2}));
  const ValueId all = *graph_.add_constant("all", test::f32_tensor({4}, {1, 2, 3, 4}));
  const ValueId y = relu("relu", add("b", add("a", x_, two), all));
  EXPECT_EQ(fuse(y), 2);
  EXPECT_EQ(expression_of(y), "max(add(add(x0,2),x1),0)");
  EXPECT_EQ(producer(y).inputs, (std::vector<ValueId>{x_, all}));
  EXPECT_FALSE(graph_.value(two).alive);
}

TEST_F(PointwiseChains, AConstantThatGivesTheRankStays) {
  const ValueId v = *graph_.add_input("v", TN_F32, make_dims({4}));
  const ValueId two = *graph_.add_constant("two", test::f32_tensor({1, 1}, {2}));
  const ValueId y = relu("relu", add("a", v, two));
  EXPECT_EQ(fuse(y), 1);
  EXPECT_EQ(expression_of(y), "max(add(x0,x1),0)");
  EXPECT_EQ(graph_.value(y).dims.rank, 2);
}

TEST_F(PointwiseChains, DimsThatVaryAreInferredAgain) {
  const ValueId row = *graph_.add_input("row", TN_F32, make_dims({1, 4}));
  const ValueId y = relu("relu", add("plus", leaky("leaky", x_), row));
  ASSERT_TRUE(graph_.set_profile(x_, {make_dims({1, 3, 4}), make_dims({9, 3, 4})}).ok());
  EXPECT_EQ(fuse(y), 2);
  ASSERT_TRUE(graph_.set_input_dims({{x_, make_dims({7, 3, 4})}, {row, make_dims({3, 1})}}).ok());
  EXPECT_EQ(dims_text(graph_.value(y).dims), dims_text(make_dims({7, 3, 4})));
}

TEST_F(PointwiseChains, WhatIsRepeatedAfterwardsStaysApart) {
  const ValueId row = *graph_.add_input("row", TN_F32, make_dims({4}));
  const ValueId y = relu("relu", add("plus", x_, leaky("leaky2", leaky("leaky1", row))));
  EXPECT_EQ(fuse(y), 2);
  EXPECT_EQ(producer(y).name, "plus+relu");
  EXPECT_EQ(producer(producer(y).inputs[1]).name, "leaky1+leaky2");
}

TEST_F(PointwiseChains, StaysApartWhereItMust) {
  // A reader elsewhere, a graph output, another dtype, a node that is not pointwise, contents that are known.
  const ValueId read_twice = relu("read_twice", x_);
  test::node(&graph_, "test.identity/1", "elsewhere_not_described", {read_twice});
  const ValueId a = leaky("a", read_twice);
  const ValueId seen = relu("seen", z_);
  ASSERT_TRUE(graph_.add_output(seen).ok());
  const ValueId b = leaky("b", seen);
  const ValueId integers = *graph_.add_input("integers", TN_I64, make_dims({2}));
  const ValueId c = relu("c2", relu("c1", integers));
  const ValueId d = relu("d", test::node(&graph_, "test.random/1", "random", {x_}));
  const ValueId known = *graph_.add_constant("known", test::f32_tensor({2}, {1, -1}));
  const ValueId e = relu("e2", relu("e1", known));
  for (const ValueId output : {a, b, c, d, e}) ASSERT_TRUE(graph_.add_output(output).ok());
  ASSERT_TRUE(graph_.add_output(graph_.find_value("elsewhere_not_described")).ok());
  const std::string before = graph_.dump();
  EXPECT_EQ(fuse_pointwise_chains(&graph_, {}), 0);
  EXPECT_EQ(graph_.dump(), before);
}

TEST_F(PointwiseChains, LongChainsAndManyOperandsAreCut) {
  ValueId y = x_;
  for (int n = 0; n < 12; ++n)
    y = add("a" + std::to_string(n), y, *graph_.add_input("i" + std::to_string(n), TN_F32, make_dims({2, 3, 4})));
  for (int n = 0; n < 40; ++n) y = leaky("l" + std::to_string(n), y);
  const int merged = fuse(y);
  const std::vector<NodeId> order = *graph_.topological_order();
  EXPECT_EQ(static_cast<int>(order.size()), 52 - merged);
  EXPECT_GT(merged, 40);
  for (const NodeId id : order) EXPECT_LE(graph_.node(id).inputs.size(), 8u);
}

TEST_F(PointwiseChains, TheFilterSeesTheNodeAndDecides) {
  const ValueId y = leaky("leaky", relu("relu", x_));
  std::string seen;
  ASSERT_TRUE(graph_.add_output(y).ok());
  const std::string before = graph_.dump();
  const auto refuse = [&](const Graph& graph, NodeId id) {
    seen = graph.node(id).op_id() + " " + std::get<std::string>(graph.node(id).attrs.values.at("expression"));
    return false;
  };
  EXPECT_EQ(fuse_pointwise_chains(&graph_, refuse), 0);
  EXPECT_EQ(seen, "tenon.pointwise/1 t1=max(x0,0);max(t1,mul(t1,0.1))");
  EXPECT_EQ(graph_.dump(), before);
}

TEST_F(PointwiseChains, WithoutTheOpNothingHappens) {
  graph_ = Graph(std::make_shared<const Ops>(false));
  x_ = *graph_.add_input("x", TN_F32, make_dims({2}));
  EXPECT_EQ(fuse(leaky("leaky", relu("relu", x_))), 0);
}

}  // namespace
}  // namespace tenon
