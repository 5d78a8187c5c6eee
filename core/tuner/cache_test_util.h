// What the tests of the timing cache share.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/logger.h"
#include "core/tuner/timing_cache.h"

namespace tenon {

/// Keeps every message.
class RecordingLogger final : public Logger {
 public:
  void log(Severity severity, const std::string& message) override {
    const std::lock_guard lock(mutex_);
    messages_.emplace_back(severity, message);
  }
  std::vector<std::string> of(Severity severity) const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> found;
    for (const auto& [level, message] : messages_) {
      if (level == severity) found.push_back(message);
    }
    return found;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::pair<Severity, std::string>> messages_;
};

/// An empty folder, removed with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tenon_tuner_XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::filesystem::path operator/(const char* name) const { return path_ / name; }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) found.push_back(entry.path().filename());
    return found;
  }

 private:
  std::filesystem::path path_;
};

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

inline void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline constexpr const char* kTestDevice = "cpu:avx512:2:Test";

inline Hash128 test_key(std::uint64_t number) { return {0x1814870c44ff0f85ull, 0x74df6e3dda040000ull + number}; }

inline CacheChoice test_choice(std::uint64_t number) {
  CacheChoice choice;
  choice.key = test_key(number);
  choice.layer = "conv" + std::to_string(number) + "+relu" + std::to_string(number);
  choice.op = "tenon.conv2d/1";
  choice.device = kTestDevice;
  choice.combo = "f32:nchw16c,f32:row>f32:nchw16c";
  choice.kernel = "tenon.conv2d.direct.f32";
  choice.tactic = 0x665ded9abbf88ull + number;
  choice.params = "tile=" + std::to_string(number) + ";order=a{b}";
  choice.ms = 0.011264 + 0.1 * static_cast<double>(number);
  return choice;
}

inline CacheMeasurement test_measurement(std::uint64_t number, std::uint64_t tactic) {
  CacheMeasurement measurement;
  measurement.key = test_key(number);
  measurement.combo = "f32:row>f32:row";
  measurement.kernel = "tenon.conv2d.tiled.f32";
  measurement.revision = 3;
  measurement.build = "0x1234";
  measurement.tactic = tactic;
  measurement.params = "tile=" + std::to_string(tactic);
  measurement.ms = 0.0142 / 3;
  return measurement;
}

inline CacheGraph test_graph(std::uint64_t number) {
  CacheGraph graph;
  graph.key = test_key(0xf000 + number);
  graph.device = kTestDevice;
  graph.regions = {{"acme.join/1", "conv1+conv2", true, 2.5, 3}};
  graph.layout = {{"conv1", "nchw16c"}, {"a value, \"named\" {oddly}", "vendor.x/1"}};
  graph.streams = {{"conv2", 3, 1}, {"pool 1", -1, 2}};
  graph.rerank = {{test_key(number), "conv1+relu1", 0x665ded9abbf88, 0x91c0, 1.25, 1.5}};
  return graph;
}

}  // namespace tenon
