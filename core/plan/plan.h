// Plan: the built result in memory. What the builder makes, the plan file stores and an engine runs.
//
// Thread rule: a plain value; const use may be shared.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tenon/status.hpp>

#include "core/base/hash.h"
#include "core/graph/attributes.h"
#include "core/graph/expression.h"
#include "core/graph/tensor.h"
#include "core/site/candidate.h"
#include "core/site/view.h"

namespace tenon {

/// How much an engine tells about its layers.
enum class Verbosity : std::int32_t { kNone = 0, kLayerNames = 1, kDetailed = 2 };

/// Where a tensor of the plan lives.
enum class Storage : std::int32_t {
  kInput = 0,     ///< the caller's memory; `index` is the number of the input
  kOutput = 1,    ///< the caller's memory; `index` is the number of the output
  kArena = 2,     ///< activation memory at `offset`
  kConstant = 3,  ///< `index` is the number of the constant
};

struct PlanTensor {
  std::string name;
  std::int32_t dtype = TN_DTYPE_NONE;
  TnDims dims{};
  TnFormat format{};
  Storage storage = Storage::kArena;
  std::uint32_t index = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  int first_use = 0;  ///< number of the node that writes it (0 for inputs)
  /// Number of the last node that reads it; of tensors in activation memory, with several streams, of the last node
  /// that may run before all who read it are done.
  int last_use = 0;
};

inline constexpr std::uint32_t kNoTensor = 0xFFFFFFFFu;

/// One launch.
struct PlanNode {
  std::string name;
  std::string layer_type;            ///< op name without vendor and version: "matmul"
  std::vector<std::string> members;  ///< names of the network's nodes in it
  std::string op_id;
  Attrs attrs;
  std::vector<Expression> epilogues;  ///< one per output, or empty
  std::uint32_t site_flags = 0;
  std::vector<std::uint32_t> inputs;  ///< tensors (kNoTensor: absent), then operands 1, 2... of the epilogues
  std::uint32_t num_extra = 0;        ///< how many operands of epilogues stand at the end of inputs
  std::vector<std::uint32_t> outputs;
  std::vector<Share> shares;  ///< of a view kernel: what may lie in one place

  std::string kernel;
  std::uint32_t kernel_revision = 0;
  std::string plugin_id;  ///< of the kernel; "" for a reference kernel
  Combo combo;
  Tactic tactic;
  std::uint64_t tactic_hash = 0;
  bool fused_epilogue = false;
  Hash128 key;
  double ms = 0;
  std::vector<std::uint8_t> state;  ///< of the kernel's serialize
  std::int32_t stream = 0;          ///< 0: the main one; waits between streams follow from what nodes read and write
  bool data_dependent = false;  ///< its inputs decide the dims of its outputs, which are bounds until these are known

  std::uint64_t persistent_bytes = 0;
  bool has_persistent = false;                          ///< the bytes are stored (RELOCATABLE kernels)
  std::vector<std::uint8_t> persistent;                 ///< those bytes, in a plan that was built
  std::shared_ptr<const HostTensor> stored_persistent;  ///< the same in a plan that was read: part of the mapped file
  std::span<const std::uint8_t> persistent_data() const {
    if (stored_persistent == nullptr) return persistent;
    return {static_cast<const std::uint8_t*>(stored_persistent->data()), stored_persistent->bytes()};
  }
};

/// A node whose results are known as soon as the dims of the inputs are, such as the shape that a reshape reads. It is
/// never launched: its outputs are constants of the plan, computed anew by the op's reference when dims change.
struct ShapeNode {
  std::string name;
  std::string op_id;
  Attrs attrs;
  std::vector<std::uint32_t> inputs;  ///< tensors; kNoTensor: absent
  std::vector<std::uint32_t> outputs;
  std::uint32_t position = 0;  ///< comes before this node of the plan
};

struct PlanIo {
  std::string name;
  std::uint32_t tensor = 0;
  TnDims
      min{};  ///< the dims that it may have at run time; those of the tensor are the optimum or, where data decide, max
  TnDims max{};
};

/// kInvalid unless the profile of an input holds the dims.
Status check_dims(const PlanIo& input, const TnDims& dims);

struct Plan;
/// Whether what a view would copy lies in its place already.
bool is_in_place(const Plan& plan, const PlanNode& node, const Share& share);
/// Whether a node has nothing to do, because that holds for all that it would copy.
bool does_nothing(const Plan& plan, const PlanNode& node);

struct Plan {
  std::string tenon_version;
  std::string device_kind;  ///< "cpu", "cuda"
  std::string device_signature;
  std::int32_t threads = 0;  ///< CPU pool at build time; 0: any
  Verbosity verbosity = Verbosity::kLayerNames;
  std::vector<PlanTensor> tensors;
  std::vector<PlanNode> nodes;  ///< in the order of execution, or with several streams of launching
  std::vector<ShapeNode> shape_nodes;
  std::vector<PlanIo> inputs;
  std::vector<PlanIo> outputs;
  std::vector<std::shared_ptr<const HostTensor>> constants;
  std::vector<PluginNeed> plugins;              ///< every plugin needed
  std::map<std::string, std::string> metadata;  ///< anchors, labels, pre- and post-processing

  std::uint64_t arena_bytes = 0;
  std::uint64_t arena_lower_bound = 0;
  std::uint64_t workspace_bytes = 0;
  std::uint64_t persistent_bytes = 0;
  std::uint64_t context_host_bytes = 0;
  std::uint64_t context_device_bytes = 0;
  std::uint64_t scratch_bytes = 0;  ///< activation memory and workspace for the largest dims of the profiles

  /// Whether tensors may have other dims than those of the plan.
  bool has_varying_dims() const {
    return has_profile() ||
           std::any_of(nodes.begin(), nodes.end(), [](const PlanNode& node) { return node.data_dependent; });
  }
  /// Whether inputs may.
  bool has_profile() const {
    return std::any_of(inputs.begin(), inputs.end(), [](const PlanIo& io) { return !same_dims(io.min, io.max); });
  }
};

}  // namespace tenon
