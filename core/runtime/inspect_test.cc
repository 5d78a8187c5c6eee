#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/runtime/engine.h"

namespace tenon {
namespace {

PlanTensor tensor(const std::string& name, std::int32_t dtype, const std::vector<std::int64_t>& dims,
                  const TnFormat& format = row_format()) {
  PlanTensor result;
  result.name = name;
  result.dtype = dtype;
  result.dims = make_dims(dims);
  result.format = format;
  return result;
}

Plan two_layers() {
  Plan plan;
  plan.device_kind = "cpu";
  plan.verbosity = Verbosity::kDetailed;
  plan.tensors = {tensor("input", TN_F32, {128, 128}), tensor("w", TN_F32, {128, 128}), tensor("m", TN_F32, {128, 128}),
                  tensor("c", TN_F16, {1, 32, 4, 4}, TN_NCHW_BLOCKED_INIT(16))};
  PlanNode matmul;
  matmul.name = "matMul1";
  matmul.layer_type = "matmul";
  matmul.members = {"matMul1"};
  matmul.op_id = "tenon.matmul/1";
  matmul.inputs = {0, 1, kNoTensor};
  matmul.outputs = {2};
  matmul.kernel = "tenon.matmul.tiled.f32";
  matmul.tactic.params = "tile=64";
  matmul.tactic_hash = 0x665ded9abbf88;
  matmul.key = {0x1814870c44ff0f85, 0x74df6e3dda04cbd7};
  matmul.ms = 0.25;
  PlanNode conv = matmul;
  conv.name = "conv1+relu1";
  conv.layer_type = "conv2d";
  conv.members = {"conv1", "relu1"};
  conv.inputs = {};
  conv.outputs = {3};
  conv.tactic.params.clear();
  conv.stream = 2;
  plan.nodes = {matmul, conv};
  return plan;
}

TEST(Inspect, OneLineForm) {
  EXPECT_EQ(
      inspect_oneline(two_layers()),
      "Name: matMul1, LayerType: matmul, Inputs: [ { Name: input, Dimensions: [128,128], Format/Datatype: Float }, "
      "{ Name: w, Dimensions: [128,128], Format/Datatype: Float } ], "
      "Outputs: [ { Name: m, Dimensions: [128,128], Format/Datatype: Float } ], "
      "TacticName: tenon.matmul.tiled.f32 tile=64, StreamId: 0, Metadata: \n"
      "Name: conv1+relu1, LayerType: conv2d, Inputs: [], "
      "Outputs: [ { Name: c, Dimensions: [1,32,4,4], Format/Datatype: Half:nchw16c } ], "
      "TacticName: tenon.matmul.tiled.f32, StreamId: 2, Metadata: \n");
  EXPECT_EQ(inspect_layer_oneline(two_layers(), 1) + "\n",
            inspect_oneline(two_layers()).substr(inspect_layer_oneline(two_layers(), 0).size() + 1));
}

TEST(Inspect, DatatypeNames) {
  const std::pair<std::int32_t, const char*> names[] = {
      {TN_F32, "Float"}, {TN_F16, "Half"},      {TN_I8, "Int8"},    {TN_I32, "Int32"}, {TN_I64, "Int64"},
      {TN_BOOL, "Bool"}, {TN_BF16, "BFloat16"}, {TN_F64, "Double"}, {TN_U8, "UInt8"},  {TN_U16, "u16"}};
  for (const auto& [dtype, name] : names) {
    Plan plan = two_layers();
    plan.tensors[0].dtype = dtype;
    EXPECT_NE(inspect_layer_oneline(plan, 0).find(std::string("Datatype: ") + name + " }"), std::string::npos) << name;
  }
}

TEST(Inspect, Json) {
  const nlohmann::json layers = nlohmann::json::parse(inspect_json(two_layers()));
  ASSERT_EQ(layers.size(), 2u);
  const nlohmann::json expected = nlohmann::json::parse(R"({
    "name": "matMul1", "layer_type": "matmul", "op": "tenon.matmul/1",
    "inputs": [{"name": "input", "dims": [128, 128], "dtype": "f32", "format": "row"},
               {"name": "w", "dims": [128, 128], "dtype": "f32", "format": "row"}],
    "outputs": [{"name": "m", "dims": [128, 128], "dtype": "f32", "format": "row"}],
    "kernel": "tenon.matmul.tiled.f32", "tactic": "tile=64", "tactic_hash": "0x665ded9abbf88",
    "key": "0x1814870c44ff0f8574df6e3dda04cbd7", "ms": 0.25, "device": "cpu", "dtype": "f32", "format": "row",
    "fused_from": [], "stream": 0})");
  EXPECT_EQ(layers[0], expected) << layers[0].dump(2);
  EXPECT_EQ(layers[1]["fused_from"], (std::vector<std::string>{"conv1", "relu1"}));
  EXPECT_EQ(nlohmann::json::parse(inspect_layer_json(two_layers(), 1)), layers[1]);
}

TEST(Inspect, LessVerboseEnginesSayWhatTheyLack) {
  Plan plan = two_layers();
  plan.verbosity = Verbosity::kLayerNames;
  std::string line = inspect_layer_oneline(plan, 0);
  EXPECT_NE(line.find("Name: matMul1"), std::string::npos) << line;
  EXPECT_EQ(line.find("tiled"), std::string::npos) << line;
  EXPECT_NE(line.find("TacticName: (not recorded: build with"), std::string::npos) << line;
  nlohmann::json json = nlohmann::json::parse(inspect_layer_json(plan, 0));
  EXPECT_TRUE(json["kernel"].is_null());
  EXPECT_TRUE(json.contains("note"));

  plan.verbosity = Verbosity::kNone;
  line = inspect_layer_oneline(plan, 0);
  EXPECT_EQ(line.find("matMul1"), std::string::npos) << line;
  EXPECT_NE(line.find("not recorded"), std::string::npos) << line;
  json = nlohmann::json::parse(inspect_layer_json(plan, 0));
  EXPECT_TRUE(json["name"].is_null());
}

TEST(Inspect, EndsTellTheirProfiles) {
  Plan plan = two_layers();
  PlanTensor tensor;
  tensor.name = "x";
  tensor.dtype = TN_F32;
  tensor.dims = make_dims({4, 3});
  plan.tensors.push_back(tensor);
  plan.inputs = {{"x", static_cast<std::uint32_t>(plan.tensors.size() - 1), make_dims({1, 3}), make_dims({8, 3})}};
  plan.outputs.clear();
  EXPECT_EQ(nlohmann::json::parse(inspect_ends(plan)), nlohmann::json::parse(R"({"inputs": [
    {"name": "x", "dtype": "f32", "dims": [4, 3], "min": [1, 3], "max": [8, 3]}], "outputs": []})"));
}

TEST(Inspect, OddNamesAndNumbers) {
  Plan plan = two_layers();
  plan.nodes[0].name = "bad \xFF bytes \"quoted\"";
  EXPECT_TRUE(nlohmann::json::accept(inspect_json(plan)));
  EXPECT_NE(inspect_layer_oneline(plan, 9).find("no layer 9"), std::string::npos);
  EXPECT_TRUE(nlohmann::json::parse(inspect_layer_json(plan, 9)).contains("error"));
  EXPECT_EQ(inspect_oneline(Plan()), "");
  EXPECT_EQ(inspect_json(Plan()), "[]");
}

}  // namespace
}  // namespace tenon
