// tenon: build, run, measure, inspect and edit, from the command line.
#include <cstdio>
#include <exception>

#include "tools/tenon/common.h"

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
  add_validate(&app);
  try {
    app.parse(argc, argv);
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
