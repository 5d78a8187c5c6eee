// A process of its own for the tests of many writers and of crashes.
//
// cache_writer_program write FILE FIRST COUNT PAUSE_MS: adds COUNT entries of each kind and pieces of code, number
// FIRST and up, one load and save each. cache_writer_program crash FILE NUMBER TACTIC: begins to try a tactic of key
// NUMBER, says "trying", and dies by SIGKILL. cache_writer_program try FILE NUMBER TACTIC: the same, but waits for the
// end of its input and ends well.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "core/tuner/cache_test_util.h"
#include "core/tuner/code_store.h"
#include "core/tuner/timing_cache.h"

namespace tenon {
namespace {

int write_entries(const std::filesystem::path& path, std::uint64_t first, std::uint64_t count, int pause_ms) {
  for (std::uint64_t i = first; i < first + count; ++i) {
    auto cache = TimingCache::load(path, kTestDevice, null_logger(), true);
    if (!cache.ok()) return 1;
    (*cache)->insert(test_choice(i));
    (*cache)->record(test_measurement(i, i));
    (*cache)->record(test_graph(i));
    (*cache)->code().put("source " + std::to_string(i), "code " + std::to_string(i));
    if (!(*cache)->save(path, null_logger()).ok()) return 1;
    std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
  }
  return 0;
}

int try_tactic(const std::filesystem::path& path, std::uint64_t number, std::uint64_t tactic, bool dies) {
  CrashJournal journal(path.string() + ".journal");
  if (!journal.begin(test_measurement(number, tactic)).ok()) return 1;
  if (::write(STDOUT_FILENO, "trying\n", 7) != 7) return 1;
  if (dies) ::raise(SIGKILL);
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) > 0) {
  }
  return 0;
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  const auto number = [&](int i) { return i < argc ? std::strtoull(argv[i], nullptr, 10) : 0; };
  const std::string command = argc > 2 ? argv[1] : "";
  if (command == "write") return tenon::write_entries(argv[2], number(3), number(4), static_cast<int>(number(5)));
  if (command == "crash" || command == "try")
    return tenon::try_tactic(argv[2], number(3), number(4), command == "crash");
  return 2;
}
