// File steps that many processes take on the same paths: a lock that dies with its holder, and replacing a file at
// once.
//
// Thread rule: functions are thread-safe; a LockedFile is used by one thread at a time.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <tenon/status.hpp>

namespace tenon {

/// A file opened for reading and writing, and locked against every other LockedFile of the same path, in this process
/// and in others (on NFS, in other machines). The lock is flock's: the kernel drops it when the holder dies, however it
/// dies, so that there is no such thing as a stale lock. Whoever gets the lock checks that the path still names the
/// locked file, so that holders may remove it.
class LockedFile {
 public:
  /// Creates the file if need be. Waits at most `patience`; then kIo names the holder, as found in the file if its
  /// holder called write_holder.
  static Result<LockedFile> open(const std::filesystem::path& path, std::chrono::milliseconds patience);
  LockedFile(LockedFile&& other) noexcept;
  LockedFile& operator=(LockedFile&&) = delete;
  ~LockedFile();  ///< unlocks

  int descriptor() const { return descriptor_; }
  /// Writes who holds the lock into the file, for the messages of those who wait.
  void write_holder();
  /// Removes the file. The lock is held on to, but is worth nothing to others from here.
  void remove();

 private:
  LockedFile(std::filesystem::path path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  std::filesystem::path path_;
  int descriptor_ = -1;
};

/// For a living holder; a dead one holds nothing. Enough for ten writers of a large file on a busy machine.
inline constexpr std::chrono::milliseconds kLockPatience{30000};

/// The whole file; kNotFound if there is none, kIo for anything else that is not readable (a folder).
Result<std::string> read_file(const std::filesystem::path& path);
/// Everything from an open descriptor, from its start.
Result<std::string> read_all(int descriptor, const std::filesystem::path& path);
Status write_all(int descriptor, std::string_view bytes, const std::filesystem::path& path);

/// Replaces `path` by `bytes`: temporary file `path.tmp.<pid>.<n>` in the same folder, fsync, rename, fsync of the
/// folder. Keeps the permissions of the file it replaces. On failure the old file stays and no temporary file is left.
Status replace_file(const std::filesystem::path& path, std::string_view bytes);
/// Removes `path.tmp.*`, what writers that died left behind. REQUIRES: no other writer of `path` is at work.
void remove_leftovers(const std::filesystem::path& path);
/// Makes the entries of the folder that holds `path` durable.
void sync_folder_of(const std::filesystem::path& path);

/// `path` with symbolic links followed, so that two ways to a file share one lock.
std::filesystem::path resolve_links(const std::filesystem::path& path);
/// `path` with `suffix` after its name.
std::filesystem::path with_suffix(const std::filesystem::path& path, const char* suffix);

}  // namespace tenon
