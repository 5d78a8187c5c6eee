// tenon: build, run, measure, inspect and edit, from the command line.
#include <algorithm>
#include <cstdio>
#include <exception>

#include "tools/tenon/common.h"

namespace {

/// CLI11 says of a mistyped command only that one is required.
void refuse_unknown_command(const CLI::App* app, int argc, char** argv) {
  for (int i = 1; i < argc && argv[i][0] != '-'; ++i) {
    const auto known = app->get_subcommands([](const CLI::App*) { return true; });
    if (known.empty()) return;
    const auto next =
        std::find_if(known.begin(), known.end(), [&](const CLI::App* sub) { return sub->get_name() == argv[i]; });
    if (next == known.end()) {
      std::string names;
      for (const CLI::App* sub : known) names += (names.empty() ? "" : ", ") + sub->get_name();
      throw tenon::cli::UsageError(std::string("unknown command \"") + argv[i] + "\"; expected one of " + names);
    }
    app = *next;
  }
}

}  // namespace

int main(int argc, char** argv) {
  using namespace tenon::cli;
  CLI::App app("Tenon: an inference engine in which every operator is a plugin");
  app.set_version_flag("--version", tn_version());
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::help);
  add_build(&app);
  add_run(&app);
  add_bench(&app);
  add_inspect(&app);
  add_explain(&app);
  add_cache(&app);
  add_compare(&app);
  add_plugin(&app);
  add_rules(&app);
  add_validate(&app);
  try {
    refuse_unknown_command(&app, argc, argv);
    app.parse(argc, argv);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) throw WorkError("stdout could not be written");
    return kSuccess;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    std::fprintf(stderr, "error: %s\nRun `tenon --help` or `tenon COMMAND --help`.\n", error.what());
    return kUsage;
  } catch (const UsageError& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return kUsage;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return kFailed;
  }
}
