#include "pipeline/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <system_error>

namespace tenon::pipeline {
namespace {

std::string system_text(int error) { return std::generic_category().message(error); }

Code code_of(int error) { return error == ENOENT || error == ENOTDIR ? Code::kNotFound : Code::kIo; }

/// Closes a descriptor at the end of its scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  /// Closes now and returns 0 or errno: a full disk may be reported only here.
  int close() {
    const int fd = fd_;
    fd_ = -1;
    return ::close(fd) == 0 ? 0 : errno;
  }

 private:
  int fd_;
};

int write_all(int fd, std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return 0;
}

/// A device, pipe or socket: nothing that a rename may replace.
bool is_device(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_other(path, ignored);
}

Status cannot_write(const std::filesystem::path& path, int error) {
  return Status(Code::kIo, "cannot write " + path.string() + ": " + system_text(error) +
                               "; check that its folder exists and may be written to");
}

}  // namespace

Result<std::vector<std::uint8_t>> read_file(const std::filesystem::path& path, std::uint64_t max_bytes) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return Status(code_of(errno), "cannot open " + path.string() + ": " + system_text(errno));
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) {
    return Status(Code::kIo, "cannot examine " + path.string() + ": " + system_text(errno));
  }
  if (!S_ISREG(info.st_mode)) {
    return Status(Code::kInvalid, path.string() + " is not a regular file; give the path of a file");
  }
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (size > max_bytes) {
    return Status(Code::kInvalid, path.string() + " has " + std::to_string(size) + " bytes, more than the limit of " +
                                      std::to_string(max_bytes));
  }
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(size));
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::read(file.get(), bytes.data() + done, bytes.size() - done);
    if (got < 0) {
      if (errno == EINTR) continue;
      return Status(Code::kIo, "cannot read " + path.string() + ": " + system_text(errno));
    }
    if (got == 0) return Status(Code::kIo, path.string() + " became shorter while it was read; try again");
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

Status check_writable(const std::filesystem::path& path) {
  if (path.filename().empty()) return Status(Code::kInvalid, "'" + path.string() + "' does not name a file");
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return Status(Code::kInvalid, path.string() + " is a folder; give the path of a file");
  }
  const std::filesystem::path place = is_device(path)          ? path
                                      : path.has_parent_path() ? path.parent_path()
                                                               : std::filesystem::path(".");
  return ::access(place.c_str(), W_OK) == 0 ? Status() : cannot_write(path, errno);
}

Status write_file_atomically(const std::filesystem::path& path, std::span<const std::uint8_t> bytes) {
  static std::atomic<unsigned> counter{0};
  TENON_RETURN_IF_ERROR(check_writable(path));
  if (is_device(path)) {
    Descriptor device(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    const int failed = device.get() < 0 ? errno : write_all(device.get(), bytes);
    return failed == 0 ? Status() : cannot_write(path, failed);
  }
  const std::string temporary = (path.parent_path() / ("." + path.filename().string() + ".tmp-" +
                                                       std::to_string(::getpid()) + "-" + std::to_string(counter++)))
                                    .string();
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.get() < 0) return cannot_write(path, errno);
  int error = write_all(file.get(), bytes);
  const int close_error = file.close();
  if (error == 0) error = close_error;
  if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return {};
  ::unlink(temporary.c_str());
  return Status(Code::kIo, "cannot write " + path.string() + ": " + system_text(error));
}

}  // namespace tenon::pipeline
