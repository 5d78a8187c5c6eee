// What the fuzz targets share. A target is one function LLVMFuzzerTestOneInput, which libFuzzer calls with inputs of
// its own (./dev fuzz) and replay_test.cc with those of corpus/.
//
// Thread rule: used by the one thread that runs the target.
#ifndef TENON_TESTS_FUZZ_FUZZING_H
#define TENON_TESTS_FUZZ_FUZZING_H

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <tenon/tenon.hpp>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
/// Loads the plugins, which is not part of the time of the first input.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv);

namespace tenon::fuzzing {

/// Ends the program, which is a find, unless `holds`.
inline void require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "fuzzing: %s\n", what.c_str());
  std::abort();
}

/// A library with every plugin of $TENON_PLUGIN_PATH, `needed` among them, that logs nothing.
inline Library quiet_library(const std::string& needed) {
  LibraryOptions options;
  options.log_threshold = TN_LOG_ERROR;
  options.log = [](int, const std::string&) {};
  Library library = Library::create(options).value();
  require(library.discover().ok() && library.describe()->find('"' + needed + '"') != std::string::npos,
          "there is no plugin " + needed + " in TENON_PLUGIN_PATH");
  return library;
}

/// A folder for the files of one input after the other.
class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("tenon_fuzz_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string write(const std::string& name, std::string_view contents) const {
    const std::string path = path_ / name;
    remove(name);  // some file systems wait for the disk when a file is overwritten, but not when it is deleted
    std::ofstream(path, std::ios::binary).write(contents.data(), static_cast<std::streamsize>(contents.size()));
    return path;
  }
  void remove(const std::string& name) const { std::filesystem::remove(path_ / name); }

 private:
  std::filesystem::path path_;
};

/// Imports a file. What was imported can be told; what was not has a message.
inline void import(const Library& library, const std::string& path, const std::string& importer,
                   const std::string& options_json = "") {
  Network network = Network::create(library).value();
  const Status status = network.import(path, importer, options_json);
  require(status.ok() || !status.message().empty(), "a failure without a message");
  if (!status.ok()) return;
  const auto description = network.describe();
  require(description.ok(), description.status().message());
  const auto dump = network.dump();
  require(dump.ok(), dump.status().message());
}

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace tenon::fuzzing

#endif  // TENON_TESTS_FUZZ_FUZZING_H
