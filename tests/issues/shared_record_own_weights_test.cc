// The story: two layers of equal shape share one record of the timing cache, unless it is editable. The builder made
// one site for both, and with it one packed copy of the weights: the second layer computed with the weights of the
// first. Nothing failed, since each tactic had been checked with the first layer's weights.
//
// What may be shared is the record. Here two layers that differ in nothing but their constants must each compute with
// their own: with every kernel, tuned or from a warm cache, in either mode of the cache, after a conversion between
// formats, and when the engine is loaded from a file.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tenon/tenon.hpp>

#include "pipeline/testing/temp_dir.h"

namespace tenon::issues {
namespace {

using nlohmann::json;
using Floats = std::vector<float>;

Floats values(std::size_t count, unsigned seed) {
  Floats result(count);
  unsigned state = seed * 2654435761u + 1;
  for (float& value : result) {
    state = state * 1664525u + 1013904223u;  // Numerical Recipes' generator
    value = static_cast<float>(state >> 8) / 16777216.0f - 0.5f;
  }
  return result;
}

std::size_t product(const std::vector<std::int64_t>& dims) {
  std::size_t count = 1;
  for (const std::int64_t size : dims) count *= static_cast<std::size_t>(size);
  return count;
}

/// Two or more equal layers in a row.
struct Twins {
  const char* name;
  const char* op;
  const char* attrs;
  std::vector<std::int64_t> input;
  std::vector<std::vector<std::int64_t>> constants;  ///< dims of inputs 1, 2, ... of each layer
  bool positive = false;                             ///< constants above 0 (variances)
};

const Twins kTwins[] = {
    {"matmul", "tenon.matmul/1", "", {24, 24}, {{24, 24}}},
    {"convolution", "tenon.conv2d/1", R"({"pads": [1,1,1,1]})", {1, 16, 12, 12}, {{16, 16, 3, 3}, {16}}},
    {"pointwise", "tenon.conv2d/1", "", {1, 16, 12, 12}, {{16, 16, 1, 1}, {16}}},
    {"depthwise", "tenon.conv2d/1", R"({"pads": [1,1,1,1], "groups": 16})", {1, 16, 12, 12}, {{16, 1, 3, 3}, {16}}},
    {"fully_connected", "tenon.fully_connected/1", "", {2, 32}, {{32, 32}, {32}}},
    {"batch_norm", "tenon.batch_norm/1", "", {1, 16, 6, 6}, {{16}, {16}, {16}, {16}}, true},
    {"add", "tenon.add/1", "", {1, 16, 6, 6}, {{1, 16, 1, 1}}},
};

constexpr int kLayers = 3;

class SharedRecord : public ::testing::TestWithParam<Twins> {
 protected:
  void SetUp() override {
    library_ = Library::create().value();
    ASSERT_TRUE(library_->discover().ok());
    network_ = Network::create(*library_).value();
    input_ = values(product(GetParam().input), 7);
    TensorId x = network_->add_input("x", GetParam().input).value();
    for (int n = 0; n < kLayers; ++n) {
      std::vector<TensorId> inputs = {x};
      for (std::size_t c = 0; c < GetParam().constants.size(); ++c) {
        Floats constant = values(product(GetParam().constants[c]), static_cast<unsigned>(100 * n + c + 1));
        if (GetParam().positive) {
          for (float& value : constant) value = std::abs(value) + 0.1f;
        }
        const std::string name = "c" + std::to_string(n) + "_" + std::to_string(c);
        inputs.push_back(network_->add_constant(name, GetParam().constants[c], constant).value());
      }
      const auto y = network_->add_layer(GetParam().op, "twin" + std::to_string(n), inputs, GetParam().attrs);
      ASSERT_TRUE(y.ok()) << y.status().message();
      ASSERT_TRUE(network_->rename(*y, "y" + std::to_string(n)).ok());
      ASSERT_TRUE(network_->mark_output(*y).ok());
      x = *y;
    }
    const void* data = input_.data();
    TnReferenceRun* run = nullptr;
    ASSERT_EQ(tn_reference_run(network_->get(), &data, 1, &run), TN_OK) << tn_last_error();
    for (std::uint32_t i = 0; i < tn_reference_num_values(run); ++i) {
      const char* name = nullptr;
      TnTensor tensor{};
      ASSERT_EQ(tn_reference_value(run, i, &name, &tensor), TN_OK);
      const std::string text = name;
      if (text.size() != 2 || text[0] != 'y') continue;
      const float* first = static_cast<const float*>(tensor.data);
      expected_[text].assign(first, first + input_.size());
    }
    tn_reference_release(run);
    ASSERT_EQ(expected_.size(), std::size_t{kLayers});
  }

