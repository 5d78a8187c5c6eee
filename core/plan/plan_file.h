// The engine file: a readable 4 KiB header, then the FlatBuffers plan, then aligned constants; see
// docs/file_formats.md.
//
// Thread rule: pure functions; MappedFile is immutable.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <tenon/status.hpp>

#include "core/plan/plan.h"

namespace tenon {

/// What the header says; readable without plugins and even if this version cannot run the engine.
struct EngineHeader {
  std::uint32_t format_version = 0;
  std::string tenon_version;
  std::string os, arch;  ///< "linux", "x86_64"
  std::string device_signature;
  std::uint64_t file_bytes = 0;
};

/// The bytes of an engine file. Equal plans give equal bytes.
Result<std::vector<std::uint8_t>> write_plan(const Plan& plan);

/// Writes bytes to a file through a temporary one; nothing is left on failure.
Status write_file_atomically(const std::filesystem::path& path, const void* bytes, std::size_t size);

/// Maps a file read-only; kIo or kNotFound names path and reason (also for a folder).
struct MappedFile {
  const std::uint8_t* data = nullptr;
  std::size_t size = 0;
};
Result<std::shared_ptr<const MappedFile>> map_file(const std::filesystem::path& path);

/// Header only. kInvalid: not an engine file, or its header is damaged.
Result<EngineHeader> read_header(const void* bytes, std::size_t size);

/// Checks sizes, checksums, the FlatBuffers structure and every index, then gives the plan. Constants and persistent
/// bytes are not copied where that can be avoided: they refer to `bytes`, which `keep_alive` holds. Typed errors:
/// kInvalid (what is damaged and where), kVersion (another format version, system or architecture). Whatever lengths
/// the file claims, what is allocated is bounded by its real size. The file must not shrink while it is mapped.
Result<Plan> read_plan(const void* bytes, std::size_t size, std::shared_ptr<const void> keep_alive);

}  // namespace tenon
