#include <cstdio>
#include <filesystem>
#include <set>

#include "tools/tenon/common.h"

namespace tenon::cli {
namespace {

using nlohmann::json;

TnCacheKey parse_key(const std::string& text) {
  TnCacheKey key{};
  const bool form = text.size() == 34 && text.compare(0, 2, "0x") == 0 &&
                    text.find_first_not_of("0123456789abcdef", 2) == std::string::npos;
  if (!form) throw UsageError("--key " + text + ": expected 0x and 32 lower-case hex digits");
  for (std::size_t i = 0; i < 16; ++i)
    key.bytes[i] = static_cast<std::uint8_t>(std::stoul(text.substr(2 + 2 * i, 2), nullptr, 16));
  return key;
}

/// One entry of one cache, named by layer or key, and what to make of it.
struct CacheCommand {
  std::string file, layer, key, tactic, combo, kernel, json_file;
  std::vector<std::string> files;
  bool ignore_mismatch = false;

  const Library& library() {
    if (!library_) library_.emplace(open_library({}, false));
    return *library_;
  }

  TimingCache load(const std::string& path) {
    if (!std::filesystem::exists(path)) throw WorkError(path + ": no such timing cache");
    return check(TimingCache::load(library(), path));
  }

  /// The one choice that --layer or --key names.
  json find(const TimingCache& cache) const {
    if (layer.empty() == key.empty()) throw UsageError("name one entry with --layer NAME or --key 0x...");
    const json described = json::parse(check(cache.describe(layer)));
    json found = json::array();
    for (const json& choice : described["choices"]) {
      if (key.empty() || choice["key"] == key) found.push_back(choice);
    }
    if (found.empty())
      throw WorkError(file + " has no entry for " + (layer.empty() ? "key " + key : "layer " + layer) +
                      "; tenon cache list shows them");
    if (found.size() > 1) {
      std::string names;
      for (const json& choice : found)
        names += "\n  " + choice["key"].get<std::string>() + "  " + choice["layer"].get<std::string>();
      throw WorkError(file + " has several entries for layer " + layer + "; choose one with --key:" + names);
    }
    return found[0];
  }

  /// What was measured for a key.
  static json measured(const TimingCache& cache, const std::string& wanted) {
    json result = json::array();
    const json described = json::parse(check(cache.describe()));
    for (const json& entry : described["measured"]) {
      if (entry["key"] == wanted) result.push_back(entry);
    }
    return result;
  }

  void list() {
    const json described = json::parse(check(load(file).describe(layer)));
    if (!json_file.empty()) write_json(json_file, described);
    if (json_file == "-") return;
    std::vector<std::vector<std::string>> rows = {{"layer", "key", "kernel", "tactic", "params", "ms", ""}};
    for (const json& c : described["choices"]) {
      rows.push_back({c["layer"], c["key"], c["kernel"], c["tactic"], c["params"], ms_text(c["ms"]),
                      c["pinned"].get<bool>() ? "pinned" : ""});
    }
    write_text("-", table(rows));
    if (!described["graphs"].empty()) write_text("-", "\n" + graph_table(described["graphs"]));
    const json& code = described["code"];
    if (code["pieces"] != 0) {
      write_text("-", "\ncompiled code in " + file + ".code: " + code["pieces"].dump() + " pieces, " +
                          code["bytes"].dump() + " bytes\n");
    }
  }

  /// The decisions about one graph.
  void get_graph(const json& graph) const {
    if (!json_file.empty()) write_json(json_file, graph);
    if (json_file == "-") return;
    std::vector<std::vector<std::string>> layout = {{"value", "format"}};
    for (const json& entry : graph["layout"]) layout.push_back({entry["value"], entry["format"]});
    std::vector<std::vector<std::string>> rerank = {{"layer", "tactic", "whole graph, ms", "rival", "whole graph, ms"}};
    for (const json& entry : graph["rerank"]) {
      rerank.push_back(
          {entry["layer"], entry["tactic"], ms_text(entry["ms"]), entry["rival"], ms_text(entry["rival_ms"])});
    }
    write_text("-", "graph " + graph["key"].get<std::string>() + " on " + graph["device"].get<std::string>() + "\n\n" +
                        table(layout) + "\n" + table(rerank));
  }

