// PluginLibrary: a plugin's shared library, opened and asked who it is, but not loaded: its TnPlugin.load has not run.
//
// Thread rule: an object is used by one thread at a time; different objects are independent.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

// Boost.DLL over std::filesystem, so that no compiled Boost library is needed.
#ifndef BOOST_DLL_USE_STD_FS
#define BOOST_DLL_USE_STD_FS
#endif
#include <boost/dll/shared_library.hpp>

#include <tenon/plugin/plugin.h>
#include <tenon/status.hpp>

namespace tenon {

/// A file that looks like a loadable library. Nothing of it has run.
struct LibraryFile {
  std::filesystem::path path;  ///< canonical
  std::string build_id;        ///< hash of the contents, "0x" and 32 hex digits
};

/// Looks at a file: that it exists, is an ordinary file, and is a whole shared library for this processor. Errors name
/// the path: kNotFound, kIo, kInvalid with what it is instead.
Result<LibraryFile> examine_library(const std::filesystem::path& path);

/// Checks what a plugin says about itself: sizes, ABI numbers (kVersion with both sides'), texts. `source` begins the
/// message.
Status check_plugin(const TnPlugin* plugin, const std::string& source);

class PluginLibrary {
 public:
  /// Maps the file (all symbols bound now, none visible to others) and calls its tenon_plugin_query. Errors name the
  /// path: kInvalid for what the dynamic linker rejects (an undefined symbol by name), a missing or refusing entry
  /// point, and what check_plugin finds; kVersion.
  static Result<PluginLibrary> open(const LibraryFile& file);

  /// What the library says about itself. Valid as long as this object.
  const TnPlugin& plugin() const { return *plugin_; }
  const LibraryFile& file() const { return file_; }

 private:
  LibraryFile file_;
  boost::dll::shared_library library_;
  const TnPlugin* plugin_ = nullptr;
};

}  // namespace tenon
