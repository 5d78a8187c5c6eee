// Models that are damaged, contradictory or made to do harm. None may crash, hang or read outside its folder, and each
// message names what is wrong.
#include "importers/onnx/testing/import_testing.h"

namespace tenon::onnx {
namespace {

class OnnxDamage : public ImportTest {
 protected:
  static void TearDownTestSuite() { std::printf("The longest of these imports took %.0f ms.\n", longest_ * 1000); }
};

/// About 2 KiB with most kinds of fields: initializers, attributes, a function, graphs inside nodes.
pb::ModelProto rich_model() {
  pb::ModelProto model = relu_model();
  model.set_producer_name("hand");
  add_opset(&model, "local", 1);
  pb::GraphProto* graph = model.mutable_graph();
  add_floats(graph, "w", {2, 3}, Floats(6, 1.5f));
  add_tensor(graph, "raw", {125, 1, 3}, TN_F32)->set_raw_data(std::string(1500, '\0'));
  add_i64s(graph, "rounds", {}, {2});
  add_bool(graph, "yes", true);
  add_node(graph, "Add", {"y", "w"}, {"z"}, "plus");
  add_node(graph, "Add", {"z", "raw"}, {"wide"}, "widen");
  pb::NodeProto* loop = add_node(graph, "Loop", {"rounds", "yes", "z"}, {"last"}, "loop");
  pb::GraphProto* body = set_graph(loop, "body");
  add_node(body, "Relu", {"s"}, {"next"}, "inner");
  add_ends(body, {"i", "c", "s"}, {"c", "next"});
  pb::NodeProto* split = add_node(graph, "SplitToSequence", {"last"}, {"parts"}, "split");
  set_int(split, "axis", 1);
  set_int(add_node(graph, "ConcatFromSequence", {"parts"}, {"joined"}, "join"), "axis", 1);
  pb::FunctionProto* function = model.add_functions();
  function->set_name("Twice");
  function->set_domain("local");
  function->add_input("a");
  function->add_output("b");
  auto* opset = function->add_opset_import();
  opset->set_domain("");
  opset->set_version(17);
  pb::GraphProto nodes;
  *function->add_node() = *add_node(&nodes, "Add", {"a", "a"}, {"b"});
  add_node(graph, "local.Twice", {"joined"}, {"two"}, "call");
  add_ends(graph, {}, {"wide", "two"});
  return model;
}

TEST_F(OnnxDamage, CutOffAtEveryByte) {
  const std::string whole = rich_model().SerializeAsString();
  ASSERT_EQ(failure_of_bytes(whole), "no failure");
  EXPECT_GT(whole.size(), 2000u);
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::string message = failure_of_bytes(whole.substr(0, size));
    ASSERT_NE(message, "no failure") << size;
    // Without what comes last, operator sets and functions, a node lacks its operator.
    const bool names_its_place =
        message.find("m.onnx") != std::string::npos || message.find("'call'") != std::string::npos;
    ASSERT_TRUE(names_its_place) << size << ": " << message;
  }
}

TEST_F(OnnxDamage, EveryByteChanged) {
  const std::string whole = rich_model().SerializeAsString();
  for (size_t n = 0; n < whole.size(); ++n) {
    constexpr char kFlips[] = {'\x01', '\x7f', '\xff'};
    std::string changed = whole;
    changed[n] = static_cast<char>(changed[n] ^ kFlips[n % 3]);
    const std::string message = failure_of_bytes(changed);  // many changes are harmless
    ASSERT_FALSE(message.empty()) << n;
    if (message == "no failure") {
      ASSERT_TRUE(network_->describe().ok()) << n;
    }
  }
}

TEST_F(OnnxDamage, NotAModel) {
  EXPECT_NE(failure_of_bytes("").find("empty"), std::string::npos);
  EXPECT_NE(failure_of_bytes("\x08\x08not a message").find("protobuf message cannot be read"), std::string::npos);
  pb::ModelProto model;
  model.set_ir_version(8);
  expect_failure(model, {"this is no ONNX model: it has no graph"});
  model.mutable_graph();
  expect_failure(model, {"this is no ONNX model: it has no operator set"});
  add_opset(&model, "", 17);
  expect_failure(model, {"the model has no output"});
}

TEST_F(OnnxDamage, OpsetsOutOfRange) {
  const auto with_opset = [](int64_t version) {
    pb::ModelProto model = relu_model();
    model.mutable_opset_import(0)->set_version(version);
    return model;
  };
  import(with_opset(7));
  import(with_opset(27));
  expect_failure(with_opset(6), {"m.onnx: expected opset 7 to 27, found 6; convert the model to a newer opset"});
  expect_failure(with_opset(28), {"m.onnx: expected opset 7 to 27, found 28; export the model for an older opset"});
  expect_failure(with_opset(-1), {"found -1"});
  expect_failure(with_opset(INT64_MAX), {"found 9223372036854775807"});
  pb::ModelProto model = rich_model();
  model.mutable_functions(0)->mutable_opset_import(0)->set_version(3);
  expect_failure(model, {"function 'Twice'", "found 3"});
  model.mutable_functions(0)->clear_opset_import();
  expect_failure(model, {"node 'call/Add_b' (Add)", "its domain '' is not among the operator sets"});
}

TEST_F(OnnxDamage, DimsOfInputs) {
  const auto with_dims = [](const Sizes& dims) {
    pb::ModelProto model = empty_model();
    add_input(model.mutable_graph(), "x", dims);
    add_node(model.mutable_graph(), "Relu", {"x"}, {"y"}, "act");
    add_ends(model.mutable_graph(), {}, {"y"});
    return model;
  };
  expect_failure(with_dims({2, -5}), {"input 'x': dim 1 is negative: -5"});
  expect_failure(with_dims({INT64_MIN}), {"input 'x': dim 0 is negative"});
  expect_failure(with_dims({INT64_MAX, 2}), {"'x'"});
  expect_failure(with_dims({int64_t{1} << 32, int64_t{1} << 32}), {"'x'"});
  expect_failure(with_dims(Sizes(5000, 1)), {"'x'", "5000"});
  pb::ModelProto model = with_dims({1});
  model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  expect_failure(model, {"input 'x': the model does not tell its shape; give one, as with --shape x=1x3x224x224"});
  model.mutable_graph()->mutable_input(0)->clear_type();
  expect_failure(model, {"'x'"});
  model = with_dims({1});
  model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(TN_STRING);
  expect_failure(model, {"tensors of strings (1 time: 'x')"});
  model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(9999);
  expect_failure(model, {"tensors of ONNX's element type 9999 (1 time: 'x')"});
}

/// x + w, with w as it is given.
pb::ModelProto weight_model(const pb::TensorProto& weight) {
  pb::ModelProto model = empty_model();
  add_input(model.mutable_graph(), "x", {2});
  *model.mutable_graph()->add_initializer() = weight;
  add_node(model.mutable_graph(), "Add", {"x", "w"}, {"y"}, "plus");
  add_ends(model.mutable_graph(), {}, {"y"});
  return model;
}

TEST_F(OnnxDamage, DimsOfInitializers) {
  pb::GraphProto graph;
  const auto weight = [&](const Sizes& dims) {
    pb::TensorProto tensor = *add_floats(&graph, "w", dims, {1, 2});
    return weight_model(tensor);
  };
  import(weight({2}));
  import(weight({2, 1}));
  expect_failure(weight({-2}), {"tensor 'w'", "-2"});
  expect_failure(weight({3}), {"tensor 'w': expected 12 bytes for f32[3], found 8"});
  expect_failure(weight({}), {"tensor 'w': expected 4 bytes", "found 8"});
  expect_failure(weight({int64_t{1} << 40}), {"tensor 'w'"});
  expect_failure(weight({int64_t{1} << 62, 4}), {"tensor 'w'"});
  expect_failure(weight({INT64_MAX, INT64_MAX, 0}), {"tensor 'w'"});
  expect_failure(weight(Sizes(1000, 1)), {"tensor 'w'", "1000"});
  pb::TensorProto other = *add_tensor(&graph, "w", {2}, TN_STRING);
  expect_failure(weight_model(other), {"tensors of strings (1 time: 'w')"});
  other.set_data_type(0);
  expect_failure(weight_model(other), {"tensors of ONNX's element type 0 (1 time: 'w')"});
}

TEST_F(OnnxDamage, ExternalData) {
  const Floats numbers = {1, 2, 3, 4};
  const std::string bytes(reinterpret_cast<const char*>(numbers.data()), 16);
  write("data.bin", bytes);
  std::filesystem::create_directories(folder_ / "model" / "deep");
  write("deep/data.bin", bytes);
  std::ofstream(folder_ / "secret.bin", std::ios::binary) << bytes;
  std::filesystem::create_symlink(folder_ / "secret.bin", folder_ / "model" / "link.bin");
  std::filesystem::create_directory_symlink(folder_, folder_ / "model" / "out");
  const auto external = [](const std::map<std::string, std::string>& entries) {
    pb::GraphProto graph;
    pb::TensorProto* tensor = add_tensor(&graph, "w", {2}, TN_F32);
    tensor->set_data_location(1);
    for (const auto& [key, value] : entries) {
      auto* entry = tensor->add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
    return weight_model(*tensor);
  };
  const std::string owner = "tensor 'w'";
  import(external({{"location", "data.bin"}, {"offset", "8"}, { "length", "8" }}));
  EXPECT_EQ(run({{10, 20}})["y"].values, (Floats{13, 24}));
  import(external({{ "location", "deep/data.bin" }}));
  EXPECT_EQ(run({{10, 20}})["y"].values, (Floats{11, 22}));
  import(external({{ "location", "deep/../data.bin" }}));

  expect_failure(external({{"location", "data.bin"}, {"offset", "12"}}), {owner, "data.bin", "which has 16"});
  expect_failure(external({{"location", "data.bin"}, {"offset", "17"}}), {owner, "which has 16"});
  expect_failure(external({{"location", "data.bin"}, {"offset", "999999999999999999"}}), {owner, "which has 16"});
  expect_failure(external({{"location", "data.bin"}, {"offset", "-4"}}), {owner, "as offset, found '-4'"});
  expect_failure(external({{"location", "data.bin"}, {"offset", "99999999999999999999"}}), {owner, "as offset"});
  expect_failure(external({{"location", "data.bin"}, {"length", "16"}}), {owner, "expected 8 bytes", "found 16"});
  expect_failure(external({{"location", "data.bin"}, {"length", ""}}), {owner, "as length, found ''"});
  expect_failure(external({{"location", "absent.bin"}}), {owner, "the file 'absent.bin' is not there"});
  expect_failure(external({{"location", ""}}), {owner, "without a location"});
  expect_failure(external({}), {owner, "without a location"});
  expect_failure(external({{"location", "deep"}}), {"deep"});
  for (const std::string& outside :
       {std::string("../secret.bin"), std::string("deep/../../secret.bin"), (folder_ / "secret.bin").string(),
        std::string("link.bin"), std::string("out/secret.bin"), std::string("/etc/passwd")}) {
    expect_failure(external({{"location", outside}}), {owner, outside, "outside its folder"});
  }
  // "@" names files that the caller gives, which a model cannot ask for.
  expect_failure(external({{"location", "@weights"}}), {owner, "'@weights' is not there"});
}

TEST_F(OnnxDamage, NamesThatAreMissingOrTwice) {
  pb::ModelProto model = relu_model();
  pb::GraphProto* graph = model.mutable_graph();
  pb::NodeProto* node = add_node(graph, "Add", {"y", "nowhere"}, {"z"}, "plus");
  expect_failure(model, {"node 'plus' (Add)", "it reads 'nowhere', which is neither an input nor computed before it"});
  node->set_input(1, "z");  // its own output
  expect_failure(model, {"node 'plus' (Add)", "it reads 'z'"});
  node->set_input(1, "later");
  add_node(graph, "Relu", {"z"}, {"later"}, "cycle");
  expect_failure(model, {"node 'plus' (Add)", "it reads 'later'"});
  node->set_input(1, "");
  expect_failure(model, {"plus", "input 1", "absent"});
  node->mutable_input()->RemoveLast();
  expect_failure(model, {"plus", "input 1", "absent"});
  node->add_input("x");
  node->set_output(0, "y");
  expect_failure(model, {"node 'plus' (Add)", "'y' is computed twice"});
  node->set_output(0, "x");
  expect_failure(model, {"node 'plus' (Add)", "'x' is computed twice"});
  node->set_output(0, "z");
  add_ends(graph, {}, {"absent"});
  expect_failure(model, {"output 'absent': nothing computes it"});
  graph->mutable_output()->RemoveLast();
  add_input(graph, "x", {2, 3});
  expect_failure(model, {"input 'x' is listed twice"});
  graph->mutable_input()->RemoveLast();
  add_floats(graph, "w", {1}, {1});
  add_floats(graph, "w", {1}, {2});
  expect_failure(model, {"tensor 'w' is listed twice"});
  graph->mutable_initializer()->RemoveLast();
  import(model);
  add_ends(graph, {}, {"y"});  // one output, listed twice
  const std::string message = failure_of(model);
  EXPECT_TRUE(message == "no failure" || message.find("'y'") != std::string::npos) << message;
}

TEST_F(OnnxDamage, ShapesThatDoNotFit) {
  pb::ModelProto model = relu_model();
  add_floats(model.mutable_graph(), "w", {4}, {1, 2, 3, 4});
  add_node(model.mutable_graph(), "Add", {"y", "w"}, {"z"}, "plus");
  add_ends(model.mutable_graph(), {}, {"z"});
  expect_failure(model, {"plus", "[2,3]", "[4]"});
}

TEST_F(OnnxDamage, WrongRanks) {
  struct Case {
    const char* type;
    std::vector<Sizes> inputs;
    std::map<std::string, Sizes> attributes;  ///< "*name": a list
  };
  const Case cases[] = {
      {"Conv", {{2, 3}, {4, 3, 3, 3}}, {}},
      {"Conv", {{1, 3, 8, 8}, {4, 3, 3}}, {}},
      {"Conv", {{1, 3, 8, 8}, {4, 3, 3, 3}, {4, 1}}, {}},
      {"ConvTranspose", {{3, 8, 8}, {3, 4, 3, 3}}, {}},
      {"DeformConv", {{1, 1, 3}, {1, 1, 2, 2}, {1, 8, 2, 2}}, {}},
      {"MaxPool", {{2, 3}}, {{"*kernel_shape", {2, 2}}}},
      {"AveragePool", {{1, 3, 8}}, {{"*kernel_shape", {2, 2}}}},
      {"LpPool", {{8}}, {{"*kernel_shape", {2}}}},
      {"GlobalAveragePool", {{3}}, {}},
      {"GlobalMaxPool", {{3}}, {}},
      {"BatchNormalization", {{2, 3, 4}, {3, 1}, {3}, {3}, {3}}, {}},
      {"InstanceNormalization", {{2, 3, 4}, {1, 3}, {3}}, {}},
      {"LayerNormalization", {{2, 3}, {2, 2, 3}}, {}},
      {"LRN", {{3}}, {{"size", {3}}}},
      {"Gemm", {{2, 3, 4}, {4, 5}}, {}},
      {"MatMul", {{2, 3}, {4, 5}}, {}},
      {"MatMul", {{}, {4, 5}}, {}},
      {"Einsum", {{2, 3}, {3}}, {}},
      {"Transpose", {{2, 3}}, {{"*perm", {0, 1, 2}}}},
      {"Concat", {{2, 3}, {2, 3, 1}}, {{"axis", {0}}}},
      {"Softmax", {{2, 3}}, {{"axis", {5}}}},
      {"Flatten", {{2, 3}}, {{"axis", {3}}}},
      {"Trilu", {{3}}, {}},
      {"DepthToSpace", {{2, 4, 4}}, {{"blocksize", {2}}}},
      {"SpaceToDepth", {{4}}, {{"blocksize", {2}}}},
      {"Det", {{3}}, {}},
      {"PRelu", {{2, 3}, {4}}, {}},
      {"LSTM", {{2, 3}, {1, 8, 3}, {1, 8, 2}}, {{"hidden_size", {2}}}},
      {"GRU", {{2, 1, 3}, {6, 3}, {1, 6, 2}}, {{"hidden_size", {2}}}},
      {"RNN", {{2, 1, 3}, {1, 2, 3}, {1, 2, 2}, {2}}, {{"hidden_size", {2}}}},
      {"GridSample", {{1, 1, 4, 4}, {1, 4, 4}}, {}},
      {"MaxRoiPool", {{1, 4, 4}, {1, 5}}, {{"*pooled_shape", {1, 1}}}},
      {"NonMaxSuppression", {{4}, {1, 1, 4}}, {}},
  };
  for (const Case& wrong : cases) {
    pb::ModelProto model = empty_model();
    pb::GraphProto* graph = model.mutable_graph();
    Names inputs;
    for (const Sizes& dims : wrong.inputs) {
      inputs.push_back("x" + std::to_string(inputs.size()));
      add_input(graph, inputs.back(), dims);
    }
    pb::NodeProto* node = add_node(graph, wrong.type, inputs, {"y"}, "it");
    for (const auto& [name, values] : wrong.attributes) {
      if (name[0] != '*') {
        set_int(node, name, values[0]);
        continue;
      }
      auto* list = add_attribute(node, name.substr(1), pb::AttributeProto::INTS);
      for (const int64_t value : values) list->add_ints(value);
    }
    if (wrong.type == std::string("Einsum")) {
      add_attribute(node, "equation", pb::AttributeProto::STRING)->set_s("ij,jk->ik");
    }
    add_ends(graph, {}, {"y"});
    const std::string message = failure_of(model);
    EXPECT_TRUE(message.find("node 'it'") != std::string::npos || message.find("node \"it\"") != std::string::npos)
        << wrong.type << ": " << message;
  }
}

TEST_F(OnnxDamage, AttributesOfWrongTypes) {
  pb::ModelProto model = relu_model();
  pb::GraphProto* graph = model.mutable_graph();
  pb::NodeProto* split = add_node(graph, "SplitToSequence", {"y"}, {"parts"}, "split");
  add_attribute(split, "axis", pb::AttributeProto::FLOAT)->set_f(1);
  expect_failure(model, {"node 'split' (SplitToSequence)", "attribute axis: expected type 2", "found 1"});
  split->clear_attribute();
  set_int(split, "axis", 2);
  expect_failure(model, {"node 'split' (SplitToSequence)", "2"});
  split->clear_attribute();
  set_int(split, "axis", INT64_MIN);
  expect_failure(model, {"node 'split' (SplitToSequence)"});
  split->clear_attribute();
  refer(split, "axis", pb::AttributeProto::INT, "outer");
  expect_failure(model, {"node 'split' (SplitToSequence)", "outside of any"});
}

TEST_F(OnnxDamage, EverythingUnsupportedInOneMessage) {
  pb::ModelProto model = relu_model();
  model.mutable_opset_import(0)->set_version(20);
  add_opset(&model, "com.acme", 1);
  pb::GraphProto* graph = model.mutable_graph();
  for (int n = 0; n < 6; ++n) {
    add_node(graph, "RandomNormalLike", {"y"}, {"r" + std::to_string(n)}, "random" + std::to_string(n));
  }
  add_node(graph, "com.acme.Strange", {"r0"}, {"s"}, "strange");  // behind another one
  add_node(graph, "Relu", {"s"}, {"t"}, "fine");
  add_node(graph, "StringConcat", {"t", "t"}, {"u"}, "join");
  pb::NodeProto* loop = add_node(graph, "If", {"yes"}, {"v"}, "if");
  add_bool(graph, "yes", true);
  pb::GraphProto* body = set_graph(loop, "then_branch");
  add_node(body, "com.acme.Odd", {"y"}, {"w"}, "odd");
  add_ends(body, {}, {"w"});
  add_ends(graph, {}, {"t", "u", "v"});
  expect_failure(model, {"m.onnx: the model needs what cannot be imported:",
                         "RandomNormalLike-1: its results are random, so that no tactic could be verified (6 times: "
                         "'random0', 'random1', 'random2', 'random3', ...)",
                         "StringConcat-20: tensors of strings are not supported", "'join'",
                         "com.acme.Odd: no installed plugin brings an op or an op importer of this name (1 time: "
                         "'if/then/odd')"});
  EXPECT_EQ(status_.code(), Code::kNotFound);
  graph->clear_node();
  add_node(graph, "Relux", {"x"}, {"y"}, "typo");
  expect_failure(model, {"node 'typo' (Relux): ONNX has no operator Relux at opset 20"});
}

TEST_F(OnnxDamage, FunctionsThatCallThemselves) {
  pb::ModelProto model = rich_model();
  pb::FunctionProto* function = model.mutable_functions(0);
  auto* opset = function->add_opset_import();
  opset->set_domain("local");
  opset->set_version(1);
  pb::GraphProto nodes;
  *function->mutable_node(0) = *add_node(&nodes, "local.Twice", {"a"}, {"b"}, "again");
  expect_failure(model, {"'call/again/again/", "functions call one another more than 50 deep"});
  // Forty functions that call the next one twice would be 2^40 calls.
  model.clear_functions();
  for (int n = 0; n < 40; ++n) {
    function = model.add_functions();
    function->set_name(n == 0 ? "Twice" : "f" + std::to_string(n));
    function->set_domain("local");
    function->add_input("a");
    function->add_output("c");
    opset = function->add_opset_import();
    opset->set_domain("local");
    opset->set_version(1);
    nodes.Clear();
    const std::string next = "local.f" + std::to_string(n + 1);
    if (n == 39) {
      function->set_output(0, "a");
    } else {
      *function->add_node() = *add_node(&nodes, next, {"a"}, {"b"}, "n");
      *function->add_node() = *add_node(&nodes, next, {"b"}, {"c"}, "m");
    }
  }
  expect_failure(model, {"the model has more than", "nodes"});
}

TEST_F(OnnxDamage, NumbersOutOfRange) {
  pb::ModelProto model = relu_model();
  pb::GraphProto* graph = model.mutable_graph();
  add_floats(graph, "at", {}, {1e30f});
  add_node(graph, "SequenceConstruct", {"y"}, {"s"});
  add_node(graph, "SequenceAt", {"s", "at"}, {"z"}, "pick");
  add_ends(graph, {}, {"z"});
  expect_failure(model, {"node 'pick' (SequenceAt)", "position 1e+30"});
  graph->clear_node();
  pb::NodeProto* scan = add_node(graph, "Scan", {"x"}, {"y"}, "scan");
  set_graph(scan, "body");
  set_int(scan, "num_scan_inputs", INT64_MIN);
  expect_failure(model, {"node 'scan' (Scan)", "num_scan_inputs: found -9223372036854775808 for 1 inputs"});
}

TEST_F(OnnxDamage, NamesOfAnyBytes) {
  pb::ModelProto model = relu_model();
  model.set_producer_name("\xff\x01\n");
  model.mutable_graph()->mutable_node(0)->set_name("\xff\xfe");
  model.mutable_graph()->mutable_node(0)->set_output(0, "\xc3(");
  model.mutable_graph()->mutable_output(0)->set_name("\xc3(");
  import(model);
  EXPECT_TRUE(network_->describe().ok());
  EXPECT_NE(network_->metadata("model")->find("made by ??"), std::string::npos);
}

}  // namespace
}  // namespace tenon::onnx
