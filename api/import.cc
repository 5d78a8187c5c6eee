// Model files as importers see them: mapped read-only, and confined to the model's folder.
#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "api/handles.h"
#include "core/base/failure.h"
#include "core/base/text.h"
#include "core/plan/plan_file.h"

namespace tenon::api {
namespace {

namespace fs = std::filesystem;

/// Files of one import, open until it ends.
class Sources {
 public:
  Sources(fs::path folder, const std::map<std::string, std::string>& files)
      : folder_(std::move(folder)), files_(files) {}

  Result<const TnSource*> open_path(const fs::path& path) {
    auto source = std::make_unique<Source>();
    TENON_ASSIGN(source->file, map_file(path));
    source->owner = this;
    source->name = path.string();
    source->abi = {TN_HEADER(TnSource), 0, source.get(), source->name.c_str(), source->file->size, &map, &open};
    open_.push_back(std::move(source));
    return &open_.back()->abi;
  }

 private:
  struct Source {
    TnSource abi{};
    Sources* owner = nullptr;
    std::string name;
    std::shared_ptr<const MappedFile> file;
  };

  static TnStatus fail(const Status& status) {
    record_failure(static_cast<TnStatus>(status.code()), nullptr, status.message().c_str());
    return static_cast<TnStatus>(status.code());
  }

  static TnStatus TN_CALL map(const TnSource* self, std::uint64_t offset, std::uint64_t size, const void** out) {
    const auto& source = *static_cast<const Source*>(self->context);
    if (offset > source.file->size || size > source.file->size - offset) {
      return fail({Code::kInvalid, fmt::format("{}: bytes {} to {} are beyond the end ({} bytes)", source.name, offset,
                                               offset + size, source.file->size)});
    }
    *out = source.file->data + offset;
    return TN_OK;
  }

  static TnStatus TN_CALL open(const TnSource* self, const char* name, const TnSource** out) {
    const auto& source = *static_cast<const Source*>(self->context);
    auto opened = source.owner->open_named(name);
    if (!opened.ok()) return fail(opened.status());
    *out = *opened;
    return TN_OK;
  }

  Result<const TnSource*> open_named(const std::string& name) {
    if (!name.empty() && name[0] == '@') {
      const auto given = files_.find(name.substr(1));
      if (given == files_.end())
        return Status(Code::kNotFound, fmt::format("no file was given for \"{}\"", name.substr(1)));
      auto opened = open_path(given->second);
      // "Not found" would mean that no file was given.
      if (!opened.ok()) return Status(Code::kIo, opened.status().message());
      return opened;
    }
    std::error_code error;
    const fs::path root = fs::weakly_canonical(folder_, error);
    const fs::path path = fs::weakly_canonical(root / name, error);
    const auto [rest, ignored] = std::mismatch(root.begin(), root.end(), path.begin(), path.end());
    if (rest != root.end()) {
      return Status(Code::kInvalid,
                    fmt::format("the model refers to \"{}\", which is outside its folder {}", name, root.string()));
    }
    return open_path(path);
  }

  fs::path folder_;
  const std::map<std::string, std::string>& files_;
  std::vector<std::unique_ptr<Source>> open_;
};

Result<ImporterRef> choose_importer(const Registry& registry, const std::string& wanted, const TnSource& source) {
  std::vector<std::string> ids;
  for (const ImporterRef& ref : registry.importers()) ids.push_back(ref.importer->id);
  if (!wanted.empty()) {
    for (const std::string& id : {wanted, "tenon." + wanted}) {
      if (ImporterRef ref = registry.find_importer(id)) return ref;
    }
    return Status(Code::kNotFound,
                  fmt::format("no importer \"{}\" is loaded; there are: {}", wanted, ids.empty() ? "none" : join(ids)));
  }
  const std::uint64_t head_size = std::min<std::uint64_t>(source.size, 4096);
  const void* head = nullptr;
  if (source.map(&source, 0, head_size, &head) != TN_OK) return Status(Code::kIo, "the file could not be read");
  ImporterRef best;
  int best_score = 0;
  for (const ImporterRef& ref : registry.importers()) {
    const int score =
        ref.importer->probe == nullptr ? 0 : ref.importer->probe(ref.host, ref.importer, head, head_size, source.name);
    if (score > best_score) {
      best = ref;
      best_score = score;
    }
  }
  if (!best) {
    return Status(Code::kNotFound,
                  fmt::format("{}: no importer recognises this file; loaded importers: {}", source.name,
                              ids.empty() ? "none (is TENON_PLUGIN_PATH right?)" : join(ids)));
  }
  return best;
}

}  // namespace

Status import_model(LibraryState& library, const std::string& path, const std::string& importer,
                    const std::map<std::string, std::string>& options, const std::map<std::string, std::string>& files,
                    Graph* graph) {
  Sources sources(fs::path(path).parent_path().empty() ? fs::path(".") : fs::path(path).parent_path(), files);
  TENON_ASSIGN(const TnSource* source, sources.open_path(path));
  TENON_ASSIGN(const ImporterRef ref, choose_importer(*library.registry, importer, *source));
  Attrs attrs;
  for (const auto& [key, text] : options) {
    AttrValue value = text;
    for (std::uint32_t i = 0; i < ref.importer->num_options; ++i) {
      const TnParam& param = *ref.importer->options[i];
      if (key != param.name) continue;
      TENON_ASSIGN(value, parse_attr(param.type, text));
    }
    attrs.values[key] = std::move(value);
  }
  TENON_RETURN_IF_ERROR(apply_schema(fmt::format("importer {}", ref.importer->id), ref.importer->options,
                                     ref.importer->num_options, &attrs));
  clear_failure();
  TENON_RETURN_IF_ERROR(
      take_failure(ref.importer->import_model(ref.host, ref.importer, source, &attrs, graph->handle()),
                   fmt::format("importer {}", ref.importer->id)));
  if (graph->outputs().empty()) {
    return {Code::kInvalid, fmt::format("{}: the model has no output", path)};
  }
  return graph->verify();
}

}  // namespace tenon::api
