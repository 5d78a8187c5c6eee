// Half precision and tf32 on a GPU, through the public API. Needs a GPU.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include <tenon/tenon.hpp>

#include "tests/e2e/e2e_testing.h"

namespace tenon::e2e {
namespace {

/// The operands of one layer; the first are inputs of the network, the others constants.
struct LayerCase {
  std::string name;
  std::string op;
  std::string attrs;
  std::vector<std::vector<std::int64_t>> inputs;
  std::vector<std::vector<std::int64_t>> constants;
  std::set<std::string> kernels;  ///< of which a tactic must pass
};

void PrintTo(const LayerCase& layer, std::ostream* out) { *out << layer.name; }

/// From -1 to 1, or above 0: multiples of 1/256, which are the same numbers in f16. No zeros, to divide by.
std::vector<float> values_of(const std::vector<std::int64_t>& dims, std::uint32_t seed, bool positive = false) {
  std::mt19937 engine(seed);
  std::vector<float> values(static_cast<std::size_t>(
      std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<std::int64_t>())));
  for (float& value : values) {
    value = static_cast<float>(1 + engine() % 256) / 256;
    if (!positive && engine() % 2 == 0) value = -value;
  }
  return values;
}

/// The same numbers in f16. REQUIRES: f16 has them, and none is 0 or subnormal.
std::vector<std::uint16_t> half_bits(const std::vector<float>& values) {
  std::vector<std::uint16_t> halves;
  for (const float value : values) {
    int exponent = 0;
    const float mantissa = std::frexp(std::fabs(value), &exponent);  // from 1/2 to 1
    const int bits = (exponent + 14) * 1024 + static_cast<int>(mantissa * 2048) - 1024;
    halves.push_back(static_cast<std::uint16_t>(bits | (value < 0 ? 0x8000 : 0)));
  }
  return halves;
}

class Precision : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(library_.discover().ok());
    const std::string reason = why_not(library_, "cuda");
    if (!reason.empty()) GTEST_SKIP() << reason;
  }

  static BuilderConfig config(const std::string& device, const std::map<std::string, std::string>& options = {}) {
    BuilderConfig result = BuilderConfig::create().value();
    EXPECT_TRUE(result.set("device", device).ok());
    for (const auto& [key, value] : options) EXPECT_TRUE(result.set(key, value).ok()) << key;
    return result;
  }

  static TensorId cast(Network* network, TensorId x, const std::string& name, const std::string& dtype) {
    return network->add_layer("tenon.cast/1", name, {x}, R"({"to": ")" + dtype + R"("})").value();
  }

  static TensorId half_constant(Network* network, const std::string& name, const std::vector<std::int64_t>& dims,
                                const std::vector<float>& values) {
    const TnDims raw = detail::dims(dims);
    const std::vector<std::uint16_t> halves = half_bits(values);
    TensorId id = TN_NO_TENSOR;
    EXPECT_EQ(
        tn_network_add_constant(network->get(), name.c_str(), TN_F16, &raw, halves.data(), halves.size() * 2, &id),
        TN_OK);
    return id;
  }

  /// The layer in `dtype`, its constants too, between f32 inputs and an f32 output.
  Network network_of(const LayerCase& layer, const std::string& dtype) {
    Network network = Network::create(library_).value();
    std::vector<TensorId> operands;
    std::uint32_t seed = 1;
    for (const auto& dims : layer.inputs) {
      const std::string name = "x" + std::to_string(operands.size());
      operands.push_back(cast(&network, network.add_input(name, dims).value(), name + ".cast", dtype));
      ++seed;
    }
    for (const auto& dims : layer.constants) {
      const std::string name = "c" + std::to_string(operands.size());
      const std::vector<float> values = values_of(dims, seed++, true);
      operands.push_back(dtype == "f16" ? half_constant(&network, name, dims, values)
                                        : network.add_constant(name, dims, values).value());
    }
    const TensorId y = network.add_layer(layer.op, "layer", operands, layer.attrs).value();
    EXPECT_TRUE(network.mark_output(cast(&network, y, "y", "f32")).ok());
    return network;
  }

  std::vector<float> run(const BuiltEngine& built, const std::string& device, const std::vector<void*>& inputs) const {
    const Engine engine = Runtime(library_, device).create(built.data(), built.size()).value();
    ExecutionContext context = ExecutionContext::create(engine).value();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      EXPECT_TRUE(context.set_tensor(engine.inputs()[i].name, inputs[i]).ok());
    }
    std::vector<float> output(values_of(engine.outputs()[0].dims, 0).size());
    EXPECT_TRUE(context.set_tensor(engine.outputs()[0].name, output.data()).ok());
    const Status status = context.execute();
    EXPECT_TRUE(status.ok()) << status.message();
    return output;
  }

  Library library_ = Library::create().value();
};

