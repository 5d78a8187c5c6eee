// Networks of f32 built with precision bf16 on a CPU that has it, through the public API; and what others are told.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include <tenon/tenon.hpp>

#include "tests/e2e/e2e_testing.h"

namespace tenon::e2e {
namespace {

using Dims = std::vector<std::int64_t>;

std::vector<float> random(const Dims& dims, std::uint32_t seed, float scale = 1) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(
      static_cast<std::size_t>(std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>())));
  for (float& value : values) value = scale * normal(engine);
  return values;
}

class Bf16 : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(library_.discover().ok());
    if (library_.describe().value().find("tenon.conv2d.onednn.bf16") == std::string::npos) {
      GTEST_SKIP() << "built without oneDNN";
    }
    Network network = Network::create(library_).value();
    const TensorId y = network.add_layer("tenon.relu/1", "y", {network.add_input("x", {1, 4}).value()}).value();
    ASSERT_TRUE(network.mark_output(y).ok());
    const auto built = Builder(library_).build(network, config({{"precision", "bf16"}}));
    if (built.ok()) return;
    EXPECT_NE(built.status().message().find("no bf16 instructions"), std::string::npos) << built.status().message();
    GTEST_SKIP() << built.status().message();
  }

  static BuilderConfig config(const std::map<std::string, std::string>& options) {
    BuilderConfig result = BuilderConfig::create().value();
    EXPECT_TRUE(result.set("device", "cpu").ok());
    for (const auto& [key, value] : options) EXPECT_TRUE(result.set(key, value).ok()) << key;
    return result;
  }

  BuiltEngine build(const Network& network, const std::map<std::string, std::string>& options) {
    auto built = Builder(library_).build(network, config(options));
    EXPECT_TRUE(built.ok()) << built.status().message();
    return std::move(built).value();
  }

  std::vector<float> run(const BuiltEngine& built, std::vector<std::vector<float>> inputs) const {
    const Engine engine = Runtime(library_, "cpu").create(built.data(), built.size()).value();
    ExecutionContext context = ExecutionContext::create(engine).value();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      EXPECT_TRUE(context.set_tensor(engine.inputs()[i].name, inputs[i].data()).ok());
    }
    std::vector<float> output(random(engine.outputs()[0].dims, 0).size());
    EXPECT_TRUE(context.set_tensor(engine.outputs()[0].name, output.data()).ok());
    const Status status = context.execute();
    EXPECT_TRUE(status.ok()) << status.message();
    return output;
  }

  Library library_ = Library::create().value();
};

/// One layer: the first operands are inputs of the network, the others constants.
struct LayerCase {
  std::string name, op, attrs;
  std::vector<Dims> inputs, constants;
  std::string kernel;
  double least_error;  ///< relative l2; products of rounded numbers are not exact, moved numbers are
};

void PrintTo(const LayerCase& layer, std::ostream* out) { *out << layer.name; }

class Bf16Layer : public Bf16, public ::testing::WithParamInterface<LayerCase> {};

// Compared with the same layer in f32, which other tests compare with other sources.
TEST_P(Bf16Layer, EveryComboIsRight) {
  const LayerCase& layer = GetParam();
  Network network = Network::create(library_).value();
  std::vector<TensorId> operands;
  std::vector<std::vector<float>> inputs;
  for (const Dims& dims : layer.inputs) {
    operands.push_back(network.add_input("x" + std::to_string(inputs.size()), dims).value());
    inputs.push_back(random(dims, static_cast<std::uint32_t>(inputs.size()) + 1));
  }
  // Of one axis: above 0, as variances are.
  const auto weights = [](const Dims& dims, std::uint32_t seed) {
    std::vector<float> values = random(dims, seed);
    for (float& value : values) value = dims.size() == 1 ? 0.5f + std::fabs(value) : value;
    return values;
  };
  for (const Dims& dims : layer.constants) {
    const auto number = static_cast<std::uint32_t>(operands.size());
    operands.push_back(network.add_constant("c" + std::to_string(number), dims, weights(dims, number + 9)).value());
  }
  ASSERT_TRUE(network.mark_output(network.add_layer(layer.op, "layer", operands, layer.attrs).value()).ok());
  const std::vector<float> expected = run(build(network, {}), inputs);

  const auto candidates = [&](const std::string& precision) {
    const auto text = Builder(library_).explain(network, config({{"precision", precision}}), "layer");
    EXPECT_TRUE(text.ok()) << text.status().message();
    return parse_json(text.ok() ? *text : "{}")["candidates"];
  };
  for (const json& candidate : candidates("fp32")) {
    const std::string combo = candidate.value("combo", "");
    EXPECT_TRUE(candidate["status"] == "declined" || combo.find("bf16") == std::string::npos) << candidate;
  }
  std::set<std::string> combos;
  for (const json& candidate : candidates("bf16")) {
    if (candidate["kernel"] != layer.kernel || candidate["status"] == "declined") continue;
    EXPECT_NE(candidate["status"], "rejected") << candidate;
    if (candidate["combo"].get<std::string>().find("bf16") != std::string::npos) combos.insert(candidate["combo"]);
  }
  EXPECT_FALSE(combos.empty());
  for (const std::string& combo : combos) {
    const json rule = {{"match", "layer"}, {"kernel", layer.kernel}, {"combo", combo}};
    const double error =
        distance(expected, run(build(network, {{"precision", "bf16"}, {"layer", rule.dump()}}), inputs));
    // Each number is rounded to eight bits: by 2^-9 at most, by a third of that on average.
    EXPECT_LT(error, 6e-3) << combo;
    EXPECT_GT(error, layer.least_error) << combo;
  }
}

