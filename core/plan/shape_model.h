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
  /// kNotFound if an op of the plan is not among `ops`.
  static Result<ShapeModel> create(const Plan& plan, std::shared_ptr<const OpSource> ops);

  /// `dims`: of each input of the plan. kInvalid names the input whose dims lie outside its profile, or the node that
  /// cannot have such inputs. The result has no kernel state and no packed weights.
  Result<Plan> specialize(const Plan& plan, const std::vector<TnDims>& dims) const;

 private:
  struct Step {
    NodeId node = kNoId;
    bool is_shape_node = false;
  };

  explicit ShapeModel(Graph graph) : graph_(std::move(graph)) {}
  Status add_node(const Plan& plan, const std::string& name, const std::string& op_id, const Attrs& attrs,
                  const std::vector<Expression>& epilogues, const std::vector<std::uint32_t>& inputs,
                  const std::vector<std::uint32_t>& outputs, bool is_shape_node);

  Graph graph_;
  std::vector<ValueId> values_;  ///< of each tensor of the plan; kNoId: nothing computes it
  std::vector<Step> order_;      ///< producers first
};

}  // namespace tenon
