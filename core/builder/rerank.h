// Re-ranking: rivals that are nearly as fast alone are compared by the time of the whole graph. And the line of the
// timing cache that says what was decided about a graph.
//
// Thread rule: as build; it holds the device's measuring lock while it runs plans.
#pragma once

#include <optional>

#include <tenon/status.hpp>

#include "core/builder/builder.h"
#include "core/builder/selection.h"

namespace tenon {

/// Of the hottest sites that this build decides anew, compares the chosen candidate with its best rival of the same
/// combo by whole runs in turns, and takes the rival if they are faster by more than noise: into *selection, and with
/// the plan that follows into *output. Takes at most a tenth of `so_far`, the time of this build, or a quarter of a
/// second if that is more, and never more than is left of the time budget. Does nothing without
/// BuildOptions::time_plan. A rival that cannot be run is passed over. Errors: cancelled. REQUIRES: output holds the
/// selection's plan.
Status rerank(const Graph& graph, const BuildOptions& options, std::chrono::duration<double> so_far,
              Selection* selection, Reformats* reformats, BuildOutput* output);

/// The graph's line of the timing cache, if it is of the layout that the selection gives.
std::optional<CacheGraph> known_graph(const Graph& graph, const Selection& selection, const std::string& device,
                                      const TimingCache& cache);

/// Writes the graph's line unless the cache has the same already: what `output` has decided in this build, and of what
/// it has not what still fits.
void record_graph(const Graph& graph, const Selection& selection, const BuildOutput& output, const std::string& device,
                  TimingCache* cache);

}  // namespace tenon
