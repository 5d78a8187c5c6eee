// Builds an inception block of GoogLeNet as it is written and as Tenon runs it, compares the results, and draws both.
//   inception_block [--device NAME] [--svg FILE]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

#include "draw.h"

namespace {

using nlohmann::json;

constexpr int kChannels = 192, kSize = 28, kOut = 256, kOutSize = 14;
constexpr const char* kJoin = "tenon.core.join_siblings/1";
constexpr const char* kFewest = "tenon.core.fewest_launches/1";

/// Some numbers around zero.
std::vector<float> wave(std::int64_t count, double size, double step) {
  std::vector<float> values;
  for (std::int64_t n = 0; n < count; ++n) values.push_back(static_cast<float>(size * std::sin(step * n + step)));
  return values;
}

struct Block {
  tenon::Network network;
  int convolutions = 0;

  /// A convolution of `filters` windows of size x size that keeps height and width, and relu.
  tenon::Result<tenon::TensorId> conv(const std::string& name, tenon::TensorId x, int channels, int filters, int size) {
    const double fan = std::sqrt(2.0 / (channels * size * size));
    ++convolutions;
    TENON_ASSIGN(const auto weights,
                 network.add_constant(name + ".weights", {filters, channels, size, size},
                                      wave(std::int64_t{filters} * channels * size * size, fan, 0.7 + convolutions)));
    TENON_ASSIGN(const auto bias, network.add_constant(name + ".bias", {filters}, wave(filters, 0.1, 1.3)));
    const std::string pad = std::to_string(size / 2);
    TENON_ASSIGN(const auto y, network.add_layer("tenon.conv2d/1", name, {x, weights, bias},
                                                 "{\"pads\": [" + pad + ", " + pad + ", " + pad + ", " + pad + "]}"));
    return network.add_layer("tenon.relu/1", name + "_relu", {y});
  }
};

/// Inception 3a (Szegedy et al. 2015, table 1), and the pooling that reads it.
tenon::Result<tenon::Network> make_network(const tenon::Library& library) {
  TENON_ASSIGN(tenon::Network network, tenon::Network::create(library));
  Block block{std::move(network)};
  TENON_ASSIGN(const auto x, block.network.add_input("x", {1, kChannels, kSize, kSize}));
  TENON_ASSIGN(const auto one, block.conv("1x1", x, kChannels, 64, 1));
  TENON_ASSIGN(const auto three_reduce, block.conv("3x3_reduce", x, kChannels, 96, 1));
  TENON_ASSIGN(const auto three, block.conv("3x3", three_reduce, 96, 128, 3));
  TENON_ASSIGN(const auto five_reduce, block.conv("5x5_reduce", x, kChannels, 16, 1));
  TENON_ASSIGN(const auto five, block.conv("5x5", five_reduce, 16, 32, 5));
  TENON_ASSIGN(const auto pool,
               block.network.add_layer("tenon.max_pool/1", "pool", {x}, R"({"kernel": [3, 3], "pads": [1, 1, 1, 1]})"));
  TENON_ASSIGN(const auto pool_proj, block.conv("pool_proj", pool, kChannels, 32, 1));
  TENON_ASSIGN(const auto all,
               block.network.add_layer("tenon.concat/1", "concat", {one, three, five, pool_proj}, R"({"axis": 1})"));
  TENON_ASSIGN(const auto y, block.network.add_layer("tenon.max_pool/1", "next_pool", {all},
                                                     R"({"kernel": [2, 2], "strides": [2, 2]})"));
  TENON_RETURN_IF_ERROR(block.network.rename(y, "y"));
  TENON_RETURN_IF_ERROR(block.network.mark_output(y));
  return block.network;
}

struct Outcome {
  json report;
  std::vector<float> y;
};

tenon::Result<Outcome> build_and_run(const tenon::Library& library, const tenon::Network& network,
                                     const std::string& device,
                                     const std::vector<std::pair<std::string, std::string>>& options) {
  TENON_ASSIGN(tenon::BuilderConfig config, tenon::BuilderConfig::create());
  TENON_RETURN_IF_ERROR(config.set("device", device));
  for (const auto& [key, value] : options) TENON_RETURN_IF_ERROR(config.set(key, value));
  TENON_ASSIGN(const tenon::BuiltEngine built, tenon::Builder(library).build(network, config));
  Outcome outcome;
  outcome.report = json::parse(built.report());
  TENON_ASSIGN(const tenon::Engine engine, tenon::Runtime(library, device).create(built.data(), built.size()));
  TENON_ASSIGN(tenon::ExecutionContext context, tenon::ExecutionContext::create(engine));
  std::vector<float> x = wave(kChannels * kSize * kSize, 1, 0.37);
  outcome.y.assign(kOut * kOutSize * kOutSize, NAN);
  TENON_RETURN_IF_ERROR(context.set_tensor("x", x.data()));
  TENON_RETURN_IF_ERROR(context.set_tensor("y", outcome.y.data()));
  TENON_RETURN_IF_ERROR(context.execute());
  return outcome;
}

void print(const char* title, const json& report) {
  double ms = 0;
  for (const json& layer : report["layers"]) ms += layer["ms"].get<double>();
  std::printf("%s: %zu launches, %.3f ms by the sum of their times\n", title, report["layers"].size(), ms);
  for (const json& layer : report["layers"]) {
    std::printf("  %-16s %s\n", layer["op"].get<std::string>().c_str(), layer["name"].get<std::string>().c_str());
  }
}

tenon::Status run(const std::string& device, const std::string& svg) {
  TENON_ASSIGN(tenon::Library library, tenon::Library::create());
  TENON_RETURN_IF_ERROR(library.discover().status());
  TENON_ASSIGN(const tenon::Network network, make_network(library));
  TENON_ASSIGN(const Outcome before, build_and_run(library, network, device,
                                                   {{"disable_rule", "tenon.core.epilogue/1"},
                                                    {"disable_rule", "tenon.core.pointwise/1"},
                                                    {"disable_rule", kJoin},
                                                    {"tactic_sources", "-view"}}));
  TENON_ASSIGN(const Outcome free_choice, build_and_run(library, network, device, {}));
  TENON_ASSIGN(const Outcome after, build_and_run(library, network, device, {{"force_rule", kJoin}}));
  TENON_ASSIGN(const Outcome fewest,
               build_and_run(library, network, device, {{"force_rule", kJoin}, {"force_rule", kFewest}}));

  print("as it is written", before.report);
  print("as Tenon builds it", after.report);
  print("with the fewest launches, however long they take", fewest.report);
  for (const json& decision : free_choice.report["alternatives"]) {
    if (decision["rule"] != kJoin) continue;
    std::printf("Left to choose, the builder %s %s:\n  %s.\n", decision["taken"] ? "makes" : "does not make",
                decision["layer"].get<std::string>().c_str(), decision["reason"].get<std::string>().c_str());
  }
  if (!svg.empty()) {
    std::ofstream(svg) << draw({{"as it is written", before.report}, {"as Tenon builds it", after.report}});
    std::printf("Both are drawn in %s.\n", svg.c_str());
  }

  double worst = 0;
  for (std::size_t n = 0; n < before.y.size(); ++n) {
    for (const Outcome* other : {&after, &fewest}) {
      const double error = std::fabs(double{before.y[n]} - double{other->y[n]});
      worst = std::max(worst, error);
      if (error <= 1e-4) continue;  // false for NaN
      return {tenon::Code::kInternal, "element " + std::to_string(n) + ": " + std::to_string(before.y[n]) +
                                          " before, " + std::to_string(other->y[n]) + " after"};
    }
  }
  std::printf("All %zu values of all three agree; the largest difference is %.1g.\n", before.y.size(), worst);
  for (const json& layer : fewest.report["layers"]) {
    if (layer["op"] == "tenon.concat/1" || layer["op"] == "tenon.slice/1") {
      return {tenon::Code::kInternal, "layer " + layer["name"].get<std::string>() + " copies"};
    }
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  std::string device = "cpu", svg;
  for (int n = 1; n < argc; n += 2) {
    const std::string option = argv[n];
    if (n + 1 == argc || (option != "--device" && option != "--svg")) {
      std::fprintf(stderr, "usage: inception_block [--device NAME] [--svg FILE]\n");
      return 2;
    }
    (option == "--device" ? device : svg) = argv[n + 1];
  }
  const tenon::Status status = run(device, svg);
  if (!status.ok()) std::fprintf(stderr, "inception_block: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
