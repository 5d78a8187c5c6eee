#include "core/runtime/side_streams.h"

#include <utility>

namespace tenon {

Status SideStreams::create(Device& device, const StreamOrder& order) {
  if (order.count() == 1) return {};
  for (int s = 1; s < order.count(); ++s) {
    TENON_ASSIGN(std::unique_ptr<Stream> stream, device.create_stream());
    streams_.push_back(std::move(stream));
  }
  TENON_ASSIGN(begin_, device.create_event());
  for (std::size_t layer = 0; layer < order.layers(); ++layer) {
    done_.emplace_back();
    if (!order.signals(layer)) continue;
    TENON_ASSIGN(done_.back(), device.create_event());
  }
  execs_.resize(static_cast<std::size_t>(order.count()));
  return {};
}

Status SideStreams::run(Device& device, const StreamOrder& order, Stream& main,
                        const std::function<Status(std::size_t layer, const TnExec& base)>& run_layer) {
  for (std::size_t s = 0; s < execs_.size(); ++s) {
    execs_[s] = {};
    device.prepare_exec(stream(static_cast<int>(s), main), &execs_[s]);
  }
  Status status = launch(order, main, run_layer);
  if (status.ok()) return status;
  // Whoever waits for the main stream next relies on it that nothing runs any more. These fail too where the device is
  // broken or a recording has ended; the first failure is the one to tell.
  for (const std::unique_ptr<Stream>& side : streams_) {
    if (begin_->record(*side).ok()) (void)main.wait_for(*begin_);
  }
  return status;
}

Status SideStreams::launch(const StreamOrder& order, Stream& main,
                           const std::function<Status(std::size_t layer, const TnExec& base)>& run_layer) {
  if (!order.forks().empty()) TENON_RETURN_IF_ERROR(begin_->record(main));
  for (const int s : order.forks()) TENON_RETURN_IF_ERROR(stream(s, main).wait_for(*begin_));
  for (std::size_t layer = 0; layer < order.layers(); ++layer) {
    const int number = order.stream(layer);
    Stream& own = stream(number, main);
    for (const std::size_t other : order.waits(layer)) TENON_RETURN_IF_ERROR(own.wait_for(*done_[other]));
    TENON_RETURN_IF_ERROR(run_layer(layer, execs_[static_cast<std::size_t>(number)]));
    if (order.signals(layer)) TENON_RETURN_IF_ERROR(done_[layer]->record(own));
  }
  for (const std::size_t layer : order.joins()) TENON_RETURN_IF_ERROR(main.wait_for(*done_[layer]));
  return {};
}

}  // namespace tenon
