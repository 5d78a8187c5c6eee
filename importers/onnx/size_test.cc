// Small models that could take much memory or time: deep, long, many times repeated or of huge sizes.
#include "importers/onnx/testing/import_testing.h"

namespace tenon::onnx {
namespace {

class OnnxSize : public ImportTest {
 protected:
  static void TearDownTestSuite() { std::printf("The longest of these imports took %.0f ms.\n", longest_ * 1000); }
};

/// One field of a message: its number, length and contents. `length` is of all that follows inside.
std::string field(int number, size_t length) {
  std::string bytes(1, static_cast<char>(number << 3 | 2));
  for (; length >= 128; length >>= 7) bytes += static_cast<char>((length & 127) | 128);
  return bytes + static_cast<char>(length);
}

/// A graph with a node with an attribute with a graph, `depth` times. Made from the inside out, as its lengths are.
std::string nested(int depth) {
  std::vector<std::string> heads;
  size_t length = 0;
  for (int n = 0; n < depth; ++n) {
    for (const int number : {6, 5, 1}) {  // AttributeProto.g, NodeProto.attribute, GraphProto.node
      heads.push_back(field(number, length));
      length += heads.back().size();
    }
  }
  heads.push_back(field(7, length));  // ModelProto.graph
  std::string bytes("\x08\x08", 2);
  for (auto head = heads.rbegin(); head != heads.rend(); ++head) bytes += *head;
  pb::ModelProto opset;
  add_opset(&opset, "", 17);
  return bytes + opset.SerializeAsString();
}

TEST_F(OnnxSize, GraphsTenThousandDeep) {
  EXPECT_NE(failure_of_bytes(nested(10)), "no failure");  // nodes without operators
  EXPECT_NE(failure_of_bytes(nested(10000)).find("m.onnx: this is no ONNX model, or a damaged one"), std::string::npos);
}

TEST_F(OnnxSize, ChainTenThousandLong) {
  pb::ModelProto model = relu_model();
  pb::GraphProto* graph = model.mutable_graph();
  std::string last = "y";
  for (int n = 0; n < 10000; ++n) {
    const std::string next = "v" + std::to_string(n);
    add_node(graph, "Relu", {last}, {next}, "same");  // all of one name
    last = next;
  }
  add_ends(graph, {}, {last});
  import(model);
  EXPECT_EQ(names("nodes").size(), 10001u);
}

TEST_F(OnnxSize, LoopsInsideLoopsWithoutNodes) {
  pb::ModelProto model = relu_model();
  pb::GraphProto* graph = model.mutable_graph();
  add_i64s(graph, "rounds", {}, {5000});
  add_bool(graph, "yes", true);
  pb::NodeProto* outer = add_node(graph, "Loop", {"rounds", "yes", "y"}, {"z"}, "outer");
  pb::GraphProto* body = set_graph(outer, "body");
  pb::NodeProto* inner = add_node(body, "Loop", {"rounds", "yes", "s"}, {"t"}, "inner");
  pb::GraphProto* empty = set_graph(inner, "body");
  add_ends(empty, {"j", "d", "u"}, {"d", "u"});
  add_ends(body, {"i", "c", "s"}, {"c", "t"});
  add_ends(graph, {}, {"z"});
  expect_failure(model, {"nodes"});
}

TEST_F(OnnxSize, TensorsThatGrowWithoutEnd) {
  pb::ModelProto model = empty_model();
  pb::GraphProto* graph = model.mutable_graph();
  add_input(graph, "v0", {1 << 20});
  for (int n = 0; n < 60; ++n) {
    const std::string from = "v" + std::to_string(n);
    add_node(graph, "SequenceConstruct", {from, from}, {"s" + std::to_string(n)});
    set_int(add_node(graph, "ConcatFromSequence", {"s" + std::to_string(n)}, {"v" + std::to_string(n + 1)}), "axis", 0);
  }
  add_ends(graph, {}, {"v60"});
  expect_failure(model, {"ConcatFromSequence_v"});
}

TEST_F(OnnxSize, ConstantsWorkedOutFromHugeSizes) {
  const int64_t huge = int64_t{1} << 40;
  const auto one_node = [&](const std::string& type, const Names& inputs, const Sizes& dims) {
    pb::ModelProto model = empty_model(20);
    add_input(model.mutable_graph(), "x", dims);
    add_node(model.mutable_graph(), type, inputs, {"y"}, "it");
    add_ends(model.mutable_graph(), {}, {"y"});
    return model;
  };
  const Names too_many = {"of more than 16777216 elements in all (1 time: 'it')"};
  expect_failure(one_node("SplitToSequence", {"x"}, {huge}), too_many);
  pb::ModelProto model = one_node("SplitToSequence", {"x", "chunk"}, {huge});
  add_i64s(model.mutable_graph(), "chunk", {}, {2});
  expect_failure(model, too_many);
  model = one_node("HannWindow", {"size"}, {1});
  add_i64s(model.mutable_graph(), "size", {}, {1 << 27});
  expect_failure(model, too_many);
  model = one_node("MelWeightMatrix", {"bands", "length", "rate", "low", "high"}, {1});
  for (const char* name : {"bands", "length", "rate"}) add_i64s(model.mutable_graph(), name, {}, {1 << 20});
  add_floats(model.mutable_graph(), "low", {}, {0});
  add_floats(model.mutable_graph(), "high", {}, {1000});
  expect_failure(model, too_many);
  model = one_node("AffineGrid", {"x", "size"}, {1, 2, 3});
  add_i64s(model.mutable_graph(), "size", {4}, {1, 1, 1 << 20, 1 << 20});
  expect_failure(model, too_many);
  // A weight without elements, and the same bias for each of very many columns.
  model = one_node("Gemm", {"x", "w", "b"}, {2, 0});
  add_floats(model.mutable_graph(), "w", {0, huge}, {});
  add_floats(model.mutable_graph(), "b", {1}, {1});
  expect_failure(model, too_many);
  // Several that are together too many.
  model = one_node("HannWindow", {"size"}, {1});
  add_node(model.mutable_graph(), "HannWindow", {"size"}, {"z"}, "second");
  add_i64s(model.mutable_graph(), "size", {}, {(1 << 23) + 1});
  expect_failure(model, {"in all (1 time: 'second')"});
  // The mask of Dropout is all true, however large.
  model = one_node("Dropout", {"x"}, {huge});
  model.mutable_graph()->mutable_node(0)->add_output("mask");
  add_ends(model.mutable_graph(), {}, {"mask"});
  import(model);
}

TEST_F(OnnxSize, SumsOverManyConstants) {
  pb::ModelProto model = relu_model();
  pb::GraphProto* graph = model.mutable_graph();
  add_i64s(graph, "shape", {2}, {64, 64});
  pb::NodeProto* fill = add_node(graph, "ConstantOfShape", {"shape"}, {"ones"}, "fill");
  pb::TensorProto* one = add_attribute(fill, "value", pb::AttributeProto::TENSOR)->mutable_t();
  one->set_data_type(TN_I64);
  one->add_dims(1);
  one->add_int64_data(1);
  pb::NodeProto* sum = add_node(graph, "Einsum", {"ones", "ones", "ones", "ones"}, {"z"}, "sum");
  add_attribute(sum, "equation", pb::AttributeProto::STRING)->set_s("ab,cd,ef,gh->");
  add_ends(graph, {}, {"z"});
  expect_failure(model, {"a sum of more than 268435456 products of constants (1 time: 'sum')"});
}

TEST_F(OnnxSize, LongNamesInsideLoopsAreShortened) {
  pb::ModelProto model = relu_model();
  pb::GraphProto* graph = model.mutable_graph();
  add_i64s(graph, "rounds", {}, {3});
  add_bool(graph, "yes", true);
  const std::string name(100000, 'n');
  pb::NodeProto* loop = add_node(graph, "Loop", {"rounds", "yes", "y"}, {"last"}, name);
  pb::GraphProto* body = set_graph(loop, "body");
  add_node(body, "Relu", {"s"}, {name}, name);
  add_ends(body, {"i", "c", "s"}, {"c", name});
  add_ends(graph, {}, {"last"});
  import(model);
  for (const std::string& shown : names("nodes")) EXPECT_LT(shown.size(), 1100u) << shown;
  EXPECT_EQ(run({Floats(6, 2)})["last"].values, Floats(6, 2));
}

}  // namespace
}  // namespace tenon::onnx
