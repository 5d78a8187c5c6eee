// The first 4 KiB of an engine file: text that people can read, with the places and checksums of the sections.
//
//   TENON ENGINE
//   format_version: 3
//   tenon_version: 0.1.0
//   ...
//   (spaces)
//   header_checksum: 0x0123456789abcdef      (XXH3 of all bytes before this line; the line ends the header)
//
// Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <tenon/status.hpp>

#include "core/plan/plan_file.h"

namespace tenon {

/// Raised whenever an older reader would misread the plan.
inline constexpr std::uint32_t kFormatVersion = 3;
inline constexpr std::size_t kHeaderBytes = 4096;
/// Sections begin on pages, so that a mapped file needs no copy.
inline constexpr std::uint64_t kSectionAlignment = 4096;

struct Section {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t checksum = 0;  ///< XXH3
};

struct FileHeader {
  EngineHeader info;
  Section plan;
  Section constants;
};

/// "linux" and "x86_64" of this build.
const char* this_os();
const char* this_arch();

/// Exactly kHeaderBytes of ASCII. Texts that are too long are cut, other characters become '?': the plan has them
/// whole.
std::string write_file_header(const FileHeader& header);

/// kInvalid: not an engine file, or damaged; says which. Does not look at the sections.
Result<FileHeader> parse_file_header(const void* bytes, std::size_t size);

}  // namespace tenon