std::vector<LayerCase> layers() {
  const Dims image = {2, 16, 13, 10};
  const std::string pads = R"({"pads": [1, 1, 1, 1]})", pool = R"({"kernel": [3, 3], "strides": [2, 2]})";
  const std::string groups = R"({"pads": [1, 1, 1, 1], "groups": 16})";
  const double kProduct = 1e-3, kMoved = 5e-4;
  const std::string conv = "tenon.conv2d.onednn.bf16";
  return {
      {"conv2d", "tenon.conv2d/1", pads, {image}, {{24, 16, 3, 3}, {24}}, conv, kProduct},
      {"conv2d_first", "tenon.conv2d/1", pads, {{1, 3, 20, 20}}, {{16, 3, 3, 3}, {16}}, conv, kProduct},
      {"conv2d_padded_block", "tenon.conv2d/1", "", {image}, {{21, 16, 1, 1}}, conv, kProduct},
      {"conv2d_depthwise", "tenon.conv2d/1", groups, {image}, {{16, 1, 3, 3}, {16}}, conv, kProduct},
      {"fully_connected",
       "tenon.fully_connected/1",
       "",
       {{4, 8, 6, 4}},
       {{100, 192}, {100}},
       "tenon.fully_connected.onednn.bf16",
       kProduct},
      {"matmul", "tenon.matmul/1", "", {{3, 40, 64}, {3, 64, 72}}, {}, "tenon.matmul.onednn.bf16", kProduct},
      {"matmul_transposed",
       "tenon.matmul/1",
       R"({"transpose_a": 1})",
       {{65, 33}, {65, 71}},
       {},
       "tenon.matmul.onednn.bf16",
       kProduct},
      {"matmul_weights",
       "tenon.matmul/1",
       R"({"transpose_b": 1})",
       {{5, 96}},
       {{40, 96}},
       "tenon.matmul.onednn.bf16",
       kProduct},
      {"max_pool", "tenon.max_pool/1", pool, {image}, {}, "tenon.max_pool.onednn.bf16", kMoved},
      {"avg_pool", "tenon.avg_pool/1", pool, {image}, {}, "tenon.avg_pool.onednn.bf16", kMoved},
      {"concat", "tenon.concat/1", R"({"axis": 1})", {image, {2, 16, 13, 10}}, {}, "tenon.concat.copy", kMoved},
      {"slice",
       "tenon.slice/1",
       R"({"starts": [1, 9], "ends": [8, 0], "axes": [1, 3], "steps": [2, -3]})",
       {image},
       {},
       "tenon.slice.copy",
       kMoved},
      {"reshape", "tenon.reshape/1", R"({"shape": [2, -1]})", {image}, {}, "tenon.reshape.copy", kMoved},
      {"transpose", "tenon.transpose/1", R"({"perm": [0, 2, 3, 1]})", {image}, {}, "tenon.transpose.tiled", kMoved},
      {"batch_norm",
       "tenon.batch_norm/1",
       "",
       {image},
       {{16}, {16}, {16}, {16}},
       "tenon.batch_norm.affine.bf16",
       kProduct},
      {"pointwise",
       "tenon.pointwise/1",
       R"json({"expression": "max(add(mul(x0,x1),x2),0)"})json",
       {image, image},
       {{1, 16, 1, 1}},
       "tenon.pointwise.blocked.bf16",
       kProduct},
  };
}

