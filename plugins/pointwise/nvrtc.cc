#include "plugins/pointwise/nvrtc.h"

#include <nvrtc.h>

#include <tenon/sdk/error.hpp>

namespace tenon::plugins {
namespace {

void check(nvrtcResult result, const char* doing) {
  if (result != NVRTC_SUCCESS) throw Declined(text("NVRTC: ", doing, ": ", nvrtcGetErrorString(result)));
}

class Program {
 public:
  explicit Program(const std::string& source) {
    check(nvrtcCreateProgram(&raw_, source.c_str(), "pointwise.cu", 0, nullptr, nullptr), "creating a program");
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() { nvrtcDestroyProgram(&raw_); }
  nvrtcProgram raw() const { return raw_; }
  std::string log() const {
    size_t size = 0;
    if (nvrtcGetProgramLogSize(raw_, &size) != NVRTC_SUCCESS || size == 0) return "";
    std::string log(size, '\0');
    if (nvrtcGetProgramLog(raw_, log.data()) != NVRTC_SUCCESS) return "";
    return log.c_str();
  }

 private:
  nvrtcProgram raw_ = nullptr;
};

}  // namespace

Cubin compile_cubin(const std::string& source, int sm) {
  const Program program(source);
  const std::string arch = text("--gpu-architecture=sm_", sm);
  const char* options[] = {arch.c_str(), "--std=c++17", "--disable-warnings"};
  const nvrtcResult result = nvrtcCompileProgram(program.raw(), 3, options);
  if (result != NVRTC_SUCCESS) {
    throw Declined(text("NVRTC does not compile for sm_", sm, ": ", nvrtcGetErrorString(result), "; ", program.log()));
  }
  size_t size = 0;
  check(nvrtcGetCUBINSize(program.raw(), &size), "reading the size of the code");
  auto cubin = std::make_shared<std::vector<char>>(size);
  check(nvrtcGetCUBIN(program.raw(), cubin->data()), "reading the code");
  return cubin;
}

Cubin CubinCache::find(const std::string& source, int sm) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto known = cubins_.find({source, sm});
    if (known != cubins_.end()) return known->second;
  }
  const Cubin cubin = compile_cubin(source, sm);
  put(source, sm, cubin);
  return cubin;
}

void CubinCache::put(const std::string& source, int sm, const Cubin& cubin) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (cubins_.size() >= kMost) cubins_.clear();
  cubins_[{source, sm}] = cubin;
}

}  // namespace tenon::plugins
