// Reshapes that are not needed. The order of elements never changes, so only the last shape counts.
#include "plugins/common/reshape_form.h"
#include "plugins/reshape/reshape.h"

namespace tenon::plugins {
namespace {

using Form = std::vector<NewDim>;

// What `outer` asks of the tensor that `inner` makes, asked of the tensor that `inner` reads. Declined if the two leave
// more than one dim to be worked out.
Form composed(const Form& inner, const Form& outer) {
  Form result;
  int rests = 0;
  for (const NewDim& dim : outer) {
    result.push_back(dim.kind == NewDim::Kind::kCopy ? inner.at(static_cast<size_t>(dim.value)) : dim);
    rests += result.back().is_rest();
  }
  if (rests > 1) throw Declined("two dims would have to be worked out");
  return result;
}

void check_merge(const GraphView& graph, const Match& match) {
  composed(reshape_form(graph, match.node(1)), reshape_form(graph, match.node(0)));
  if (graph.value_dims(match.value("x")).elements() == 0) throw Declined("the tensor is empty");
}

void merge(GraphView& graph, const Match& match) {
  std::vector<int64_t> shape, copies;
  for (const NewDim& dim : composed(reshape_form(graph, match.node(1)), reshape_form(graph, match.node(0)))) {
    shape.push_back(dim.is_rest() ? -1 : dim.kind == NewDim::Kind::kNumber ? dim.value : 0);
    copies.push_back(dim.kind == NewDim::Kind::kCopy ? dim.value : -1);
  }
  const TnValueId y = graph.add_node("tenon.reshape/1", "",
                                     graph.attrs().i64s("shape", shape).i64s("copies", copies).i64("allow_zero", 1),
                                     {match.value("x")});
  graph.replace(graph.output(match.node(0)), y);
}

void check_drop(const GraphView& graph, const Match& match) {
  const Form form = reshape_form(graph, match.node(0));
  if (graph.value_dims(match.value("x")) != graph.value_dims(graph.output(match.node(0)))) {
    throw Declined("the dims change");
  }
  bool same = keeps_batch(form);
  for (size_t axis = 0; axis < form.size(); ++axis) {
    same = same && (form[axis].kind != NewDim::Kind::kCopy || form[axis].copies(static_cast<int64_t>(axis)));
  }
  if (!same) throw Declined("another batch would change the dims");
}

}  // namespace

Definitions reshape_rules() {
  Definitions all;
  all.add(fusion("tenon.merge_reshapes/1")
              .doc("a reshape of a reshape as one")
              .always()
              .pattern("tenon.reshape/1(tenon.reshape/1($x,$first:const?)*,$last:const?)")
              .check(check_merge)
              .rewrite(merge));
  all.add(fusion("tenon.drop_reshape/1")
              .doc("a reshape to the dims that are there already is left out")
              .always()
              .pattern("tenon.reshape/1($x,$shape:const?)")
              .check(check_drop)
              .rewrite([](GraphView& graph, const Match& match) {
                replace_by(graph, graph.output(match.node(0)), match.value("x"));
              }));
  return all;
}

}  // namespace tenon::plugins
