#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>

#include "core/plan/plan_file.h"

namespace tenon {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

Status io_error(const std::string& what, const std::filesystem::path& path, int error) {
  const Code code = error == ENOENT ? Code::kNotFound : Code::kIo;
  return {code, what + " " + path.string() + ": " + std::strerror(error)};
}

Status write_all(int fd, const void* bytes, std::size_t size, const std::filesystem::path& path) {
  const auto* data = static_cast<const std::uint8_t*>(bytes);
  while (size > 0) {
    const ssize_t written = ::write(fd, data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return io_error("cannot write", path, errno);
    data += written;
    size -= static_cast<std::size_t>(written);
  }
  if (::fsync(fd) != 0) return io_error("cannot write", path, errno);
  return {};
}

}  // namespace

Status write_file_atomically(const std::filesystem::path& path, const void* bytes, std::size_t size) {
  static std::atomic<unsigned> counter{0};
  std::filesystem::path temporary = path;
  temporary += "." + std::to_string(::getpid()) + "." + std::to_string(counter++) + ".tmp";
  {
    const Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (file.get() < 0) return io_error("cannot create", temporary, errno);
    Status status = write_all(file.get(), bytes, size, temporary);
    if (!status.ok()) {
      ::unlink(temporary.c_str());
      return status;
    }
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    return io_error("cannot write", path, error);
  }
  return {};
}

Result<std::shared_ptr<const MappedFile>> map_file(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a pipe must not wait for a writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return io_error("cannot open", path, errno);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return io_error("cannot read", path, errno);
  if (S_ISDIR(info.st_mode)) return Status(Code::kIo, "cannot read " + path.string() + ": it is a folder; give a file");
  if (!S_ISREG(info.st_mode)) return Status(Code::kIo, "cannot read " + path.string() + ": it is no ordinary file");
  if (info.st_size == 0) return Status(Code::kIo, "cannot read " + path.string() + ": it is empty (0 bytes)");

  struct Mapping final : MappedFile {
    ~Mapping() {
      if (data != nullptr) ::munmap(const_cast<std::uint8_t*>(data), size);
    }
  };
  auto mapping = std::make_shared<Mapping>();
  mapping->size = static_cast<std::size_t>(info.st_size);
  void* memory = ::mmap(nullptr, mapping->size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (memory == MAP_FAILED) return io_error("cannot map", path, errno);
  mapping->data = static_cast<const std::uint8_t*>(memory);
  return std::shared_ptr<const MappedFile>(std::move(mapping));
}

}  // namespace tenon
