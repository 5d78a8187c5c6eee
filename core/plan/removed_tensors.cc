#include "core/plan/removed_tensors.h"

#include <charconv>
#include <set>
#include <sstream>

namespace tenon {
namespace {

constexpr char kKey[] = "removed_tensors";  // a line each: number of the layer, space, name

}  // namespace

void note_removed_tensors(const Graph& network, Plan* plan) {
  if (plan->verbosity == Verbosity::kNone) return;
  std::set<std::string> held;
  for (const PlanTensor& tensor : plan->tensors) held.insert(tensor.name);
  for (const PlanIo& output : plan->outputs) held.insert(output.name);
  std::map<std::string, int> layers;
  for (std::size_t n = 0; n < plan->nodes.size(); ++n) {
    for (const std::string& member : plan->nodes[n].members) layers.emplace(member, static_cast<int>(n));
  }
  std::string text;
  for (const Node& node : network.nodes()) {
    if (!node.alive) continue;
    const auto layer = layers.find(node.name);
    for (const ValueId output : node.outputs) {
      const std::string& name = network.value(output).name;
      if (held.count(name) != 0 || name.find('\n') != std::string::npos) continue;
      text += std::to_string(layer != layers.end() ? layer->second : -1) + " " + name + "\n";
    }
  }
  if (!text.empty()) plan->metadata[kKey] = text;
}

RemovedTensors removed_tensors(const Plan& plan) {
  RemovedTensors removed;
  const auto noted = plan.metadata.find(kKey);
  if (noted == plan.metadata.end()) return removed;
  std::istringstream lines(noted->second);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t space = line.find(' ');
    if (space == std::string::npos) continue;
    int layer = -1;
    std::from_chars(line.data(), line.data() + space, layer);
    if (layer >= static_cast<int>(plan.nodes.size())) layer = -1;
    removed[line.substr(space + 1)] = layer < 0 ? -1 : layer;
  }
  return removed;
}

}  // namespace tenon