INSTANTIATE_TEST_SUITE_P(All, Bf16Layer, ::testing::ValuesIn(layers()),
                         [](const ::testing::TestParamInfo<LayerCase>& entry) { return entry.param.name; });

// A residual block, branches that are joined, and a classifier. The rounding of every layer adds up.
TEST_F(Bf16, ANetworkGivesNearlyWhatItGivesInF32) {
  Network network = Network::create(library_).value();
  std::uint32_t seed = 1;
  const auto weights = [&](const Dims& dims) {
    const float scale =
        std::sqrt(2.0f / static_cast<float>(random(dims, 0).size() / static_cast<std::size_t>(dims[0])));
    const std::string name = "w" + std::to_string(seed);
    return network.add_constant(name, dims, random(dims, seed++, scale)).value();
  };
  const auto layer = [&](const std::string& op, const std::vector<TensorId>& inputs, const std::string& attrs = "") {
    return network.add_layer("tenon." + op + "/1", op + std::to_string(seed++), inputs, attrs).value();
  };
  const std::string padded = R"({"pads": [1, 1, 1, 1]})";
  const Dims x_dims = {1, 3, 64, 64};
  TensorId x = network.add_input("x", x_dims).value();
  x = layer("relu", {layer("conv2d", {x, weights({32, 3, 3, 3})}, padded)});
  x = layer("max_pool", {x}, R"({"kernel": [2, 2], "strides": [2, 2]})");
  TensorId y = layer("relu", {layer("conv2d", {x, weights({32, 32, 3, 3})}, padded)});
  y = layer("conv2d", {y, weights({32, 32, 3, 3})}, padded);
  x = layer("relu", {layer("add", {x, y})});
  x = layer("concat", {layer("conv2d", {x, weights({32, 32, 1, 1})}), layer("conv2d", {x, weights({16, 32, 1, 1})})},
            R"({"axis": 1})");
  x = layer("avg_pool", {x}, R"({"kernel": [8, 8], "strides": [8, 8]})");
  x = layer("fully_connected", {x, weights({10, 768})});
  x = layer("softmax", {x}, R"({"axis": 1})");
  ASSERT_TRUE(network.mark_output(x).ok());

  const std::vector<std::vector<float>> input = {random(x_dims, 99)};
  const std::map<std::string, std::string> f32, bf16 = {{"precision", "bf16"}};
  const std::vector<float> expected = run(build(network, f32), input);
  // Whatever is faster here: once as measured, once with bf16 wherever there is a convolution.
  const json rule = {{"match", "conv2d*"}, {"kernel", "tenon.conv2d.onednn.bf16"}};
  for (const bool forced : {false, true}) {
    std::map<std::string, std::string> options = bf16;
    if (forced) options["layer"] = rule.dump();
    const BuiltEngine built = build(network, options);
    EXPECT_EQ(parse_json(built.report())["cache"]["rejected"], json::array());
    const double error = distance(expected, run(built, input));
    EXPECT_LT(error, 3e-2) << built.report();
    EXPECT_GT(error, forced ? 1e-4 : -1.0);
  }
}

TEST(Bf16Refused, ByNameWhereTheProcessorHasNone) {
  const TempDir dir;
  const std::string cfg = dir.write("net.cfg", "[net]\nwidth=8\nheight=8\nchannels=3\n[avgpool]\n[softmax]\n");
  ASSERT_EQ(setenv("TENON_CPU_ISA", "avx2", 1), 0);
  const std::string engine = dir.path() / "x.tenon";
  const Outcome outcome = tenon(
      {"build", cfg, "-o", engine, "--import-option", "random_weights=1", "--device", "cpu", "--precision", "bf16"});
  unsetenv("TENON_CPU_ISA");
  EXPECT_EQ(outcome.status, 1);
  for (const char* part : {"precision bf16", "no bf16 instructions", "avx512_bf16 or AMX, found avx2"}) {
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
  }
  EXPECT_FALSE(fs::exists(engine));
}

}  // namespace
}  // namespace tenon::e2e
