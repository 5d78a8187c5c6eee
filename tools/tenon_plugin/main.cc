// tenon-plugin: looks at plugin libraries. Exit status: 0 success, 1 the work failed, 2 wrong usage.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <system_error>

#include <CLI/CLI.hpp>

#include "tools/tenon_plugin/describe.h"
#include "tools/tenon_plugin/render.h"

namespace {

using tenon::Code;
using tenon::Result;
using tenon::Status;

/// What the plugin says while it is loaded, on stderr.
class StderrLogger final : public tenon::Logger {
 public:
  explicit StderrLogger(tenon::Severity threshold) : threshold_(threshold) {}
  void log(tenon::Severity severity, const std::string& message) override {
    if (severity <= threshold_) std::cerr << message + "\n";
  }
  tenon::Severity threshold() const override { return threshold_; }

 private:
  const tenon::Severity threshold_;
};

struct InspectOptions {
  std::string file;
  std::string json;  ///< "": none, "-": stdout
  bool identity = false;
  bool verbose = false;
};

/// Writes beside the target and renames, so that a failure leaves no half file.
Status write_file(const std::filesystem::path& path, const std::string& text) {
  const std::filesystem::path part = path.string() + ".part";
  std::ofstream stream(part, std::ios::binary);
  stream << text;
  stream.close();
  std::error_code error;
  if (stream) std::filesystem::rename(part, path, error);
  if (stream && !error) return {};
  std::error_code ignored;
  std::filesystem::remove(part, ignored);
  return {Code::kIo, path.string() + ": cannot be written" + (error ? ": " + error.message() : "") +
                         "; check the folder and its permissions"};
}

Status inspect(const InspectOptions& options) {
  StderrLogger logger(options.verbose ? tenon::Severity::kVerbose : tenon::Severity::kWarning);
  Result<nlohmann::ordered_json> description =
      options.identity ? tenon::describe_identity(options.file) : tenon::describe_contents(options.file, logger);
  if (!description.ok()) return description.status();
  // A plugin's docs may hold any bytes.
  const std::string json = description->dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  if (options.json == "-") {
    std::cout << json;
  } else {
    if (!options.json.empty()) TENON_RETURN_IF_ERROR(write_file(options.json, json));
    std::cout << tenon::render(*description);
  }
  std::cout.flush();
  return std::cout ? Status() : Status(Code::kIo, "stdout: cannot be written");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Looks at Tenon plugin libraries.", "tenon-plugin");
  app.set_version_flag("--version", TENON_VERSION);
  app.require_subcommand(1);

  InspectOptions options;
  CLI::App* inspect_command = app.add_subcommand("inspect", "Say who a plugin is and what it registers.");
  inspect_command->add_option("file", options.file, "the library, NAME.tnp.so")->required();
  inspect_command->add_option("--json", options.json, "also write it as JSON to FILE; - for stdout, and nothing else");
  inspect_command->add_flag("--identity", options.identity, "only who it is; its load is not run");
  inspect_command->add_flag("--verbose", options.verbose, "show what the plugin logs while it is loaded");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const Status status = inspect(options);
  if (status.ok()) return 0;
  std::cerr << "tenon-plugin: " + status.message() + "\n";
  return 1;
}
