// Selection: one candidate for every site of a graph, and the conversions between formats that the choice needs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <tenon/status.hpp>

#include "core/builder/builder.h"
#include "core/graph/graph.h"
#include "core/graph/passes.h"
#include "core/tuner/tuner.h"

namespace tenon {

inline constexpr char kReformatOp[] = "tenon.reformat/1";

/// How a kernel wants a tensor of a dtype, as layout assignment and conversions name it: its format, preceded by the
/// dtype where the kernel wants another one. "nchw16c", "bf16:row".
std::string form_text(const TnPort& port, std::int32_t dtype);

/// A site with its times and the candidate that will run.
struct SelectedSite {
  std::shared_ptr<TuneSite> tune;
  TuneResult result;
  std::size_t chosen = 0;
  const Candidate& candidate() const { return tune->enumeration.candidates[chosen]; }
};

/// Conversions between forms, each distinct one timed once.
class Reformats {
 public:
  Reformats(const BuildOptions& options, Tuner* tuner) : options_(options), tuner_(tuner) {}

  /// The fastest kernel for one conversion; null if no kernel can do it. Errors are those of Tuner::time_site.
  Result<const SelectedSite*> find(std::int32_t dtype, const TnDims& dims, const std::string& from,
                                   const std::string& to);
  bool on_host() const { return options_.device->info().on_host(); }
  /// Records every conversion that was looked at, so that an edited choice finds what it needs without measuring.
  void record_all();

 private:
  using Key = std::tuple<std::int32_t, std::vector<std::int64_t>, std::string, std::string>;
  const BuildOptions& options_;
  Tuner* tuner_;
  std::map<Key, std::optional<SelectedSite>> known_;
};

struct Selection {
  std::vector<NodeId> order;           ///< live nodes that are launched, producers first
  std::vector<std::size_t> node_site;  ///< per entry of order
  std::vector<SelectedSite> sites;
  /// Nodes whose results follow from the dims of the graph's inputs (ShapeNode of the plan), each with the entry of
  /// order that it comes before.
  std::vector<std::pair<NodeId, std::size_t>> shape_nodes;
};

/// Whether a kernel takes the producer with its new epilogue and applies that itself.
bool fuses_epilogue(const Graph& graph, const Absorption& absorption, const BuildOptions& options);

/// Whether a kernel other than the op's reference takes the node.
bool has_kernel(const Graph& graph, NodeId node, const BuildOptions& options);

/// Sites that this build has timed already, by key.
using KnownSites = std::map<Hash128, SelectedSite>;

/// TN_SITE_* of the build's options.
std::uint32_t site_flags(const BuildOptions& options, const std::vector<LayerRule>& rules = {});

/// Whether a rule of the caller is about the node.
bool has_layer_rule(const Node& node, const BuildOptions& options);

/// Of the nodes in order and the values that connect them, numbered as they come, so that names and ids do not matter.
/// `text_of` tells what the n-th node is.
Hash128 structure_key(const Graph& graph, const std::vector<NodeId>& order, const std::string& begin,
                      const std::function<std::string(std::size_t n, NodeId id)>& text_of);

/// What a launch costs in a network beyond the time that it takes alone: on a GPU about the launch itself; on a CPU to
/// wake threads and to fetch a tensor that a node before left in a farther cache.
constexpr double launch_ms(bool on_host) { return on_host ? 0.005 : 0.002; }

enum class Prefer { kTime, kFewLaunches };
/// What the caller's rules force.
inline Prefer preferred(const BuildOptions& options) {
  return options.forced_rules.count(kFewestLaunchesRule) != 0 ? Prefer::kFewLaunches : Prefer::kTime;
}

/// Enumerates, times and chooses for a whole graph: the layout that takes least time, or of those with the fewest
/// launches the one that does.
Result<Selection> select_candidates(const Graph& graph, const BuildOptions& options, Tuner* tuner, Reformats* reformats,
                                    KnownSites* known, Prefer prefer = Prefer::kTime);

/// Names in pins of the timing cache that the graph does not have are errors, those in layer rules warnings.
Status check_names(const Graph& graph, const BuildOptions& options);

/// Says which layers run on the op's reference, as options.on_fallback wants it.
Status check_fallbacks(const Selection& selection, const BuildOptions& options);

/// Records the choices, conversions included.
void record_choices(const Selection& selection, Tuner* tuner, Reformats* reformats);

}  // namespace tenon
