// The importer `tenon.darknet`: a cfg file and its weights become a graph. README.md describes names and options.
#include <tenon/plugin/ext/ids.h>
#include <tenon/plugin/ext/op_importers.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tenon/sdk/plugin.hpp>
#include <vector>

#include "importers/darknet/cfg.h"
#include "importers/darknet/layers.h"
#include "importers/darknet/network.h"
#include "importers/darknet/weights.h"

namespace tenon::darknet {
namespace {

constexpr const char* kImporterId = "tenon.darknet";

// What another plugin teaches about one kind of section; keeps that plugin loaded.
class Teacher {
 public:
  Teacher(const TnHost* host, const std::string& type)
      : host_(host), source_(static_cast<const TnOpImporterSource*>(host->get_interface(host, TN_IFACE_OP_IMPORTERS))) {
    if (source_ != nullptr) importer_ = source_->find(host, kImporterId, type.c_str(), 0, &owner_);
  }
  Teacher(const Teacher&) = delete;
  Teacher& operator=(const Teacher&) = delete;
  ~Teacher() {
    if (importer_ != nullptr) source_->release(host_, importer_);
  }
  explicit operator bool() const { return importer_ != nullptr; }

  // The first of the values that stand for the section.
  TnValueId import(const TnForeignOp& op, TnGraph* graph) const {
    TnValueId outputs[8];
    uint32_t num_outputs = 8;
    check_host(importer_->import_op(owner_, importer_, &op, graph, outputs, &num_outputs));
    if (num_outputs == 0) throw Invalid(text(op.name, " ", op.type, ": its op importer gave no value"));
    return outputs[0];
  }

