#include "plugins/pointwise/nvrtc.h"

#include <nvrtc.h>

#include <tenon/sdk/error.hpp>
#include <utility>

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

std::vector<std::string> options_for(int sm) {
  return {text("--gpu-architecture=sm_", sm), "--std=c++17", "--disable-warnings"};
}

}  // namespace

Cubin compile_cubin(const std::string& source, int sm) {
  const Program program(source);
  const std::vector<std::string> options = options_for(sm);
  std::vector<const char*> texts;
  for (const std::string& option : options) texts.push_back(option.c_str());
  const nvrtcResult result = nvrtcCompileProgram(program.raw(), static_cast<int>(texts.size()), texts.data());
  if (result != NVRTC_SUCCESS) {
    throw Declined(text("NVRTC does not compile for sm_", sm, ": ", nvrtcGetErrorString(result), "; ", program.log()));
  }
  size_t size = 0;
  check(nvrtcGetCUBINSize(program.raw(), &size), "reading the size of the code");
  auto cubin = std::make_shared<std::vector<char>>(size);
  check(nvrtcGetCUBIN(program.raw(), cubin->data()), "reading the code");
  return cubin;
}

std::string cubin_key(const std::string& source, int sm) {
  int major = 0, minor = 0;
  check(nvrtcVersion(&major, &minor), "asking its version");
  std::string key = text("nvrtc ", major, ".", minor);
  for (const std::string& option : options_for(sm)) key += " " + option;
  return key + "\n" + source;
}

Cubin CubinCache::find(const TnHost* host, const std::string& source, int sm) {
  const std::string key = cubin_key(source, sm);
  Cubin cubin = in_memory(key);
  auto kept = find_code(host, key);
  if (kept && cubin == nullptr) cubin = std::make_shared<std::vector<char>>(std::move(*kept));
  if (cubin == nullptr) cubin = compile_cubin(source, sm);
  if (!kept) keep_code(host, key, *cubin);
  keep(key, cubin);
  return cubin;
}

void CubinCache::put(const std::string& source, int sm, const Cubin& cubin) { keep(cubin_key(source, sm), cubin); }

Cubin CubinCache::in_memory(const std::string& key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto known = cubins_.find(key);
  return known != cubins_.end() ? known->second : nullptr;
}

void CubinCache::keep(const std::string& key, const Cubin& cubin) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (cubins_.size() >= kMost) cubins_.clear();
  cubins_[key] = cubin;
}

}  // namespace tenon::plugins
