/// fusion(): a rewrite rule.
///   tenon::fusion("acme.drop_identity/1").always().pattern("acme.identity/1($x)")
///       .rewrite([](tenon::GraphView& graph, const tenon::Match& match) {
///         graph.replace(graph.output(match.node(0)), match.value("x"));
///       })
#ifndef TENON_SDK_FUSION_HPP
#define TENON_SDK_FUSION_HPP

#include <functional>
#include <memory>
#include <string>

#include "definition.hpp"
#include "graph_view.hpp"

namespace tenon {
inline namespace sdk {

/// What a pattern bound.
class Match {
 public:
  Match(const TnHost* host, const TnMatch* match) : host_(host), match_(match) {}
  /// The n-th node in the order in which the pattern text names ops; 0 is the root.
  TnNodeId node(uint32_t n) const { return host_->graph->match_node(match_, n); }
  /// TN_NO_ID for an optional input that is absent.
  TnValueId value(const std::string& name) const { return host_->graph->match_value(match_, name.c_str()); }

 private:
  const TnHost* host_;
  const TnMatch* match_;
};

class FusionDefinition final : public Definition, public TnFusion {
 public:
  explicit FusionDefinition(const std::string& rule) : TnFusion{} {
    struct_size = TN_HEADER(TnFusion);
    mode = TN_FUSION_ALWAYS;
    id = keep(rule);
    doc = "";
    rewrite = [](const TnHost* host, const TnFusion* fusion, TnGraph* graph, const TnMatch* match) {
      return guard(host, [&] {
        GraphView view(host, graph);
        static_cast<const FusionDefinition*>(fusion)->on_rewrite(view, Match(host, match));
      });
    };
  }
  TnStatus add_to(const TnHost* host) const override { return host->register_fusion(host, this); }

  std::function<void(const GraphView&, const Match&)> on_check;
  std::function<void(GraphView&, const Match&)> on_rewrite;
};

/// The builder; pattern syntax: ../plugin/fusion.h.
class Fusion {
 public:
  explicit Fusion(const std::string& id) : fusion_(new FusionDefinition(id)) {}
  Fusion& doc(const std::string& text) { return fusion_->doc = fusion_->keep(text), *this; }
  /// Exact: applied wherever it matches.
  Fusion& always() { return fusion_->mode = TN_FUSION_ALWAYS, *this; }
  /// Both forms are kept, measured time decides.
  Fusion& candidate() { return fusion_->mode = TN_FUSION_CANDIDATE, *this; }
  Fusion& pattern(const std::string& text) { return fusion_->pattern = fusion_->keep(text), *this; }
  /// Higher first.
  Fusion& priority(int32_t number) { return fusion_->priority = number, *this; }
  /// Throws Declined where the rule does not hold.
  Fusion& check(std::function<void(const GraphView&, const Match&)> fn) {
    fusion_->on_check = std::move(fn);
    fusion_->TnFusion::check = [](const TnHost* host, const TnFusion* fusion, const TnGraph* graph,
                                  const TnMatch* match) {
      return guard(host, [&] {
        static_cast<const FusionDefinition*>(fusion)->on_check(GraphView(host, graph), Match(host, match));
      });
    };
    return *this;
  }
  /// Adds new nodes and replaces the root's outputs.
  Fusion& rewrite(std::function<void(GraphView&, const Match&)> fn) {
    return fusion_->on_rewrite = std::move(fn), *this;
  }
  std::shared_ptr<FusionDefinition> definition() const { return fusion_; }

 private:
  std::shared_ptr<FusionDefinition> fusion_;
};

inline Fusion fusion(const std::string& id) { return Fusion(id); }

}  // namespace sdk
}  // namespace tenon

#endif  // TENON_SDK_FUSION_HPP
