#include "core/plan/streams.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace tenon {
namespace {

std::vector<int> streams_of(const Plan& plan) {
  std::vector<int> streams;
  for (const PlanNode& node : plan.nodes) streams.push_back(node.stream);
  return streams;
}

bool on_one_stream(const Plan& plan) {
  return std::all_of(plan.nodes.begin(), plan.nodes.end(), [](const PlanNode& node) { return node.stream == 0; });
}

/// Bytes that a layer uses: of activation memory, or of an output of the network.
struct Use {
  std::uint32_t output = 0;  ///< number of the output plus 1; 0: activation memory
  std::uint64_t begin = 0, end = 0;
  bool writes = false;
};

bool conflict(const Use& a, const Use& b) {
  return (a.writes || b.writes) && a.output == b.output && a.begin < b.end && b.begin < a.end;
}

void add_use(const Plan& plan, std::uint32_t id, std::uint64_t begin, std::uint64_t bytes, bool writes,
             std::vector<Use>* uses) {
  const PlanTensor& tensor = plan.tensors[id];
  if (tensor.storage == Storage::kArena) begin += tensor.offset;
  if (tensor.storage != Storage::kArena && tensor.storage != Storage::kOutput) return;
  uses->push_back({tensor.storage == Storage::kOutput ? tensor.index + 1 : 0, begin, begin + bytes, writes});
}

std::vector<Use> uses_of(const Plan& plan, const PlanNode& node) {
  std::vector<Use> uses;
  // A view copies the shares that are not in place, and nothing else.
  for (const Share& share : node.shares) {
    if (is_in_place(plan, node, share)) continue;
    const std::uint32_t input = node.inputs[share.input], output = node.outputs[share.output];
    const std::uint64_t bytes = std::min(plan.tensors[input].bytes, plan.tensors[output].bytes);
    add_use(plan, input, share.output_inside ? share.offset : 0, bytes, false, &uses);
    add_use(plan, output, share.output_inside ? 0 : share.offset, bytes, true, &uses);
  }
  if (!node.shares.empty()) return uses;
  for (const std::uint32_t id : node.inputs) {
    if (id != kNoTensor) add_use(plan, id, 0, plan.tensors[id].bytes, false, &uses);
  }
  for (const std::uint32_t id : node.outputs) add_use(plan, id, 0, plan.tensors[id].bytes, true, &uses);
  return uses;
}

}  // namespace

StreamOrder::StreamOrder(std::vector<int> streams, const Depends& depends) : streams_(std::move(streams)) {
  for (const int stream : streams_) count_ = std::max(count_, stream + 1);
  if (count_ == 1) return;
  const std::size_t n = streams_.size();
  done_.assign(n * at(count_), 0);
  waits_.resize(n);
  signals_.assign(n, false);
  std::vector<std::vector<std::size_t>> layers_on(at(count_));
  for (std::size_t layer = 0; layer < n; ++layer) {
    const int own = streams_[layer];
    std::vector<std::size_t>& mine = layers_on[at(own)];
    if (!mine.empty()) {
      for (int s = 0; s < count_; ++s) done(layer, s) = done(mine.back(), s);
      done(layer, own) = mine.back() + 1;
    }
    std::vector<std::size_t> needed;  // of each other stream the latest layer
    for (int s = 0; s < count_; ++s) {
      if (s == own) continue;
      const std::vector<std::size_t>& others = layers_on[at(s)];
      for (auto other = others.rbegin(); other != others.rend() && *other >= done(layer, s); ++other) {
        if (!depends(*other, layer)) continue;
        needed.push_back(*other);
        break;
      }
    }
    waits_[layer] = without_implied(needed);
    for (const std::size_t wait : waits_[layer]) {
      signals_[wait] = true;
      for (int s = 0; s < count_; ++s) done(layer, s) = std::max(done(layer, s), done(wait, s));
      done(layer, streams_[wait]) = std::max(done(layer, streams_[wait]), wait + 1);
    }
    if (mine.empty() && own != 0 && waits_[layer].empty()) forks_.push_back(own);
    mine.push_back(layer);
  }
  std::vector<std::size_t> last;
  const std::vector<std::size_t>& main = layers_on[0];
  for (int s = 1; s < count_; ++s) {
    const std::vector<std::size_t>& others = layers_on[at(s)];
    if (others.empty() || (!main.empty() && done(main.back(), s) > others.back())) continue;
    last.push_back(others.back());
  }
  joins_ = without_implied(last);
  for (const std::size_t layer : joins_) signals_[layer] = true;
}

/// Leaves out those that are done before others of them begin.
std::vector<std::size_t> StreamOrder::without_implied(const std::vector<std::size_t>& layers) const {
  std::vector<std::size_t> kept;
  for (const std::size_t layer : layers) {
    const bool implied = std::any_of(layers.begin(), layers.end(), [&](std::size_t other) {
      return other != layer && done(other, streams_[layer]) > layer;
    });
    if (!implied) kept.push_back(layer);
  }
  return kept;
}

bool StreamOrder::before(std::size_t earlier, std::size_t later) const {
  if (count_ == 1 || streams_[earlier] == streams_[later]) return earlier < later;
  return done(later, streams_[earlier]) > earlier;
}

int StreamOrder::events() const {
  return static_cast<int>(std::count(signals_.begin(), signals_.end(), true)) + (forks_.empty() ? 0 : 1);
}

std::vector<std::vector<std::size_t>> data_needs(const Plan& plan) {
  constexpr std::size_t kNobody = ~std::size_t{0};
  std::vector<std::size_t> writer(plan.tensors.size(), kNobody);
  std::vector<std::vector<std::size_t>> needs;
  for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
    std::vector<std::size_t>& own = needs.emplace_back();
    for (const std::uint32_t input : plan.nodes[n].inputs) {
      if (input != kNoTensor && writer[input] != kNobody) own.push_back(writer[input]);
    }
    std::sort(own.begin(), own.end());
    own.erase(std::unique(own.begin(), own.end()), own.end());
    for (const std::uint32_t output : plan.nodes[n].outputs) writer[output] = n;
  }
  return needs;
}

StreamOrder data_order(const Plan& plan) {
  if (on_one_stream(plan)) return {};
  const auto needs = data_needs(plan);
  return {streams_of(plan), [&](std::size_t earlier, std::size_t later) {
            return std::binary_search(needs[later].begin(), needs[later].end(), earlier);
          }};
}

StreamOrder memory_order(const Plan& plan) {
  if (on_one_stream(plan)) return {};
  std::vector<std::vector<Use>> uses;
  for (const PlanNode& node : plan.nodes) uses.push_back(uses_of(plan, node));
  const auto needs = data_needs(plan);
  return {streams_of(plan), [&](std::size_t earlier, std::size_t later) {
            return std::binary_search(needs[later].begin(), needs[later].end(), earlier) ||
                   std::any_of(uses[earlier].begin(), uses[earlier].end(), [&](const Use& a) {
                     return std::any_of(uses[later].begin(), uses[later].end(),
                                        [&](const Use& b) { return conflict(a, b); });
                   });
          }};
}

}  // namespace tenon