  void get() {
    const TimingCache cache = load(file);
    if (layer.empty() && !key.empty()) {
      const json described = json::parse(check(cache.describe()));
      for (const json& graph : described["graphs"]) {
        if (graph["key"] == key) return get_graph(graph);
      }
    }
    json choice = find(cache);
    choice["measured"] = measured(cache, choice["key"]);
    if (!json_file.empty()) write_json(json_file, choice);
    if (json_file == "-") return;
    std::printf("%s\n  key %s\n  kernel %s\n  tactic %s (%s)\n  combo %s\n  %s ms%s\n",
                choice["layer"].get<std::string>().c_str(), choice["key"].get<std::string>().c_str(),
                choice["kernel"].get<std::string>().c_str(), choice["tactic"].get<std::string>().c_str(),
                choice["params"].get<std::string>().c_str(), choice["combo"].get<std::string>().c_str(),
                ms_text(choice["ms"]).c_str(), choice["pinned"].get<bool>() ? ", pinned" : "");
    std::vector<std::vector<std::string>> rows = {{"kind", "ms", "tactic", "kernel", "params", "combo"}};
    for (const json& m : choice["measured"]) {
      rows.push_back({m["kind"], ms_text(m["ms"]), m["tactic"], m["kernel"], m["params"], m["combo"]});
    }
    write_text("-", table(rows));
  }

  /// Gives `choice` the tactic of the command line, with what is known about it. Returns whether anything is.
  bool apply_tactic(const TimingCache& cache, json* choice) const {
    json fits = json::array();
    for (const json& m : measured(cache, (*choice)["key"])) {
      const bool same =
          m["tactic"] == tactic && (combo.empty() || m["combo"] == combo) && (kernel.empty() || m["kernel"] == kernel);
      if (same && m["kind"] == "measured") fits.push_back(m);
    }
    if (fits.size() > 1) {
      std::string combos;
      for (const json& m : fits) combos += "\n  " + m["combo"].get<std::string>();
      throw WorkError("tactic " + tactic + " is offered by several combos; choose one with --combo:" + combos);
    }
    (*choice)["tactic"] = tactic;
    if (fits.empty()) {
      (*choice)["combo"] = combo;
      (*choice)["kernel"] = kernel;
      (*choice)["params"] = "";
      return false;
    }
    for (const char* field : {"combo", "kernel", "params", "ms"}) (*choice)[field] = fits[0][field];
    return true;
  }

  void insert_and_save(TimingCache* cache, json* choice) const {
    const bool measured_before = apply_tactic(*cache, choice);
    check(cache->insert(choice->dump()));
    check(cache->save(file));
    if (measured_before) return;
    std::fprintf(stderr, "note: tactic %s was never measured for this entry; the next build checks it\n",
                 tactic.c_str());
  }

  void set() {
    TimingCache cache = load(file);
    json choice = find(cache);
    insert_and_save(&cache, &choice);
    std::printf("%s now uses %s %s\n", choice["layer"].get<std::string>().c_str(),
                choice["kernel"].get<std::string>().c_str(), tactic.c_str());
  }

  void insert() {
    if (key.empty()) throw UsageError("insert needs --key 0x... (tenon explain prints the key of a layer)");
    parse_key(key);
    TimingCache cache = std::filesystem::exists(file) ? load(file) : check(TimingCache::create(library()));
    json choice = {{"key", key}, {"layer", layer}, {"combo", combo}, {"kernel", kernel}, {"tactic", tactic}};
    insert_and_save(&cache, &choice);
    std::printf("%s: inserted %s\n", file.c_str(), key.c_str());
  }

  void pin(bool pinned) {
    TimingCache cache = load(file);
    const json choice = find(cache);
    cache.pin(parse_key(choice["key"]), pinned);
    check(cache.save(file));
    std::printf("%s is %s\n", choice["layer"].get<std::string>().c_str(), pinned ? "pinned" : "no longer pinned");
  }

  void erase() {
    TimingCache cache = load(file);
    std::string erased = key;  // of a choice or a graph
    if (!layer.empty() || key.empty() || !cache.erase(parse_key(key))) {
      erased = find(cache)["key"];
      cache.erase(parse_key(erased));
    }
    check(cache.save(file));
    std::printf("%s: erased %s\n", file.c_str(), erased.c_str());
  }

  void merge() {
    if (files.size() < 2) throw UsageError("merge needs the file to write and at least one to take from");
    TimingCache into = std::filesystem::exists(files[0]) ? load(files[0]) : check(TimingCache::create(library()));
    for (std::size_t i = 1; i < files.size(); ++i) {
      if (!into.combine(load(files[i]), ignore_mismatch)) {
        throw WorkError(files[i] + " holds entries of another device; --ignore-mismatch takes them over too");
      }
    }
    check(into.save(files[0]));
    std::printf("%s: %zu entries\n", files[0].c_str(), into.query_keys(nullptr, 0));
  }

