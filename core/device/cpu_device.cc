#include <sched.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <tenon/plugin/ext/parallel.h>

#ifdef TENON_USE_OPENMP
#include <omp.h>
#endif

#include "core/device/device.h"
#include "core/device/strided_copy.h"

namespace tenon {
namespace {

constexpr std::size_t kAlignment = 256;

class CpuAllocator final : public Allocator {
 public:
  void* allocate(std::size_t bytes, std::size_t alignment) override {
    return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  }
  void free(void* memory) override { std::free(memory); }
};

/// Processors that this process may use: affinity mask, lowered by the cgroup v2 quota.
int usable_processors() {
  int count = static_cast<int>(std::thread::hardware_concurrency());
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) count = CPU_COUNT(&mask);
  std::ifstream quota_file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (quota_file >> quota >> period && quota != "max" && period > 0) {
    const int limit = static_cast<int>(std::strtod(quota.c_str(), nullptr) / period + 0.999);
    if (limit >= 1 && limit < count) count = limit;
  }
  return count < 1 ? 1 : count;
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) {
      const std::size_t colon = line.find(": ");
      if (colon != std::string::npos) return line.substr(colon + 2);
    }
  }
  return "x86-64";
}

/// Instruction sets that kernels may dispatch on, in the words of the timing cache. TENON_CPU_ISA caps the kernels, so
/// it is part of what their times depend on.
std::string instruction_set() {
  const char* cap = std::getenv("TENON_CPU_ISA");
  if (cap != nullptr && *cap != '\0') return cap;
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return "baseline";
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl")) {
    return "avx2";
  }
  std::string text = "avx512";
  if (__builtin_cpu_supports("avx512vnni")) text += "+vnni";
  if (__builtin_cpu_supports("avx512bf16")) text += "+bf16";
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
  if (__builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-bf16")) text += "+amx";
#endif
  return text;
}

class CpuStream final : public Stream {
 public:
  void* handle() const override { return nullptr; }
  Status synchronize() override { return {}; }
  Status wait_for(const Event&) override { return {}; }  // all work is done when the call that launches it returns
};

class CpuEvent final : public Event {
 public:
  Status record(Stream&) override {
    time_ = std::chrono::steady_clock::now();
    return {};
  }
  Status wait() override { return {}; }
  Result<double> elapsed_ms(const Event& start) const override {
    return std::chrono::duration<double, std::milli>(time_ - static_cast<const CpuEvent&>(start).time_).count();
  }

 private:
  std::chrono::steady_clock::time_point time_;
};

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(const CpuOptions& options)
      : allocator_(options.allocator != nullptr ? options.allocator : &default_allocator_) {
    info_.threads = options.threads > 0 ? options.threads : usable_processors();
    info_.name = processor_name();
    info_.instructions = instruction_set();
    info_.bf16 = info_.instructions.find("+bf16") != std::string::npos;  // processors with AMX have it too
    info_.signature = fmt::format("cpu:{}:{}:{}", info_.instructions, info_.threads, info_.name);
    abi_ = {TN_HEADER(TnDevice), info_.kind, info_.ordinal, info_.threads, info_.name.c_str(), info_.signature.c_str()};
    parallel_ = {TN_HEADER(TnParallel), info_.threads, this, &CpuDevice::run_parallel};
  }

  const DeviceInfo& info() const override { return info_; }

  Result<void*> allocate(std::size_t bytes) override {
    void* memory = allocator_->allocate(bytes, kAlignment);
    if (memory == nullptr) {
      return Status(Code::kNoMemory, fmt::format("device {}: could not allocate {} bytes; free memory, or lower the "
                                                 "batch or the workspace limit",
                                                 info_.name, bytes));
    }
    return memory;
  }
  void free(void* memory) override {
    if (memory != nullptr) allocator_->free(memory);
  }
  Status copy_to_device(void* destination, const void* source, std::size_t bytes, Stream&) override {
    return copy(destination, source, bytes);
  }
  Status copy_to_host(void* destination, const void* source, std::size_t bytes, Stream&) override {
    return copy(destination, source, bytes);
  }
  Status fill(void* destination, int byte, std::size_t bytes, Stream&) override {
    if (bytes != 0) std::memset(destination, byte, bytes);
    return {};
  }
  Result<std::unique_ptr<Stream>> create_stream() override { return std::unique_ptr<Stream>(new CpuStream); }
  Result<std::unique_ptr<Stream>> wrap_stream(void* handle) override {
    if (handle != nullptr) {
      return Status(Code::kInvalid, "device cpu has no stream handles; pass a null stream");
    }
    return create_stream();
  }
  Result<std::unique_ptr<Event>> create_event() override { return std::unique_ptr<Event>(new CpuEvent); }

  bool reaches(const void*) const override { return true; }
  Status copy_strided(void* destination, const std::int64_t* destination_strides, const void* source,
                      const std::int64_t* source_strides, const TnDims& dims, std::size_t element_bytes,
                      Stream&) override {
    strided_copy(destination, destination_strides, source, source_strides, dims, element_bytes);
    return {};
  }

  void prepare_exec(Stream&, TnExec* exec) override {
#ifdef TENON_USE_OPENMP
    omp_set_num_threads(info_.threads);  // of the calling thread; libraries on the same OpenMP runtime follow it
#endif
    exec->struct_size = TN_HEADER(TnExec);
    exec->threads = info_.threads;
    exec->stream = nullptr;
    exec->handles = nullptr;
    exec->parallel = &parallel_;
  }
  const TnDevice& abi() const override { return abi_; }

 private:
  static Status copy(void* destination, const void* source, std::size_t bytes) {
    if (bytes != 0) std::memcpy(destination, source, bytes);
    return {};
  }

  static void TN_CALL run_parallel(void* context, std::int64_t count, void(TN_CALL* body)(void*, std::int64_t),
                                   void* argument) {
    const int threads =
        static_cast<int>(std::min<std::int64_t>(static_cast<CpuDevice*>(context)->info_.threads, count));
    if (threads <= 1) {
      for (std::int64_t i = 0; i < count; ++i) body(argument, i);
      return;
    }
#ifdef TENON_USE_OPENMP
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
    for (std::int64_t i = 0; i < count; ++i) body(argument, i);
#else
    // Sanitizer builds: OpenMP runtimes are not instrumented, plain threads are.
    std::vector<std::thread> helpers;
    const auto share = [&](int part) {
      for (std::int64_t i = part; i < count; i += threads) body(argument, i);
    };
    for (int part = 1; part < threads; ++part) helpers.emplace_back(share, part);
    share(0);
    for (std::thread& helper : helpers) helper.join();
#endif
  }

  CpuAllocator default_allocator_;
  Allocator* allocator_;
  DeviceInfo info_;
  TnDevice abi_{};
  TnParallel parallel_{};
};

}  // namespace

std::shared_ptr<Device> make_cpu_device(const CpuOptions& options) { return std::make_shared<CpuDevice>(options); }

}  // namespace tenon
