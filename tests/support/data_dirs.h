// Where tests find models, pictures and golden outputs that are not part of the repository.
//
// Each folder is named by an environment variable, with a default beside the source tree:
//   TENON_MODELS_DIR  <source>/../shared/models
//   TENON_GOLDEN_DIR  <source>/../shared/golden
//   TENON_IMAGES_DIR  <source>/../shared/images
// <source> is TENON_SOURCE_DIR, which CTest sets. A test whose data are missing is skipped, and says which variable to
// set; with TENON_REQUIRE_DATA=1 it fails instead.
//
// Thread rule: read-only; call from any thread.
#ifndef TENON_TESTS_SUPPORT_DATA_DIRS_H
#define TENON_TESTS_SUPPORT_DATA_DIRS_H

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

namespace tenon::testing {

inline std::filesystem::path source_dir() {
  const char* dir = std::getenv("TENON_SOURCE_DIR");
  return dir != nullptr && *dir != '\0' ? std::filesystem::path(dir) : std::filesystem::current_path();
}

inline std::filesystem::path data_dir(const char* variable, const char* folder) {
  const char* dir = std::getenv(variable);
  if (dir != nullptr && *dir != '\0') return dir;
  return (source_dir() / ".." / "shared" / folder).lexically_normal();
}

inline std::filesystem::path models_dir() { return data_dir("TENON_MODELS_DIR", "models"); }
inline std::filesystem::path golden_dir() { return data_dir("TENON_GOLDEN_DIR", "golden"); }
inline std::filesystem::path images_dir() { return data_dir("TENON_IMAGES_DIR", "images"); }

inline bool data_exists(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

inline bool data_required() {
  const char* value = std::getenv("TENON_REQUIRE_DATA");
  return value != nullptr && std::string_view(value) == "1";
}

/// "<path> is missing; set TENON_GOLDEN_DIR ...": the variable is the one whose folder the path lies in.
inline std::string missing_data_message(const std::filesystem::path& path) {
  const auto inside = [&](const std::filesystem::path& dir) { return path.string().starts_with(dir.string()); };
  const char* variable = inside(models_dir())   ? "TENON_MODELS_DIR"
                         : inside(golden_dir()) ? "TENON_GOLDEN_DIR"
                         : inside(images_dir()) ? "TENON_IMAGES_DIR"
                                                : "TENON_SOURCE_DIR";
  return path.string() + " is missing; set " + variable + " to the folder that holds it";
}

}  // namespace tenon::testing

/// Leaves a test that needs `path`: skipped when the path is missing, failed when TENON_REQUIRE_DATA=1.
/// Use it in the body of a TEST or in a helper that returns void.
#define TENON_NEED_DATA(path)                                                                        \
  do {                                                                                               \
    if (!::tenon::testing::data_exists(path)) {                                                      \
      if (::tenon::testing::data_required()) FAIL() << ::tenon::testing::missing_data_message(path); \
      GTEST_SKIP() << ::tenon::testing::missing_data_message(path);                                  \
    }                                                                                                \
  } while (false)

#endif  // TENON_TESTS_SUPPORT_DATA_DIRS_H
