// ShapeModel: what a plan becomes for other dims of its inputs. Shapes are inferred again by the ops, what shape nodes
// compute is computed again, memory is placed again; kernels, formats and everything else stay.
//
// Thread rule: const use may be shared.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tenon/status.hpp>
#include <vector>

#include "core/graph/graph.h"
#include "core/plan/plan.h"

namespace tenon {

class ShapeModel {
 public:
  /// kNotFound if an op of the plan is not among `ops`; kInvalid names the layer that is not what its op makes of its
  /// inputs: the plan's reader knows no ops, and kernels rely on dims and attributes that fit each other.
  static Result<ShapeModel> create(const Plan& plan, std::shared_ptr<const OpSource> ops);

  /// `dims`: of each input of the plan. kInvalid names the input whose dims lie outside its profile, or the node that
  /// cannot have such inputs. The result has no kernel state and no packed weights.
  Result<Plan> specialize(const Plan& plan, const std::vector<TnDims>& dims) const;

  /// The same where the dims of all outputs of the first data-dependent nodes are known, in the order of the plan.
  /// `bounded` is the plan for the same dims of the inputs without that knowledge; tensors stay in their places.
  Result<Plan> specialize(const Plan& bounded, const std::vector<TnDims>& dims, const std::vector<TnDims>& sizes) const;
  /// Dims of the outputs of the next data-dependent node, number `node` of the plan. `contents`: those of its inputs
  /// that decide them, null for others. Errors are those of the op's infer.
  Result<std::vector<TnDims>> next_sizes(const std::vector<TnDims>& dims, const std::vector<TnDims>& sizes,
                                         std::size_t node,
                                         const std::vector<std::shared_ptr<const HostTensor>>& contents) const;

 private:
  struct Step {
    NodeId node = kNoId;
    std::size_t plan_node = kShapeNode;
    bool data_dependent = false;
  };
  static constexpr std::size_t kShapeNode = ~std::size_t{0};

  explicit ShapeModel(Graph graph) : graph_(std::move(graph)) {}
  Status add_node(const Plan& plan, const std::string& name, const std::string& op_id, const Attrs& attrs,
                  const std::vector<std::uint32_t>& inputs, const std::vector<std::uint32_t>& outputs, Step step);
  /// Infers the nodes before number `end` of the plan.
  Status infer(const std::vector<TnDims>& dims, const std::vector<TnDims>& sizes, std::size_t end, Graph* graph) const;
  /// Writes what was inferred into a plan.
  void apply(const Graph& graph, Plan* plan) const;

  Graph graph_;
  std::vector<ValueId> inputs_;  ///< of the plan
  std::vector<ValueId> values_;  ///< of each tensor of the plan; kNoId: nothing computes it
  std::vector<Step> order_;      ///< producers first
};

}  // namespace tenon
