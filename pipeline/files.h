// Reading a whole file, and writing one so that a reader never sees half of it.
//
// Thread rule: free functions without shared state; call from any thread. Two writers of one path: the last rename
// wins, and the file is always one writer's complete bytes.
#ifndef TENON_PIPELINE_FILES_H
#define TENON_PIPELINE_FILES_H

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <tenon/status.hpp>
#include <vector>

namespace tenon::pipeline {

/// Returns the bytes of a regular file. Fails with kNotFound (no such file), kInvalid (a directory, or larger than
/// `max_bytes`) or kIo. Nothing is allocated before the size is known to be at most `max_bytes`.
Result<std::vector<std::uint8_t>> read_file(const std::filesystem::path& path, std::uint64_t max_bytes);

/// Whether a file can be written at `path`, as far as that can be known without writing: so that a mistyped folder is
/// found before the work and not after it. Fails with kInvalid (a folder, or no name) or kIo.
Status check_writable(const std::filesystem::path& path);

/// Writes to a temporary file in the folder of `path` and renames it over `path`. On failure (kIo) neither a partial
/// file nor the temporary file is left, and a file that was at `path` before is untouched. A device or pipe, such as
/// /dev/null, is written to and not replaced.
Status write_file_atomically(const std::filesystem::path& path, std::span<const std::uint8_t> bytes);

}  // namespace tenon::pipeline

#endif  // TENON_PIPELINE_FILES_H
