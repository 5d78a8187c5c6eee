// Runs a network of one normalize_picture layer on the CPU or a GPU, and shows the tactics that were measured.
//   normalize_picture_demo [--device auto|cpu|cuda] PLUGIN     auto (default): a GPU if there is one; the plugin's file
// Exit status: 0, 1 if the work failed, 2 for wrong usage, 3 if there is no such device or it does not work.
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

namespace {

constexpr int kHeight = 480, kWidth = 640, kPlane = kHeight * kWidth;

// The picture is four bars beside each other: their colours, and what they become by hand.
constexpr const char* kAttributes = R"({"mean": [55, 105, 155], "deviation": [50, 100, 20]})";
constexpr std::uint8_t kColours[4][3] = {{255, 255, 255}, {55, 105, 155}, {5, 5, 5}, {80, 130, 160}};
constexpr float kExpected[4][3] = {{4, 1.5f, 5}, {0, 0, 0}, {-1, -1, -7.5f}, {0.5f, 0.25f, 0.25f}};
int bar_of(int pixel) { return pixel % kWidth / (kWidth / 4); }

/// Prints every tactic with its time, or why it takes no part. Returns how many were measured; fails if one was
/// rejected, which is what happens to a tactic that fails or differs from the op's reference.
tenon::Result<int> print_tactics(const nlohmann::json& explained) {
  int measured = 0;
  for (const auto& tactic : explained["candidates"]) {
    const std::string status = tactic["status"], kernel = tactic["kernel"], params = tactic["tactic"];
    const std::string name = params.empty() ? kernel : kernel + " " + params;
    if (tactic["ms"].is_number()) {
      ++measured;
      std::printf("  %-8s %s: %.4f ms\n", status.c_str(), name.c_str(), tactic["ms"].get<double>());
    } else {
      std::printf("  %-8s %s: %s\n", status.c_str(), name.c_str(), tactic["reason"].get<std::string>().c_str());
    }
    if (status == "rejected") return tenon::Status(tenon::Code::kInternal, name + " was rejected");
  }
  return measured;
}

tenon::Status run(const std::string& device, const std::string& plugin) {
  TENON_ASSIGN(tenon::Library library, tenon::Library::create());
  TENON_RETURN_IF_ERROR(library.load_plugin(plugin));

  TENON_ASSIGN(tenon::Network network, tenon::Network::create(library));
  TENON_ASSIGN(const auto picture, network.add_input("picture", {1, kHeight, kWidth, 3}, TN_U8));
  TENON_ASSIGN(const auto planes,
               network.add_layer("org.example.normalize_picture/1", "normalize", {picture}, kAttributes));
  TENON_RETURN_IF_ERROR(network.rename(planes, "planes"));
  TENON_RETURN_IF_ERROR(network.mark_output(planes));

  // The cache lets explain tell what the build has measured.
  TENON_ASSIGN(const tenon::TimingCache cache, tenon::TimingCache::create(library, "", 0, device));
  TENON_ASSIGN(tenon::BuilderConfig config, tenon::BuilderConfig::create());
  TENON_RETURN_IF_ERROR(config.set("device", device));
  TENON_RETURN_IF_ERROR(config.set_cache(cache));
  const tenon::Builder builder(library);
  TENON_ASSIGN(const tenon::BuiltEngine built, builder.build(network, config));
  TENON_ASSIGN(const std::string explained, builder.explain(network, config, "normalize"));
  TENON_ASSIGN(const tenon::Engine engine, tenon::Runtime(library, device).create(built.data(), built.size()));
  std::printf("Device: %s\n", engine.device().c_str());
  TENON_ASSIGN(const int measured, print_tactics(nlohmann::json::parse(explained)));

  TENON_ASSIGN(tenon::ExecutionContext context, tenon::ExecutionContext::create(engine));
  std::vector<std::uint8_t> input(3 * kPlane);
  for (int i = 0; i < 3 * kPlane; ++i) input[i] = kColours[bar_of(i / 3)][i % 3];
  std::vector<float> output(3 * kPlane, NAN);
  TENON_RETURN_IF_ERROR(context.set_tensor("picture", input.data()));
  TENON_RETURN_IF_ERROR(context.set_tensor("planes", output.data()));
  TENON_RETURN_IF_ERROR(context.execute());
  for (int i = 0; i < 3 * kPlane; ++i) {
    const float expected = kExpected[bar_of(i % kPlane)][i / kPlane];
    if (std::fabs(output[i] - expected) <= 1e-6f) continue;  // false for NaN
    return {tenon::Code::kInternal, "element " + std::to_string(i) + " of planes: expected " +
                                        std::to_string(expected) + ", found " + std::to_string(output[i])};
  }
  std::printf("All %d values are as expected. Tactics measured: %d\n", 3 * kPlane, measured);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const bool chosen = argc == 4 && std::string(argv[1]) == "--device";
  if (!chosen && argc != 2) {
    std::fprintf(stderr, "usage: normalize_picture_demo [--device auto|cpu|cuda] PLUGIN\n");
    return 2;
  }
  const tenon::Status status = run(chosen ? argv[2] : "auto", argv[argc - 1]);
  if (!status.ok()) std::fprintf(stderr, "normalize_picture_demo: %s\n", status.message().c_str());
  return status.ok() ? 0 : status.code() == tenon::Code::kDevice ? 3 : 1;
}
