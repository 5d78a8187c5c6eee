/// importer(): reads a model file into a graph. op_importer(): teaches somebody else's importer one foreign op.
#ifndef TENON_SDK_IMPORTER_HPP
#define TENON_SDK_IMPORTER_HPP

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "definition.hpp"
#include "graph_view.hpp"

namespace tenon {
inline namespace sdk {

/// A file as the host hands it out; valid until the import ends.
class Source {
 public:
  explicit Source(const TnSource* source) : source_(source) {}
  std::string name() const { return source_->name; }
  uint64_t size() const { return source_->size; }
  /// `size` bytes from `offset` on; fails with the host's reason beyond the end.
  const void* map(uint64_t offset, uint64_t size) const {
    const void* bytes = nullptr;
    check_host(source_->map(source_, offset, size, &bytes));
    return bytes;
  }
  std::string_view text() const {
    return size() == 0 ? std::string_view() : std::string_view(static_cast<const char*>(map(0, size())), size());
  }
  /// "@role" or a name relative to the model's folder; nothing if there is no such file.
  std::optional<Source> open(const std::string& file) const {
    const TnSource* other = nullptr;
    const TnStatus status = source_->open(source_, file.c_str(), &other);
    if (status == TN_NOTFOUND) return std::nullopt;
    check_host(status);
    return Source(other);
  }

 private:
  const TnSource* source_;
};

class ImporterDefinition final : public Definition, public TnImporter {
 public:
  explicit ImporterDefinition(const std::string& importer_id) : TnImporter{} {
    struct_size = TN_HEADER(TnImporter);
    id = keep(importer_id);
    doc = "";
    suffixes = "";
    probe = [](const TnHost* host, const TnImporter* importer, const void* head, uint64_t size, const char* name) {
      int32_t sure = 0;
      const TnStatus status = guard(host, [&] {
        sure = self(importer).on_probe(std::string_view(static_cast<const char*>(head), size), name ? name : "");
      });
      return status == TN_OK ? sure : 0;
    };
    import_model = [](const TnHost* host, const TnImporter* importer, const TnSource* source, const TnAttrs* given,
                      TnGraph* graph) {
      return guard(host, [&] {
        GraphView view(host, graph);
        self(importer).on_import(Source(source), Attrs(host, given), view);
      });
    };
  }
  TnStatus add_to(const TnHost* host) const override { return host->register_importer(host, this); }
  static const ImporterDefinition& self(const TnImporter* importer) {
    return *static_cast<const ImporterDefinition*>(importer);
  }

  Schema schema;
  std::function<int(std::string_view head, std::string_view name)> on_probe;
  std::function<void(Source, Attrs options, GraphView&)> on_import;
};

/// The builder. Options are attributes that the caller may set; default_value, range and required follow their option.
class Importer {
 public:
  explicit Importer(const std::string& id) : importer_(new ImporterDefinition(id)) {}
  Importer& doc(const std::string& text) { return importer_->doc = importer_->keep(text), *this; }
  /// ".cfg" or ".onnx,.pb".
  Importer& suffixes(const std::string& list) { return importer_->suffixes = importer_->keep(list), *this; }
  Importer& option(int32_t type, const std::string& name, const std::string& doc = "") {
    importer_->schema.add(type, name, doc, [this](const std::string& value) { return importer_->keep(value); });
    importer_->options = importer_->schema.data();
    importer_->num_options = importer_->schema.size();
    return *this;
  }
  Importer& default_value(const std::string& value) {
    return importer_->schema.last().default_text = importer_->keep(value), *this;
  }
  Importer& range(const std::string& value) { return importer_->schema.last().range = importer_->keep(value), *this; }
  Importer& required() { return importer_->schema.last().required = 1, *this; }
  /// How sure it is that it can read a file that begins with `head`: 0 (no) to 100.
  Importer& probe(std::function<int(std::string_view head, std::string_view name)> fn) {
    return importer_->on_probe = std::move(fn), *this;
  }
  /// Fills the empty graph; failures name file, line or node.
  Importer& import_model(std::function<void(Source, Attrs options, GraphView&)> fn) {
    return importer_->on_import = std::move(fn), *this;
  }
  std::shared_ptr<ImporterDefinition> definition() const { return importer_; }

 private:
  std::shared_ptr<ImporterDefinition> importer_;
};

inline Importer importer(const std::string& id) { return Importer(id); }

/// A foreign op or section while its importer is at it.
class ForeignOp {
 public:
  ForeignOp(const TnHost* host, const TnForeignOp* op) : host_(host), op_(op) {}
  std::string type() const { return op_->type; }
  std::string name() const { return op_->name ? op_->name : ""; }
  Attrs attrs() const { return {host_, op_->attrs}; }
  int num_inputs() const { return static_cast<int>(op_->num_inputs); }
  TnValueId input(int n) const { return op_->inputs[n]; }
  int32_t line() const { return op_->line; }
  uint32_t opset() const { return op_->opset; }
  /// The next `count` floats of a sequential weights file; valid until the import ends.
  const float* read_floats(uint64_t count) const {
    const float* floats = nullptr;
    check_host(op_->read_floats(op_, count, &floats));
    return floats;
  }

 private:
  const TnHost* host_;
  const TnForeignOp* op_;
};

class OpImporterDefinition final : public Definition, public TnOpImporter {
 public:
  /// Adds nodes and returns the values that stand for the foreign op's outputs.
  using Import = std::function<std::vector<TnValueId>(const ForeignOp&, GraphView&)>;
  OpImporterDefinition(const std::string& importer_name, const std::string& foreign_type, uint32_t first_opset,
                       uint32_t last_opset, Import import)
      : TnOpImporter{}, on_import(std::move(import)) {
    struct_size = TN_HEADER(TnOpImporter);
    importer_id = keep(importer_name);
    type = keep(foreign_type);
    opset_min = first_opset;
    opset_max = last_opset;
    import_op = [](const TnHost* host, const TnOpImporter* importer, const TnForeignOp* op, TnGraph* graph,
                   TnValueId* outputs, uint32_t* num_outputs) {
      return guard(host, [&] {
        GraphView view(host, graph);
        const auto values = static_cast<const OpImporterDefinition*>(importer)->on_import(ForeignOp(host, op), view);
        if (values.size() > *num_outputs) {
          throw Invalid(text("expected at most ", *num_outputs, " outputs, found ", values.size()));
        }
        for (size_t n = 0; n < values.size(); ++n) outputs[n] = values[n];
        *num_outputs = static_cast<uint32_t>(values.size());
      });
    };
  }
  TnStatus add_to(const TnHost* host) const override { return host->register_op_importer(host, this); }

 private:
  Import on_import;
};

/// The builder; there is nothing to add but the opset range.
class OpImporter {
 public:
  OpImporter(std::string importer_id, std::string type, OpImporterDefinition::Import import)
      : importer_id_(std::move(importer_id)), type_(std::move(type)), import_(std::move(import)) {}
  /// Only for these opsets; last 0: no limit.
  OpImporter& opsets(uint32_t first, uint32_t last) { return first_ = first, last_ = last, *this; }
  std::shared_ptr<OpImporterDefinition> definition() const {
    return std::shared_ptr<OpImporterDefinition>(new OpImporterDefinition(importer_id_, type_, first_, last_, import_));
  }

 private:
  std::string importer_id_;
  std::string type_;
  OpImporterDefinition::Import import_;
  uint32_t first_ = 0;
  uint32_t last_ = 0;
};

/// Teaches `importer_id` ("tenon.darknet") the foreign op `type`.
inline OpImporter op_importer(const std::string& importer_id, const std::string& type,
                              OpImporterDefinition::Import import) {
  return OpImporter(importer_id, type, std::move(import));
}

}  // namespace sdk
}  // namespace tenon

#endif  // TENON_SDK_IMPORTER_HPP
