// The host's CPU pool as the kernels of kernels/cpu want it.
#ifndef TENON_PLUGINS_COMMON_PARALLEL_H_
#define TENON_PLUGINS_COMMON_PARALLEL_H_

#include <string>
#include <tenon/sdk/plugin_base.hpp>
#include <tenon/sdk/site.hpp>
#include <vector>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"

namespace tenon::plugins {

// Handing work to other threads and waiting for them takes 1.5 us at best (GNU OpenMP, two threads that spin), so that
// less than some 3 us of work gains nothing. Products do about one vector of multiply-adds a cycle.
inline int64_t serial_multiply_adds() { return int64_t{8 * 1024} * cpu::isa_vector_floats(cpu::detect_isa()); }

// Valid during the call that `exec` belongs to. Without a pool: serial.
inline cpu::Parallel to_parallel(const Exec& exec) {
  cpu::Parallel parallel;
  if (const TnParallel* pool = exec.parallel()) {
    parallel.threads = exec.threads();
    parallel.context = pool->context;
    parallel.run = pool->run;
    parallel.serial_below = serial_multiply_adds();
  }
  return parallel;
}

// Where the work, in multiply-adds, is little, waking the other threads may take longer than it: there one thread is a
// tactic of its own, ";threads=1", and time decides.
inline std::vector<int> worthwhile_threads(const Site& site, int64_t work) {
  constexpr int64_t kLittle = 1024 * 1024;
  if (site.threads() > 1 && work < kLittle) return {site.threads(), 1};
  return {site.threads()};
}
inline std::string threads_param(const Site& site, int threads) {
  return threads == site.threads() ? std::string() : text(";threads=", threads);
}
inline int threads_of(const Site& site, const Params& params) {
  return params.has("threads") ? static_cast<int>(params.i64("threads")) : site.threads();
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_PARALLEL_H_
