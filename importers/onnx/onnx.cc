// The importer tenon.onnx: an ONNX model file, its external data beside it.
#include <google/protobuf/io/coded_stream.h>

#include <climits>
#include <sstream>
#include <tenon/sdk/plugin.hpp>

#include "importers/onnx/onnx.pb.h"
#include "importers/onnx/translate.h"

namespace tenon::onnx {
namespace {

/// "x=1x3x224x224;mask=1x224".
std::map<std::string, std::vector<int64_t>> parse_shapes(const std::string& written) {
  std::map<std::string, std::vector<int64_t>> shapes;
  std::istringstream list(written);
  for (std::string entry; std::getline(list, entry, ';');) {
    const size_t equals = entry.rfind('=');
    if (equals == std::string::npos)
      throw Invalid(text("input_shapes: expected NAME=1x3x224x224, found '", entry, "'"));
    const auto [place, is_new] = shapes.emplace(entry.substr(0, equals), std::vector<int64_t>());
    if (!is_new) throw Invalid(text("input_shapes: two shapes for '", place->first, "'"));
    std::vector<int64_t>& shape = place->second;
    std::istringstream sizes(entry.substr(equals + 1));
    for (std::string size; std::getline(sizes, size, 'x');) {
      if (size.empty() || size.size() > 15 || size.find_first_not_of("0123456789") != std::string::npos) {
        throw Invalid(text("input_shapes: expected sizes such as 1x3x224x224, found '", entry, "'"));
      }
      shape.push_back(std::stoll(size));
    }
  }
  return shapes;
}

pb::ModelProto parse(const Source& source) {
  if (source.size() == 0) throw Invalid(source.name() + ": the file is empty");
  if (source.size() > INT_MAX) {
    throw Invalid(text(source.name(), ": expected less than 2 GiB, found ", source.size(),
                       " bytes; export the model with external data"));
  }
  pb::ModelProto model;
  const auto size = static_cast<int>(source.size());
  if (!model.ParseFromArray(source.map(0, source.size()), size)) {
    throw Invalid(source.name() + ": this is no ONNX model, or a damaged one: its protobuf message cannot be read");
  }
  if (!model.has_graph() || model.opset_import_size() == 0) {
    throw Invalid(
        text(source.name(), ": this is no ONNX model: it has no ", model.has_graph() ? "operator set" : "graph"));
  }
  return model;
}

TnStatus TN_CALL import_model(const TnHost* host, const TnImporter*, const TnSource* raw, const TnAttrs* given,
                              TnGraph* graph) {
  return guard(host, [&] {
    const Source source(raw);
    const Attrs attrs(host, given);
    const pb::ModelProto model = parse(source);
    ImportOptions options;
    if (attrs.has_str("input_shapes")) options.shapes = parse_shapes(attrs.str("input_shapes"));
    options.batch = attrs.i64("batch");
    Translator(host, graph, model, source, options).run();
  });
}

/// The message begins with the field ir_version, a small number; what follows has no fixed form.
int probe(std::string_view head, std::string_view name) {
  const bool suffix = name.size() > 5 && name.substr(name.size() - 5) == ".onnx";
  const bool begins = head.size() > 2 && head[0] == 0x08 && head[1] > 0 && head[1] < 64;
  return begins ? (suffix ? 95 : 40) : (suffix ? 20 : 0);
}

Importer onnx_importer() {
  Importer result(kImporterId);
  // Not through Importer::import_model, whose GraphView cannot be handed on to the op importers of other plugins.
  result.definition()->import_model = import_model;
  result.doc(text("ONNX models of opset ", kOldestOpset, " to ", kNewestOpset)).suffixes(".onnx").probe(probe);
  result.option(TN_ATTR_STR, "input_shapes", "dims of inputs, as x=1x3x224x224;mask=1x224; others are the model's")
      .option(TN_ATTR_I64, "batch", "the first dim of inputs without a shape above; 0: the model's")
      .default_value("0")
      .range("[0,)");
  return result;
}

}  // namespace
}  // namespace tenon::onnx

TENON_PLUGIN("tenon.onnx", "1", "Apache-2.0", tenon::onnx::onnx_importer())
