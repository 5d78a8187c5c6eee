// tenon.channel_shuffle/1 on kernels/cuda: a transpose of groups and the channels of a group.
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/copy_strided.h"
#include "plugins/common/cuda.h"
#include "plugins/common/move.h"

namespace tenon::plugins {
namespace {

class ChannelShuffleCuda final : public IPlugin {
 public:
  void configure(const Config& config) override {
    groups_ = config.site().attrs().i64("groups");
    channels_last_ = is_nhwc(config.combo().output(0).format);
    bytes_ = move_bytes(config.site().dtype(0));
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims x = inputs[0].dims;
    const int64_t pixels = x.product(2, x.rank), of_group = x[1] / groups_;
    const int64_t row_dims[] = {x[0], groups_, of_group, pixels};
    const int64_t nhwc_dims[] = {x[0], pixels, groups_, of_group};
    const int row_perm[] = {0, 2, 1, 3}, nhwc_perm[] = {0, 1, 3, 2};
    check_cuda(cuda::transpose(4, channels_last_ ? nhwc_dims : row_dims, channels_last_ ? nhwc_perm : row_perm, bytes_,
                               inputs[0].data, outputs[0].data, cuda_stream(exec)));
  }

 private:
  int64_t groups_ = 1;
  bool channels_last_ = false;
  int bytes_ = 0;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.channel_shuffle.cuda", "1", "Apache-2.0",
             tenon::plugins::cuda_kernel<tenon::plugins::ChannelShuffleCuda>("tenon.channel_shuffle/1",
                                                                             "tenon.channel_shuffle.transpose.cuda")
                 .more_combos([](const tenon::Site& site, tenon::Combos& combos) {
                   tenon::plugins::move_bytes(site.dtype(0));
                   tenon::plugins::add_cuda_move_combos(site, combos, 1);
                 }))
