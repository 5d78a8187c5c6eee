#include "registry/plugin_library.h"

#include <dlfcn.h>
#include <elf.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/hash.h"
#include "core/base/text.h"
#include "registry/validate.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEntryPoint = "tenon_plugin_query";

std::string library_label(const fs::path& path) { return "plugin library " + path.string(); }

Status not_found(const fs::path& path) {
  std::string message = "no such file";
  std::error_code error;
  std::vector<std::string> names;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  const std::string near = nearest(path.filename().string(), names);
  message += near.empty() ? "; check the path" : "; did you mean " + (folder / near).string() + "?";
  return Status(Code::kNotFound, message);
}

Result<std::string> read_file(const fs::path& path) {
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (!stream || error) {
    return Status(Code::kIo, "cannot be read: " + std::string(error ? error.message() : std::strerror(errno)));
  }
  std::string bytes(static_cast<std::size_t>(size), '\0');
  stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (static_cast<std::uintmax_t>(stream.gcount()) != size) {
    return Status(Code::kIo, "changed while it was read; load it again when it is complete");
  }
  return bytes;
}

/// The linker maps whatever the headers say; a file that is shorter than that kills the process on first touch.
Status check_elf(const std::string& bytes) {
  if (bytes.empty()) return {Code::kInvalid, "is empty (0 bytes); build or copy it again"};
  if (bytes.compare(0, SELFMAG, ELFMAG) != 0) {
    std::string head;
    for (const char c : bytes.substr(0, 16)) head += c >= ' ' && c <= '~' ? c : '.';
    return {Code::kInvalid, "is not a shared library: it begins with \"" + head +
                                "\", expected an ELF header; give the .so file that the plugin's build makes"};
  }
  Elf64_Ehdr header;
  if (bytes.size() < sizeof header) {
    return {Code::kInvalid,
            "is cut off inside its ELF header (" + std::to_string(bytes.size()) + " bytes); build or copy it again"};
  }
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_machine != EM_X86_64) {
    return {Code::kInvalid, "is for another processor (ELF machine " + std::to_string(header.e_machine) +
                                ", expected " + std::to_string(EM_X86_64) + ", x86-64); get the build for this one"};
  }
  if (header.e_type != ET_DYN) {
    return {Code::kInvalid, "is an ELF file of type " + std::to_string(header.e_type) + ", expected " +
                                std::to_string(ET_DYN) + ", a shared library; link it with -shared"};
  }
  const std::uint64_t size = bytes.size();
  std::uint64_t needed = 0;
  const std::uint64_t table_end = header.e_phoff + std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr);
  bool sane = header.e_phentsize == sizeof(Elf64_Phdr) && header.e_phoff <= size && header.e_phnum > 0;
  if (sane && table_end > size) {
    needed = table_end;
  } else if (sane) {
    for (std::uint16_t i = 0; i < header.e_phnum; ++i) {
      Elf64_Phdr segment;
      std::memcpy(&segment, bytes.data() + header.e_phoff + i * sizeof segment, sizeof segment);
      const std::uint64_t end = segment.p_offset + segment.p_filesz;
      if (end < segment.p_offset) sane = false;
      if (segment.p_type == PT_LOAD && end > needed) needed = end;
    }
  }
  if (!sane) return {Code::kInvalid, "has a damaged ELF header; build or copy it again"};
  if (needed > size) {
    return {Code::kInvalid, "is cut off: its headers speak of " + std::to_string(needed) + " bytes, the file has " +
                                std::to_string(size) + "; build or copy it again"};
  }
  return {};
}

/// Says what dlopen's text means, which begins with the path that the caller names anyway.
std::string linker_message(std::string text, const fs::path& path) {
  const std::string prefix = path.string() + ": ";
  if (text.compare(0, prefix.size(), prefix) == 0) text.erase(0, prefix.size());
  const std::string undefined = "undefined symbol: ";
  if (text.compare(0, undefined.size(), undefined) == 0) {
    return "undefined symbol " + text.substr(undefined.size()) +
           ": neither the file nor a library that it is linked with defines it; link the plugin with what does "
           "(-Wl,--no-undefined finds this when it is built)";
  }
  return "cannot be loaded: " + text;
}

}  // namespace

