// What Engine holds; shared by the sources of this folder only.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/plan/shape_model.h"
#include "core/plan/streams.h"
#include "core/runtime/engine.h"

namespace tenon {

/// Workspace and context memory begin at multiples of this, as plugins are promised.
inline constexpr std::uint64_t kRuntimeAlignment = 256;

/// A node of the plan, ready to run.
struct Layer {
  std::shared_ptr<const Instance> instance;  ///< may be that of the executable's base, which owns its memory
  std::uint64_t workspace = 0;
  std::uint64_t context_host = 0;    ///< offset in the context's host memory
  std::uint64_t context_device = 0;  ///< offset in the context's device memory
};

/// Plugin, pack key and size of packed weights: keys of different plugins are not comparable, for nothing stops two of
/// them from hashing the same constants.
using PackKey = std::tuple<std::string, std::uint64_t, std::uint64_t, std::uint64_t>;

/// A plan ready to run, for one set of dims of its inputs.
// Members are destroyed from the last to the first: instances before the memory they use.
struct Executable {
  std::shared_ptr<const Executable> base;  ///< of other dims: owns what this one shares; null: this is the engine's own
  Plan plan;
  std::optional<ShapeModel> shapes;   ///< of the engine's own, if its dims vary
  std::vector<DeviceBuffer> buffers;  ///< persistent memory, and constants where they had to be copied
  std::vector<void*> constants;       ///< in device memory, one per constant of the plan
  std::map<PackKey, void*> packed;    ///< persistent memory that other instances may share
  std::vector<Layer> layers;
  StreamOrder order;               ///< one stream where dims vary: sizes and places change between layers then
  std::vector<std::size_t> stops;  ///< layers whose inputs have to be looked at before their outputs have dims

  std::vector<std::uint64_t> workspace_offsets;  ///< of each stream, in the scratch memory after the activations
  std::uint64_t scratch_bytes = 0;
  std::uint64_t context_host_bytes = 0;
  std::uint64_t context_device_bytes = 0;

  const PlanTensor& tensor(std::uint32_t id) const { return plan.tensors[id]; }
};

struct Engine::Impl {
  EngineOptions options;
  std::shared_ptr<const Executable> base;

  /// The plan for other dims of the inputs and, where data decide the dims of what some layers give, for those of the
  /// first of these layers. The last few are kept. Errors are those of ShapeModel::specialize and of kernels.
  Result<std::shared_ptr<const Executable>> executable_for(const std::vector<TnDims>& dims,
                                                           const std::vector<TnDims>& sizes = {}) const;

  mutable std::mutex mutex;
  /// By dims, then sizes; latest first.
  mutable std::list<std::pair<std::vector<TnDims>, std::shared_ptr<const Executable>>> recent;

 private:
  /// `from`: what the result shares with. REQUIRES: the mutex is held.
  Result<std::shared_ptr<const Executable>> find_or_load(const std::vector<TnDims>& key,
                                                         const std::shared_ptr<const Executable>& from,
                                                         const std::function<Result<Plan>()>& specialize) const;
};

}  // namespace tenon
