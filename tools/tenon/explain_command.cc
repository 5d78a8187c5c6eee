#include <cstdio>

#include "tools/tenon/common.h"

namespace tenon::cli {
namespace {

using nlohmann::json;

struct Explain {
  ModelOptions model;
  std::string node, json_file;

  void run() const {
    if (kind_of(model.target) == TargetKind::kEngine) {
      throw UsageError("explain needs the model: an engine holds only what was chosen (see tenon inspect)");
    }
    check_outputs({json_file});
    const Library library = open_library(model.plugins, model.verbose);
    const pipeline::BuildRequest request = make_request(library, model);
    const Network network = check(pipeline::load_network(library, request));
    std::optional<TimingCache> cache;
    BuilderConfig config = check(pipeline::builder_config(library, request, &cache));
    check(config.set_progress(progress_printer()));
    const json explained = json::parse(check(Builder(library).explain(network, config, node)));
    if (cache && !request.frozen) check(cache->save(request.timing_cache));
    if (!json_file.empty()) write_json(json_file, explained);
    if (json_file == "-") return;
    std::printf("%s (%s), key %s\n", explained["node"].get<std::string>().c_str(),
                explained["op"].get<std::string>().c_str(), explained["key"].get<std::string>().c_str());
    std::vector<std::vector<std::string>> rows = {{"status", "ms", "kernel", "combo", "tactic", "hash", "reason"}};
    for (const json& c : explained["candidates"]) {
      rows.push_back({c["status"], c["ms"].is_number() ? ms_text(c["ms"]) : "", c["kernel"], c["combo"], c["tactic"],
                      c["tactic_hash"], c["reason"]});
    }
    write_text("-", table(rows));
  }
};

}  // namespace

void add_explain(CLI::App* app) {
  auto command = std::make_shared<Explain>();
  CLI::App* sub =
      app->add_subcommand("explain", "every candidate of a layer with its time, or why it does not take part");
  command->model.add_to(sub, "MODEL or PIPELINE.yaml");
  sub->add_option("--node", command->node, "a layer of the report, or a node of the model")->required();
  sub->add_option("--json", command->json_file, "as JSON, to a file or - for stdout");
  sub->callback([command] { command->run(); });
}

}  // namespace tenon::cli
