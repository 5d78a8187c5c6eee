// Counts which tactics win: for products of matrices of many sizes, and for the layers of Darknet networks.
//
//   winners [--device DEVICE] [CFG...]      weights are made up: times do not depend on them
//
// A tactic that never wins anywhere is a candidate for removal.
#include <cstdio>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tenon/tenon.hpp>
#include <utility>
#include <vector>

namespace {

using nlohmann::json;
using tenon::Result;
using tenon::Status;

/// {op, kernel and tactic}: number of layers that it won. Numbers in the parameters of a kernel do not tell tactics
/// apart.
using Winners = std::map<std::pair<std::string, std::string>, int>;

std::string kind_of(const std::string& kernel, const std::string& params) {
  return params.find("impl=") == 0 ? kernel + " " + params : kernel;
}

Status count(const tenon::Library& library, const tenon::Network& network, const std::string& device,
             Winners* winners) {
  TENON_ASSIGN(tenon::BuilderConfig config, tenon::BuilderConfig::create());
  TENON_RETURN_IF_ERROR(config.set("device", device));
  TENON_ASSIGN(const tenon::BuiltEngine built, tenon::Builder(library).build(network, config));
  const json report = json::parse(built.report());
  for (const json& layer : report["layers"]) {
    ++(*winners)[{layer["op"], kind_of(layer["kernel"], layer["tactic"])}];
  }
  return {};
}

Result<tenon::Network> product(const tenon::Library& library, std::int64_t m, std::int64_t k, std::int64_t n) {
  TENON_ASSIGN(tenon::Network network, tenon::Network::create(library));
  TENON_ASSIGN(const auto a, network.add_input("a", {m, k}));
  const std::vector<float> weights(static_cast<std::size_t>(k * n), 0.5f);
  TENON_ASSIGN(const auto b, network.add_constant("b", {k, n}, weights));
  TENON_ASSIGN(const auto y, network.add_layer("tenon.matmul/1", "product", {a, b}));
  TENON_RETURN_IF_ERROR(network.mark_output(y));
  return network;
}

Status run(const std::string& device, const std::vector<std::string>& cfgs) {
  TENON_ASSIGN(tenon::Library library, tenon::Library::create());
  TENON_RETURN_IF_ERROR(library.discover().status());
  Winners winners;
  for (const std::int64_t m : {1, 4, 16, 64, 128, 512}) {
    for (const std::int64_t k : {4, 64, 128, 1000}) {
      for (const std::int64_t n : {4, 64, 128, 1000}) {
        TENON_ASSIGN(const tenon::Network network, product(library, m, k, n));
        TENON_RETURN_IF_ERROR(count(library, network, device, &winners));
      }
    }
  }
  for (const std::string& cfg : cfgs) {
    std::fprintf(stderr, "%s\n", cfg.c_str());
    TENON_ASSIGN(tenon::Network network, tenon::Network::create(library));
    TENON_RETURN_IF_ERROR(network.import(cfg, "", R"({"random_weights": 1})"));
    TENON_RETURN_IF_ERROR(count(library, network, device, &winners));
  }
  std::printf("| op | kernel | layers won |\n| --- | --- | --- |\n");
  for (const auto& [what, layers] : winners) {
    std::printf("| %s | %s | %d |\n", what.first.c_str(), what.second.c_str(), layers);
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  std::string device = "cpu";
  std::vector<std::string> cfgs;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--device") == 0 && i + 1 < argc) {
      device = argv[++i];
    } else {
      cfgs.push_back(argv[i]);
    }
  }
  const Status status = run(device, cfgs);
  if (status.ok()) return 0;
  std::fprintf(stderr, "error: %s\n", status.message().c_str());
  return 1;
}
