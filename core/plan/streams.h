// Streams: when the layers of a plan that runs on several streams happen, and the fewest waits that make it so.
//
// Thread rule: plain values and pure functions.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "core/plan/plan.h"

namespace tenon {

/// A plan's streams are numbered below this.
inline constexpr int kMostStreams = 64;

/// Whether layer `later` must wait for layer `earlier`, which stands before it in the plan.
using Depends = std::function<bool(std::size_t earlier, std::size_t later)>;

/// The partial order of layers: those of one stream run one after the other in the plan's order, and across streams
/// a layer waits for what it depends on. No wait follows from others, and one event of a layer serves all who wait for
/// it. Stream 0 is the main one: work of the others begins after what came before on it, and it ends after all of them.
class StreamOrder {
 public:
  /// All on one stream.
  StreamOrder() = default;
  /// `streams`: of each layer. REQUIRES: 0 <= stream < kMostStreams.
  StreamOrder(std::vector<int> streams, const Depends& depends);

  int count() const { return count_; }
  /// With several streams.
  std::size_t layers() const { return streams_.size(); }
  int stream(std::size_t layer) const { return count_ == 1 ? 0 : streams_[layer]; }
  /// Whether `earlier` is done before `later` begins.
  bool before(std::size_t earlier, std::size_t later) const;

  // --- with several streams only ---
  /// Layers of other streams that the layer's stream waits for just before it.
  const std::vector<std::size_t>& waits(std::size_t layer) const { return waits_[layer]; }
  /// Whether somebody waits for the layer, so that an event is recorded after it.
  bool signals(std::size_t layer) const { return signals_[layer]; }
  /// Streams that wait for nothing but what came before on the main one.
  const std::vector<int>& forks() const { return forks_; }
  /// Layers that the main stream waits for at the end.
  const std::vector<std::size_t>& joins() const { return joins_; }
  /// How many events that takes.
  int events() const;

 private:
  /// The latest layer of a stream that is done before a layer begins, plus 1; 0: none.
  std::size_t& done(std::size_t layer, int stream) {
    return done_[layer * static_cast<std::size_t>(count_) + at(stream)];
  }
  std::size_t done(std::size_t layer, int stream) const {
    return done_[layer * static_cast<std::size_t>(count_) + at(stream)];
  }
  static std::size_t at(int stream) { return static_cast<std::size_t>(stream); }
  std::vector<std::size_t> without_implied(const std::vector<std::size_t>& layers) const;

  int count_ = 1;
  std::vector<int> streams_;
  std::vector<std::size_t> done_;
  std::vector<std::vector<std::size_t>> waits_;
  std::vector<bool> signals_;
  std::vector<int> forks_;
  std::vector<std::size_t> joins_;
};

/// Of each layer, those that write what it reads, in order. Views are layers like others, also where they do nothing.
std::vector<std::vector<std::size_t>> data_needs(const Plan& plan);

/// The order of a plan whose tensors have no places yet: layers wait for the data that they read.
StreamOrder data_order(const Plan& plan);
/// The order that is right wherever the tensors lie: layers wait for the data that they read and for those that use the
/// same bytes, unless all of them only read. Plans of place_tensors get the same waits as from data_order.
StreamOrder memory_order(const Plan& plan);

}  // namespace tenon