class HalfLayer : public Precision, public ::testing::WithParamInterface<LayerCase> {};

// Each tactic is compared with the op's reference while it is tuned; the chosen one with the CPU in f32 here.
TEST_P(HalfLayer, EveryTacticPassesAndTheResultIsThatOfF32) {
  const LayerCase& layer = GetParam();
  const TimingCache cache = TimingCache::create(library_, "", 0, "cuda").value();
  BuilderConfig on_gpu = config("cuda");
  ASSERT_TRUE(on_gpu.set_cache(cache).ok());
  const Network network = network_of(layer, "f16");
  const auto built = Builder(library_).build(network, on_gpu);
  ASSERT_TRUE(built.ok()) << built.status().message();

  std::set<std::string> passed;
  const auto text = Builder(library_).explain(network, on_gpu, "layer");
  ASSERT_TRUE(text.ok()) << text.status().message();
  const json explained = parse_json(*text);
  for (const json& candidate : explained["candidates"]) {
    const std::string kernel = candidate["kernel"], status = candidate["status"];
    EXPECT_NE(status, "rejected") << candidate.dump();
    if (status == "chosen" || status == "measured") passed.insert(kernel);
  }
  const std::string registered = library_.describe().value();
  for (const std::string& kernel : layer.kernels) {
    // Adapters of libraries that this build lacks.
    const bool adapter = kernel.find(".cuda") == std::string::npos;
    if (adapter && registered.find(kernel.substr(0, kernel.size() - 3) + "f32") == std::string::npos) continue;
    EXPECT_TRUE(passed.count(kernel)) << kernel << explained.dump(1);
  }

  std::vector<std::vector<float>> values;
  std::vector<void*> inputs;
  for (const auto& dims : layer.inputs)
    values.push_back(values_of(dims, static_cast<std::uint32_t>(values.size()) + 1));
  for (std::vector<float>& input : values) inputs.push_back(input.data());
  const auto reference = Builder(library_).build(network_of(layer, "f32"), config("cpu"));
  ASSERT_TRUE(reference.ok()) << reference.status().message();
  // Rounding to eleven bits: 2^-11 at most, and again where a library stores a result before the activation.
  EXPECT_LT(distance(run(*reference, "cpu", inputs), run(*built, "cuda", inputs)), 1e-3);
}

