// Which process wrote a line, and whether that process is gone.
//
// Thread rule: thread-safe.
#pragma once

#include <cstdint>
#include <string>

namespace tenon {

struct ProcessIdentity {
  std::int64_t pid = 0;
  std::int64_t started = 0;  ///< clock ticks after the boot, from /proc/<pid>/stat: tells apart two users of one pid
  std::string host;
  std::string boot;       ///< boot id of the kernel
  std::string pid_space;  ///< pid namespace: two containers may both have a process 7
  std::int64_t time = 0;  ///< of writing, in seconds since 1970
};

ProcessIdentity this_process();

/// Whether the process is gone. Of this kernel and pid namespace it is known for sure, and so it is if this host has
/// been booted since. What another host or container wrote is taken for dead after an hour: no tactic runs that long.
bool is_gone(const ProcessIdentity& process);

}  // namespace tenon
