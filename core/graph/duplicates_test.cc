#include <gtest/gtest.h>

#include "core/graph/passes.h"
#include "core/graph/test_ops.h"

namespace tenon {
namespace {

class Duplicates : public testing::Test {
 protected:
  Graph graph_ = test::empty_graph();
  ValueId x_ = *graph_.add_input("x", TN_F32, make_dims({1, 1, 4, 4}));
  ValueId w_ = *graph_.add_constant("w", test::f32_tensor({1, 1, 1, 1}, {2}));
  ValueId op(const char* id, const char* name, std::vector<ValueId> inputs) {
    return test::node(&graph_, id, name, std::move(inputs));
  }
};

TEST_F(Duplicates, ChainsOfThemGo) {
  const ValueId a = op("test.relu/1", "a", {op("test.conv2d/1", "conv_a", {x_, w_})});
  const ValueId b = op("test.relu/1", "b", {op("test.conv2d/1", "conv_b", {x_, w_})});
  const ValueId sum = op("test.add/1", "sum", {a, b});
  ASSERT_TRUE(graph_.add_output(sum).ok());
  EXPECT_EQ(*merge_duplicates(&graph_, false), 2);
  EXPECT_TRUE(graph_.verify().ok()) << graph_.verify().message();
  EXPECT_EQ(graph_.find_node("conv_b"), kNoId);
  EXPECT_EQ(graph_.node(graph_.find_node("sum")).inputs, (std::vector<ValueId>{a, a}));
}

TEST_F(Duplicates, OthersStay) {
  // Another operand, another op, another order of inputs.
  const ValueId v = *graph_.add_constant("v", test::f32_tensor({1, 1, 1, 1}, {3}));
  const ValueId a = op("test.conv2d/1", "a", {x_, w_}), b = op("test.conv2d/1", "b", {x_, v});
  op("test.relu/1", "relu", {a});
  op("test.leaky/1", "leaky", {a});
  op("test.add/1", "ab", {a, b});
  op("test.add/1", "ba", {b, a});
  EXPECT_EQ(*merge_duplicates(&graph_, false), 0);
}

TEST_F(Duplicates, OutputsKeepTheirNames) {
  const ValueId a = op("test.relu/1", "a", {x_}), b = op("test.relu/1", "b", {x_});
  ASSERT_TRUE(graph_.add_output(a).ok());
  ASSERT_TRUE(graph_.add_output(b).ok());
  EXPECT_EQ(*merge_duplicates(&graph_, false), 0);
  EXPECT_EQ(graph_.outputs(), (std::vector<ValueId>{a, b}));
}

TEST_F(Duplicates, LayersWithAChoiceOfTheirOwnStayWhereTheCacheIsEditable) {
  op("test.conv2d/1", "a", {x_, w_});
  op("test.conv2d/1", "b", {x_, w_});
  EXPECT_EQ(*merge_duplicates(&graph_, true), 0);
  EXPECT_EQ(*merge_duplicates(&graph_, false), 1);
}

}  // namespace
}  // namespace tenon
