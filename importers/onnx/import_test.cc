// Small models from messages to numbers: names, functions, graphs inside nodes, sequences, custom operators, options.
// Expected values are worked out by hand from https://onnx.ai/onnx/operators.
#include <algorithm>
#include <tenon/sdk/plugin.hpp>

#include "importers/onnx/testing/import_testing.h"

namespace tenon::onnx {
namespace {

using OnnxImport = ImportTest;

TEST_F(OnnxImport, NamesAreTheModels) {
  pb::ModelProto model = relu_model();
  model.set_producer_name("hand");
  model.set_producer_version("1.2");
  pb::GraphProto* graph = model.mutable_graph();
  add_floats(graph, "w", {3}, {1, 2, 3});
  add_node(graph, "Add", {"y", "w"}, {"z"});  // a node without a name is called by operator and output
  add_ends(graph, {}, {"z"});
  import(model);
  EXPECT_EQ(names("inputs"), Names{"x"});
  EXPECT_EQ(names("outputs"), (Names{"y", "z"}));
  EXPECT_EQ(names("nodes"), (Names{"act", "Add_z"}));
  EXPECT_EQ(*network_->metadata("model"), "ONNX opset 17, IR 8, made by hand 1.2\noperators: Add 1 Relu 1");
  auto values = run({{-1, 1, 2, -3, 4, -5}});
  EXPECT_EQ(values["y"].values, (Floats{0, 1, 2, 0, 4, 0}));
  EXPECT_EQ(values["z"].values, (Floats{1, 3, 5, 1, 6, 3}));
  EXPECT_EQ(values["z"].dims, (Sizes{2, 3}));
}

TEST_F(OnnxImport, InitializersOfAllForms) {
  pb::ModelProto model = empty_model();
  pb::GraphProto* graph = model.mutable_graph();
  add_input(graph, "x", {2});
  const Floats raw = {3, 4};
  add_tensor(graph, "raw", {2}, TN_F32)->set_raw_data(raw.data(), 8);
  add_floats(graph, "listed", {2}, {10, 20});
  add_floats(graph, "zero", {0}, {});
  add_node(graph, "Add", {"x", "raw"}, {"a"});
  add_node(graph, "Add", {"a", "listed"}, {"b"});
  add_ends(graph, {}, {"b"});
  import(model);
  EXPECT_EQ(run({{1, 2}})["b"].values, (Floats{14, 26}));
}

TEST_F(OnnxImport, AnInputWithAnInitializerIsAConstant) {
  pb::ModelProto model = relu_model();  // models before IR 4 list initializers as inputs too
  add_input(model.mutable_graph(), "w", {3});
  add_floats(model.mutable_graph(), "w", {3}, {1, 2, 3});
  add_node(model.mutable_graph(), "Add", {"y", "w"}, {"z"});
  add_ends(model.mutable_graph(), {}, {"z"});
  import(model);
  EXPECT_EQ(names("inputs"), Names{"x"});
}

TEST_F(OnnxImport, OutputsThatAreInputsOrTwiceTheSame) {
  pb::ModelProto model = relu_model();
  add_node(model.mutable_graph(), "Identity", {"y"}, {"same"});
  add_node(model.mutable_graph(), "Identity", {"x"}, {"through"});
  add_ends(model.mutable_graph(), {}, {"same", "through"});
  import(model);
  EXPECT_EQ(names("outputs"), (Names{"y", "same", "through"}));
  auto values = run({{-1, 1, 2, -3, 4, -5}});
  EXPECT_EQ(values["same"].values, values["y"].values);
  EXPECT_EQ(values["through"].values, (Floats{-1, 1, 2, -3, 4, -5}));
}

// --- options ---

TEST_F(OnnxImport, ShapesAndBatchAreGiven) {
  pb::ModelProto model = empty_model();
  pb::GraphProto* graph = model.mutable_graph();
  add_input(graph, "a", {0, 3});  // 0: open
  graph->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_param("N");
  add_input(graph, "b", {4, 3});
  add_node(graph, "Relu", {"a"}, {"c"});
  add_node(graph, "Relu", {"b"}, {"d"});
  add_ends(graph, {}, {"c", "d"});
  const auto dims = [&] { return nlohmann::json{describe()["inputs"][0]["dims"], describe()["inputs"][1]["dims"]}; };
  import(model);
  EXPECT_EQ(dims(), nlohmann::json({{1, 3}, {4, 3}}));
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_NE(log_[0].find("input 'a': the model leaves dim 0 (N) open; took [1,3]"), std::string::npos) << log_[0];
  import(model, R"({"batch": "2"})");
  EXPECT_EQ(dims(), nlohmann::json({{2, 3}, {2, 3}}));
  import(model, R"({"batch": "2", "input_shapes": "b=7x5"})");
  EXPECT_EQ(dims(), nlohmann::json({{2, 3}, {7, 5}}));
  import(model, R"({"input_shapes": "a=7x3;b=1x1"})");
  EXPECT_EQ(dims(), nlohmann::json({{7, 3}, {1, 1}}));
  const auto refused = [&](const std::string& shapes, const std::string& part) {
    expect_failure(model, {part}, R"({"input_shapes": ")" + shapes + R"("})");
  };
  refused("a=7", "input 'a': expected a shape of rank 2, found one of rank 1");
  refused("z=7", "a shape was given for 'z', which is no input of the model; its inputs are: a, b");
  refused("a", "input_shapes: expected NAME=1x3x224x224, found 'a'");
  refused("a=2xx3", "sizes");
  refused("a=-2x3", "sizes");
  refused("a=99999999999999999999x3", "sizes");
  refused("a=1x3;a=2x3", "two shapes for 'a'");
}

// --- optional inputs, functions ---

/// y = the transpose of x [2,3], through parts along one axis that are joined along another, which are attributes.
pb::FunctionProto* add_turn(pb::ModelProto* model) {
  pb::FunctionProto* function = model->add_functions();
  function->set_name("Turn");
  function->set_domain("local");
  function->add_input("x");
  function->add_output("y");
  function->add_attribute("from");
  auto* to = function->add_attribute_proto();
  to->set_name("to");
  to->set_type(pb::AttributeProto::INT);
  to->set_i(1);
  auto* opset = function->add_opset_import();
  opset->set_domain("");
  opset->set_version(17);
  pb::GraphProto nodes;
  pb::NodeProto* split = add_node(&nodes, "SplitToSequence", {"x"}, {"parts"}, "split");
  refer(split, "axis", pb::AttributeProto::INT, "from");
  set_int(split, "keepdims", 0);
  pb::NodeProto* join = add_node(&nodes, "ConcatFromSequence", {"parts"}, {"y"}, "join");
  refer(join, "axis", pb::AttributeProto::INT, "to");
  set_int(join, "new_axis", 1);
  for (const auto& node : nodes.node()) *function->add_node() = node;
  return function;
}

pb::ModelProto turn_model(int64_t from) {
  pb::ModelProto model = empty_model();
  add_opset(&model, "local", 1);
  add_turn(&model);
  add_input(model.mutable_graph(), "x", {2, 3});
  set_int(add_node(model.mutable_graph(), "local.Turn", {"x"}, {"y"}, "turn"), "from", from);
  add_ends(model.mutable_graph(), {}, {"y"});
  return model;
}

TEST_F(OnnxImport, FunctionsReferToAttributesOfTheirCall) {
  import(turn_model(0));
  auto values = run({{1, 2, 3, 4, 5, 6}});
  EXPECT_EQ(values["y"].dims, (Sizes{3, 2}));
  EXPECT_EQ(values["y"].values, (Floats{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(names("nodes")[0], "turn/split");
  // The default of `to` is 1; a call may say otherwise.
  pb::ModelProto model = turn_model(1);
  set_int(model.mutable_graph()->mutable_node(0), "to", 0);
  import(model);
  values = run({{1, 2, 3, 4, 5, 6}});
  EXPECT_EQ(values["y"].dims, (Sizes{3, 2}));
  EXPECT_EQ(values["y"].values, (Floats{1, 4, 2, 5, 3, 6}));
}

TEST_F(OnnxImport, FunctionsNestAndHaveOverloads) {
  pb::ModelProto model = turn_model(0);
  pb::FunctionProto* twice = model.add_functions();  // Turn under another overload: twice the transpose
  twice->CopyFrom(model.functions(0));
  twice->set_overload("twice");
  twice->clear_node();
  twice->clear_attribute_proto();
  auto* opset = twice->add_opset_import();
  opset->set_domain("local");
  opset->set_version(1);
  pb::GraphProto nodes;
  for (const auto& [from, to] : {std::pair{"x", "t"}, std::pair{"t", "y"}}) {
    refer(add_node(&nodes, "local.Turn", {from}, {to}, "inner"), "from", pb::AttributeProto::INT, "from");
  }
  for (const auto& node : nodes.node()) *twice->add_node() = node;
  model.mutable_graph()->mutable_node(0)->set_overload("twice");
  import(model);
  EXPECT_EQ(run({{1, 2, 3, 4, 5, 6}})["y"].values, (Floats{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(names("nodes")[0], "turn/inner/split");
}

TEST_F(OnnxImport, AnAttributeThatTheCallLacks) {
  pb::ModelProto model = turn_model(0);
  model.mutable_graph()->mutable_node(0)->clear_attribute();  // from has no default: that of SplitToSequence holds
  import(model);
  EXPECT_EQ(run({{1, 2, 3, 4, 5, 6}})["y"].values, (Floats{1, 4, 2, 5, 3, 6}));
  model.mutable_functions(0)->clear_attribute_proto();  // the axis of ConcatFromSequence has none either
  expect_failure(model, {"node 'turn/join' (ConcatFromSequence)", "the attribute axis is required but absent"});
}

// --- graphs inside nodes ---

pb::ModelProto if_model(bool condition) {
  pb::ModelProto model = relu_model();
  pb::GraphProto* graph = model.mutable_graph();
  add_bool(graph, "c", condition);
  add_floats(graph, "one", {1}, {1});
  pb::NodeProto* node = add_node(graph, "If", {"c"}, {"z"}, "if");
  pb::GraphProto* yes = set_graph(node, "then_branch");
  add_node(yes, "Add", {"y", "one"}, {"sum"}, "plus");  // both are names of the graph around it
  add_ends(yes, {}, {"sum"});
  pb::GraphProto* no = set_graph(node, "else_branch");
  add_ends(no, {}, {"x"});
  add_ends(graph, {}, {"z"});
  return model;
}

TEST_F(OnnxImport, IfTakesOneBranch) {
  import(if_model(true));
  EXPECT_EQ(run({{-1, 1, 2, -3, 4, -5}})["z"].values, (Floats{1, 2, 3, 1, 5, 1}));
  import(if_model(false));
  EXPECT_EQ(run({{-1, 1, 2, -3, 4, -5}})["z"].values, (Floats{-1, 1, 2, -3, 4, -5}));
}

TEST_F(OnnxImport, IfThatIsDecidedAtRunTime) {
  pb::ModelProto model = if_model(true);
  model.mutable_graph()->mutable_initializer()->DeleteSubrange(0, 1);
  add_input(model.mutable_graph(), "c", {}, TN_BOOL);
  expect_failure(model, {"If-16: input 0 is computed at run time; its contents have to be known (1 time: 'if')"});
}

/// s = x, then `rounds` times s = s + x; sums stacks all of them. No condition is given.
pb::ModelProto loop_model(int64_t rounds) {
  pb::ModelProto model = empty_model();
  pb::GraphProto* graph = model.mutable_graph();
  add_input(graph, "x", {2});
  add_i64s(graph, "m", {}, {rounds});
  pb::NodeProto* node = add_node(graph, "Loop", {"m", "", "x"}, {"last", "sums"}, "loop");
  pb::GraphProto* body = set_graph(node, "body");
  add_node(body, "Add", {"s", "x"}, {"next"}, "plus");
  add_node(body, "Identity", {"next"}, {"stacked"});
  add_ends(body, {"i", "c", "s"}, {"c", "next", "stacked"});
  add_ends(graph, {}, {"last", "sums"});
  return model;
}

TEST_F(OnnxImport, LoopIsUnrolled) {
  import(loop_model(3));
  auto values = run({{1, 10}});
  EXPECT_EQ(values["last"].values, (Floats{4, 40}));
  EXPECT_EQ(values["sums"].dims, (Sizes{3, 2}));
  EXPECT_EQ(values["sums"].values, (Floats{2, 20, 3, 30, 4, 40}));
  const Names nodes = names("nodes");
  EXPECT_EQ(std::count(nodes.begin(), nodes.end(), "loop/2/plus"), 1);
}

TEST_F(OnnxImport, LoopThatNeverEnds) {
  pb::ModelProto model = loop_model(3);
  model.mutable_graph()->mutable_node(0)->set_input(0, "");  // neither a number of rounds nor a condition
  expect_failure(model, {"Loop-16", "rounds", "'loop'"});
  expect_failure(loop_model(INT64_MAX), {"Loop-16", "rounds", "'loop'"});
}

TEST_F(OnnxImport, LoopWithAConditionOfRunTime) {
  pb::ModelProto model = loop_model(3);
  add_input(model.mutable_graph(), "go", {}, TN_BOOL);
  model.mutable_graph()->mutable_node(0)->set_input(1, "go");
  expect_failure(model, {"Loop-16: a Loop whose number of rounds is decided at run time (1 time: 'loop')"});
}

/// Running sums of the rows of x [3,2].
pb::ModelProto scan_model() {
  pb::ModelProto model = empty_model();
  pb::GraphProto* graph = model.mutable_graph();
  add_input(graph, "x", {3, 2});
  add_floats(graph, "zero", {2}, {0, 0});
  pb::NodeProto* node = add_node(graph, "Scan", {"zero", "x"}, {"total", "sums"}, "scan");
  set_int(node, "num_scan_inputs", 1);
  pb::GraphProto* body = set_graph(node, "body");
  add_node(body, "Add", {"s", "row"}, {"next"}, "plus");
  add_node(body, "Identity", {"next"}, {"out"});
  add_ends(body, {"s", "row"}, {"next", "out"});
  add_ends(graph, {}, {"total", "sums"});
  return model;
}

TEST_F(OnnxImport, ScanWalksAnAxis) {
  import(scan_model());
  auto values = run({{1, 2, 3, 4, 5, 6}});
  EXPECT_EQ(values["total"].values, (Floats{9, 12}));
  EXPECT_EQ(values["sums"].dims, (Sizes{3, 2}));
  EXPECT_EQ(values["sums"].values, (Floats{1, 2, 4, 6, 9, 12}));
}

TEST_F(OnnxImport, ScanFromBehindAlongAnotherAxis) {
  pb::ModelProto model = scan_model();
  pb::NodeProto* node = model.mutable_graph()->mutable_node(0);
  add_attribute(node, "scan_input_directions", pb::AttributeProto::INTS)->add_ints(1);
  add_attribute(node, "scan_output_axes", pb::AttributeProto::INTS)->add_ints(-1);
  import(model);
  auto values = run({{1, 2, 3, 4, 5, 6}});
  EXPECT_EQ(values["total"].values, (Floats{9, 12}));
  EXPECT_EQ(values["sums"].dims, (Sizes{2, 3}));
  EXPECT_EQ(values["sums"].values, (Floats{5, 8, 9, 6, 10, 12}));  // (5, 6), (8, 10), (9, 12)
}

// --- sequences ---

TEST_F(OnnxImport, SequencesAreTakenApart) {
  pb::ModelProto model = relu_model();
  pb::GraphProto* graph = model.mutable_graph();
  add_i64s(graph, "last", {}, {-1});
  add_i64s(graph, "first", {}, {0});
  add_node(graph, "SequenceConstruct", {"x", "y"}, {"pair"});
  add_node(graph, "SequenceAt", {"pair", "last"}, {"at"});
  add_node(graph, "SequenceErase", {"pair"}, {"one"});
  add_node(graph, "SequenceInsert", {"one", "y", "first"}, {"turned"});
  set_int(add_node(graph, "ConcatFromSequence", {"turned"}, {"z"}), "axis", -1);
  add_ends(graph, {}, {"at", "z"});
  import(model);
  auto values = run({{-1, 1, 2, -3, 4, -5}});
  EXPECT_EQ(values["at"].values, (Floats{0, 1, 2, 0, 4, 0}));
  EXPECT_EQ(values["z"].values, (Floats{0, 1, 2, -1, 1, 2, 0, 4, 0, -3, 4, -5}));
}

TEST_F(OnnxImport, SequencesOutOfRangeAndAsOutputs) {
  pb::ModelProto model = relu_model();
  pb::GraphProto* graph = model.mutable_graph();
  add_i64s(graph, "third", {}, {2});
  add_node(graph, "SequenceConstruct", {"x", "y"}, {"pair"});
  add_node(graph, "SequenceAt", {"pair", "third"}, {"at"}, "pick");
  expect_failure(model, {"node 'pick' (SequenceAt)", "position 2 is outside a sequence of 2"});
  graph->mutable_node()->RemoveLast();
  add_node(graph, "Relu", {"pair"}, {"r"}, "wrong");
  expect_failure(model, {"node 'wrong' (Relu)", "input 0: expected a tensor, found a sequence"});
  graph->mutable_node()->RemoveLast();
  add_ends(graph, {}, {"pair"});
  expect_failure(model, {"model outputs that are sequences (1 time: 'pair')"});
}

// --- operators of other domains ---

std::vector<TnValueId> import_twice(const ForeignOp& op, GraphView& graph) {
  EXPECT_EQ(op.type(), "com.acme.Twice");
  EXPECT_EQ(op.opset(), 3u);
  return {graph.add_node("tenon.add/1", op.name(), graph.attrs(), {op.input(0), op.input(0)})};
}

Op keep_op() {
  return op("com.acme.keep/3").input("x").output("y").attr_i64("count").default_value("1").map([](double x) {
    return x;
  });
}

TENON_LINKED_PLUGIN(teaching_plugin, "test.acme", "1", "Apache-2.0",
                    op_importer("tenon.onnx", "com.acme.Twice", import_twice), keep_op())

TEST_F(OnnxImport, OtherPluginsBringOperators) {
  pb::ModelProto model = relu_model();
  add_opset(&model, "com.acme", 3);
  pb::GraphProto* graph = model.mutable_graph();
  add_node(graph, "com.acme.Twice", {"y"}, {"two"}, "twice");
  set_int(add_node(graph, "com.acme.Keep", {"two"}, {"kept"}, "keep"), "count", 5);
  add_ends(graph, {}, {"two", "kept"});
  expect_failure(model, {"com.acme.Twice: no installed plugin brings an op or an op importer of this name "
                         "(1 time: 'twice')"});
  ASSERT_TRUE(library_->add_plugin(teaching_plugin()).ok());
  import(model);
  EXPECT_EQ(run({{-1, 1, 2, -3, 4, -5}})["two"].values, (Floats{0, 2, 4, 0, 8, 0}));
  const nlohmann::json keep = describe()["nodes"][2];
  EXPECT_EQ(keep["op"], "com.acme.keep/3");
  EXPECT_NE(keep["attrs"].get<std::string>().find("count=5"), std::string::npos) << keep["attrs"];
  model.mutable_opset_import()->RemoveLast();
  expect_failure(model, {"node 'twice' (Twice)", "its domain 'com.acme' is not among the operator sets"});
}

}  // namespace
}  // namespace tenon::onnx
