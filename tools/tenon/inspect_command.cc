#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>

#include "tools/tenon/common.h"

namespace tenon::cli {
namespace {

using nlohmann::json;

struct Inspect {
  ModelOptions model;
  std::string format = "table";

  static std::string text_of(TnText* text) {
    std::string copy(tn_text_data(text), tn_text_size(text));
    tn_text_release(text);
    return copy;
  }

  std::string engine_text(const std::string& wanted) const {
    TnText* text = nullptr;
    if (tn_inspect_file(model.target.c_str(), wanted.c_str(), &text) != TN_OK) throw WorkError(tn_last_error());
    return text_of(text);
  }

  void engine() const {
    const std::string found = engine_text(format == "table" ? "json" : format);
    if (format != "table") return write_text("-", found + (found.empty() || found.back() != '\n' ? "\n" : ""));
    const json parsed = json::parse(found);
    const json& layers = parsed.is_array() ? parsed : parsed["layers"];
    std::vector<std::vector<std::string>> rows = {{"layer", "op", "kernel", "tactic", "ms"}};
    for (const json& layer : layers) {
      rows.push_back({layer.value("name", ""), layer.value("op", ""), layer.value("kernel", ""),
                      layer.value("tactic", ""),
                      layer.contains("ms") && layer["ms"].is_number() ? ms_text(layer["ms"]) : ""});
    }
    write_text("-", table(rows));
    const json ends = json::parse(engine_text("ends"));
    for (const char* end : {"inputs", "outputs"}) {
      for (const json& tensor : ends[end]) {
        std::printf("%.*s %s %s %s", end[0] == 'i' ? 5 : 6, end, tensor["name"].get<std::string>().c_str(),
                    tensor["dims"].dump().c_str(), tensor["dtype"].get<std::string>().c_str());
        if (tensor["min"] != tensor["max"]) {
          std::printf(", from %s to %s", tensor["min"].dump().c_str(), tensor["max"].dump().c_str());
        }
        std::printf("\n");
      }
    }
  }

  void cache() const {
    const Library library = open_library({}, model.verbose);
    const TimingCache loaded = check(TimingCache::load(library, model.target));
    const json described = json::parse(check(loaded.describe()));
    if (format == "json") return write_json("-", described);
    std::vector<std::vector<std::string>> rows = {{"layer", "key", "kernel", "tactic", "ms", "pinned"}};
    for (const json& c : described["choices"]) {
      rows.push_back(
          {c["layer"], c["key"], c["kernel"], c["tactic"], ms_text(c["ms"]), c["pinned"].get<bool>() ? "pinned" : ""});
    }
    write_text("-", table(rows));
    if (!described["graphs"].empty()) write_text("-", "\n" + graph_table(described["graphs"]));
  }

  void plugin() const {
    Library library = check(Library::create());
    check(library.load_plugin(model.target));
    const json plugins = json::parse(check(library.describe()))["plugins"];
    if (format == "json") return write_json("-", plugins);
    for (const json& p : plugins) {
      std::printf("%s %s (%s), %s\n", p["id"].get<std::string>().c_str(), p["version"].get<std::string>().c_str(),
                  p["license"].get<std::string>().c_str(), p["hash"].get<std::string>().c_str());
      for (const char* part : {"ops", "kernels", "fusions", "importers", "op_importers"}) {
        for (const json& id : p[part]) std::printf("  %s: %s\n", part, id.get<std::string>().c_str());
      }
    }
  }

  void network() const {
    const Library library = open_library(model.plugins, model.verbose);
    const Network loaded = check(pipeline::load_network(library, make_request(library, model)));
    const json described = json::parse(check(loaded.describe()));
    if (format == "json") return write_json("-", described);
    if (format == "oneline") return write_text("-", check(loaded.dump()));
    std::vector<std::vector<std::string>> rows = {{"node", "op", "outputs", "attributes"}};
    for (const json& node : described["nodes"]) {
      std::string outputs;
      for (const json& output : node["outputs"])
        outputs += (outputs.empty() ? "" : " ") + output["name"].get<std::string>() + output["dims"].dump();
      rows.push_back({node["name"], node["op"], outputs, node["attrs"]});
    }
    write_text("-", table(rows));
    for (const char* end : {"inputs", "outputs"}) {
      for (const json& tensor : described[end]) {
        std::printf("%.*s %s %s %s\n", end[0] == 'i' ? 5 : 6, end, tensor["name"].get<std::string>().c_str(),
                    tensor["dims"].dump().c_str(), tensor["dtype"].get<std::string>().c_str());
      }
    }
    std::map<std::string, int> counts;
    for (const json& node : described["nodes"]) ++counts[node["op"]];
    std::string ops;
    for (const auto& [op, count] : counts) ops += (ops.empty() ? "" : ", ") + op + " " + std::to_string(count);
    std::printf("%zu nodes: %s\n", described["nodes"].size(), ops.c_str());
    std::printf("%lld parameters\n", described["parameters"].get<long long>());
    // What the importer says of the file.
    std::printf("%s", described["metadata"].contains("model")
                          ? (described["metadata"]["model"].get<std::string>() + "\n").c_str()
                          : "");
  }

  void run() const {
    const std::string& file = model.target;
    const bool is_library = file.size() > 3 && file.compare(file.size() - 3, 3, ".so") == 0;
    if (is_library) return plugin();
    std::ifstream stream(file);
    std::string first;
    std::getline(stream, first);
    if (first.find("tenon_timing_cache") != std::string::npos) return cache();
    if (kind_of(file) == TargetKind::kEngine) return engine();
    network();
  }
};

}  // namespace

void add_inspect(CLI::App* app) {
  auto command = std::make_shared<Inspect>();
  CLI::App* sub = app->add_subcommand("inspect", "look into an engine, a timing cache, a plugin or a model");
  command->model.add_to(sub, "FILE");
  sub->add_option("--format", command->format, "oneline, json or table (default)")
      ->check(CLI::IsMember({"oneline", "json", "table"}));
  sub->callback([command] { command->run(); });
}

}  // namespace tenon::cli
