// The Darknet importer. An input is a cfg file; what follows a zero byte in it is the weights file. Without one weights
// are made up.
#include <tenon/sdk/error.hpp>

#include "importers/darknet/layers.h"
#include "tests/fuzz/fuzzing.h"

namespace {

const tenon::Library& library() {
  static const tenon::Library all = tenon::fuzzing::quiet_library("tenon.darknet");
  return all;
}

/// How many weights would be made up. A few bytes of cfg can ask for a gigabyte of them, which takes its time.
std::uint64_t num_weights(std::string_view cfg_text, const tenon::darknet::PlanOptions& options) {
  using namespace tenon::darknet;
  std::uint64_t count = 0;
  try {
    const Cfg cfg = parse_cfg(cfg_text, "", [](const std::string&) {});
    const Shape input = plan_input(cfg.net);
    std::vector<Shape> shapes;
    for (const Section& section : cfg.layers) {
      if (!knows(section)) break;  // the importer refuses it
      const Layer layer = plan_layer(section, input, shapes, options);
      shapes.push_back(layer.out);
      count += layer.floats;
    }
  } catch (const tenon::Invalid&) {
    // The importer fails likewise, before it makes any.
  }
  return count;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  library();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenon::fuzzing;
  static const Folder folder;
  const std::string_view input = as_text(data, size);
  const std::string_view cfg = input.substr(0, input.find('\0'));
  const std::string path = folder.write("model.cfg", cfg);
  if (cfg.size() < input.size()) {
    folder.write("model.weights", input.substr(cfg.size() + 1));
    import(library(), path, "tenon.darknet");
    return 0;
  }
  folder.remove("model.weights");
  for (const bool old : {false, true}) {
    if (num_weights(cfg, {old}) > 1 << 20) continue;
    import(library(), path, "tenon.darknet",
           old ? R"({"random_weights": "1", "maxpool_era": "2017"})" : R"({"random_weights": "1"})");
  }
  return 0;
}
