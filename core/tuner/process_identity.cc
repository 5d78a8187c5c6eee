#include "core/tuner/process_identity.h"

#include <unistd.h>

#include <array>
#include <charconv>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string_view>

namespace tenon {
namespace {

constexpr std::int64_t kForeignPatienceSeconds = 3600;

std::string read_small_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

/// Field 22 of /proc/<pid>/stat (proc(5)); 0 if there is no such process.
std::int64_t start_of(std::int64_t pid) {
  const std::string text = read_small_file("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t name_end = text.rfind(')');  // field 2, the program's name, may hold spaces and parentheses
  if (name_end == std::string::npos || name_end + 2 > text.size()) return 0;
  std::string_view rest = std::string_view(text).substr(name_end + 2);
  const char state = rest.empty() ? 'Z' : rest[0];
  if (state == 'Z' || state == 'X') return 0;  // died, not yet waited for by its parent
  for (int field = 3; field < 22; ++field) {
    const std::size_t space = rest.find(' ');
    if (space == std::string_view::npos) return 0;
    rest.remove_prefix(space + 1);
  }
  std::int64_t value = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), value);
  return value;
}

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string boot_id() {
  std::string text = read_small_file("/proc/sys/kernel/random/boot_id");
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::string pid_space() {
  std::array<char, 64> link{};
  const ssize_t length = ::readlink("/proc/self/ns/pid", link.data(), link.size() - 1);
  return length > 0 ? std::string(link.data(), static_cast<std::size_t>(length)) : std::string();
}

}  // namespace

ProcessIdentity this_process() {
  const std::int64_t pid = ::getpid();
  return {pid, start_of(pid), host_name(), boot_id(), pid_space(), static_cast<std::int64_t>(std::time(nullptr))};
}

bool is_gone(const ProcessIdentity& process) {
  const ProcessIdentity own = this_process();
  if (process.boot == own.boot && process.pid_space == own.pid_space) return start_of(process.pid) != process.started;
  if (process.host == own.host && process.boot != own.boot) return true;
  return own.time - process.time > kForeignPatienceSeconds;
}

}  // namespace tenon
