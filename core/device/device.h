// The device interface: memory, streams, events and identity of one processor that runs kernels. The host processor is
// behind it here, a GPU in cuda/.
//
// Thread rule: a Device is thread-safe; a Stream, Event or Recording is used by one thread at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <tenon/plugin/ext/expression.h>
#include <tenon/plugin/kernel.h>
#include <tenon/status.hpp>

namespace tenon {

/// The caller's own memory source. Thread-safe by contract; outlives everything allocated from it.
class Allocator {
 public:
  virtual ~Allocator() = default;
  /// Memory of at least `bytes`, aligned to `alignment` (a power of two); nullptr without memory.
  virtual void* allocate(std::size_t bytes, std::size_t alignment) = 0;
  virtual void free(void* memory) = 0;
};

struct DeviceInfo {
  int kind = TN_CPU;  ///< TN_CPU, TN_CUDA
  int ordinal = 0;
  int threads = 1;                ///< CPU: size of the pool
  std::uint64_t cache_bytes = 0;  ///< of the last cache before memory; 0: not known, as on the CPU
  std::string name;               ///< "AMD EPYC"
  std::string signature;          ///< what timing-cache keys carry: "cpu:avx512:2:AMD EPYC"
  std::string instructions;       ///< CPU: "avx512+vnni+bf16", as in the signature
  bool bf16 = false;              ///< computes with bf16 where f32 networks allow that (TN_SITE_ALLOW_BF16)
  /// Kernels' memory is the host's: pointers need no copies, and work is done when a call returns.
  bool on_host() const { return kind == TN_CPU; }
};

class Event;

class Stream {
 public:
  virtual ~Stream() = default;
  /// The device's own handle (cudaStream_t); nullptr on the CPU.
  virtual void* handle() const = 0;
  /// Blocks until everything launched on the stream is done.
  virtual Status synchronize() = 0;
  /// What is launched on the stream from now on begins after what was launched before the event's latest record; does
  /// not block the caller. While one of the two streams is recorded (Device::record), both are.
  virtual Status wait_for(const Event& event) = 0;
};

class Event {
 public:
  virtual ~Event() = default;
  virtual Status record(Stream& stream) = 0;
  /// Blocks until what was launched before the latest record is done.
  virtual Status wait() = 0;
  /// Milliseconds from `start` to this event. REQUIRES: both recorded and done.
  virtual Result<double> elapsed_ms(const Event& start) const = 0;
};

/// Launches that were recorded once and are launched again as a whole: a CUDA graph.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual Status launch(Stream& stream) = 0;
  /// Kernels, copies and fills in it.
  virtual std::size_t launches() const = 0;
};

class Activity;

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;

  /// Device memory aligned to at least 256 bytes. kNoMemory names size and device.
  virtual Result<void*> allocate(std::size_t bytes) = 0;
  virtual void free(void* memory) = 0;
  virtual Status copy_to_device(void* destination, const void* source, std::size_t bytes, Stream& stream) = 0;
  virtual Status copy_to_host(void* destination, const void* source, std::size_t bytes, Stream& stream) = 0;
  virtual Status fill(void* destination, int byte, std::size_t bytes, Stream& stream) = 0;

  virtual Result<std::unique_ptr<Stream>> create_stream() = 0;
  /// A stream over the caller's own handle; nullptr is the default stream.
  virtual Result<std::unique_ptr<Stream>> wrap_stream(void* handle) = 0;
  virtual Result<std::unique_ptr<Event>> create_event() = 0;
  /// Records what `body` launches on `stream` without running it; brings `previous` up to date if that is possible and
  /// cheaper. The body's failure is passed on. kDeclined if the device records nothing, or something in the body cannot
  /// be recorded.
  virtual Result<std::unique_ptr<Recording>> record(Stream& stream, const std::function<Status()>& body,
                                                    std::unique_ptr<Recording> previous = nullptr);

  /// Host memory from which copies to the device are fast; aligned to at least 256 bytes.
  virtual Result<void*> allocate_staging(std::size_t bytes) { return allocate(bytes); }
  virtual void free_staging(void* memory) { free(memory); }
  /// Whether kernels can use memory at this address.
  virtual bool reaches(const void* memory) const = 0;
  /// strided_copy between places that the device reaches.
  virtual Status copy_strided(void* destination, const std::int64_t* destination_strides, const void* source,
                              const std::int64_t* source_strides, const TnDims& dims, std::size_t element_bytes,
                              Stream& stream) = 0;
  /// data[i] = expression(data[i]), i < count, f32. Only of devices that are not on the host, which evaluates for
  /// itself. `stream` is a handle. kDeclined for primitives that the device lacks.
  virtual Status apply_expression(const TnExpr& expression, float* data, std::int64_t count, void* stream);

  /// Stream, pool and thread budget into *exec; workspace and context memory are left alone. A GPU becomes the calling
  /// thread's current one.
  virtual void prepare_exec(Stream& stream, TnExec* exec) = 0;

  /// Held while times are measured, so that builders in several threads do not disturb each other.
  std::mutex& measuring_lock() { return measuring_lock_; }

  /// Whether an error has made the device useless for the rest of the process, as a GPU is after a wrong address.
  virtual bool broken() { return false; }
  /// What is under way but for `except`, in words.
  std::vector<std::string> under_way(const Activity* except) const;

  /// What kernels see of the device. Valid as long as the device.
  virtual const TnDevice& abi() const = 0;

 private:
  friend class Activity;
  std::mutex measuring_lock_;
  mutable std::mutex activities_lock_;
  std::vector<const Activity*> activities_;
};

/// Somebody who has work under way on a device at times. An error that surfaces later does not say whose it is, so
/// messages name all of them. The device outlives it.
class Activity {
 public:
  Activity(Device& device, std::string text);
  ~Activity();
  Activity(const Activity&) = delete;
  Activity& operator=(const Activity&) = delete;
  void begin() { under_way_.store(true, std::memory_order_relaxed); }
  void end() { under_way_.store(false, std::memory_order_relaxed); }

 private:
  friend class Device;
  Device& device_;
  const std::string text_;
  std::atomic<bool> under_way_{false};
};

/// Owns a piece of a device's memory, or of its staging memory. Move-only; empty by default.
template <bool kStaging>
class OwnedMemory {
 public:
  OwnedMemory() = default;
  /// Empty for 0 bytes.
  static Result<OwnedMemory> allocate(std::shared_ptr<Device> device, std::size_t bytes);
  OwnedMemory(OwnedMemory&& other) noexcept;
  OwnedMemory& operator=(OwnedMemory&& other) noexcept;
  ~OwnedMemory();
  void* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  std::shared_ptr<Device> device_;
  void* data_ = nullptr;
  std::size_t size_ = 0;
};
using DeviceBuffer = OwnedMemory<false>;
using StagingBuffer = OwnedMemory<true>;

struct CpuOptions {
  int threads = 0;                 ///< 0: the processors this process may use (affinity mask and cgroup quota)
  Allocator* allocator = nullptr;  ///< nullptr: the C library
};

/// The host processor as a device. One CPU pool for all its streams (OpenMP).
std::shared_ptr<Device> make_cpu_device(const CpuOptions& options = {});

}  // namespace tenon
