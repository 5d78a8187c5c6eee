#include <cstdio>

#include "pipeline/config.h"
#include "tools/tenon/common.h"

namespace tenon::cli {
namespace {

using nlohmann::json;

void list_plugins(const std::string& json_file, const std::vector<std::string>& more) {
  const Library library = open_library(more, false);
  const json described = json::parse(check(library.describe()));
  if (!json_file.empty()) write_json(json_file, described);
  if (json_file == "-") return;
  std::vector<std::vector<std::string>> rows = {{"plugin", "version", "ops", "kernels", "rules", "importers", "file"}};
  for (const json& p : described["plugins"]) {
    const auto count = [&](const char* part) { return std::to_string(p[part].size()); };
    rows.push_back(
        {p["id"], p["version"], count("ops"), count("kernels"), count("fusions"), count("importers"), p["path"]});
  }
  write_text("-", table(rows));
  if (described["plugins"].empty())
    std::printf("No plugin was found; set TENON_PLUGIN_PATH to the folders that hold *.tnp.so files.\n");
  for (const json& f : described["failed"]) std::printf("not loaded: %s\n", f["reason"].get<std::string>().c_str());
}

void list_rules(const std::string& json_file, const std::vector<std::string>& more) {
  const Library library = open_library(more, false);
  const json rules = json::parse(check(library.describe()))["rules"];
  if (!json_file.empty()) write_json(json_file, {{"rules", rules}});
  if (json_file == "-") return;
  std::vector<std::vector<std::string>> rows = {{"rule", "mode", "plugin", "what"}};
  for (const json& r : rules) {
    const std::string plugin = r["plugin"];
    rows.push_back({r["id"], r["mode"], plugin.empty() ? "(core)" : plugin, r["doc"]});
  }
  write_text("-", table(rows));
}

/// The options of a command that lists what is loaded.
void add_listing(CLI::App* command, void (*list)(const std::string& json_file, const std::vector<std::string>& more)) {
  auto json_file = std::make_shared<std::string>();
  auto more = std::make_shared<std::vector<std::string>>();
  command->add_option("--json", *json_file, "as JSON, to a file or - for stdout");
  command->add_option("--plugin", *more, "a further plugin library, repeatable");
  command->callback([json_file, more, list] { list(*json_file, *more); });
}

void validate(const std::string& file, const std::string& json_file) {
  const pipeline::ConfigOutcome outcome = pipeline::check_config(file);
  json errors = json::array();
  std::string text;
  for (const pipeline::ConfigProblem& problem : outcome.problems) {
    const std::string line = pipeline::problem_text(file, problem);
    errors.push_back({{"line", problem.line}, {"column", problem.column}, {"key", problem.key}, {"message", line}});
    text += (text.empty() ? "" : "\n") + line;
  }
  if (!json_file.empty()) write_json(json_file, {{"errors", errors}});
  if (!outcome.problems.empty()) throw WorkError(text);
  if (json_file != "-") write_text("-", pipeline::describe(outcome.config));
}

}  // namespace

void add_plugin(CLI::App* app) {
  CLI::App* sub = app->add_subcommand("plugin", "plugins and where they come from");
  sub->require_subcommand(1);
  add_listing(sub->add_subcommand("list", "plugins, ops, kernels and importers that were found"), list_plugins);
}

void add_rules(CLI::App* app) {
  add_listing(app->add_subcommand("rules", "what may rewrite a network: ids for --disable-rule and --force-rule"),
              list_rules);
}

void add_validate(CLI::App* app) {
  CLI::App* sub = app->add_subcommand("validate", "check a pipeline file and print the resolved plan; touches nothing");
  auto file = std::make_shared<std::string>();
  auto json_file = std::make_shared<std::string>();
  sub->add_option("pipeline", *file, "PIPELINE.yaml")->required();
  sub->add_option("--json", *json_file, "errors as JSON, to a file or - for stdout");
  sub->callback([file, json_file] { validate(*file, *json_file); });
}

}  // namespace tenon::cli
