// Compiling CUDA source while an engine is built. No GPU is needed for it.
#ifndef TENON_PLUGINS_POINTWISE_NVRTC_H_
#define TENON_PLUGINS_POINTWISE_NVRTC_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace tenon::plugins {

using Cubin = std::shared_ptr<const std::vector<char>>;

// Device code for compute capability `sm` (90 for 9.0). Declined with the compiler's log where it does not compile.
Cubin compile_cubin(const std::string& source, int sm);

// Device code by source, so that each is compiled once. Thread rule: any thread.
class CubinCache {
 public:
  // Compiles what it does not have.
  Cubin find(const std::string& source, int sm);
  void put(const std::string& source, int sm, const Cubin& cubin);

 private:
  static constexpr size_t kMost = 1000;  // afterwards it begins anew; a model has fewer chains
  std::mutex mutex_;
  std::map<std::pair<std::string, int>, Cubin> cubins_;
};

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_POINTWISE_NVRTC_H_
