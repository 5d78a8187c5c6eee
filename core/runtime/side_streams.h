// The streams beside the main one of a context, and the events between them all.
//
// Thread rule: as the context.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "core/device/device.h"
#include "core/plan/streams.h"

namespace tenon {

class SideStreams {
 public:
  /// Creates what `order` needs: nothing for one stream.
  Status create(Device& device, const StreamOrder& order);

  /// Runs all layers in the plan's order, each on its stream after the waits of `order`; `main` is stream 0. Also after
  /// a failure, which is that of the first layer that failed, `main` waits for all that was launched. REQUIRES: `order`
  /// as in create.
  Status run(Device& device, const StreamOrder& order, Stream& main,
             const std::function<Status(std::size_t layer, const TnExec& base)>& run_layer);

  Stream& stream(int number, Stream& main) const {
    return number == 0 ? main : *streams_[static_cast<std::size_t>(number) - 1];
  }

 private:
  Status launch(const StreamOrder& order, Stream& main,
                const std::function<Status(std::size_t layer, const TnExec& base)>& run_layer);

  std::vector<std::unique_ptr<Stream>> streams_;  ///< 1 and so on
  std::unique_ptr<Event> begin_;                  ///< of all work on the main stream before the layers
  std::vector<std::unique_ptr<Event>> done_;      ///< of each layer that signals; null for others
  std::vector<TnExec> execs_;                     ///< of each stream
};

}  // namespace tenon
