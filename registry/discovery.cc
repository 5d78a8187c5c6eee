// Where plugins are looked for.
#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "registry/plugin_library.h"  // before Boost.DLL's other headers: it chooses std::filesystem
#include "registry/registry.h"

#include <boost/dll/runtime_symbol_info.hpp>

namespace tenon {
namespace fs = std::filesystem;

namespace {

/// Folders of what holds this code (libtenon.so, or the program that it is linked into) and of the program.
std::vector<fs::path> own_folders() {
  std::vector<fs::path> folders;
  std::error_code error;
  const fs::path module = boost::dll::this_line_location(error);
  // For a program the dynamic linker knows only argv[0], which need not be a path.
  if (!error && module.is_absolute()) folders.push_back(fs::canonical(module, error).parent_path());
  const fs::path program = boost::dll::program_location(error);
  if (!error) folders.push_back(fs::canonical(program, error).parent_path());
  return folders;
}

fs::path installed_folder() {
  const fs::path plugins = fs::path("tenon") / "plugins";
  fs::path usual;
  std::error_code error;
  for (const fs::path& folder : own_folders()) {
    if (folder.empty()) continue;
    const fs::path prefix = folder.parent_path();
    if (usual.empty()) usual = prefix / "lib" / plugins;
    // <prefix>/bin and <prefix>/lib64; <prefix>/lib; <prefix>/lib/<architecture>.
    for (const fs::path& candidate : {prefix / "lib" / plugins, folder / plugins, prefix / plugins}) {
      if (fs::is_directory(candidate, error)) return candidate;
    }
  }
  return usual;
}

}  // namespace

std::vector<fs::path> discovery_folders() {
  std::vector<fs::path> folders;
  const char* variable = secure_getenv("TENON_PLUGIN_PATH");
  std::string_view rest = variable != nullptr ? variable : "";
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    if (end > 0) folders.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  const fs::path installed = installed_folder();
  if (!installed.empty()) folders.push_back(installed);
  return folders;
}

}  // namespace tenon
