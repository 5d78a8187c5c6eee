// Activations that models spell out: x * sigmoid(x) is swish, and so on. As one op they are computed in one pass, or by
// the convolution before them.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <tenon/sdk/fusion.hpp>
#include <vector>

#include "plugins/activation/activation.h"
#include "plugins/common/constants.h"

namespace tenon::plugins {
namespace {

struct Rule {
  const char* id;
  const char* doc;
  const char* pattern;
  const char* op;
  std::vector<std::pair<const char*, double>> constants;  // what the pattern's constants have to be
};

const std::vector<Rule>& rules() {
  static const std::vector<Rule> all = {
      {"tenon.fuse_swish/1", "x * logistic(x) is swish", "tenon.mul/1($x,tenon.logistic/1($x))", "tenon.swish/1", {}},
      {"tenon.fuse_mish/1",
       "x * tanh(softplus(x)) is mish",
       "tenon.mul/1($x,tenon.tanh/1(tenon.softplus/1($x)))",
       "tenon.mish/1",
       {}},
      {"tenon.fuse_hard_swish/1",
       "x * clip(x + 3, 0, 6) / 6 is hard_swish",
       "tenon.div/1(tenon.mul/1($x,tenon.clip/1(tenon.add/1($x,$three:const),$zero:const,$six:const)),$divisor:const)",
       "tenon.hard_swish/1",
       {{"three", 3}, {"zero", 0}, {"six", 6}, {"divisor", 6}}},
      {"tenon.fuse_hard_swish_gate/1",
       "x * (clip(x + 3, 0, 6) / 6) is hard_swish",
       "tenon.mul/1($x,tenon.div/1(tenon.clip/1(tenon.add/1($x,$three:const),$zero:const,$six:const),$divisor:const))",
       "tenon.hard_swish/1",
       {{"three", 3}, {"zero", 0}, {"six", 6}, {"divisor", 6}}},
      {"tenon.fuse_gelu/1",
       "x * (1 + erf(x / sqrt(2))) * 0.5 is gelu",
       "tenon.mul/1(tenon.mul/1($x,"
       "tenon.add/1(tenon.erf/1(tenon.div/1|tenon.mul/1($x,$root:const)),$one:const)),$half:const)",
       "tenon.gelu/1",
       {{"root", std::sqrt(2.0)}, {"one", 1}, {"half", 0.5}}},
      {"tenon.fuse_gelu_half_first/1",
       "x * 0.5 * (1 + erf(x / sqrt(2))) is gelu",
       "tenon.mul/1(tenon.mul/1($x,$half:const),"
       "tenon.add/1(tenon.erf/1(tenon.div/1|tenon.mul/1($x,$root:const)),$one:const))",
       "tenon.gelu/1",
       {{"root", std::sqrt(2.0)}, {"one", 1}, {"half", 0.5}}},
      {"tenon.fuse_gelu_gate/1",
       "x * ((1 + erf(x / sqrt(2))) * 0.5) is gelu",
       "tenon.mul/1($x,tenon.mul/1("
       "tenon.add/1(tenon.erf/1(tenon.div/1|tenon.mul/1($x,$root:const)),$one:const),$half:const))",
       "tenon.gelu/1",
       {{"root", std::sqrt(2.0)}, {"one", 1}, {"half", 0.5}}},
      {"tenon.fuse_gelu_tanh/1",
       "x * 0.5 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) is gelu_tanh",
       "tenon.mul/1(tenon.mul/1($x,$half:const),tenon.add/1(tenon.tanh/1(tenon.mul/1(tenon.add/1($x,tenon.mul/1("
       "tenon.pow/1($x,$three:const),$cubed:const)),$scale:const)),$one:const))",
       "tenon.gelu_tanh/1",
       {{"three", 3}, {"cubed", 0.044715}, {"scale", 0.7978845608028654}, {"one", 1}, {"half", 0.5}}},
  };
  return all;
}

void check(const Rule& rule, const GraphView& graph, const Match& match) {
  for (const auto& [name, number] : rule.constants) {
    // x / sqrt(2), as node 4 of all patterns that have it, may be x * sqrt(1 / 2).
    const bool factor = name == std::string("root") && graph.node_op(match.node(4)) == "tenon.mul/1";
    const double expected = factor ? 1 / number : number;
    const std::optional<double> found = scalar_constant(graph, match.value(name));
    // f32 and what exporters round to.
    if (!found || !(std::abs(*found - expected) <= 1e-5 * std::abs(expected))) {
      throw Declined(text("the constant $", name, ": expected ", expected));
    }
  }
  if (graph.value_dims(graph.output(match.node(0))) != graph.value_dims(match.value("x"))) {
    throw Declined("its constants give the result more dims");
  }
}

}  // namespace

Definitions activation_rules() {
  Definitions all;
  for (const Rule& entry : rules()) {
    const Rule* rule = &entry;
    all.add(fusion(rule->id)
                .doc(rule->doc)
                .always()
                .pattern(rule->pattern)
                .check([rule](const GraphView& graph, const Match& match) { check(*rule, graph, match); })
                .rewrite([rule](GraphView& graph, const Match& match) {
                  const TnValueId y = graph.add_node(rule->op, "", graph.attrs(), {match.value("x")});
                  graph.replace(graph.output(match.node(0)), y);
                }));
  }
  return all;
}

}  // namespace tenon::plugins
