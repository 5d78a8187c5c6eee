#include "core/graph/graph.h"

#include <gtest/gtest.h>

#include "core/graph/test_ops.h"

namespace tenon {
namespace {

using test::f32_tensor;

class GraphTest : public testing::Test {
 protected:
  Graph graph_ = test::empty_graph();

  ValueId input(const char* name, const std::vector<std::int64_t>& dims) {
    return *graph_.add_input(name, TN_F32, make_dims(dims));
  }
  ValueId weights() { return *graph_.add_constant("w", f32_tensor({4, 3, 3, 3}, std::vector<float>(108, 0.5f))); }
  std::string error(const char* op, std::vector<ValueId> inputs, Attrs attrs = {}, std::uint32_t num_outputs = 1,
                    const std::vector<std::string>& names = {}) {
    const std::string before = graph_.dump();
    const Result<NodeId> node = graph_.add_node(op, "n", std::move(attrs), std::move(inputs), num_outputs, names);
    EXPECT_EQ(graph_.dump(), before) << "a failing write changed the graph";
    return node.ok() ? "" : node.status().message();
  }
  static Attrs how(const char* text) {
    Attrs attrs;
    attrs.values["how"] = std::string(text);
    return attrs;
  }
};

TEST_F(GraphTest, BuildsInfersAndNames) {
  const ValueId x = input("x", {1, 3, 8, 8});
  Attrs attrs;
  attrs.values["stride"] = std::int64_t{2};
  const NodeId conv = *graph_.add_node("test.conv2d/1", "conv1", attrs, {x, weights()}, 1);
  EXPECT_EQ(graph_.node(conv).inputs.size(), 3u);
  const ValueId y = graph_.node(conv).outputs[0];
  EXPECT_EQ(dims_text(graph_.value(y).dims), "[1,4,3,3]");
  EXPECT_EQ(graph_.value(y).name, "conv1");
  const NodeId relu = *graph_.add_node("test.relu/1", "", {}, {y}, 1);
  EXPECT_EQ(graph_.node(relu).name, "relu_1");
  EXPECT_EQ(graph_.node(relu).members, std::vector<std::string>{"relu_1"});
  const NodeId split = *graph_.add_node("test.split/1", "cut", {}, {x}, 2, {"", "second"});
  EXPECT_EQ(graph_.value(graph_.node(split).outputs[0]).name, "cut:0");
  EXPECT_EQ(graph_.value(graph_.node(split).outputs[1]).name, "second");
  ASSERT_TRUE(graph_.add_output(graph_.node(relu).outputs[0]).ok());
  EXPECT_EQ(graph_.users(y), std::vector<NodeId>{relu});
  EXPECT_EQ(graph_.find_value("conv1"), y);
  EXPECT_EQ(graph_.find_node("conv1"), conv);
  EXPECT_EQ(graph_.find_node("conv2"), kNoId);
  EXPECT_TRUE(graph_.verify().ok()) << graph_.verify().message();
  // A value may already have the name that a node would give its output.
  EXPECT_EQ(graph_.value(graph_.node(*graph_.add_node("test.relu/1", "x", {}, {x}, 1)).outputs[0]).name, "x:2");
}

// Every node of a model looks names up; one by one that took seconds for 10000 nodes.
TEST_F(GraphTest, NamesAreFoundWhileAGraphIsFilled) {
  const Graph& graph = graph_;  // reading through it leaves the index of names alone
  ValueId last = input("x", {2});
  for (int n = 0; n < 10000; ++n) {
    const std::string name = "n" + std::to_string(n);
    last = graph.node(*graph_.add_node("test.relu/1", name, {}, {last}, 1)).outputs[0];
  }
  EXPECT_EQ(graph.find_value("n9999"), last);
  graph_.rename(last, "end");
  EXPECT_EQ(graph.find_value("n9999"), kNoId);
  EXPECT_EQ(graph.find_value("end"), last);
  EXPECT_EQ(graph.value(graph.find_value("n7")).producer, graph.find_node("n7"));
  EXPECT_FALSE(graph_.add_node("test.relu/1", "n7", {}, {last}, 1).ok());
  EXPECT_FALSE(graph_.add_node("test.relu/1", "new", {}, {last}, 1, {"n8"}).ok());
  EXPECT_FALSE(graph_.add_input("end", TN_F32, make_dims({2})).ok());
  EXPECT_TRUE(graph_.add_node("test.relu/1", "new", {}, {last}, 1, {"n9999"}).ok());
  // From here on names are searched for.
  graph_.value(last).name = "other";
  EXPECT_EQ(graph.find_value("end"), kNoId);
  EXPECT_EQ(graph.find_value("other"), last);
  EXPECT_FALSE(graph_.add_input("n8", TN_F32, make_dims({2})).ok());
}

TEST_F(GraphTest, DumpIsStable) {
  const ValueId x = input("x", {2});
  const ValueId c = *graph_.add_constant("", f32_tensor({1}, {1.0f}));
  const ValueId dead = test::node(&graph_, "test.relu/1", "dead", {x});
  const ValueId sum = test::node(&graph_, "test.add/1", "my sum", {x, c});
  const ValueId y = test::node(&graph_, "test.leaky/1", "act", {sum});
  ASSERT_TRUE(graph_.add_output(y).ok());
  graph_.set_metadata("labels", "a\nb");
  ASSERT_TRUE(graph_.remove_node(graph_.value(dead).producer).ok());
  const std::string text = graph_.dump();
  const std::size_t hash = text.find("0x");
  ASSERT_NE(hash, std::string::npos);
  EXPECT_EQ(text.substr(0, hash) + text.substr(hash + 34),
            "input x: f32[2]\n"
            "const const1: f32[1] \n"
            "node \"my sum\" = test.add/1(x, const1) {} -> \"my sum\": f32[2]\n"
            "node act = test.leaky/1(\"my sum\") {alpha=0.1} -> act: f32[2]\n"
            "output act\n"
            "metadata labels \"a\\nb\"\n");
  const Graph copy = graph_;
  EXPECT_EQ(copy.dump(), text);
}

TEST_F(GraphTest, ErrorsOfInputsAndConstants) {
  input("x", {2});
  EXPECT_EQ(graph_.add_input("x", TN_F32, make_dims({1})).status().message(),
            "graph input \"x\": a value with this name exists already");
  EXPECT_EQ(graph_.add_input("", TN_F32, make_dims({1})).status().message(), "a graph input needs a name");
  EXPECT_EQ(graph_.add_input("y", 77, make_dims({1})).status().message(), "graph input \"y\": dtype77 is not a dtype");
  EXPECT_EQ(graph_.add_input("y", TN_F32, make_dims({-1})).status().message(),
            "graph input \"y\": dims [-1] have the negative extent -1 at axis 0");
  EXPECT_EQ(graph_.add_constant("x", f32_tensor({1}, {1})).status().code(), Code::kConflict);
  EXPECT_EQ(graph_.add_constant("c", nullptr).status().message(), "constant \"c\" has no contents");
  EXPECT_EQ(graph_.add_output(17).message(), "graph output: there is no value 17");
  ASSERT_TRUE(graph_.add_output(0).ok());
  EXPECT_EQ(graph_.add_output(0).message(), "value \"x\" is a graph output already");
}

TEST_F(GraphTest, ErrorsOfNodes) {
  const ValueId x = input("x", {1, 3, 8, 8});
  const ValueId w = weights();
  EXPECT_EQ(error("test.conv2/1", {x}),
            "node \"n\" (test.conv2/1): no loaded plugin has this op; did you mean "
            "test.conv2d/1?");
  EXPECT_EQ(error("other.thing.far/9", {x}),
            "node \"n\" (other.thing.far/9): no loaded plugin has this op; load the "
            "plugin that brings it");
  EXPECT_EQ(error("test.conv2d/1", {x}),
            "node \"n\" (test.conv2d/1): input 1 (\"weights\") is absent, but the op "
            "requires it");
  EXPECT_EQ(error("test.conv2d/1", {kNoId, w}),
            "node \"n\" (test.conv2d/1): input 0 (\"x\") is absent, but the op "
            "requires it");
  EXPECT_EQ(error("test.conv2d/1", {x, x}),
            "node \"n\" (test.conv2d/1): input 1 (\"weights\") must be constant at "
            "build time, but \"x\" f32[1,3,8,8] is computed or fed at run time");
  EXPECT_EQ(error("test.relu/1", {x, x}), "node \"n\" (test.relu/1): 2 inputs were given; the op has 1");
  EXPECT_EQ(error("test.relu/1", {99}), "node \"n\" (test.relu/1): input 0 (\"x\"): there is no value 99");
  EXPECT_EQ(error("test.concat/1", {}),
            "node \"n\" (test.concat/1): input 0 (\"parts\") is absent, but the op "
            "requires it");
  EXPECT_EQ(error("test.relu/1", {x}, {}, 2), "node \"n\" (test.relu/1): 2 outputs were asked for; the op has 1");
  EXPECT_EQ(error("test.split/1", {x}, {}, 0),
            "node \"n\" (test.split/1): 0 outputs were asked for; the op has 1 or "
            "more");
  Attrs stride;
  stride.values["stride"] = std::int64_t{0};
  EXPECT_EQ(error("test.conv2d/1", {x, w}, stride),
            "node \"n\" (test.conv2d/1): attribute \"stride\": 0 is outside [1,)");
  EXPECT_EQ(error("test.matmul/1", {x, w}), "node \"n\" (test.matmul/1): infer: inner extents differ");
  EXPECT_EQ(error("test.relu/1", {x}, {}, 1, {"w"}),
            "node \"n\" (test.relu/1): output 0: a value \"w\" exists already");
  EXPECT_EQ(error("test.split/1", {x}, {}, 2, {"a", "a"}),
            "node \"n\" (test.split/1): output 1: a value \"a\" exists already");
  EXPECT_EQ(error("test.relu/1", {x}, {}, 1, {"a", "b"}), "node \"n\" (test.relu/1): 2 output names for 1 outputs");
  ASSERT_NE(test::node(&graph_, "test.relu/1", "n", {x}), kNoId);
  EXPECT_EQ(error("test.relu/1", {x}),
            "node \"n\" (test.relu/1): a node with this name exists already; give it another "
            "name");
}

TEST_F(GraphTest, MisbehavingShapeRules) {
  const ValueId x = input("x", {1});
  EXPECT_EQ(error("test.bad/1", {x}, how("negative")),
            "node \"n\" (test.bad/1): infer of the op's plugin gave output 0 bad dims: dims [2,-3] have the negative "
            "extent -3 at axis 1; that is a fault of the plugin");
  EXPECT_EQ(error("test.bad/1", {x}, how("rank")),
            "node \"n\" (test.bad/1): infer of the op's plugin gave output 0 bad dims: dims have rank 9; expected 0 to "
            "8; that is a fault of the plugin");
  EXPECT_EQ(error("test.bad/1", {x}, how("dtype")),
            "node \"n\" (test.bad/1): infer of the op's plugin gave output 0 no dtype; that is a fault of the plugin");
  EXPECT_EQ(
      error("test.bad/1", {x}, how("number")),
      "node \"n\" (test.bad/1): infer of the op's plugin gave output 0 the unknown dtype77; that is a fault of the "
      "plugin");
  EXPECT_NE(error("test.bad/1", {x}, how("silent")).find("gave no reason"), std::string::npos);
  EXPECT_EQ(error("test.fill/1", {x}), "node \"n\" (test.fill/1): infer: the shape must be known");
}

TEST_F(GraphTest, InferSeesConstants) {
  const ValueId shape = *graph_.add_constant("shape", test::i64_tensor({2, 5}));
  const ValueId y = test::node(&graph_, "test.fill/1", "fill", {shape});
  EXPECT_EQ(dims_text(graph_.value(y).dims), "[2,5]");
  graph_.value(y).dims = make_dims({2, 6});
  EXPECT_EQ(graph_.infer(0, false).message(),
            "node \"fill\" (test.fill/1): output \"fill\" f32[2,6] is inferred as f32[2,5]");
  EXPECT_FALSE(graph_.verify().ok());
  ASSERT_TRUE(graph_.infer(0, true).ok());
  EXPECT_TRUE(graph_.verify().ok());
  EXPECT_EQ(graph_.infer(5, true).message(), "infer: there is no node 5");
}

TEST_F(GraphTest, SmallValuesAreKnownAtOnce) {
  const ValueId x = input("x", {2, 3});
  // Of its first input only the dims matter, so it is known although x is not.
  const ValueId shape = test::node(&graph_, "test.shape/1", "shape", {x});
  const ValueId twice = test::node(&graph_, "test.add/1", "twice", {shape, shape});
  const ValueId y = test::node(&graph_, "test.fill/1", "fill", {twice});
  EXPECT_EQ(dims_text(graph_.value(y).dims), "[4,6]");
  EXPECT_NE(graph_.value(twice).producer, kNoId);
  EXPECT_EQ(graph_.value(test::node(&graph_, "test.relu/1", "of_x", {x})).constant, nullptr);
  EXPECT_EQ(graph_.value(test::node(&graph_, "test.random/1", "noise", {twice})).constant, nullptr);
  // 65,536 bytes are the most.
  const auto side = [&](std::int64_t size) {
    const ValueId dims = *graph_.add_constant("", test::i64_tensor({128, size}));
    return test::node(&graph_, "test.fill/1", "", {dims});
  };
  EXPECT_NE(graph_.value(side(128)).constant, nullptr);
  EXPECT_EQ(graph_.value(side(129)).constant, nullptr);

  // Other dims of the input: what followed from them is worked out again.
  graph_.value(x).dims = make_dims({5});
  for (NodeId node = 0; node < 3; ++node) ASSERT_TRUE(graph_.infer(node, true).ok());
  EXPECT_EQ(dims_text(graph_.value(y).dims), "[10]");
}

TEST_F(GraphTest, ReplaceKeepsOutputNames) {
  const ValueId x = input("x", {2});
  const ValueId a = test::node(&graph_, "test.relu/1", "a", {x});
  const ValueId b = test::node(&graph_, "test.identity/1", "b", {a});
  const ValueId c = test::node(&graph_, "test.relu/1", "c", {b});
  ASSERT_TRUE(graph_.add_output(b).ok());
  ASSERT_TRUE(graph_.replace(b, a).ok());
  EXPECT_EQ(graph_.outputs(), std::vector<ValueId>{a});
  EXPECT_EQ(graph_.value(a).name, "b");
  EXPECT_EQ(graph_.node(graph_.value(c).producer).inputs[0], a);
  EXPECT_TRUE(graph_.verify().ok());
  EXPECT_EQ(graph_.remove_dead(), 2);
  EXPECT_TRUE(graph_.verify().ok());
}

TEST_F(GraphTest, ReplaceErrors) {
  const ValueId x = input("x", {2});
  const ValueId z = input("z", {3});
  const ValueId a = test::node(&graph_, "test.relu/1", "a", {x});
  const ValueId b = test::node(&graph_, "test.relu/1", "b", {a});
  ASSERT_TRUE(graph_.add_output(a).ok());
  ASSERT_TRUE(graph_.add_output(b).ok());
  const std::string before = graph_.dump();
  EXPECT_EQ(graph_.replace(a, z).message(), "replace \"a\" by \"z\": expected f32[2], found f32[3]");
  EXPECT_EQ(graph_.replace(a, b).message(),
            "replace \"a\" by \"b\": the new value is computed from the old one, so the graph would have a cycle");
  EXPECT_EQ(graph_.replace(a, x).message(),
            "replace \"a\" by \"x\": both are outputs or inputs of the graph and keep "
            "their names; leave a node between them");
  EXPECT_EQ(graph_.replace(b, a).code(), Code::kInvalid);
  EXPECT_EQ(graph_.replace(b, 99).message(), "replace: there is no value 99");
  EXPECT_EQ(graph_.dump(), before);
}

TEST_F(GraphTest, RemoveNode) {
  const ValueId x = input("x", {2});
  const ValueId a = test::node(&graph_, "test.relu/1", "a", {x});
  const ValueId b = test::node(&graph_, "test.relu/1", "b", {a});
  EXPECT_EQ(graph_.remove_node(0).message(), "node \"a\" cannot be removed: its output \"a\" is read by node \"b\"");
  ASSERT_TRUE(graph_.add_output(b).ok());
  EXPECT_EQ(graph_.remove_node(1).message(), "node \"b\" cannot be removed: its output \"b\" is a graph output");
  graph_.clear_outputs();
  ASSERT_TRUE(graph_.remove_node(1).ok());
  EXPECT_EQ(graph_.remove_node(1).message(), "remove: there is no node 1");
  EXPECT_EQ(graph_.add_output(b).message(), "graph output: value \"b\" was removed");
  // The name is free again.
  EXPECT_NE(test::node(&graph_, "test.relu/1", "b", {a}), kNoId);
}

TEST_F(GraphTest, TopologicalOrderAndCycles) {
  const ValueId x = input("x", {2});
  const ValueId a = test::node(&graph_, "test.relu/1", "a", {x});
  test::node(&graph_, "test.relu/1", "b", {x});
  const ValueId c = test::node(&graph_, "test.add/1", "c", {a, x});
  EXPECT_EQ(*graph_.topological_order(), (std::vector<NodeId>{0, 1, 2}));
  graph_.node(0).inputs[0] = graph_.node(1).outputs[0];
  EXPECT_EQ(*graph_.topological_order(), (std::vector<NodeId>{1, 0, 2}));
  graph_.node(0).inputs[0] = c;
  EXPECT_EQ(graph_.topological_order().status().message(), "the graph has a cycle through, or before, the nodes a, c");
  EXPECT_FALSE(graph_.verify().ok());
  EXPECT_NE(graph_.dump().find("error the graph has a cycle"), std::string::npos);
}

TEST_F(GraphTest, VerifyFindsDamage) {
  const ValueId x = input("x", {2});
  const ValueId a = test::node(&graph_, "test.relu/1", "a", {x});
  const Graph good = graph_;
  ASSERT_TRUE(good.verify().ok());
  const auto broken = [&](auto change) {
    Graph graph = good;
    change(graph);
    return graph.verify().message();
  };
  EXPECT_EQ(broken([&](Graph& g) { g.value(a).name = "x"; }), "value \"x\": the name occurs twice");
  EXPECT_EQ(broken([&](Graph& g) { g.value(a).producer = kNoId; }),
            "value \"a\" has neither producer nor contents and is no graph input");
  EXPECT_EQ(broken([&](Graph& g) { g.value(a).producer = 7; }),
            "value \"a\": its producer does not have it as that output");
  EXPECT_EQ(broken([&](Graph& g) { g.set_constant(a, f32_tensor({1}, {1})); }),
            "value \"a\" f32[2] has contents of f32[1]");
  EXPECT_EQ(broken([&](Graph& g) { g.node(0).inputs = {55}; }),
            "node \"a\" (test.relu/1): input 0 (\"x\"): there is no value 55");
  EXPECT_EQ(broken([&](Graph& g) { g.node(0).epilogues.resize(2); }),
            "node \"a\" (test.relu/1) has 2 epilogues for 1 outputs");
  EXPECT_EQ(broken([&](Graph& g) {
              g.node(0).epilogues = {Expression({{TN_EX_INPUT, TN_F32, 0, 0, 0, 3, 0}})};
            }),
            "node \"a\" (test.relu/1): epilogue: expression: step 0 (input): operand 3 of 1");
  EXPECT_EQ(broken([&](Graph& g) { g.node(0).members.clear(); }), "node \"a\" (test.relu/1) has no members");
}

TEST_F(GraphTest, RollbackRestoresEverything) {
  const ValueId x = input("x", {2});
  const ValueId a = test::node(&graph_, "test.relu/1", "a", {x});
  const ValueId b = test::node(&graph_, "test.relu/1", "b", {a});
  test::node(&graph_, "test.add/1", "c", {b, b});
  ASSERT_TRUE(graph_.add_output(b).ok());
  graph_.set_metadata("k", "1");
  const std::string before = graph_.dump();
  graph_.begin_rewrite({1});
  // "b" is about to go, so its names may be taken.
  const Result<NodeId> fresh = graph_.add_node("test.leaky/1", "b", {}, {a}, 1, {"b"});
  ASSERT_TRUE(fresh.ok()) << fresh.status().message();
  ASSERT_TRUE(graph_.replace(b, graph_.node(*fresh).outputs[0]).ok());
  ASSERT_TRUE(graph_.add_input("more", TN_F32, make_dims({1})).ok());
  graph_.set_metadata("k", "2");
  EXPECT_EQ(graph_.add_node("test.relu/1", "a", {}, {x}, 1).status().code(), Code::kConflict);
  EXPECT_NE(graph_.dump(), before);
  graph_.rollback_rewrite();
  EXPECT_EQ(graph_.dump(), before);
  EXPECT_TRUE(graph_.verify().ok());
}

}  // namespace
}  // namespace tenon