 private:
  const TnHost* host_;
  const TnOpImporterSource* source_;
  const TnOpImporter* importer_ = nullptr;
  const TnHost* owner_ = nullptr;
};

struct Import {
  const TnHost* host;
  GraphView& graph;
  TnGraph* raw_graph;
  Warn warn;
  Cfg cfg;
  Shape input;
  PlanOptions plan;
};

// The folder of a path with its last separator is cut off, and the suffix replaced.
std::string weights_beside(const std::string& cfg_path) {
  std::string name = cfg_path.substr(cfg_path.find_last_of("/\\") + 1);
  const size_t dot = name.rfind('.');
  return (dot == std::string::npos || dot == 0 ? name : name.substr(0, dot)) + ".weights";
}

std::optional<int64_t> seed_option(Attrs options) {
  int64_t seed = 0;
  if (options.host()->attrs->get_i64(options.raw(), "random_weights", &seed) != TN_OK) return std::nullopt;
  return seed;
}

SeenBits seen_bits_option(Attrs options) {
  const std::string bits = options.str("seen_bits");
  return bits == "32" ? SeenBits::k32 : bits == "64" ? SeenBits::k64 : SeenBits::kAuto;
}

Epsilon epsilon_option(Attrs options) {
  const std::string form = options.str("batch_norm");
  return {form == "inside_1e-5" ? 1e-5 : 1e-6, form != "outside_1e-6"};
}

// Shares of all sections, or of those before the first that Darknet does not know: only its own importer can say how
// much that one takes. Checks all those sections.
std::vector<Share> plan_shares(const Import& import, bool* complete) {
  std::vector<Share> shares;
  std::vector<Shape> shapes;
  *complete = true;
  for (const Section& section : import.cfg.layers) {
    if (!knows(section)) {
      if (!Teacher(import.host, section.type)) {
        section.fail(
            text("unknown section: neither Darknet's own nor taught by a loaded plugin; load one that has an "
                 "op importer for ",
                 kImporterId, ":", section.type));
      }
      *complete = false;
      continue;
    }
    if (!*complete) continue;
    const Layer layer = plan_layer(section, import.input, shapes, import.plan);
    shapes.push_back(layer.out);
    shares.push_back({&section, layer.floats});
  }
  return shares;
}

std::unique_ptr<Weights> open_weights(const Source& source, Attrs options, const Import& import) {
  bool complete = false;
  const std::vector<Share> shares = plan_shares(import, &complete);
  const std::optional<int64_t> seed = seed_option(options);
  std::optional<Source> file = source.open("@weights");
  if (seed && !file) return random_weights(*seed);
  if (seed) import.warn(text(source.name(), ": the option random_weights is ignored, as a weights file is given"));
  const std::string beside = weights_beside(source.name());
  if (!file) file = source.open(beside);
  if (!file) {
    throw Failure(TN_NOTFOUND, text(source.name(),
                                    ": there are no weights: give the file for the role \"weights\", or "
                                    "put ",
                                    beside,
                                    " beside the cfg. For tests without weights, the option "
                                    "random_weights=SEED makes some up"));
  }
  const WeightsHeader header = read_header(*file, seen_bits_option(options));
  if (complete) check_length(*file, header, shares);
  return file_weights(*file, header);
}

// What read_floats of a foreign section needs.
struct FloatSource {
  const TnHost* host;
  Weights* weights;
  const Section* section;
  std::deque<std::vector<float>> kept;  // handed out until the import ends
};

TnStatus TN_CALL read_floats(const TnForeignOp* self, uint64_t count, const float** out) {
  auto& source = *static_cast<FloatSource*>(self->context);
  return guard(source.host, [&] {
    const float* floats = source.weights->take(Part::kWeights, count, 0.1, *source.section);
    *out = source.kept.emplace_back(floats, floats + count).data();
  });
}

void import_foreign(Import& import, const Section& section, FloatSource& floats, NetworkWriter& writer) {
  NewAttrs attrs = import.graph.attrs();
  for (const Entry& entry : section.entries) attrs.str(entry.key.c_str(), entry.value);
  std::vector<TnValueId> inputs;
  for (const int64_t written : section.integers("layers")) {
    const int64_t layer = written < 0 ? section.index + written : written;
    if (layer < 0 || layer >= section.index) {
      section.fail_at("layers", text("layers: expected numbers of earlier layers, found ", written));
    }
    inputs.push_back(writer.read(static_cast<int>(layer)));
  }
  if (inputs.empty()) inputs.push_back(writer.read(section.index - 1));

  floats.section = &section;
  const std::string type = "[" + section.written + "]";
  const std::string name = text("layer", section.index);
  TnForeignOp op{};
  op.struct_size = TN_HEADER(TnForeignOp);
  op.num_inputs = static_cast<uint32_t>(inputs.size());
  op.context = &floats;
  op.type = type.c_str();
  op.name = name.c_str();
  op.attrs = attrs.raw();
  op.inputs = inputs.data();
  op.line = section.line;
  op.read_floats = read_floats;
  const TnValueId value = Teacher(import.host, section.type).import(op, import.raw_graph);

  const Dims dims = import.graph.value_dims(value);
  if (dims.rank != 2 && dims.rank != 4) {
    section.fail(text("its op importer gave a value of ", to_text(dims),
                      "; expected [n, channels, height, width] or [n, channels]"));
  }
  writer.add_foreign(value);
}

void write_network(Import& import, Weights& weights, const Epsilon& epsilon) {
  NetworkWriter writer(import.graph, weights, epsilon, import.input);
  FloatSource floats{import.host, &weights, nullptr, {}};
  const std::vector<Section>& sections = import.cfg.layers;
  for (size_t k = 0; k < sections.size(); ++k) {
    const Section& section = sections[k];
    try {
      if (!knows(section)) {
        import_foreign(import, section, floats, writer);
        continue;
      }
      const Layer layer = plan_layer(section, import.input, writer.shapes(), import.plan);
      writer.add(section, layer, k + 1 < sections.size() && sections[k + 1].type == "shortcut");
    } catch (const HostFailure&) {
      // The host keeps its own reason, which cannot be read here; this line says where it happened.
      const std::string where = section.place(section.line) + "the host refused its nodes";
      import.host->log(import.host, TN_LOG_ERROR, where.c_str());
      throw;
    }
  }
  weights.finish();
  writer.finish(sections.back());
}

void import_files(const TnHost* host, const Source& source, Attrs options, TnGraph* graph) {
  GraphView view(host, graph);
  Import reading{host, view, graph, {}, {}, {}, {}};
  reading.warn = [host](const std::string& message) { host->log(host, TN_LOG_WARNING, message.c_str()); };
  reading.cfg = parse_cfg(source.text(), source.name(), reading.warn);
  if (reading.cfg.layers.empty()) reading.cfg.net.fail("expected at least one section behind it, found none");
  warn_of_unknown_keys(reading.cfg.net, reading.warn);
  for (const Section& section : reading.cfg.layers) warn_of_unknown_keys(section, reading.warn);
  reading.input = plan_input(reading.cfg.net);
  reading.plan.maxpool_2017 = options.str("maxpool_era") == "2017";
  const std::unique_ptr<Weights> weights = open_weights(source, options, reading);
  write_network(reading, *weights, epsilon_option(options));
}

int probe(std::string_view head, std::string_view name) {
  // The first section may lie behind a long comment; then the name alone speaks for it.
  const bool suffix = name.size() > 4 && name.substr(name.size() - 4) == ".cfg";
  try {
    parse_cfg(head.substr(0, head.rfind('\n') + 1), "", [](const std::string&) {});
    return suffix ? 100 : 60;
  } catch (const Invalid&) {
    return suffix ? 20 : 0;
  }
}

TnStatus TN_CALL import_model(const TnHost* host, const TnImporter*, const TnSource* source, const TnAttrs* options,
                              TnGraph* graph) {
  return guard(host, [&] { import_files(host, Source(source), Attrs(host, options), graph); });
}

Importer darknet_importer() {
  Importer result(kImporterId);
  // Not through Importer::import_model, whose GraphView cannot be handed on to the op importers of other plugins.
  result.definition()->import_model = import_model;
  result.doc("Darknet: a .cfg file and its .weights").suffixes(".cfg").probe(probe);
  result
      .option(TN_ATTR_STR, "batch_norm",
              "y = scale * (x - mean) / d + bias with d = sqrt(variance + 1e-5) as in the fork and on GPUs, "
              "sqrt(variance) + 1e-6 as in the original's CPU code, or sqrt(variance + 1e-6) as in OpenCV")
      .default_value("inside_1e-5")
      .range("inside_1e-5|outside_1e-6|inside_1e-6")
      .option(TN_ATTR_STR, "maxpool_era",
              "output size of [maxpool]: (in + padding - size) / stride + 1 with padding in all (current), or "
              "(in + 2 * padding) / stride with padding on each side (2017)")
      .default_value("current")
      .range("current|2017")
      .option(TN_ATTR_STR, "seen_bits", "width of the counter in the weights header; auto: by the version in it")
      .default_value("auto")
      .range("auto|32|64")
      .option(TN_ATTR_I64, "random_weights",
              "seed of made-up weights, used when no weights file is given: for tests and benchmarks of a cfg alone");
  return result;
}

}  // namespace
}  // namespace tenon::darknet

TENON_PLUGIN("tenon.darknet", "1", "Apache-2.0", tenon::darknet::darknet_importer())
