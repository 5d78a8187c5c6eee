// The host's CPU pool as the kernels of kernels/cpu want it.
#ifndef TENON_PLUGINS_COMMON_PARALLEL_H_
#define TENON_PLUGINS_COMMON_PARALLEL_H_

#include <tenon/sdk/plugin_base.hpp>

#include "kernels/cpu/parallel.h"

namespace tenon::plugins {

// Valid during the call that `exec` belongs to. Without a pool: serial.
inline cpu::Parallel to_parallel(const Exec& exec) {
  cpu::Parallel parallel;
  if (const TnParallel* pool = exec.parallel()) {
    parallel.threads = exec.threads();
    parallel.context = pool->context;
    parallel.run = pool->run;
  }
  return parallel;
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_PARALLEL_H_