  void diff() {
    if (files.size() != 2) throw UsageError("diff needs two files");
    std::map<std::string, json> sides[2];
    for (std::size_t i = 0; i < 2; ++i) {
      const json described = json::parse(check(load(files[i]).describe()));
      for (const json& c : described["choices"]) sides[i][c["key"]] = c;
    }
    json differences = json::array();
    std::set<std::string> keys;
    for (const auto& side : sides) {
      for (const auto& [entry, choice] : side) keys.insert(entry);
    }
    for (const std::string& entry : keys) {
      const json a = sides[0].count(entry) != 0 ? sides[0][entry] : json();
      const json b = sides[1].count(entry) != 0 ? sides[1][entry] : json();
      const bool same = a.is_object() && b.is_object() && a["tactic"] == b["tactic"] && a["combo"] == b["combo"] &&
                        a["pinned"] == b["pinned"];
      if (!same) differences.push_back({{"key", entry}, {"a", a}, {"b", b}});
    }
    if (!json_file.empty()) write_json(json_file, {{"differences", differences}});
    if (json_file == "-") return;
    const auto text = [](const json& c) {
      return c.is_object() ? c["kernel"].get<std::string>() + " " + c["tactic"].get<std::string>() +
                                 (c["pinned"].get<bool>() ? " pinned" : "")
                           : std::string("absent");
    };
    for (const json& d : differences) {
      const json& named = d["a"].is_object() ? d["a"] : d["b"];
      std::printf("%s %s: %s -> %s\n", named["layer"].get<std::string>().c_str(), d["key"].get<std::string>().c_str(),
                  text(d["a"]).c_str(), text(d["b"]).c_str());
    }
    std::printf("%zu differences\n", differences.size());
  }

 private:
  std::optional<Library> library_;
};

}  // namespace

void add_cache(CLI::App* app) {
  CLI::App* cache = app->add_subcommand("cache", "look at and edit timing caches");
  cache->require_subcommand(1);
  const auto one_file = [&](const char* name, const char* help, void (CacheCommand::*run)(), bool tactic) {
    auto command = std::make_shared<CacheCommand>();
    CLI::App* sub = cache->add_subcommand(name, help);
    sub->add_option("file", command->file, "the timing cache")->required();
    sub->add_option("--layer", command->layer, "name of the layer (editable caches)");
    sub->add_option("--key", command->key, "0x and 32 hex digits");
    if (tactic) {
      sub->add_option("--tactic", command->tactic, "0x and hex digits: hash of the tactic")->required();
      sub->add_option("--combo", command->combo, "dtypes and formats, where several combos offer the tactic");
      sub->add_option("--kernel", command->kernel, "name of the kernel");
    }
    sub->add_option("--json", command->json_file, "as JSON, to a file or - for stdout");
    sub->callback([command, run] { (command.get()->*run)(); });
  };
  one_file("list", "all entries", &CacheCommand::list, false);
  one_file("get", "one entry with everything measured for it", &CacheCommand::get, false);
  one_file("set", "give an entry another tactic", &CacheCommand::set, true);
  one_file("insert", "add an entry", &CacheCommand::insert, true);
  one_file("erase", "take an entry away", &CacheCommand::erase, false);
  for (const bool pinned : {true, false}) {
    auto command = std::make_shared<CacheCommand>();
    CLI::App* sub =
        cache->add_subcommand(pinned ? "pin" : "unpin", pinned ? "protect an entry from retuning" : "lift that");
    sub->add_option("file", command->file, "the timing cache")->required();
    sub->add_option("--layer", command->layer, "name of the layer (editable caches)");
    sub->add_option("--key", command->key, "0x and 32 hex digits");
    sub->callback([command, pinned] { command->pin(pinned); });
  }
  const auto many_files = [&](const char* name, const char* help, const char* files, void (CacheCommand::*run)()) {
    auto command = std::make_shared<CacheCommand>();
    CLI::App* sub = cache->add_subcommand(name, help);
    sub->add_option("files", command->files, files)->required();
    sub->add_flag("--ignore-mismatch", command->ignore_mismatch, "also take entries of other devices");
    sub->add_option("--json", command->json_file, "as JSON, to a file or - for stdout");
    sub->callback([command, run] { (command.get()->*run)(); });
  };
  many_files("merge", "take over the entries of other caches; own ones win",
             "the file to write, then those to take from", &CacheCommand::merge);
  many_files("diff", "entries that differ", "two timing caches", &CacheCommand::diff);
}

}  // namespace tenon::cli
