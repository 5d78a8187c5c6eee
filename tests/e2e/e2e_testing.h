// What the end-to-end tests share: running programs, files, and values of engines.
#ifndef TENON_TESTS_E2E_E2E_TESTING_H
#define TENON_TESTS_E2E_E2E_TESTING_H

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

#include "pipeline/testing/temp_dir.h"
#include "tests/support/data_dirs.h"

namespace tenon::e2e {

namespace fs = std::filesystem;
using nlohmann::json;
using TempDir = pipeline::testing::TempDir;

inline std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_text(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
}

inline fs::path build_dir() {
  const char* dir = std::getenv("TENON_BUILD_DIR");
  return dir != nullptr ? fs::path(dir) : fs::current_path();
}

inline std::string program(const char* name) { return (build_dir() / "bin" / name).string(); }

/// Where engines run: $TENON_TEST_DEVICE, or the CPU.
inline std::string test_device() {
  const char* device = std::getenv("TENON_TEST_DEVICE");
  return device != nullptr && *device != '\0' ? device : "cpu";
}

/// A library of tests/install/matmul_plugin: "plain", "wrong" or "crash".
inline std::string matmul_plugin(const std::string& variant) {
  return (build_dir() / "tests/plugins" / ("acme_matmul_" + variant + ".tnp.so")).string();
}

/// Why a device cannot be used here; empty if it can.
inline std::string why_not(const Library& library, const std::string& device) {
  const auto cache = TimingCache::create(library, "", 0, device);
  return cache.ok() ? "" : cache.status().message();
}

struct Outcome {
  int status = -1;  ///< exit status, or 1000 + the signal that ended the program
  std::string out, err;
};

/// Runs a program and waits for it; what it prints is collected.
inline Outcome run_program(const std::vector<std::string>& command) {
  const TempDir dir;
  const std::string out = dir.path() / "out", err = dir.path() / "err";
  const pid_t child = fork();
  if (child == 0) {
    const auto redirect = [](const std::string& path, int descriptor) {
      const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      if (file < 0 || dup2(file, descriptor) < 0) _exit(126);
    };
    redirect(out, STDOUT_FILENO);
    redirect(err, STDERR_FILENO);
    std::vector<char*> arguments;
    for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  int state = 0;
  waitpid(child, &state, 0);
  return {WIFEXITED(state) ? WEXITSTATUS(state) : 1000 + WTERMSIG(state), read_text(out), read_text(err)};
}

/// `tenon` with these arguments.
inline Outcome tenon(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), program("tenon"));
  return run_program(arguments);
}

inline json parse_json(const std::string& text) {
  json value = json::parse(text, nullptr, false);
  EXPECT_FALSE(value.is_discarded()) << "not JSON: " << text.substr(0, 400);
  return value;
}

/// Names of the entries of a folder, sorted.
inline std::vector<std::string> listing(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

/// Relative l2 distance.
inline double distance(const std::vector<float>& expected, const std::vector<float>& found) {
  EXPECT_EQ(expected.size(), found.size());
  double difference = 0, total = 0;
  for (std::size_t i = 0; i < std::min(expected.size(), found.size()); ++i) {
    difference += (double{expected[i]} - found[i]) * (double{expected[i]} - found[i]);
    total += double{expected[i]} * expected[i];
  }
  return std::sqrt(difference / total);
}

}  // namespace tenon::e2e

#endif  // TENON_TESTS_E2E_E2E_TESTING_H
