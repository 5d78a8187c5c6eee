// What the registry's tests share: a logger that remembers, a folder that goes away, the test plugins.
#pragma once

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/base/logger.h"

namespace tenon::testing {

class RecordingLogger final : public Logger {
 public:
  void log(Severity, const std::string& message) override {
    const std::lock_guard lock(mutex_);
    messages_.push_back(message);
  }
  std::size_t count(const std::string& message) const {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(std::count(messages_.begin(), messages_.end(), message));
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return messages_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> messages_;
};

/// A new empty folder, removed with its contents at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "tenon_test_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = std::filesystem::canonical(name);
  }
  ~TemporaryFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::filesystem::path test_plugin(const std::string& name) {
  return std::filesystem::canonical(std::filesystem::path(TEST_PLUGIN_FOLDER) / (name + ".tnp.so"));
}

inline void write_file(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace tenon::testing