  Result<BuiltEngine> build(const TimingCache& cache, bool editable, const std::string& layer_rule = "") {
    TENON_ASSIGN(BuilderConfig config, BuilderConfig::create());
    TENON_RETURN_IF_ERROR(config.set("device", "cpu"));
    TENON_RETURN_IF_ERROR(config.set("editable_timing_cache", editable ? "1" : "0"));
    if (!layer_rule.empty()) TENON_RETURN_IF_ERROR(config.set("layer", layer_rule));
    TENON_RETURN_IF_ERROR(config.set_cache(cache));
    return Builder(*library_).build(*network_, config);
  }

  void expect_correct(const Engine& engine) {
    ExecutionContext context = ExecutionContext::create(engine).value();
    std::map<std::string, Floats> found;
    ASSERT_TRUE(context.set_tensor("x", input_.data()).ok());
    for (const auto& [name, floats] : expected_) {
      found[name].resize(floats.size());
      ASSERT_TRUE(context.set_tensor(name, found[name].data()).ok());
    }
    const Status status = context.execute();
    ASSERT_TRUE(status.ok()) << status.message();
    for (const auto& [name, floats] : expected_) {
      double worst = 0, largest = 0;
      for (std::size_t i = 0; i < floats.size(); ++i) {
        worst = std::fmax(worst, std::abs(double{floats[i]} - double{found[name][i]}));
        largest = std::fmax(largest, std::abs(double{floats[i]}));
      }
      EXPECT_LT(worst, 1e-5 * largest + 1e-7) << name;  // other weights would give about 1 * largest
    }
  }

  void expect_correct(const BuiltEngine& built) {
    expect_correct(Runtime(*library_, "cpu").create(built.data(), built.size()).value());
  }

  std::optional<Library> library_;
  std::optional<Network> network_;
  Floats input_;
  std::map<std::string, Floats> expected_;
};

TEST_P(SharedRecord, EachLayerKeepsItsOwnConstants) {
  for (const bool editable : {false, true}) {
    SCOPED_TRACE(editable ? "editable" : "shared records");
    const TimingCache cache = TimingCache::create(*library_).value();
    std::string bytes;
    for (const char* cache_is : {"cold", "warm"}) {
      SCOPED_TRACE(cache_is);
      const auto built = build(cache, editable);
      ASSERT_TRUE(built.ok()) << built.status().message();
      expect_correct(*built);
      bytes = built->bytes();
    }
    // The records are as the mode promises; the layers of one op all have one site.
    std::set<std::string> keys;
    const json described = json::parse(cache.describe().value());
    for (const json& choice : described["choices"]) {
      if (choice["op"] == GetParam().op) keys.insert(choice["key"]);
    }
    EXPECT_EQ(keys.size(), editable ? std::size_t{kLayers} : 1u);

    const pipeline::testing::TempDir dir;
    const auto loaded = Runtime(*library_, "cpu").load(dir.write("twins.tenon", bytes));
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    expect_correct(*loaded);
  }
}

TEST_P(SharedRecord, EachKernelInEachFormatKeepsTheConstantsApart) {
  const TimingCache cache = TimingCache::create(*library_).value();
  const auto first = build(cache, false);
  ASSERT_TRUE(first.ok()) << first.status().message();
  std::set<std::pair<std::string, std::string>> ways;
  const json described = json::parse(cache.describe().value());
  for (const json& m : described["measured"]) {
    const std::string kernel = m["kernel"];
    if (m["kind"] == "measured" && kernel.find("reformat") == std::string::npos) ways.insert({kernel, m["combo"]});
  }
  EXPECT_FALSE(ways.empty());
  for (const auto& [kernel, combo] : ways) {
    SCOPED_TRACE(kernel + " " + combo);
    const json rule = {{"match", "twin*"}, {"kernel", kernel}, {"combo", combo}};
    const auto built = build(cache, false, rule.dump());
    ASSERT_TRUE(built.ok()) << built.status().message();
    int uses = 0;
    const json report = json::parse(built->report());
    for (const json& layer : report["layers"]) uses += layer["kernel"] == kernel ? 1 : 0;
    EXPECT_EQ(uses, kLayers);
    expect_correct(*built);
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, SharedRecord, ::testing::ValuesIn(kTwins),
                         [](const auto& twins) { return twins.param.name; });

}  // namespace
}  // namespace tenon::issues
