// ImportTest: cfg and weights files in a folder of their own, imported through the public API and run by the ops' plain
// references.
//
// Thread rule: used by the thread that runs the test.
#ifndef TENON_IMPORTERS_DARKNET_TESTING_IMPORT_TESTING_H_
#define TENON_IMPORTERS_DARKNET_TESTING_IMPORT_TESTING_H_

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

namespace tenon::darknet {

struct Computed {
  std::vector<int64_t> dims;
  std::vector<float> values;
};

inline std::string header(int32_t major, int32_t minor, int32_t revision, size_t counter_bytes) {
  const int32_t version[] = {major, minor, revision};
  return std::string(reinterpret_cast<const char*>(version), sizeof version) + std::string(counter_bytes, '\0');
}

inline std::string floats(const std::vector<float>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

class ImportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(::testing::TempDir()) /
              (std::string("tenon_darknet_") + test->test_suite_name() + "_" + test->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    LibraryOptions options;
    options.log_threshold = TN_LOG_WARNING;
    options.log = [this](int, const std::string& message) { log_.push_back(message); };
    auto library = Library::create(options);
    ASSERT_TRUE(library.ok()) << library.status().message();
    library_.emplace(*library);
    ASSERT_TRUE(library_->discover().ok());
    log_.clear();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& contents) {
    const std::filesystem::path path = folder_ / name;
    std::ofstream(path, std::ios::binary) << contents;
    return path.string();
  }

  // Why the import of `path` fails; fills network_ if it does not.
  std::string import_failure(const std::string& path, const std::string& options = "", const std::string& files = "") {
    auto network = Network::create(*library_);
    if (!network.ok()) return network.status().message();
    network_.emplace(*network);
    const Status status = network_->import(path, "tenon.darknet", options, files);
    return status.ok() ? "no failure" : status.message();
  }
  void import(const std::string& path, const std::string& options = "", const std::string& files = "") {
    ASSERT_EQ(import_failure(path, options, files), "no failure");
  }
  // x.cfg with the numbers of x.weights behind a header of today.
  void import_text(const std::string& cfg, const std::vector<float>& weights, const std::string& options = "") {
    write("x.weights", header(0, 2, 5, 8) + floats(weights));
    import(write("x.cfg", cfg), options);
  }

  nlohmann::json describe() const { return nlohmann::json::parse(*network_->describe()); }
  std::vector<std::string> names(const char* list) const {
    std::vector<std::string> result;
    const nlohmann::json description = describe();
    for (const auto& item : description[list]) result.push_back(item["name"]);
    return result;
  }

  // Every value of the network for one input.
  std::map<std::string, Computed> run(const std::vector<float>& input) const {
    const void* inputs[] = {input.data()};
    TnReferenceRun* run = nullptr;
    if (tn_reference_run(network_->get(), inputs, 1, &run) != TN_OK) {
      ADD_FAILURE() << tn_last_error();
      return {};
    }
    std::map<std::string, Computed> result;
    for (uint32_t n = 0; n < tn_reference_num_values(run); ++n) {
      const char* name = nullptr;
      TnTensor tensor{};
      if (tn_reference_value(run, n, &name, &tensor) != TN_OK) {
        ADD_FAILURE() << tn_last_error();
        break;
      }
      Computed& value = result[name];
      value.dims.assign(tensor.dims.d, tensor.dims.d + tensor.dims.rank);
      size_t count = 1;
      for (const int64_t size : value.dims) count *= static_cast<size_t>(size);
      value.values.resize(count);
      std::memcpy(value.values.data(), tensor.data, count * sizeof(float));
    }
    tn_reference_release(run);
    return result;
  }

  std::filesystem::path folder_;
  std::vector<std::string> log_;
  std::optional<Library> library_;
  std::optional<Network> network_;
};

}  // namespace tenon::darknet

#endif  // TENON_IMPORTERS_DARKNET_TESTING_IMPORT_TESTING_H_
