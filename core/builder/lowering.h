// Lowering: from a graph with chosen candidates to a plan: conversions inserted, memory placed, instances sized.
#pragma once

#include <tenon/status.hpp>

#include "core/builder/builder.h"
#include "core/builder/selection.h"
#include "core/plan/plan.h"

namespace tenon {

/// Fills output->plan and output->layers.
Status lower(const Graph& graph, const Selection& selection, Reformats* reformats, const BuildOptions& options,
             BuildOutput* output);

/// What a selection comes to as a whole.
struct WholeTime {
  double ms = 0;             ///< all layers and conversions, copies of views that could not share memory included
  int launches = 0;          ///< how many there are
  double layer_ms = 0;       ///< of the layer that was asked for, if it is there
  std::string text() const;  ///< "takes 1.5 ms in 3 launches"
};
Result<WholeTime> whole_time(const Graph& graph, const Selection& selection, Reformats* reformats,
                             const BuildOptions& options, const std::string& layer);

/// Makes sure that the chosen kernels take the least and the largest dims of the plan's profiles, and writes down how
/// much memory they need and which dims the outputs have. Of outputs whose size depends on data it says so.
Status finish_profile(const BuildOptions& options, Plan* plan);

}  // namespace tenon