std::vector<LayerCase> half_layers() {
  const std::vector<std::int64_t> image = {2, 8, 13, 10};
  std::vector<LayerCase> cases;
  for (const char* name :
       {"linear", "relu", "relu6", "leaky_relu", "logistic", "tanh", "elu", "mish", "swish", "hard_swish"}) {
    const std::string op = std::string("tenon.") + name;
    cases.push_back({name, op + "/1", "", {image}, {}, {op + ".vector.f16.cuda"}});
  }
  for (const char* name : {"add", "sub", "mul", "div"}) {
    const std::string op = std::string("tenon.") + name;
    cases.push_back({name, op + "/1", "", {image, image}, {}, {op + ".vector.f16.cuda"}});
    cases.push_back(
        {std::string(name) + "_broadcast", op + "/1", "", {image, {1, 8, 1, 1}}, {}, {op + ".vector.f16.cuda"}});
  }
  cases.push_back({"softmax", "tenon.softmax/1", R"({"axis": 1})", {{3, 37, 5}}, {}, {"tenon.softmax.rows.f16.cuda"}});
  const std::string window = R"({"kernel": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]})";
  for (const std::string name : {"max_pool", "avg_pool"}) {
    cases.push_back({name, "tenon." + name + "/1", window, {image}, {}, {"tenon." + name + ".window.f16.cuda"}});
  }
  cases.push_back(
      {"global_avg_pool", "tenon.global_avg_pool/1", "", {image}, {}, {"tenon.global_avg_pool.blocks.f16.cuda"}});
  cases.push_back(
      {"batch_norm", "tenon.batch_norm/1", "", {image}, {{8}, {8}, {8}, {8}}, {"tenon.batch_norm.affine.f16.cuda"}});
  cases.push_back({"upsample",
                   "tenon.upsample/1",
                   R"({"factors": [2, 3], "scale": 0.5})",
                   {image},
                   {},
                   {"tenon.upsample.nearest.f16.cuda"}});
  cases.push_back(
      {"concat", "tenon.concat/1", R"({"axis": 1})", {image, {2, 3, 13, 10}}, {}, {"tenon.concat.copy.cuda"}});
  cases.push_back({"slice",
                   "tenon.slice/1",
                   R"({"starts": [1, 9], "ends": [8, 0], "axes": [1, 3], "steps": [2, -3]})",
                   {image},
                   {},
                   {"tenon.slice.copy.cuda"}});
  cases.push_back({"reshape", "tenon.reshape/1", R"({"shape": [2, -1]})", {image}, {}, {"tenon.reshape.copy.cuda"}});
  cases.push_back(
      {"transpose", "tenon.transpose/1", R"({"perm": [0, 2, 3, 1]})", {image}, {}, {"tenon.transpose.tiled.cuda"}});
  cases.push_back({"reorg", "tenon.reorg/1", R"({"stride": 2})", {{2, 8, 6, 4}}, {}, {"tenon.reorg.copy.cuda"}});
  cases.push_back(
      {"reformat", "tenon.reformat/1", R"({"from": "row", "to": "nhwc"})", {image}, {}, {"tenon.reformat.copy.cuda"}});
  for (const char* name : {"max", "l2", "log_sum_exp", "sum_square"}) {
    const std::string op = std::string("tenon.reduce_") + name;
    cases.push_back({std::string("reduce_") + name, op + "/1", "", {image}, {}, {op + ".teams.f16.cuda"}});
  }
  cases.push_back(
      {"log_softmax", "tenon.log_softmax/1", R"({"axis": 1})", {{3, 37, 5}}, {}, {"tenon.log_softmax.rows.f16.cuda"}});
  cases.push_back(
      {"layer_norm", "tenon.layer_norm/1", "", {{6, 5, 96}}, {{96}, {96}}, {"tenon.layer_norm.teams.f16.cuda"}});
  cases.push_back({"rms_norm", "tenon.rms_norm/1", "", {{7, 300}}, {{300}}, {"tenon.rms_norm.teams.f16.cuda"}});
  cases.push_back({"group_norm",
                   "tenon.group_norm/1",
                   R"({"groups": 4})",
                   {image},
                   {{8}, {8}},
                   {"tenon.group_norm.teams.f16.cuda"}});
  cases.push_back({"lp_norm", "tenon.lp_norm/1", R"({"axis": 1})", {image}, {}, {"tenon.lp_norm.teams.f16.cuda"}});
  cases.push_back({"lrn", "tenon.lrn/1", R"({"size": 5, "alpha": 0.5})", {image}, {}, {"tenon.lrn.direct.f16.cuda"}});
  cases.push_back({"conv",
                   "tenon.conv/1",
                   R"({"pads": [1, 1, 1, 1, 1, 1], "strides": [1, 2, 1]})",
                   {{1, 4, 6, 7, 8}},
                   {{6, 4, 3, 3, 3}, {6}},
                   {"tenon.conv.unpacked.f16.cuda"}});
  cases.push_back({"conv_transpose",
                   "tenon.conv_transpose/1",
                   R"({"strides": [2, 2], "pads": [1, 1, 1, 1]})",
                   {{2, 6, 7, 8}},
                   {{6, 4, 4, 4}, {4}},
                   {"tenon.conv_transpose.unpacked.f16.cuda"}});
  cases.push_back({"conv2d_of_computed_weights",
                   "tenon.conv2d/1",
                   "",
                   {{1, 3, 12, 12}, {8, 3, 3, 3}},
                   {},
                   {"tenon.conv2d.unpacked.f16.cuda"}});
  cases.push_back({"attention",
                   "tenon.attention/1",
                   R"({"scale": 0.2, "causal": 1, "past": 3})",
                   {{2, 4, 9, 32}, {2, 2, 12, 32}, {2, 2, 12, 40}},
                   {},
                   {"tenon.attention.streamed.f16.cuda"}});
  cases.push_back({"rotary_embedding",
                   "tenon.rotary_embedding/1",
                   "",
                   {{2, 3, 5, 16}, {2, 5, 8}, {2, 5, 8}},
                   {},
                   {"tenon.rotary_embedding.pairs.f16.cuda"}});
  const std::set<std::string> products = {"tenon.matmul.tiled.f16.cuda", "tenon.matmul.cublaslt.f16"};
  cases.push_back({"matmul", "tenon.matmul/1", "", {{3, 40, 64}, {3, 64, 72}}, {}, products});
  cases.push_back({"matmul_odd",
                   "tenon.matmul/1",
                   R"({"transpose_a": 1})",
                   {{65, 33}, {65, 71}},
                   {},
                   {"tenon.matmul.tiled.f16.cuda"}});
  cases.push_back({"matmul_weights", "tenon.matmul/1", R"({"transpose_b": 1})", {{2, 5, 96}}, {{40, 96}}, products});
  const std::set<std::string> layers = {"tenon.fully_connected.tiled.f16.cuda", "tenon.fully_connected.cublaslt.f16"};
  cases.push_back({"fully_connected", "tenon.fully_connected/1", "", {{4, 8, 6, 4}}, {{100, 192}, {100}}, layers});
  cases.push_back({"fully_connected_plain", "tenon.fully_connected/1", "", {{1, 192}}, {{104, 192}}, layers});
  // The library need not have an engine for each.
  const std::set<std::string> own = {"tenon.conv2d.implicit.f16.cuda"};
  const std::set<std::string> both = {"tenon.conv2d.implicit.f16.cuda", "tenon.conv2d.cudnn.f16"};
  const std::string padded = R"({"pads": [1, 1, 1, 1]})", halved = R"({"strides": [2, 2]})";
  const std::string depthwise = R"({"pads": [1, 1, 1, 1], "groups": 32})";
  cases.push_back({"conv2d", "tenon.conv2d/1", padded, {{2, 16, 14, 12}}, {{24, 16, 3, 3}, {24}}, both});
  cases.push_back({"conv2d_plain", "tenon.conv2d/1", halved, {{1, 8, 15, 17}}, {{8, 8, 3, 3}}, own});
  cases.push_back({"conv2d_first", "tenon.conv2d/1", padded, {{1, 3, 20, 20}}, {{16, 3, 3, 3}, {16}}, own});
  cases.push_back({"conv2d_1x1", "tenon.conv2d/1", "", {{1, 32, 7, 7}}, {{40, 32, 1, 1}, {40}}, both});
  cases.push_back({"conv2d_depthwise", "tenon.conv2d/1", depthwise, {{1, 32, 9, 9}}, {{32, 1, 3, 3}, {32}}, own});
  return cases;
}

