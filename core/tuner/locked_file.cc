#include "core/tuner/locked_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <system_error>
#include <thread>
#include <utility>

namespace tenon {
namespace {

constexpr std::size_t kMaxFile = std::size_t{1} << 30;  // no timing cache is near it; a device file is beyond it
constexpr std::size_t kMaxHolder = 200;                 // bytes of a lock file that are worth showing

Status io_error(const std::string& what, const std::filesystem::path& path, int error) {
  return {Code::kIo, what + " " + path.string() + ": " + std::generic_category().message(error)};
}

/// Whether `path` still names the file that is open.
bool names_same_file(const std::filesystem::path& path, int descriptor) {
  struct stat named {};
  struct stat opened {};
  return ::stat(path.c_str(), &named) == 0 && ::fstat(descriptor, &opened) == 0 && named.st_dev == opened.st_dev &&
         named.st_ino == opened.st_ino;
}

std::string holder_text(int descriptor) {
  std::array<char, kMaxHolder> buffer{};
  const ssize_t count = ::pread(descriptor, buffer.data(), buffer.size(), 0);
  std::string text;
  for (ssize_t i = 0; i < count && buffer[i] >= ' ' && buffer[i] <= '~'; ++i) text += buffer[i];
  return text.empty() ? "another process" : text;
}

}  // namespace

Result<LockedFile> LockedFile::open(const std::filesystem::path& path, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (true) {
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor < 0) {
      const Status status = io_error("cannot open", path, errno);
      return Status(status.code(), status.message() + "; check that its folder exists and may be written to");
    }
    LockedFile file(path, descriptor);
    while (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) return io_error("cannot lock", path, errno);
      if (std::chrono::steady_clock::now() >= deadline) {
        return Status(Code::kIo, "cannot lock " + path.string() + " within " + std::to_string(patience.count()) +
                                     " ms: held by " + holder_text(descriptor) + "; wait for it or end it");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    if (names_same_file(path, descriptor)) return file;
  }
}

LockedFile::LockedFile(LockedFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

LockedFile::~LockedFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void LockedFile::write_holder() {
  std::array<char, 128> host{};
  ::gethostname(host.data(), host.size() - 1);
  std::array<char, 32> time{};
  const std::time_t now = std::time(nullptr);
  std::tm broken_down{};
  std::strftime(time.data(), time.size(), "%Y-%m-%dT%H:%M:%SZ", ::gmtime_r(&now, &broken_down));
  const std::string text =
      "process " + std::to_string(::getpid()) + " on " + host.data() + " since " + time.data() + "\n";
  // For messages only: a lock file that cannot be written locks as well.
  if (::ftruncate(descriptor_, 0) == 0) static_cast<void>(write_all(descriptor_, text, path_));
}

void LockedFile::remove() { ::unlink(path_.c_str()); }

Result<std::string> read_all(int descriptor, const std::filesystem::path& path) {
  std::string bytes;
  std::array<char, 65536> buffer{};
  while (bytes.size() <= kMaxFile) {
    const ssize_t count = ::pread(descriptor, buffer.data(), buffer.size(), static_cast<off_t>(bytes.size()));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return io_error("cannot read", path, errno);
    if (count == 0) return bytes;
    bytes.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return Status(Code::kInvalid, path.string() + " is larger than 1 GiB: not a timing cache");
}

Result<std::string> read_file(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe must not block
  if (descriptor < 0) {
    const int error = errno;
    Status status = io_error("cannot open", path, error);
    return error == ENOENT ? Status(Code::kNotFound, status.message()) : status;
  }
  auto bytes = read_all(descriptor, path);
  ::close(descriptor);
  return bytes;
}

Status write_all(int descriptor, std::string_view bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return io_error("cannot write", path, errno);
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

Status replace_file(const std::filesystem::path& path, std::string_view bytes) {
  static std::atomic<unsigned> counter{0};
  const std::filesystem::path temporary =
      with_suffix(path, (".tmp." + std::to_string(::getpid()) + "." + std::to_string(counter++)).c_str());
  const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) return io_error("cannot create", temporary, errno);
  struct stat replaced {};
  if (::stat(path.c_str(), &replaced) == 0) static_cast<void>(::fchmod(descriptor, replaced.st_mode & 07777));
  Status status = write_all(descriptor, bytes, temporary);
  if (status.ok() && ::fsync(descriptor) != 0) status = io_error("cannot sync", temporary, errno);
  if (::close(descriptor) != 0 && status.ok()) status = io_error("cannot close", temporary, errno);
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) status = io_error("cannot replace", path, errno);
  if (!status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  sync_folder_of(path);
  return {};
}

void remove_leftovers(const std::filesystem::path& path) {
  const std::string prefix = path.filename().string() + ".tmp.";
  std::error_code ignored;
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  for (std::filesystem::directory_iterator entry(folder, ignored), end; entry != end; entry.increment(ignored)) {
    if (entry->path().filename().string().compare(0, prefix.size(), prefix) == 0) {
      ::unlink(entry->path().c_str());
    }
  }
}

void sync_folder_of(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

std::filesystem::path resolve_links(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path resolved = std::filesystem::weakly_canonical(path, error);
  return error ? path : resolved;
}

std::filesystem::path with_suffix(const std::filesystem::path& path, const char* suffix) {
  std::filesystem::path result = path;
  result += suffix;
  return result;
}

}  // namespace tenon
