// What the commands of `tenon` share: opening the library, options of a build, output and exit status.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include <tenon/status.hpp>
#include <tenon/tenon.hpp>

#include "pipeline/builder.h"
#include "pipeline/runner.h"

namespace tenon::cli {

/// Exit status, see docs/use.md.
enum Exit { kSuccess = 0, kFailed = 1, kUsage = 2 };

/// A mistake in how the program was called: exit status 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Work that failed: exit status 1.
class WorkError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws WorkError with the status's message unless it is ok.
void check(const Status& status);
template <class T>
T check(Result<T> result) {
  check(result.status());
  return std::move(result).value();
}

/// Options that build, run, bench, explain and compare have in common.
struct ModelOptions {
  std::string target;  ///< engine, model or pipeline file
  std::string weights, importer, device, precision, workspace, timing_cache, time_budget, tactic_sources;
  std::vector<std::string> shapes, import_options, plugins, disable_rules, force_rules, mark_outputs;
  int batch = 0, threads = 0, max_streams = 0;
  bool editable = false, frozen = false, allow_nondeterministic = false, retune = false, verbose = false;

  void add_to(CLI::App* command, const std::string& target_help);
};

/// A library with all plugins that can be found and those of the options; messages go to stderr.
Library open_library(const std::vector<std::string>& plugins, bool verbose);

/// Where the work of a command begins: a pipeline file, a model file or an engine file.
enum class TargetKind { kPipeline, kModel, kEngine };
TargetKind kind_of(const std::string& path);

/// What to build for a model or pipeline; options of the command line win over those of the file.
pipeline::BuildRequest make_request(const Library& library, const ModelOptions& options);

/// The --shape options that name one shape: dims that a context of a finished engine is to run with.
std::map<std::string, std::vector<std::int64_t>> fixed_shapes(const std::vector<std::string>& shapes);

/// Progress for builds: one line on stderr that is rewritten on a terminal.
std::function<bool(const BuildProgress&)> progress_printer();

/// Lets several builds of one command share what they measure, where no file does.
void share_cache(const Library& library, pipeline::BuildRequest* request);

/// The engine for a target: loaded, or built on the spot. For a pipeline that keeps its engine it is taken from there,
/// and built again only for a stated reason. *request, if given, becomes what it was built from; empty for an engine
/// file.
Engine open_engine(const Library& library, const ModelOptions& options,
                   std::optional<pipeline::BuildRequest>* request = nullptr);

/// Fails for a file that could not be written, before the work and not after it. Empty paths and "-" are fine.
void check_outputs(const std::vector<std::string>& paths);

/// Writes JSON where --json says: "-" is stdout, anything else a file that appears whole or not at all.
void write_json(const std::string& where, const nlohmann::json& json);
void write_text(const std::string& where, const std::string& text);

/// A table with left-aligned columns.
std::string table(const std::vector<std::vector<std::string>>& rows);
/// The graph lines of a described timing cache as a table.
std::string graph_table(const nlohmann::json& graphs);

/// Milliseconds with a sensible number of digits.
std::string ms_text(double ms);

// Each adds one command to the program.
void add_build(CLI::App* app);
void add_run(CLI::App* app);
void add_bench(CLI::App* app);
void add_inspect(CLI::App* app);
void add_explain(CLI::App* app);
void add_cache(CLI::App* app);
void add_compare(CLI::App* app);
void add_plugin(CLI::App* app);
void add_rules(CLI::App* app);
void add_validate(CLI::App* app);

}  // namespace tenon::cli
