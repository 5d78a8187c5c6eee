// Binary plugins of earlier hosts, as they were built then: they load, and every part of the ABI that they use works.
#include <gtest/gtest.h>
#include <unistd.h>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <tenon/tenon.hpp>

namespace tenon {
namespace {

using nlohmann::json;

template <class T>
T must(Result<T> result) {
  EXPECT_TRUE(result.ok()) << result.status().message();
  if (!result.ok()) std::abort();
  return std::move(result).value();
}

class AbiV1 : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(library_.discover().ok());
    const Status loaded = library_.load_plugin(ABI_PLUGIN);
    ASSERT_TRUE(loaded.ok()) << loaded.message();
    std::iota(x_.begin(), x_.end(), -5.0f);
  }

  /// x [4, 3] through `make`, whose result is the output y.
  template <class Make>
  Network network(const std::vector<std::int64_t>& dims, const Make& make) {
    Network result = must(Network::create(library_));
    const TensorId y = make(result, must(result.add_input("x", dims)));
    EXPECT_TRUE(result.rename(y, "y").ok());
    EXPECT_TRUE(result.mark_output(y).ok());
    return result;
  }

  static TensorId scale(Network& network, const std::string& name, TensorId x, const std::vector<float>& w,
                        const std::string& attributes = "{}") {
    const TensorId constant = must(network.add_constant(name + ".w", {static_cast<std::int64_t>(w.size())}, w));
    return must(network.add_layer("abi.scale/1", name, {x, constant}, attributes));
  }

  /// Builds and runs; `y` takes the result, `options` go to the builder.
  json build_and_run(const Network& network, std::vector<float>* y,
                     const std::vector<std::pair<std::string, std::string>>& options = {}) {
    BuilderConfig config = must(BuilderConfig::create());
    EXPECT_TRUE(config.set("device", "cpu").ok());
    EXPECT_TRUE(config.set("on_fallback", "allow").ok());
    for (const auto& [name, value] : options) {
      const Status set = config.set(name, value);
      EXPECT_TRUE(set.ok()) << set.message();
    }
    const BuiltEngine built = must(Builder(library_).build(network, config));
    const Engine engine = must(Runtime(library_, "cpu").create(built.data(), built.size()));
    ExecutionContext context = must(ExecutionContext::create(engine));
    std::vector<float> x = x_;
    EXPECT_TRUE(context.set_tensor("x", x.data()).ok());
    EXPECT_TRUE(context.set_tensor("y", y->data()).ok());
    const Status ran = context.execute();
    EXPECT_TRUE(ran.ok()) << ran.message();
    return json::parse(built.report());
  }

  static int count(const json& report, const std::string& rule) {
    for (const json& entry : report["rules"]) {
      if (entry["id"] == rule) return entry["count"];
    }
    return 0;
  }

  Library library_ = must(Library::create());
  std::vector<float> x_ = std::vector<float>(12);
};

TEST_F(AbiV1, TheKernelRunsWithItsEpilogueInOneLayer) {
  const auto both = [](Network& network, TensorId x) {
    const TensorId scaled = scale(network, "scale", x, {1, 2, 3}, R"({"bias": 0.5})");
    return must(network.add_layer("abi.negate/1", "negate", {scaled}));
  };
  const Network model = network({4, 3}, both);
  std::vector<float> y(12, NAN);
  const json report = build_and_run(model, &y);
  ASSERT_EQ(report["layers"].size(), 1u) << report["layers"];
  EXPECT_EQ(report["layers"][0]["name"], "scale+negate");
  EXPECT_EQ(report["layers"][0]["kernel"], "abi.scale.rows.f32");
  EXPECT_EQ(report["cache"]["measured"], 2) << "both tactics";
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], -(x_[i] * static_cast<float>(i % 3 + 1) + 0.5f)) << i;
}

TEST_F(AbiV1, TheRulesRewrite) {
  const Network model = network({4, 3}, [](Network& network, TensorId x) {
    const TensorId first = scale(network, "first", x, {1, 2, 3});
    const TensorId second = scale(network, "second", first, {2, 2, 4}, R"({"bias": 1})");
    const TensorId once = must(network.add_layer("abi.negate/1", "once", {second}));
    return must(network.add_layer("abi.negate/1", "twice", {once}));
  });
  std::vector<float> y(12, NAN);
  const json report = build_and_run(model, &y, {{"force_rule", "abi.merge_scales/1"}});
  EXPECT_EQ(count(report, "abi.twice_negated/1"), 1);
  EXPECT_EQ(count(report, "abi.merge_scales/1"), 1);
  EXPECT_EQ(report["layers"].size(), 1u) << report["layers"];
  const float factors[] = {2, 4, 12};
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], x_[i] * factors[i % 3] + 1) << i;
}

TEST_F(AbiV1, ThePlacementLaunchesNothing) {
  const Network model = network({4, 3}, [](Network& network, TensorId x) {
    const TensorId scaled = scale(network, "scale", x, {1, 2, 3});
    const TensorId tail = must(network.add_layer("abi.tail/1", "tail", {scaled}, R"({"count": 2})"));
    return scale(network, "again", tail, {1, 1, 2});
  });
  std::vector<float> y(6, NAN);
  const json report = build_and_run(model, &y);
  ASSERT_EQ(report["views"].size(), 1u) << report["layers"];
  EXPECT_EQ(report["views"][0]["op"], "abi.tail/1");
  const float factors[] = {1, 2, 6};
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], x_[6 + i] * factors[i % 3]) << i;
}

TEST_F(AbiV1, SiblingsAreJoined) {
  const Network model = network({12}, [](Network& network, TensorId x) {
    TensorId results[2];
    for (const int n : {0, 1}) {
      const std::string name = n == 0 ? "one" : "two";
      const TensorId w = must(network.add_constant(name + ".w", {2}, {n + 1.0f, n + 3.0f}));
      results[n] = must(network.add_layer("abi.outer/1", name, {x, w}));
    }
    return must(network.add_layer("tenon.concat/1", "rows", {results[0], results[1]}, R"({"axis": 0})"));
  });
  std::vector<float> y(48, NAN);
  const json report = build_and_run(model, &y, {{"force_rule", "tenon.core.join_siblings/1"}});
  EXPECT_EQ(count(report, "tenon.core.join_siblings/1"), 1);
  const float factors[] = {1, 3, 2, 4};
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], x_[i % 12] * factors[i / 12]) << i;
}

TEST_F(AbiV1, TheImporterReadsAndRefuses) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("tenon-abi-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string good = folder / "good.abi10", bad = folder / "bad.abi10";
  std::ofstream(good) << "abi10 4 3 2.5\n";
  std::ofstream(bad) << "abi10 four\n";
  Network model = must(Network::create(library_));
  const Status read = model.import(good);
  ASSERT_TRUE(read.ok()) << read.message();
  EXPECT_EQ(must(model.metadata("made_by")), "abi10");
  std::vector<float> y(12, NAN);
  build_and_run(model, &y);
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], x_[i] * -2.5f) << i;
  const Status refused = must(Network::create(library_)).import(bad);
  EXPECT_NE(refused.message().find("ROWS COLUMNS FACTOR"), std::string::npos) << refused.message();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tenon
