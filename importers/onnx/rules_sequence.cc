// Sequences and optionals. They exist only while the model is read: in the graph there are the tensors in them.
#include <algorithm>
#include <cstring>

#include "importers/onnx/onnx.pb.h"
#include "importers/onnx/rules.h"

namespace tenon::onnx {
namespace {

std::vector<TnValueId> sequence(OnnxNode& node, int n) {
  const Item& item = node.item(n);
  if (item.kind != Item::Kind::kSequence) throw Invalid(text("input ", n, ": expected a sequence, found a tensor"));
  return item.items;
}

/// A position given as input n, from 0 to `last`.
int64_t position(OnnxNode& node, int n, int64_t size, int64_t last, int64_t absent) {
  const std::optional<double> given = node.known_scalar(n);
  if (!given) return absent;
  if (!(*given >= -9e15 && *given <= 9e15)) throw Invalid(text("position ", *given));
  const int64_t written = static_cast<int64_t>(*given);
  const int64_t at = written < 0 ? written + size : written;
  if (at < 0 || at > last) throw Invalid(text("position ", written, " is outside a sequence of ", size));
  return at;
}

void identity(OnnxNode& node) { node.output(0, node.item(0)); }

void sequence_empty(OnnxNode& node) { node.output(0, Item::sequence({})); }

void sequence_construct(OnnxNode& node) { node.output(0, Item::sequence(node.inputs_from(0))); }

void sequence_at(OnnxNode& node) {
  const std::vector<TnValueId> items = sequence(node, 0);
  const auto size = static_cast<int64_t>(items.size());
  node.output(0, items[static_cast<size_t>(position(node, 1, size, size - 1, 0))]);
}

void sequence_insert(OnnxNode& node) {
  std::vector<TnValueId> items = sequence(node, 0);
  const auto size = static_cast<int64_t>(items.size());
  items.insert(items.begin() + position(node, 2, size, size, size), node.input(1));
  node.output(0, Item::sequence(std::move(items)));
}

void sequence_erase(OnnxNode& node) {
  std::vector<TnValueId> items = sequence(node, 0);
  const auto size = static_cast<int64_t>(items.size());
  if (items.empty()) throw Invalid("nothing can be erased from an empty sequence");
  items.erase(items.begin() + position(node, 1, size, size - 1, size - 1));
  node.output(0, Item::sequence(std::move(items)));
}

void sequence_length(OnnxNode& node) {
  const auto size = static_cast<int64_t>(sequence(node, 0).size());
  node.output(0, node.constant(host_tensor(TN_I64, Dims{}, &size)));
}

void split_to_sequence(OnnxNode& node) {
  const Dims dims = node.dims(0);
  const int axis = normalize_axis(node.i64("axis", 0), dims.rank);
  std::vector<int64_t> sizes;
  bool keep = true;
  if (node.has_input(1)) {
    sizes = *node.known_i64s(1);
    if (node.rank(1) == 0) {
      const int64_t chunk = sizes.at(0);
      if (chunk < 1) throw Invalid(text("split: expected at least 1, found ", chunk));
      sizes.clear();
      node.made_elements({dims[axis] / chunk + 1});
      for (int64_t from = 0; from < dims[axis]; from += chunk) sizes.push_back(std::min(chunk, dims[axis] - from));
    }
  } else {
    sizes.assign(static_cast<size_t>(node.made_elements({dims[axis]})), 1);
    keep = node.flag("keepdims", true);
  }
  std::vector<TnValueId> items;
  int64_t from = 0;
  for (const int64_t size : sizes) {
    if (size < 0 || size > dims[axis] - from)
      throw Invalid(text("split: the parts do not fill ", dims[axis], " positions"));
    TnValueId part =
        node.add("tenon.slice/1", node.attrs().i64s("starts", {from}).i64s("ends", {from + size}).i64s("axes", {axis}),
                 {node.input(0)});
    from += size;
    if (!keep) {
      std::vector<int64_t> shape(dims.begin(), dims.end());
      shape.erase(shape.begin() + axis);
      part = node.reshape(part, shape);
    }
    items.push_back(part);
  }
  if (from != dims[axis]) throw Invalid(text("split: the parts fill ", from, " of ", dims[axis], " positions"));
  node.output(0, Item::sequence(std::move(items)));
}

void concat_from_sequence(OnnxNode& node) {
  std::vector<TnValueId> items = sequence(node, 0);
  if (items.empty()) throw Invalid("an empty sequence cannot be concatenated");
  const bool new_axis = node.flag("new_axis", false);
  const int rank = node.dims_of(items[0]).rank + (new_axis ? 1 : 0);
  const int axis = normalize_axis(node.i64("axis"), rank);
  if (new_axis) {
    for (TnValueId& item : items) {
      const Dims dims = node.dims_of(item);
      std::vector<int64_t> shape(dims.begin(), dims.end());
      shape.insert(shape.begin() + axis, 1);
      item = node.reshape(item, shape);
    }
  }
  node.output(0, items.size() == 1 ? items[0] : node.add("tenon.concat/1", node.attrs().i64("axis", axis), items));
}

void sequence_map(OnnxNode& node) {
  const std::vector<TnValueId> first = sequence(node, 0);
  const pb::GraphProto& body = node.graph("body");
  std::vector<std::vector<TnValueId>> results(static_cast<size_t>(node.num_outputs()));
  for (size_t round = 0; round < first.size(); ++round) {
    std::vector<Item> inputs;
    for (int n = 0; n < node.num_inputs(); ++n) {
      const Item& item = node.item(n);
      if (item.kind == Item::Kind::kSequence && item.items.size() != first.size()) {
        throw Invalid(
            text("input ", n, ": expected a sequence of ", first.size(), ", found one of ", item.items.size()));
      }
      inputs.push_back(item.kind == Item::Kind::kSequence ? Item::tensor(item.items[round]) : item);
    }
    const std::vector<Item> outputs = node.inline_graph(body, inputs, text(round));
    for (size_t n = 0; n < results.size() && n < outputs.size(); ++n) {
      if (outputs[n].kind != Item::Kind::kTensor) throw Unsupported{"a body whose results are no tensors"};
      results[n].push_back(outputs[n].value);
    }
  }
  for (size_t n = 0; n < results.size(); ++n) node.output(static_cast<int>(n), Item::sequence(std::move(results[n])));
}

void optional_rule(OnnxNode& node) { node.output(0, node.has_input(0) ? node.item(0) : Item{}); }

void optional_has_element(OnnxNode& node) {
  const uint8_t has = node.has_input(0) ? 1 : 0;
  node.output(0, node.constant(host_tensor(TN_BOOL, Dims{}, &has)));
}

const Rule kRules[] = {
    {"Identity", {1, 13, 14, 16, 19, 21, 23, 24, 25}, identity},
    {"SequenceEmpty", {11}, sequence_empty},
    {"SequenceConstruct", {11}, sequence_construct},
    {"SequenceAt", {11}, sequence_at},
    {"SequenceInsert", {11}, sequence_insert},
    {"SequenceErase", {11}, sequence_erase},
    {"SequenceLength", {11}, sequence_length},
    {"SplitToSequence", {11, 24}, split_to_sequence},
    {"ConcatFromSequence", {11}, concat_from_sequence},
    {"SequenceMap", {17}, sequence_map},
    {"Optional", {15}, optional_rule},
    {"OptionalGetElement", {15, 18}, identity},
    {"OptionalHasElement", {15, 18}, optional_has_element},
};

}  // namespace

std::span<const Rule> sequence_rules() { return kRules; }

}  // namespace tenon::onnx
