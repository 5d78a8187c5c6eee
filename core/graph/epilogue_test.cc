#include <gtest/gtest.h>

#include "core/graph/convert.h"
#include "core/graph/passes.h"
#include "core/graph/test_ops.h"

namespace tenon {
namespace {

class Epilogue : public testing::Test {
 protected:
  Graph graph_ = test::empty_graph();
  ValueId x_ = *graph_.add_input("x", TN_F32, make_dims({1, 1, 4, 4}));
  ValueId w_ = *graph_.add_constant("w", test::f32_tensor({1, 1, 1, 1}, {2}));
  ValueId conv_ = test::node(&graph_, "test.conv2d/1", "conv", {x_, w_});
};

TEST_F(Epilogue, ChainsCompose) {
  const ValueId two = *graph_.add_constant("two", test::f32_tensor({}, {2}));
  const ValueId relu = test::node(&graph_, "test.relu/1", "relu", {conv_});
  const ValueId sum = test::node(&graph_, "test.add/1", "plus", {two, relu});
  const ValueId leaky = test::node(&graph_, "test.leaky/1", "leaky", {sum});
  ASSERT_TRUE(graph_.add_output(leaky).ok());
  EXPECT_EQ(absorb_epilogues(&graph_, {}), 3);
  const Node& node = graph_.node(0);
  EXPECT_EQ(node.name, "conv+relu+plus+leaky");
  EXPECT_EQ(node.members, (std::vector<std::string>{"conv", "relu", "plus", "leaky"}));
  EXPECT_EQ(node.epilogues[0].text(), "t1=add(2,max(x0,0));max(t1,mul(t1,0.1))");
  EXPECT_EQ(node.outputs, std::vector<ValueId>{leaky});
  EXPECT_EQ(graph_.value(leaky).name, "leaky");
  EXPECT_EQ(graph_.remove_dead(), 0);
  EXPECT_TRUE(graph_.verify().ok()) << graph_.verify().message();
  EXPECT_NE(graph_.dump().find("epilogue 0 t1=add(2,max(x0,0));max(t1,mul(t1,0.1)) members conv relu plus leaky"),
            std::string::npos);
}

TEST_F(Epilogue, StaysApartWhereItMust) {
  const ValueId bias = *graph_.add_constant("bias", test::f32_tensor({1, 1, 4, 4}, std::vector<float>(16, 1)));
  // A second user, a pointwise producer, a graph output.
  test::node(&graph_, "test.add/1", "full", {conv_, bias});
  test::node(&graph_, "test.relu/1", "second", {conv_});
  const ValueId conv2 = test::node(&graph_, "test.conv2d/1", "conv2", {x_, w_});
  test::node(&graph_, "test.relu/1", "of_output", {conv2});
  ASSERT_TRUE(graph_.add_output(conv2).ok());
  const ValueId relu = test::node(&graph_, "test.relu/1", "of_input", {x_});
  test::node(&graph_, "test.leaky/1", "of_pointwise", {relu});
  const std::string before = graph_.dump();
  EXPECT_EQ(absorb_epilogues(&graph_, {}), 0);
  EXPECT_EQ(graph_.dump(), before);
}

TEST_F(Epilogue, ATensorBecomesAnOperand) {
  const ValueId conv2 = test::node(&graph_, "test.conv2d/1", "conv2", {x_, w_});
  const ValueId sum = test::node(&graph_, "test.add/1", "sum", {conv_, conv2});
  const ValueId again = test::node(&graph_, "test.add/1", "again", {x_, sum});
  const ValueId relu = test::node(&graph_, "test.relu/1", "relu", {again});
  ASSERT_TRUE(graph_.add_output(relu).ok());
  EXPECT_EQ(absorb_epilogues(&graph_, {}), 3);
  // The later of the two convolutions takes the sum and waits for the other.
  const Node& node = graph_.node(1);
  EXPECT_EQ(node.name, "conv2+sum+again+relu");
  EXPECT_EQ(node.epilogues[0].text(), "max(add(x2,add(x1,x0)),0)");
  EXPECT_EQ(node.inputs, (std::vector<ValueId>{x_, w_, kNoId, conv_, x_}));
  EXPECT_EQ(node.num_extra, 2u);
  EXPECT_EQ(node.op_inputs(), (std::vector<ValueId>{x_, w_, kNoId}));
  EXPECT_EQ(graph_.remove_dead(), 0);
  EXPECT_TRUE(graph_.verify().ok()) << graph_.verify().message();
  EXPECT_EQ(*graph_.topological_order(), (std::vector<NodeId>{0, 1}));
}

TEST_F(Epilogue, AConstantOfTheOutputsDimsBecomesAnOperand) {
  const ValueId bias = *graph_.add_constant("bias", test::f32_tensor({1, 1, 4, 4}, std::vector<float>(16, 1)));
  test::node(&graph_, "test.add/1", "full", {bias, conv_});
  EXPECT_EQ(absorb_epilogues(&graph_, {}), 1);
  EXPECT_EQ(graph_.node(0).epilogues[0].text(), "add(x1,x0)");
  EXPECT_EQ(graph_.node(0).inputs, (std::vector<ValueId>{x_, w_, kNoId, bias}));
}

TEST_F(Epilogue, OperandsOfOtherDimsAndTwiceTheSameStayApart) {
  const ValueId row = *graph_.add_input("row", TN_F32, make_dims({1}));
  test::node(&graph_, "test.add/1", "broadcast", {conv_, row});
  const ValueId conv2 = test::node(&graph_, "test.conv2d/1", "conv2", {x_, w_});
  test::node(&graph_, "test.add/1", "twice", {conv2, conv2});
  EXPECT_EQ(absorb_epilogues(&graph_, {}), 0);
}

TEST_F(Epilogue, TheFilterSeesTheWholeEpilogueAndDecides) {
  const ValueId relu = test::node(&graph_, "test.relu/1", "relu", {conv_});
  test::node(&graph_, "test.leaky/1", "leaky", {relu});
  std::vector<std::string> asked;
  const auto only_relu = [&](const Graph&, const Absorption& absorption) {
    EXPECT_EQ(absorption.producer, 0u);
    EXPECT_EQ(absorption.output, 0u);
    asked.push_back(absorption.epilogue.text());
    return asked.size() == 1;
  };
  EXPECT_EQ(absorb_epilogues(&graph_, only_relu), 1);
  EXPECT_EQ(asked, (std::vector<std::string>{"max(x0,0)", "t1=max(x0,0);max(t1,mul(t1,0.1))"}));
  EXPECT_EQ(graph_.node(0).name, "conv+relu");
}

TEST_F(Epilogue, Describe) {
  const NodeId relu = graph_.value(test::node(&graph_, "test.relu/1", "relu", {conv_})).producer;
  EXPECT_EQ(describe_expression(graph_, relu)->text(), "max(x0,0)");
  EXPECT_EQ(describe_expression(graph_, 0).status().message(),
            "node \"conv\" (test.conv2d/1): the op has no tenon.op.expression/1");
}

}  // namespace
}  // namespace tenon