Result<LibraryFile> examine_library(const fs::path& path) {
  const std::string label = library_label(path);
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return not_found(path).with_context(label);
  if (fs::is_directory(status)) return Status(Code::kInvalid, label + ": is a folder; give a library inside it");
  if (status.type() == fs::file_type::none) return Status(Code::kIo, label + ": " + error.message());
  if (!fs::is_regular_file(status)) return Status(Code::kInvalid, label + ": is not an ordinary file");
  LibraryFile file;
  file.path = fs::canonical(path, error);
  if (error) return Status(Code::kIo, label + ": " + error.message());
  Result<std::string> bytes = read_file(file.path);
  if (!bytes.ok()) return bytes.status().with_context(label);
  const Status elf = check_elf(*bytes);
  if (!elf.ok()) return elf.with_context(label);
  file.build_id = to_text(hash128(*bytes));
  return file;
}

Status check_plugin(const TnPlugin* plugin, const std::string& source) {
  // Size and major come first: of another major nothing else is known.
  if (plugin->struct_size < offsetof(TnPlugin, abi_minor_needed)) {
    return {Code::kInvalid, source + ": its TnPlugin has struct_size " + std::to_string(plugin->struct_size) +
                                "; begin it with TN_HEADER(TnPlugin)"};
  }
  if (plugin->abi_major != TN_ABI_MAJOR) {
    return {Code::kVersion, source + ": is made for plugin ABI major " + std::to_string(plugin->abi_major) +
                                ", this host has " + std::to_string(TN_ABI_MAJOR) + "." +
                                std::to_string(TN_ABI_MINOR_LATEST) + "; build it against this host's headers"};
  }
  TENON_RETURN_IF_ERROR(check_struct_size(plugin, &TnPlugin::unload, "TnPlugin").with_context(source));
  if (plugin->abi_minor_needed > TN_ABI_MINOR_LATEST) {
    return {Code::kVersion, source + ": needs plugin ABI " + std::to_string(plugin->abi_major) + "." +
                                std::to_string(plugin->abi_minor_needed) + " (built with minor " +
                                std::to_string(plugin->abi_minor_built) + "), this host has " +
                                std::to_string(TN_ABI_MAJOR) + "." + std::to_string(TN_ABI_MINOR_LATEST) +
                                "; update the host, or build the plugin with a lower TN_USE_MINOR"};
  }
  const std::pair<const char*, const char*> texts[] = {{"id", plugin->id},
                                                       {"version", plugin->version},
                                                       {"license", plugin->license},
                                                       {"url", plugin->url},
                                                       {"build", plugin->build}};
  for (const auto& [field, text] : texts) {
    if (text == nullptr) {
      return {Code::kInvalid,
              source + ": TnPlugin." + field + " is NULL; give a text, \"\" if there is nothing to say"};
    }
    if (!is_printable_utf8(text)) {
      return {Code::kInvalid, source + ": TnPlugin." + field + " is not printable UTF-8"};
    }
  }
  if (*plugin->id == '\0' || *plugin->version == '\0') {
    return {Code::kInvalid, source + ": TnPlugin." + (*plugin->id == '\0' ? "id" : "version") + " is empty"};
  }
  if (plugin->load == nullptr) return {Code::kInvalid, source + ": TnPlugin.load is NULL"};
  return {};
}

Result<PluginLibrary> PluginLibrary::open(const LibraryFile& file) {
  using boost::dll::load_mode::rtld_local;
  using boost::dll::load_mode::rtld_now;
  const std::string label = library_label(file.path);
  PluginLibrary result;
  result.file_ = file;
  std::error_code error;
  result.library_.load(file.path, error, rtld_now | rtld_local);
  if (error) {
    const char* text = ::dlerror();  // Boost.DLL's code says only that it failed
    return Status(Code::kInvalid,
                  label + ": " + linker_message(text != nullptr ? text : error.message().c_str(), file.path));
  }
  if (!result.library_.has(kEntryPoint)) {
    return Status(Code::kInvalid, label + ": has no entry point " + kEntryPoint +
                                      "; it is no Tenon plugin, or it does not export the function (TN_PLUGIN does)");
  }
  const auto& query = result.library_.get<decltype(tenon_plugin_query)>(kEntryPoint);
  result.plugin_ = query(TN_ABI_MAJOR, TN_ABI_MINOR_LATEST);
  if (result.plugin_ == nullptr) {
    return Status(Code::kInvalid, label + ": its entry point refuses this host: " + kEntryPoint + "(" +
                                      std::to_string(TN_ABI_MAJOR) + ", " + std::to_string(TN_ABI_MINOR_LATEST) +
                                      ") answered NULL; get a build of the plugin for this version");
  }
  const Status status = check_plugin(result.plugin_, label);
  if (!status.ok()) return status;
  return result;
}

}  // namespace tenon
