// Transposes that are not needed: one after the other, around something that works element by element, and in front of
// a matrix product.
#include "plugins/transpose/transpose_rules.h"

#include <algorithm>
#include <string>

#include "plugins/common/permutation.h"
#include "plugins/common/reshape_form.h"

namespace tenon::plugins {
namespace {

using Perm = std::vector<int>;

Perm permutation_of(const GraphView& graph, TnNodeId node) {
  return permutation(graph.node_attrs(node), graph.value_dims(graph.output(node)).rank);
}

// First `inner`, then `outer`.
Perm composed(const Perm& inner, const Perm& outer) {
  Perm result;
  for (const int axis : outer) result.push_back(inner[static_cast<size_t>(axis)]);
  return result;
}

bool is_identity(const Perm& perm) {
  for (size_t axis = 0; axis < perm.size(); ++axis) {
    if (perm[axis] != static_cast<int>(axis)) return false;
  }
  return true;
}

// x with its axes in another order; x itself where that is its own.
TnValueId transposed(GraphView& graph, TnValueId x, const Perm& perm) {
  if (is_identity(perm)) return x;
  return graph.add_node("tenon.transpose/1", "",
                        graph.attrs().i64s("perm", std::vector<int64_t>(perm.begin(), perm.end())), {x});
}

Fusion rule(const char* id, const char* doc, const std::string& pattern) {
  return fusion(id).doc(doc).always().pattern(pattern);
}

// transpose(f(transpose(x))) is f(x) where the second one undoes the first: node 0 and the last one of the match.
const char kUnary[] =
    "tenon.linear/1|tenon.relu/1|tenon.relu6/1|tenon.leaky_relu/1|tenon.elu/1|tenon.celu/1|tenon.selu/1|"
    "tenon.logistic/1|tenon.hard_sigmoid/1|tenon.tanh/1|tenon.mish/1|tenon.swish/1|tenon.hard_swish/1|tenon.gelu/1|"
    "tenon.gelu_tanh/1|tenon.softplus/1|tenon.softsign/1|tenon.abs/1|tenon.neg/1|tenon.exp/1|tenon.log/1|"
    "tenon.sqrt/1|tenon.erf/1";
const char kBinary[] = "tenon.add/1|tenon.sub/1|tenon.mul/1|tenon.div/1|tenon.min/1|tenon.max/1";

void check_undone(const GraphView& graph, const Match& match, uint32_t inner) {
  if (!is_identity(composed(permutation_of(graph, match.node(inner)), permutation_of(graph, match.node(0))))) {
    throw Declined("the transposes do not undo each other");
  }
}

// The op of node `n` again, on other inputs.
TnValueId again(GraphView& graph, TnNodeId node, const std::vector<TnValueId>& inputs) {
  return graph.add_node(graph.node_op(node), "", graph.attrs(graph.node_attrs(node)), inputs);
}

void check_one_number(const GraphView& graph, const Match& match) {
  check_undone(graph, match, 2);
  const Dims c = graph.value_dims(match.value("c"));
  if (c.elements() != 1 || c.rank > graph.value_dims(match.value("x")).rank) {
    throw Declined("the constant is no single number");
  }
}

void check_both(const GraphView& graph, const Match& match) {
  check_undone(graph, match, 2);
  check_undone(graph, match, 3);
  if (graph.value_dims(match.value("x")).rank != graph.value_dims(match.value("y")).rank) {
    throw Declined("the operands differ in rank");
  }
}

// Whether a node swaps the last two axes and nothing else.
void check_swap(const GraphView& graph, const Match& match) {
  Perm perm = permutation_of(graph, match.node(1));
  const size_t rank = perm.size();
  if (rank < 2) throw Declined("no matrix");
  std::swap(perm[rank - 1], perm[rank - 2]);
  if (!is_identity(perm)) throw Declined("more than the last two axes move");
}

Fusion fold_into_matmul(const char* id, const char* doc, const char* pattern, const char* attribute) {
  // Behind the rules that make more of a product.
  return rule(id, doc, pattern)
      .priority(-1)
      .check(check_swap)
      .rewrite([attribute](GraphView& graph, const Match& match) {
        const TnNodeId matmul = match.node(0);
        NewAttrs attrs = graph.attrs(graph.node_attrs(matmul));
        attrs.i64(attribute, graph.node_attrs(matmul).flag(attribute) ? 0 : 1);
        graph.replace(graph.output(matmul),
                      graph.add_node("tenon.matmul/1", "", attrs, {match.value("a"), match.value("b")}));
      });
}

}  // namespace

Definitions transpose_rules() {
  const std::string unary = kUnary, binary = kBinary;
  Definitions all;
  all.add(rule("tenon.merge_transposes/1", "two transposes, one after the other, as one or none",
               "tenon.transpose/1(tenon.transpose/1($x)*)")
              .rewrite([](GraphView& graph, const Match& match) {
                const Perm perm = composed(permutation_of(graph, match.node(1)), permutation_of(graph, match.node(0)));
                replace_by(graph, graph.output(match.node(0)), transposed(graph, match.value("x"), perm));
              }));
  all.add(rule("tenon.drop_transpose/1", "a transpose that moves nothing is left out", "tenon.transpose/1($x)")
              .check([](const GraphView& graph, const Match& match) {
                if (!is_identity(permutation_of(graph, match.node(0)))) throw Declined("axes move");
              })
              .rewrite([](GraphView& graph, const Match& match) {
                replace_by(graph, graph.output(match.node(0)), match.value("x"));
              }));
  all.add(rule("tenon.undo_transposes_around/1",
               "transposes around an elementwise op that undo each other are left out",
               "tenon.transpose/1(" + unary + "(tenon.transpose/1($x)*))")
              .check([](const GraphView& graph, const Match& match) { check_undone(graph, match, 2); })
              .rewrite([](GraphView& graph, const Match& match) {
                graph.replace(graph.output(match.node(0)), again(graph, match.node(1), {match.value("x")}));
              }));
  all.add(rule("tenon.undo_transposes_around_clip/1", "transposes around a clip that undo each other are left out",
               "tenon.transpose/1(tenon.clip/1(tenon.transpose/1($x)*,$low?,$high?))")
              .check([](const GraphView& graph, const Match& match) { check_undone(graph, match, 2); })
              .rewrite([](GraphView& graph, const Match& match) {
                graph.replace(graph.output(match.node(0)),
                              again(graph, match.node(1), {match.value("x"), match.value("low"), match.value("high")}));
              }));
  all.add(rule("tenon.undo_transposes_around_number/1",
               "transposes around arithmetic with one number that undo each other are left out",
               "tenon.transpose/1(" + binary + "(tenon.transpose/1($x)*,$c:const))")
              .check(check_one_number)
              .rewrite([](GraphView& graph, const Match& match) {
                graph.replace(graph.output(match.node(0)),
                              again(graph, match.node(1), {match.value("x"), match.value("c")}));
              }));
  all.add(rule("tenon.undo_transposes_around_two/1",
               "transposes of both operands and of the result that undo each other are left out",
               "tenon.transpose/1(" + binary + "(tenon.transpose/1($x)*,tenon.transpose/1($y)*))")
              .check(check_both)
              .rewrite([](GraphView& graph, const Match& match) {
                graph.replace(graph.output(match.node(0)),
                              again(graph, match.node(1), {match.value("x"), match.value("y")}));
              }));
  all.add(fold_into_matmul("tenon.fold_transpose_a/1", "a transposed first operand of a matrix product",
                           "tenon.matmul/1(tenon.transpose/1($a)*,$b)", "transpose_a"));
  all.add(fold_into_matmul("tenon.fold_transpose_b/1", "a transposed second operand of a matrix product",
                           "tenon.matmul/1($a,tenon.transpose/1($b)*)", "transpose_b"));
  return all;
}

}  // namespace tenon::plugins
