// What Engine holds; shared by the sources of this folder only.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/runtime/engine.h"

namespace tenon {

/// Workspace and context memory begin at multiples of this, as plugins are promised.
inline constexpr std::uint64_t kRuntimeAlignment = 256;

/// A node of the plan, ready to run.
struct Layer {
  std::unique_ptr<Instance> instance;
  std::uint64_t workspace = 0;
  std::uint64_t context_host = 0;    ///< offset in the context's host memory
  std::uint64_t context_device = 0;  ///< offset in the context's device memory
};

// Members are destroyed from the last to the first: instances before the memory they use, and that before the device.
struct Engine::Impl {
  EngineOptions options;
  Plan plan;
  std::vector<DeviceBuffer> buffers;  ///< persistent memory, and constants where they had to be copied
  std::vector<void*> constants;       ///< in device memory, one per constant of the plan
  std::vector<Layer> layers;

  std::uint64_t workspace_offset = 0;  ///< in the scratch memory, after the activations
  std::uint64_t scratch_bytes = 0;
  std::uint64_t context_host_bytes = 0;
  std::uint64_t context_device_bytes = 0;

  const PlanTensor& tensor(std::uint32_t id) const { return plan.tensors[id]; }
};

}  // namespace tenon
