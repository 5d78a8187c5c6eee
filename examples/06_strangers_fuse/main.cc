// Builds conv -> softclip from two plugins that do not know each other, and shows that they became one layer.
//   strangers_fuse ACME_PLUGIN BETA_PLUGIN     the plugins' files
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

namespace {

// The convolution: 3x3 windows, every second one of a row, a border of one zero.
constexpr int kIn = 3, kOut = 4, kHeight = 9, kWidth = 12, kOutHeight = 9, kOutWidth = 6;
constexpr double kA = 2.5;
constexpr const char* kConv = R"({"strides": [1, 2], "pads": [1, 1, 1, 1]})";
constexpr const char* kSoftclip = R"({"a": 2.5})";
constexpr const char* kRule = R"({"match": "conv", "kernel": "acme.conv2d.direct.f32"})";

struct Numbers {
  std::vector<float> x, weights, bias;
};

/// Some numbers between -1 and 1.
std::vector<float> wave(int count, double step) {
  std::vector<float> values;
  for (int n = 0; n < count; ++n) values.push_back(static_cast<float>(std::sin(step * n + step)));
  return values;
}

/// What the network means, in plain loops.
std::vector<double> by_hand(const Numbers& numbers) {
  std::vector<double> y;
  for (int k = 0; k < kOut; ++k) {
    for (int i = 0; i < kOutHeight; ++i) {
      for (int j = 0; j < kOutWidth; ++j) {
        double sum = numbers.bias[k];
        for (int c = 0; c < kIn; ++c) {
          for (int r = 0; r < 3; ++r) {
            for (int s = 0; s < 3; ++s) {
              const int h = i - 1 + r, w = 2 * j - 1 + s;
              if (h < 0 || h >= kHeight || w < 0 || w >= kWidth) continue;
              sum += double{numbers.x[(c * kHeight + h) * kWidth + w]} *
                     double{numbers.weights[((k * kIn + c) * 3 + r) * 3 + s]};
            }
          }
        }
        y.push_back(sum / (1 + std::fabs(sum)) * kA);
      }
    }
  }
  return y;
}

tenon::Result<tenon::Network> make_network(const tenon::Library& library, const Numbers& numbers) {
  TENON_ASSIGN(tenon::Network network, tenon::Network::create(library));
  TENON_ASSIGN(const auto x, network.add_input("x", {1, kIn, kHeight, kWidth}));
  TENON_ASSIGN(const auto weights, network.add_constant("weights", {kOut, kIn, 3, 3}, numbers.weights));
  TENON_ASSIGN(const auto bias, network.add_constant("bias", {kOut}, numbers.bias));
  TENON_ASSIGN(const auto conv, network.add_layer("tenon.conv2d/1", "conv", {x, weights, bias}, kConv));
  TENON_ASSIGN(const auto y, network.add_layer("beta.softclip/1", "softclip", {conv}, kSoftclip));
  TENON_RETURN_IF_ERROR(network.rename(y, "y"));
  TENON_RETURN_IF_ERROR(network.mark_output(y));
  return network;
}

struct Outcome {
  std::vector<std::string> layers;  // as the report names them
  std::vector<float> y;
};

/// Builds, prints the report's layers, runs.
tenon::Result<Outcome> build_and_run(const tenon::Library& library, const Numbers& numbers, bool fuse) {
  TENON_ASSIGN(const tenon::Network network, make_network(library, numbers));
  TENON_ASSIGN(tenon::BuilderConfig config, tenon::BuilderConfig::create());
  TENON_RETURN_IF_ERROR(config.set("device", "cpu"));
  TENON_RETURN_IF_ERROR(config.set("layer", kRule));
  TENON_RETURN_IF_ERROR(config.set("on_fallback", "allow"));  // alone, softclip has nothing but its reference
  if (!fuse) TENON_RETURN_IF_ERROR(config.set("disable_rule", "tenon.core.epilogue/1"));
  TENON_ASSIGN(const tenon::BuiltEngine built, tenon::Builder(library).build(network, config));

  Outcome outcome;
  std::printf("%s\n", fuse ? "fused:" : "not fused:");
  const nlohmann::json report = nlohmann::json::parse(built.report());
  for (const auto& layer : report["layers"]) {
    outcome.layers.push_back(layer["name"]);
    std::printf("  layer %s runs %s\n", outcome.layers.back().c_str(), layer["kernel"].get<std::string>().c_str());
  }
  TENON_ASSIGN(const tenon::Engine engine, tenon::Runtime(library, "cpu").create(built.data(), built.size()));
  TENON_ASSIGN(tenon::ExecutionContext context, tenon::ExecutionContext::create(engine));
  std::vector<float> x = numbers.x;
  outcome.y.assign(kOut * kOutHeight * kOutWidth, NAN);
  TENON_RETURN_IF_ERROR(context.set_tensor("x", x.data()));
  TENON_RETURN_IF_ERROR(context.set_tensor("y", outcome.y.data()));
  TENON_RETURN_IF_ERROR(context.execute());
  return outcome;
}

tenon::Status run(const std::string& acme, const std::string& beta) {
  TENON_ASSIGN(tenon::Library library, tenon::Library::create());
  TENON_RETURN_IF_ERROR(library.discover().status());  // tenon.conv2d/1, the op that acme has a kernel for
  TENON_RETURN_IF_ERROR(library.load_plugin(acme));
  TENON_RETURN_IF_ERROR(library.load_plugin(beta));

  const Numbers numbers = {wave(kIn * kHeight * kWidth, 0.7), wave(kOut * kIn * 9, 1.3), wave(kOut, 2.1)};
  TENON_ASSIGN(const Outcome apart, build_and_run(library, numbers, false));
  TENON_ASSIGN(const Outcome fused, build_and_run(library, numbers, true));
  if (apart.layers != std::vector<std::string>{"conv", "softclip"}) {
    return {tenon::Code::kInternal, "without fusion: expected the two layers conv and softclip"};
  }
  if (fused.layers != std::vector<std::string>{"conv+softclip"}) {
    return {tenon::Code::kInternal, "with fusion: expected the one layer conv+softclip"};
  }

  const std::vector<double> expected = by_hand(numbers);
  double worst = 0;
  for (std::size_t n = 0; n < expected.size(); ++n) {
    for (const float found : {apart.y[n], fused.y[n]}) {
      const double error = std::fabs(double{found} - expected[n]);
      worst = std::max(worst, error);
      if (error <= 1e-5) continue;  // false for NaN
      return {tenon::Code::kInternal, "element " + std::to_string(n) + ": expected " + std::to_string(expected[n]) +
                                          ", found " + std::to_string(found)};
    }
  }
  std::printf("All %zu values of both agree with plain loops; the largest error is %.1g.\n", expected.size(), worst);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: strangers_fuse ACME_PLUGIN BETA_PLUGIN\n");
    return 2;
  }
  const tenon::Status status = run(argv[1], argv[2]);
  if (!status.ok()) std::fprintf(stderr, "strangers_fuse: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
