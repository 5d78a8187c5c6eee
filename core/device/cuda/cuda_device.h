// NVIDIA GPUs as devices. Works in builds and on machines without CUDA: then there are none, and the reason is told.
//
// Thread rule: functions may be called from any thread.
#pragma once

#include <memory>
#include <string>

#include <tenon/plugin/ext/cuda.h>

#include "core/device/device.h"

namespace tenon {

/// The caller's own source of GPU memory. Thread-safe; outlives everything allocated from it.
class CudaAllocator {
 public:
  virtual ~CudaAllocator() = default;
  /// At least `bytes` of memory of GPU `ordinal`, aligned to at least 256 bytes; nullptr without memory.
  virtual void* allocate(int ordinal, std::size_t bytes) = 0;
  virtual void free(int ordinal, void* memory) = 0;
};

/// How many GPUs can be used. 0 with the reason in *why (if given): no driver, no GPU, or a build without CUDA.
int cuda_device_count(std::string* why = nullptr);

/// GPU `ordinal`, with memory from its stream-ordered pool or from `allocator`. kDevice names what is missing.
Result<std::shared_ptr<Device>> make_cuda_device(int ordinal, CudaAllocator* allocator = nullptr);

/// `tenon.cuda/1`; nullptr in a build without CUDA.
const TnCuda* cuda_interface();

}  // namespace tenon