using Half = Precision;

// Input and layers are f16, the output is cast to f32; constants are cast while building.
TEST_F(Half, ANetworkGivesWhatItGivesInF32) {
  const std::vector<std::int64_t> x_dims = {1, 3, 32, 32};
  const auto network_in = [&](std::int32_t dtype, const std::string& name) {
    Network network = Network::create(library_).value();
    const auto constant = [&](const std::string& id, const std::vector<std::int64_t>& dims, float scale) {
      std::vector<float> values = values_of(dims, static_cast<std::uint32_t>(id.back()));
      for (float& value : values) value *= scale;
      return cast(&network, network.add_constant(id, dims, values).value(), id + ".cast", name);
    };
    const auto layer = [&](const std::string& op, const std::vector<TensorId>& inputs, const std::string& attrs = "") {
      return network.add_layer("tenon." + op + "/1", op + std::to_string(inputs[0]), inputs, attrs).value();
    };
    TensorId y = network.add_input("x", x_dims, dtype).value();
    y = layer("conv2d", {y, constant("w1", {16, 3, 3, 3}, 0.25f), constant("b1", {16}, 1)},
              R"({"pads": [1, 1, 1, 1]})");
    y = layer("relu", {y});
    y = layer("max_pool", {y}, R"({"kernel": [2, 2], "strides": [2, 2]})");
    y = layer("conv2d", {y, constant("w2", {32, 16, 1, 1}, 0.25f)});
    y = layer("leaky_relu", {y}, R"({"alpha": 0.1})");
    y = layer("conv2d", {y, constant("w3", {32, 1, 3, 3}, 0.5f), constant("b3", {32}, 1)},
              R"({"pads": [1, 1, 1, 1], "groups": 32})");
    y = layer("hard_swish", {y});
    y = layer("avg_pool", {y}, R"({"kernel": [4, 4], "strides": [4, 4]})");
    y = layer("reshape", {y}, R"({"shape": [1, 512]})");
    y = layer("matmul", {y, constant("w4", {512, 10}, 0.0625f)});
    y = layer("swish", {y});
    y = layer("softmax", {y});
    EXPECT_TRUE(network.mark_output(cast(&network, y, "y", "f32")).ok());
    return network;
  };
  std::vector<float> x = values_of(x_dims, 7);
  std::vector<std::uint16_t> half_x = half_bits(x);
  std::map<std::string, std::vector<float>> found;
  for (const std::string device : {"cpu", "cuda"}) {
    const bool half = device == "cuda";
    const Network network = half ? network_in(TN_F16, "f16") : network_in(TN_F32, "f32");
    const auto built = Builder(library_).build(network, config(device));
    ASSERT_TRUE(built.ok()) << device << ": " << built.status().message();
    EXPECT_EQ(parse_json(built->report())["cache"]["rejected"], json::array()) << device;
    found[device] = run(*built, device, {half ? static_cast<void*>(half_x.data()) : x.data()});
  }
  EXPECT_NEAR(std::accumulate(found["cuda"].begin(), found["cuda"].end(), 0.0), 1, 1e-2);
  EXPECT_LT(distance(found["cpu"], found["cuda"]), 5e-3);
}

