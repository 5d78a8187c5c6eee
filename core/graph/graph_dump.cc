// Readable text of a Graph. Ids do not show, so graphs that differ only in removed nodes give equal text.

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>

#include "core/base/hash.h"
#include "core/graph/graph.h"

namespace tenon {
namespace {

/// Names of importers may hold anything; those that would blur a line are quoted.
std::string name_text(const std::string& name) {
  const bool plain = !name.empty() && name != "-" && std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_./:+-").find(c) != std::string_view::npos;
  });
  return plain ? name : quoted(name);
}

std::string value_text(const Value& value) {
  return fmt::format("{}: {}{}", name_text(value.name), dtype_name(value.dtype), dims_text(value.dims));
}

std::string contents_text(const HostTensor& tensor) {
  return to_text(hash128({static_cast<const char*>(tensor.data()), tensor.bytes()}));
}

}  // namespace

std::string Graph::dump() const {
  std::string text;
  for (const ValueId input : inputs_) text += fmt::format("input {}\n", value_text(values_[input]));
  for (ValueId id = 0; id < values_.size(); ++id) {
    const Value& value = values_[id];
    if (!value.alive || value.constant == nullptr || value.producer != kNoId) continue;
    text += fmt::format("const {} {}\n", value_text(value), contents_text(*value.constant));
  }
  Result<std::vector<NodeId>> sorted = topological_order();
  std::vector<NodeId> order;
  if (sorted.ok()) {
    order = std::move(*sorted);
  } else {
    text += fmt::format("error {}\n", sorted.status().message());
    order.resize(nodes_.size());
    std::iota(order.begin(), order.end(), NodeId{0});
  }
  for (const NodeId id : order) {
    const Node& node = nodes_[id];
    if (!node.alive) continue;
    std::string inputs;
    for (const ValueId input : node.inputs) {
      if (!inputs.empty()) inputs += ", ";
      inputs += input == kNoId ? "-" : name_text(values_[input].name);
    }
    std::string outputs;
    for (const ValueId output : node.outputs) {
      if (!outputs.empty()) outputs += ", ";
      outputs += value_text(values_[output]);
      if (values_[output].constant != nullptr) outputs += " = " + contents_text(*values_[output].constant);
    }
    text += fmt::format("node {} = {}({}) {{{}}} -> {}", name_text(node.name), node.op.op->id, inputs,
                        node.attrs.text(), outputs);
    for (std::size_t i = 0; i < node.epilogues.size(); ++i) {
      if (!node.epilogues[i].empty()) text += fmt::format(" epilogue {} {}", i, node.epilogues[i].text());
    }
    if (node.members != std::vector<std::string>{node.name}) {
      text += " members";
      for (const std::string& member : node.members) text += " " + name_text(member);
    }
    text += '\n';
  }
  for (const ValueId output : outputs_) text += fmt::format("output {}\n", name_text(values_[output].name));
  for (const auto& [key, value] : metadata_) text += fmt::format("metadata {} {}\n", name_text(key), quoted(value));
  return text;
}

}  // namespace tenon
