// Compiling CUDA source while an engine is built. No GPU is needed for it.
#ifndef TENON_PLUGINS_POINTWISE_NVRTC_H_
#define TENON_PLUGINS_POINTWISE_NVRTC_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tenon/sdk/code.hpp>
#include <vector>

namespace tenon::plugins {

using Cubin = std::shared_ptr<const std::vector<char>>;

// Device code for compute capability `sm` (90 for 9.0). Declined with the compiler's log where it does not compile.
Cubin compile_cubin(const std::string& source, int sm);

// All that the code depends on, as text: compiler, architecture, options, source.
std::string cubin_key(const std::string& source, int sm);

// Device code by source, so that each is compiled once: in this process, for engines with other dims too, and, beside
// the timing cache of a build, for the builds to come. Thread rule: any thread.
class CubinCache {
 public:
  // Compiles what neither this nor the host has.
  Cubin find(const TnHost* host, const std::string& source, int sm);
  void put(const std::string& source, int sm, const Cubin& cubin);

 private:
  Cubin in_memory(const std::string& key);
  void keep(const std::string& key, const Cubin& cubin);

  static constexpr size_t kMost = 1000;  // afterwards it begins anew; a model has fewer chains
  std::mutex mutex_;
  std::map<std::string, Cubin> cubins_;  // by cubin_key
};

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_POINTWISE_NVRTC_H_