INSTANTIATE_TEST_SUITE_P(All, HalfLayer, ::testing::ValuesIn(half_layers()),
                         [](const ::testing::TestParamInfo<LayerCase>& entry) { return entry.param.name; });

/// Matrix products and convolutions in f32 through the libraries, one tactic after the other.
class Tf32 : public Precision, public ::testing::WithParamInterface<LayerCase> {
 protected:
  // Relative l2: float32 sums stay far below, operands rounded to eleven bits (2^-11 of each) come out above.
  static constexpr double kFloat32 = 5e-5, kTf32 = 2e-3;

  void SetUp() override {
    Precision::SetUp();
    if (IsSkipped()) return;
    const std::string kernel = *GetParam().kernels.begin();
    if (library_.describe().value().find(kernel) == std::string::npos) {
      GTEST_SKIP() << "this machine lacks the library of kernel " << kernel;
    }
    std::mt19937 engine(1);
    std::normal_distribution<float> normal;
    const auto random = [&](const std::vector<std::int64_t>& dims) {
      std::vector<float> values = values_of(dims, 0);
      for (float& value : values) value = normal(engine);
      return values;
    };
    x_ = random(GetParam().inputs[0]);
    const TensorId x = network_.add_input("x", GetParam().inputs[0]).value();
    const TensorId w = network_.add_constant("w", GetParam().constants[0], random(GetParam().constants[0])).value();
    EXPECT_TRUE(
        network_.mark_output(network_.add_layer(GetParam().op, "layer", {x, w}, GetParam().attrs).value()).ok());
    expected_ = run(Builder(library_).build(network_, config("cpu")).value(), "cpu", {x_.data()});
  }

