// A plugin in C and one in C++, perhaps by different compilers, in one process: both run in one network, whose engine
// is saved, loaded by another library object with its own registry, and run again; then everything is unloaded.
//   two_plugins HARD_TANH_PLUGIN THRESHOLD_BOXES_PLUGIN ENGINE_FILE
#include <cstdio>
#include <fstream>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

namespace {

using tenon::Result;
using tenon::Status;

Result<tenon::Library> load_both(const std::string& c_plugin, const std::string& cpp_plugin) {
  TENON_ASSIGN(tenon::Library library, tenon::Library::create());
  TENON_RETURN_IF_ERROR(library.load_plugin(c_plugin));
  TENON_RETURN_IF_ERROR(library.load_plugin(cpp_plugin));
  return library;
}

Result<tenon::BuiltEngine> build(const tenon::Library& library) {
  TENON_ASSIGN(tenon::Network network, tenon::Network::create(library));
  TENON_ASSIGN(const auto rows, network.add_input("rows", {3, 5}));
  TENON_ASSIGN(const auto squashed, network.add_layer("org.example.hard_tanh/1", "squash", {rows}));
  TENON_ASSIGN(const auto outputs, network.add_layers("org.example.threshold_boxes/1", "keep", {squashed}, 2));
  TENON_RETURN_IF_ERROR(network.rename(outputs[0], "boxes"));
  TENON_RETURN_IF_ERROR(network.rename(outputs[1], "count"));
  for (const tenon::TensorId output : outputs) TENON_RETURN_IF_ERROR(network.mark_output(output));
  TENON_ASSIGN(const tenon::BuilderConfig config, tenon::BuilderConfig::create());
  return tenon::Builder(library).build(network, config);
}

/// Runs rows whose result follows from the two formulas by hand.
Status run(const tenon::Engine& engine) {
  std::vector<float> rows = {3,    0.5f,  0.25f, -2, 0.75f,  //
                             0.1f, 0.2f,  0.3f,  4,  0.25f,  //
                             -5,   -0.5f, 9,     1,  6};
  const std::vector<float> expected = {1, 0.5f, 0.25f, -1, -1, -0.5f, 1, 1, 0, 0, 0, 0};
  std::vector<float> boxes(expected.size(), -1);
  std::int64_t count = -1;
  TENON_ASSIGN(tenon::ExecutionContext context, tenon::ExecutionContext::create(engine));
  TENON_RETURN_IF_ERROR(context.set_tensor("rows", rows.data()));
  TENON_RETURN_IF_ERROR(context.set_tensor("boxes", boxes.data()));
  TENON_RETURN_IF_ERROR(context.set_tensor("count", &count));
  TENON_RETURN_IF_ERROR(context.execute());
  if (count != 2 || boxes != expected) return {tenon::Code::kInternal, "the engine computes something else"};
  return {};
}

Status unload_both(tenon::Library& library) {
  TENON_RETURN_IF_ERROR(library.unload_plugin("org.example.hard_tanh"));
  return library.unload_plugin("org.example.threshold_boxes");
}

Status build_save(const char* const* arguments) {
  TENON_ASSIGN(tenon::Library library, load_both(arguments[0], arguments[1]));
  {
    TENON_ASSIGN(const tenon::BuiltEngine built, build(library));
    TENON_ASSIGN(const tenon::Engine engine, tenon::Runtime(library, "cpu").create(built.data(), built.size()));
    TENON_RETURN_IF_ERROR(run(engine));
    std::ofstream file(arguments[2], std::ios::binary);
    file.write(static_cast<const char*>(built.data()), static_cast<std::streamsize>(built.size()));
    if (!file.flush()) return {tenon::Code::kIo, std::string("cannot write ") + arguments[2]};
  }
  return unload_both(library);
}

Status load_run(const char* const* arguments) {
  TENON_ASSIGN(tenon::Library library, load_both(arguments[0], arguments[1]));
  {
    TENON_ASSIGN(const tenon::Engine engine, tenon::Runtime(library, "cpu").load(arguments[2]));
    TENON_RETURN_IF_ERROR(run(engine));
  }
  return unload_both(library);
}

/// An engine keeps the code that it runs, also when its plugins are unloaded and its library object is gone.
Status outlive(const char* const* arguments) {
  Result<tenon::Engine> engine = Status(tenon::Code::kInternal, "not loaded");
  {
    TENON_ASSIGN(tenon::Library library, load_both(arguments[0], arguments[1]));
    engine = tenon::Runtime(library, "cpu").load(arguments[2]);
    TENON_RETURN_IF_ERROR(engine.status());
    TENON_RETURN_IF_ERROR(unload_both(library));
  }
  return run(*engine);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: two_plugins HARD_TANH_PLUGIN THRESHOLD_BOXES_PLUGIN ENGINE_FILE\n");
    return 2;
  }
  const struct {
    const char* name;
    Status (*step)(const char* const*);
  } steps[] = {{"build, run, save", build_save}, {"load, run", load_run}, {"unload, run", outlive}};
  for (const auto& [name, step] : steps) {
    const Status status = step(argv + 1);
    std::printf("%s: %s\n", name, status.ok() ? "ok" : status.message().c_str());
    if (!status.ok()) return 1;
  }
  return 0;
}
