#include <gtest/gtest.h>

#include <random>

#include "core/graph/passes.h"
#include "core/graph/test_ops.h"

namespace tenon {
namespace {

std::string error(const std::string& text) {
  const Result<Pattern> pattern = Pattern::parse(text);
  return pattern.ok() ? "" : pattern.status().message();
}

TEST(PatternParse, ErrorsGiveTheColumn) {
  EXPECT_EQ(error(""), "pattern, column 1: expected an op id such as vendor.op/1, found the end");
  EXPECT_EQ(error("$x"), "pattern, column 1: expected an op id, because the root of a pattern is an op, found '$'");
  EXPECT_EQ(error("test.relu($x)"), "pattern, column 10: expected '/' and a version after the op's name, found '('");
  EXPECT_EQ(error("test.relu/($x)"), "pattern, column 11: expected the version number of the op id, found '('");
  EXPECT_EQ(error("test.relu/1"), "pattern, column 12: expected '(' with the op's inputs, found the end");
  EXPECT_EQ(error("a/1($)"), "pattern, column 6: expected a name after '$', found ')'");
  EXPECT_EQ(error("a/1($x:cons)"), "pattern, column 8: expected const, found 'c'");
  EXPECT_EQ(error("a/1($x:constant)"), "pattern, column 13: expected ',', '?' or ')' after const, found 'a'");
  EXPECT_EQ(error("a/1($x $y)"), "pattern, column 8: expected ',' or ')', found '$'");
  EXPECT_EQ(error("a/1($x,)"), "pattern, column 8: expected an op id such as vendor.op/1, found ')'");
  EXPECT_EQ(error("a/1($x))"), "pattern, column 8: expected the end of the pattern, found ')'");
  EXPECT_EQ(error("a/1|($x)"), "pattern, column 5: expected an op id such as vendor.op/1, found '('");
  EXPECT_EQ(error("a/1(\x01)"), "pattern, column 5: expected an op id such as vendor.op/1, found byte 0x01");
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "a/1(";
  EXPECT_NE(error(deep).find("expected at most 64 nested ops"), std::string::npos);
  std::string wide = "a/1($a";
  for (int i = 0; i < 300; ++i) wide += ",$a";
  EXPECT_NE(error(wide + ")").find("expected at most 256 terms"), std::string::npos);
}

TEST(PatternParse, NeverCrashes) {
  const std::string good = "test.relu/1|test.leaky/1( test.add/1(test.conv2d/1($x,$w:const,$b:const?)*,$c:const) )*";
  ASSERT_EQ(error(good), "");
  for (std::size_t size = 0; size < good.size() - 1; ++size) EXPECT_NE(error(good.substr(0, size)), "") << size;
  std::mt19937 random(1);
  const std::string alphabet = "ab./1|($,:const?)* \t\xff";
  for (int i = 0; i < 20000; ++i) {
    std::string text(random() % 40, ' ');
    for (char& c : text) {
      c = i % 2 == 0 ? static_cast<char>(random() & 0xFF) : alphabet[random() % alphabet.size()];
    }
    if (const std::string message = error(text); !message.empty()) {
      ASSERT_EQ(message.rfind("pattern, column ", 0), 0u);
    }
    std::string changed = good;
    changed[random() % changed.size()] = static_cast<char>(random() & 0xFF);
    error(changed);
  }
}

TEST(PatternParse, RootOps) {
  EXPECT_EQ(Pattern::parse("a.b/1|c-d/22($x)")->root_ops(), (std::vector<std::string>{"a.b/1", "c-d/22"}));
  EXPECT_TRUE(Pattern().root_ops().empty());
}

class PatternMatch : public testing::Test {
 protected:
  PatternMatch() {
    x_ = *graph_.add_input("x", TN_F32, make_dims({1, 1, 4, 4}));
    w_ = *graph_.add_constant("w", test::f32_tensor({1, 1, 1, 1}, {2}));
    b_ = *graph_.add_constant("b", test::f32_tensor({1}, {3}));
    conv_ = test::node(&graph_, "test.conv2d/1", "conv", {x_, w_});
    add_ = test::node(&graph_, "test.add/1", "add", {b_, conv_});
    relu_ = test::node(&graph_, "test.relu/1", "relu", {add_});
    EXPECT_TRUE(graph_.add_output(relu_).ok());
  }
  bool match(const char* text, ValueId root) {
    const Result<Pattern> pattern = Pattern::parse(text);
    EXPECT_TRUE(pattern.ok()) << pattern.status().message();
    match_ = Match();
    return pattern->match(graph_, graph_.value(root).producer, &match_);
  }
  Graph graph_ = test::empty_graph();
  Match match_;
  ValueId x_, w_, b_, conv_, add_, relu_;
};

TEST_F(PatternMatch, BindsNodesAndValues) {
  ASSERT_TRUE(match("test.relu/1(test.add/1(test.conv2d/1($x,$w:const),$b:const))", relu_));
  EXPECT_EQ(match_.nodes, (std::vector<NodeId>{2, 1, 0}));
  EXPECT_EQ(match_.values, (std::map<std::string, ValueId>{{"x", x_}, {"w", w_}, {"b", b_}}));
  EXPECT_FALSE(match("test.relu/1($x)", add_));
  EXPECT_FALSE(match("test.relu/1(test.sub/1($a,$b))", relu_));
  EXPECT_FALSE(match("test.relu/1($x:const)", relu_));
  EXPECT_TRUE(match("test.sub/1|test.relu/1(test.sub/1|test.add/1($a,$b))", relu_));
}

TEST_F(PatternMatch, InputsThatAreNotNamedMustBeAbsent) {
  EXPECT_FALSE(match("test.conv2d/1($x)", conv_));
  EXPECT_FALSE(match("test.conv2d/1($x,$w,$b)", conv_));
  ASSERT_TRUE(match("test.conv2d/1($x,$w,$b?)", conv_));
  EXPECT_EQ(match_.values.at("b"), kNoId);
  ASSERT_TRUE(match("test.conv2d/1($x,$w,test.relu/1($r)?)", conv_));
  EXPECT_EQ(match_.nodes[1], kNoId);
  EXPECT_EQ(match_.values.at("r"), kNoId);
  const ValueId biased = test::node(&graph_, "test.conv2d/1", "biased", {x_, w_, b_});
  EXPECT_FALSE(match("test.conv2d/1($x,$w)", biased));
  ASSERT_TRUE(match("test.conv2d/1($x,$w,$b?)", biased));
  EXPECT_EQ(match_.values.at("b"), b_);
}

TEST_F(PatternMatch, InnerValuesHaveOneUserUnlessStarred) {
  const char* strict = "test.relu/1(test.add/1($a,$b))";
  const char* loose = "test.relu/1(test.add/1($a,$b)*)";
  EXPECT_TRUE(match(strict, relu_));
  ASSERT_TRUE(graph_.add_output(add_).ok());
  EXPECT_FALSE(match(strict, relu_));
  EXPECT_TRUE(match(loose, relu_));
  graph_.clear_outputs();
  EXPECT_TRUE(match(strict, relu_));
  test::node(&graph_, "test.leaky/1", "other", {add_});
  EXPECT_FALSE(match(strict, relu_));
  EXPECT_TRUE(match(loose, relu_));
}

TEST_F(PatternMatch, CommutativeOpsMatchEitherOrderAndBacktrack) {
  EXPECT_TRUE(match("test.add/1(test.conv2d/1($x,$w),$b)", add_));
  EXPECT_TRUE(match("test.add/1($b,test.conv2d/1($x,$w))", add_));
  const ValueId sub = test::node(&graph_, "test.sub/1", "sub", {conv_, x_});
  EXPECT_FALSE(match("test.sub/1($a,test.conv2d/1($x,$w)*)", sub));
  // $p must be x: the inner add has to be taken in its second order, which shows at the outer one only.
  const ValueId inner = test::node(&graph_, "test.add/1", "inner", {relu_, x_});
  const ValueId outer = test::node(&graph_, "test.sub/1", "outer", {inner, x_});
  ASSERT_TRUE(match("test.sub/1(test.add/1($p,$q),$p)", outer));
  EXPECT_EQ(match_.values.at("p"), x_);
  EXPECT_EQ(match_.values.at("q"), relu_);
}

TEST_F(PatternMatch, SameNameSameValue) {
  const ValueId twice = test::node(&graph_, "test.add/1", "twice", {x_, x_});
  EXPECT_TRUE(match("test.add/1($a,$a)", twice));
  EXPECT_FALSE(match("test.add/1($a,$a)", add_));
  EXPECT_TRUE(match("test.add/1($a,$b)", twice));
}

TEST_F(PatternMatch, NodesWithEpiloguesDoNotMatch) {
  graph_.node(1).epilogues = {Expression({{TN_EX_INPUT, TN_F32, 0, 0, 0, 0, 0}})};
  EXPECT_FALSE(match("test.add/1($a,$b)", add_));
  EXPECT_FALSE(match("test.relu/1(test.add/1($a,$b))", relu_));
}

TEST_F(PatternMatch, HardPatternsEnd) {
  std::string text = "$v";
  ValueId value = x_;
  for (int i = 0; i < 40; ++i) {
    text = "test.add/1(" + text + ",$v" + (i == 0 ? ":const" : "") + ")";
    value = test::node(&graph_, "test.add/1", "", {value, x_});
  }
  EXPECT_FALSE(match(text.c_str(), value));
}

}  // namespace
}  // namespace tenon