  /// What passed verification: params and hash of the kernel's tactics.
  std::map<std::string, std::string> tactics(const std::string& precision) {
    std::map<std::string, std::string> found;
    const auto text = Builder(library_).explain(network_, config("cuda", {{"precision", precision}}), "layer");
    EXPECT_TRUE(text.ok()) << text.status().message();
    if (!text.ok()) return found;
    const json explained = parse_json(*text);
    for (const json& candidate : explained["candidates"]) {
      const std::string status = candidate["status"];
      if (GetParam().kernels.count(candidate["kernel"]) == 0 || status == "declined") continue;
      EXPECT_NE(status, "rejected") << candidate.dump();
      found[candidate["tactic"]] = candidate["tactic_hash"];
    }
    return found;
  }

  double error_of(const std::string& precision, const std::string& hash) {
    const json rule = {{"match", "layer"}, {"kernel", *GetParam().kernels.begin()}, {"tactic", hash}};
    const auto built =
        Builder(library_).build(network_, config("cuda", {{"precision", precision}, {"layer", rule.dump()}}));
    EXPECT_TRUE(built.ok()) << built.status().message();
    return built.ok() ? distance(expected_, run(*built, "cuda", {x_.data()})) : INFINITY;
  }

  Network network_ = Network::create(library_).value();
  std::vector<float> x_, expected_;
};

TEST_P(Tf32, IsNeverOfferedWhereItIsNotAllowed) {
  const auto offered = tactics("fp32");
  EXPECT_FALSE(offered.empty());
  int tried = 0;
  for (const auto& [params, hash] : offered) {
    EXPECT_EQ(params.find("tf32"), std::string::npos) << params;
    if (++tried > 6) continue;
    EXPECT_LT(error_of("fp32", hash), kFloat32) << params;
  }
}

TEST_P(Tf32, IsOfferedAndPassesWhereItIsAllowed) {
  bool found = false;
  for (const auto& [params, hash] : tactics("tf32")) {
    if (found) break;
    const double error = error_of("tf32", hash);
    EXPECT_LT(error, kTf32) << params;
    found = error > kFloat32;
    EXPECT_TRUE(found || params.find("compute=tf32") == std::string::npos) << params << " has an error of " << error;
  }
  EXPECT_TRUE(found);
}

INSTANTIATE_TEST_SUITE_P(
    All, Tf32,
    ::testing::Values(
        LayerCase{"matmul", "tenon.matmul/1", "", {{256, 512}}, {{512, 384}}, {"tenon.matmul.cublaslt.f32"}},
        LayerCase{"fully_connected",
                  "tenon.fully_connected/1",
                  "",
                  {{64, 512}},
                  {{256, 512}},
                  {"tenon.fully_connected.cublaslt.f32"}},
        LayerCase{"conv2d",
                  "tenon.conv2d/1",
                  R"({"pads": [1, 1, 1, 1]})",
                  {{2, 64, 28, 28}},
                  {{64, 64, 3, 3}},
                  {"tenon.conv2d.cudnn.f32"}}),
    [](const ::testing::TestParamInfo<LayerCase>& entry) { return entry.param.name; });

}  // namespace
}  // namespace tenon::e2e
