// Runs a network of one threshold_boxes layer through the C++ API.
//   threshold_boxes_demo PLUGIN     the plugin's file
#include <cstdio>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

namespace {

tenon::Status run(const std::string& plugin) {
  TENON_ASSIGN(tenon::Library library, tenon::Library::create());
  TENON_RETURN_IF_ERROR(library.load_plugin(plugin));

  TENON_ASSIGN(tenon::Network network, tenon::Network::create(library));
  TENON_ASSIGN(const auto rows, network.add_input("rows", {4, 5}));
  TENON_ASSIGN(const auto outputs,
               network.add_layers("org.example.threshold_boxes/1", "keep", {rows}, 2, R"({"threshold": 0.6})"));
  TENON_RETURN_IF_ERROR(network.rename(outputs[0], "boxes"));
  TENON_RETURN_IF_ERROR(network.rename(outputs[1], "count"));
  for (const tenon::TensorId output : outputs) TENON_RETURN_IF_ERROR(network.mark_output(output));

  TENON_ASSIGN(const tenon::BuilderConfig config, tenon::BuilderConfig::create());
  TENON_ASSIGN(const tenon::BuiltEngine built, tenon::Builder(library).build(network, config));
  TENON_ASSIGN(const tenon::Engine engine, tenon::Runtime(library, "cpu").create(built.data(), built.size()));
  TENON_ASSIGN(tenon::ExecutionContext context, tenon::ExecutionContext::create(engine));

  std::vector<float> input = {10, 10, 20, 20, 0.9f,  //
                              11, 10, 20, 20, 0.4f,  //
                              50, 60, 30, 10, 0.6f,  //
                              70, 70, 5,  5,  0.1f};
  std::vector<float> boxes(4 * 4, -1.0f);
  std::int64_t count = -1;
  TENON_RETURN_IF_ERROR(context.set_tensor("rows", input.data()));
  TENON_RETURN_IF_ERROR(context.set_tensor("boxes", boxes.data()));
  TENON_RETURN_IF_ERROR(context.set_tensor("count", &count));
  TENON_RETURN_IF_ERROR(context.execute());

  std::printf("%lld boxes reach the threshold:\n", static_cast<long long>(count));
  for (std::int64_t n = 0; n < count; ++n) {
    const float* box = &boxes[static_cast<std::size_t>(4 * n)];
    std::printf("  x %g, y %g, width %g, height %g\n", box[0], box[1], box[2], box[3]);
  }
  // 0.6f lies above 0.6, so the third row stays.
  const std::vector<float> expected = {10, 10, 20, 20, 50, 60, 30, 10, 0, 0, 0, 0, 0, 0, 0, 0};
  if (count != 2 || boxes != expected) return {tenon::Code::kInternal, "expected the first and the third row"};
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: threshold_boxes_demo PLUGIN\n");
    return 2;
  }
  const tenon::Status status = run(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "threshold_boxes_demo: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
