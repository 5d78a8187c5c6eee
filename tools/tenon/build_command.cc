#include <cstdio>

#include "pipeline/files.h"
#include "pipeline/units.h"
#include "tools/tenon/lane.h"

namespace tenon::cli {
namespace {

using nlohmann::json;

/// On a GPU: how many nodes each layer is in the CUDA graph of a run, and all of them together.
void count_launches(const Library& library, const pipeline::BuildRequest& request, const BuiltEngine& built,
                    json* report) {
  if ((*report)["device"].get<std::string>().rfind("cuda", 0) != 0) return;
  const Engine engine = check(Runtime(library, request.device, request.threads).create(built.data(), built.size()));
  Lane lane(engine, true, {});
  const json times = json::parse(check(lane.context.profile()));
  int total = 0;
  for (const char* list : {"layers", "views"}) {
    for (json& layer : (*report)[list]) {
      const json& time = times.at(layer["step"].get<std::size_t>());
      if (!time.contains("launches")) return;  // this engine is not recorded
      layer["launches"] = time["launches"];
      total += time["launches"].get<int>();
    }
  }
  (*report)["graph_nodes"] = total;
}

struct Build {
  ModelOptions model;
  std::string output, report;

  void run() const {
    if (kind_of(model.target) == TargetKind::kEngine) throw UsageError(model.target + " is an engine already");
    check_outputs({output, report});
    const Library library = open_library(model.plugins, model.verbose);
    pipeline::BuildRequest request = make_request(library, model);
    request.metadata["fingerprint"] = check(pipeline::fingerprint(library, request));
    const BuiltEngine built = check(pipeline::build_engine(library, request, progress_printer()));
    json parsed = json::parse(built.report());
    for (const std::string& rule : model.force_rules) {
      bool fired = false;
      for (const json& entry : parsed["rules"]) fired = fired || entry["id"] == rule;
      if (!fired) throw WorkError("--force-rule " + rule + ": the rule matched nowhere in this network");
    }
    check(pipeline::write_file_atomically(output, {static_cast<const std::uint8_t*>(built.data()), built.size()}));
    if (!report.empty()) {
      try {
        count_launches(library, request, built, &parsed);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "The report is without launches, for the engine cannot be run: %s\n", error.what());
      }
      write_json(report, parsed);
    }
    if (report == "-") return;
    double sum = 0;
    for (const json& layer : parsed["layers"]) sum += layer["ms"].get<double>();
    const json& cache = parsed["cache"];
    const json& memory = parsed["memory"];
    std::printf("Built %s: %zu layers, %s ms by the sum of their times, in %.1f s.\n", output.c_str(),
                parsed["layers"].size(), ms_text(sum).c_str(), parsed["build_ms"].get<double>() / 1000);
    std::printf("Timing cache: %d sites known, %d new, %d tactics measured, %zu rejected.\n", cache["hits"].get<int>(),
                cache["misses"].get<int>(), cache["measured"].get<int>(), cache["rejected"].size());
    std::printf("Memory: weights %s, packed weights %s, activations %s (at least %s), workspace %s.\n",
                pipeline::size_text(memory["weights"]).c_str(), pipeline::size_text(memory["persistent"]).c_str(),
                pipeline::size_text(memory["activation"]).c_str(),
                pipeline::size_text(memory["activation_lower_bound"]).c_str(),
                pipeline::size_text(memory["workspace"]).c_str());
    for (const json& entry : parsed["reranked"]) {
      std::printf("Re-ranked by whole-graph time: %s, %s ms with %s, %s ms with %s.\n",
                  entry["layer"].get<std::string>().c_str(), ms_text(entry["ms"]).c_str(),
                  entry["tactic_hash"].get<std::string>().c_str(), ms_text(entry["rival_ms"]).c_str(),
                  entry["rival"].get<std::string>().c_str());
    }
    for (const json& text : cache["rejected"]) std::printf("Rejected: %s\n", text.get<std::string>().c_str());
  }
};

}  // namespace

void add_build(CLI::App* app) {
  auto command = std::make_shared<Build>();
  CLI::App* sub = app->add_subcommand("build", "build an engine from a model or a pipeline");
  command->model.add_to(sub, "MODEL or PIPELINE.yaml");
  sub->add_option("-o,--output", command->output, "the engine to write")->required();
  sub->add_option("--report", command->report, "the build report as JSON, to a file or - for stdout");
  sub->callback([command] { command->run(); });
}

}  // namespace tenon::cli
