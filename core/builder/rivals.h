// Rivals: two forms of a graph, with and without a rewrite, and the choice between them by the time of the plans that
// follow.
//
// Thread rule: as build.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <tenon/status.hpp>

#include "core/builder/builder.h"
#include "core/builder/lowering.h"
#include "core/builder/selection.h"

namespace tenon {

class Rivals {
 public:
  /// `start`: the graph before any decision; what an earlier build decided about it is in the timing cache. `finish`
  /// does to a graph what is still to do before its layers can be timed.
  Rivals(const Graph& start, const BuildOptions& options, Tuner* tuner, Reformats* reformats, KnownSites* known,
         std::function<Status(Graph*)> finish);

  /// Whether to keep the form that `rule` made, with the layer of this name. By force, by record, or by the times of
  /// both forms, all layers and conversions together with what each launch costs beyond (launch_ms); of equals, which
  /// differ by less than noise of that layer, the one with fewer launches wins; where the fewest are forced, always
  /// that one. A form that cannot be timed loses. The same rewrite of equal `matched` nodes is decided once. Frozen
  /// builds measure nothing and keep what has no record as it was. Errors: cancelled.
  Result<bool> keeps(const std::string& rule, const std::string& layer, const std::vector<NodeId>& matched,
                     const Graph& without, const Graph& with);

  /// How many launches the last form that was asked about saves; nothing where that was not measured.
  std::optional<int> saved() const { return saved_; }
  /// In the order in which they were made.
  const std::vector<Alternative>& decisions() const { return decisions_; }
  /// Writes the graph's line unless the cache has the same already.
  void record() const;

 private:
  Result<std::optional<WholeTime>> time(Graph graph, const std::string& layer);
  Result<Alternative> compare(const std::string& layer, const Graph& without, const Graph& with);
  std::string region_text(const std::string& rule, const std::vector<NodeId>& matched, const Graph& graph) const;

  const BuildOptions& options_;
  Tuner* tuner_;
  Reformats* reformats_;
  KnownSites* known_;
  std::function<Status(Graph*)> finish_;
  const Prefer prefer_;
  CacheGraph line_;                              ///< as recorded, then as decided
  std::set<std::string> recorded_rules_;         ///< that the line has regions of: what it lacks was not worth trying
  std::optional<std::optional<WholeTime>> now_;  ///< of the graph as decided so far, once it is known
  std::optional<int> saved_;
  std::map<std::string, Alternative> regions_;  ///< by region_text
  std::vector<Alternative> decisions_;
};

}  // namespace tenon
