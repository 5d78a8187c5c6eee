// tenon.channel_shuffle/1 and Tenon's kernel for it.
#include "plugins/channel_shuffle/channel_shuffle.h"

#include <tenon/sdk/plugin.hpp>

#include "kernels/cpu/channel_shuffle.h"
#include "kernels/cpu/transpose.h"
#include "plugins/common/move.h"

namespace tenon::plugins {
namespace {

void channel_shuffle_infer(const Infer& question) {
  const Tensor x = question.input(0);
  const int64_t groups = question.attrs().i64("groups");
  if (x.rank() < 2) throw Invalid(text("input x: expected rank of at least 2 [N,C,...], found ", to_text(x.dims())));
  if (groups < 1 || x.dim(1) % groups != 0) {
    throw Invalid(text("attribute 'groups': expected a divisor of ", x.dim(1), ", the channels of ", to_text(x.dims()),
                       ", found ", groups));
  }
  question.output(0, x.dtype(), x.dims());
}

void channel_shuffle_reference(const Reference& call) {
  const Dims dims = call.input(0).dims();
  const int64_t inner = dims.product(2, dims.rank);
  const int64_t groups = call.attrs().i64("groups");
  copy_reference(call, 0, [&](const int64_t* index, int64_t linear) {
    return linear + (shuffled_from(index[1], dims[1], groups) - index[1]) * inner;
  });
}

class ChannelShuffleKernel final : public IPlugin {
 public:
  void configure(const Config& config) override {
    groups_ = config.site().attrs().i64("groups");
    format_ = config.combo().output(0).format;
    bytes_ = move_bytes(config.site().dtype(0));
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims x = inputs[0].dims;
    const int64_t inner = x.product(2, x.rank);
    if (is_row(format_)) {
      const int64_t dims[] = {x[0], groups_, x[1] / groups_, inner};
      const int perm[] = {0, 2, 1, 3};
      return cpu::transpose(4, dims, perm, bytes_, inputs[0].data, outputs[0].data, to_parallel(exec));
    }
    const int64_t block = is_nhwc(format_) ? x[1] : channel_block(format_);
    cpu::channel_shuffle({x[0], x[1], groups_, inner, block}, static_cast<const float*>(inputs[0].data),
                         static_cast<float*>(outputs[0].data), to_parallel(exec), cpu::detect_isa());
  }

 private:
  int64_t groups_ = 1;
  TnFormat format_{};
  int bytes_ = 0;
};

void channel_shuffle_combos(const Site& site, Combos& combos) {
  move_bytes(site.dtype(0));
  for (const auto make : image_ports()) {
    const Port port = make(site.dtype(0));
    if (!is_row(port.format) && (site.dims(0).rank != 4 || site.dtype(0) != TN_F32)) continue;
    combos.add(ComboSpec({port}, {port}));
  }
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN(
    "tenon.channel_shuffle", "1", "Apache-2.0",
    tenon::op("tenon.channel_shuffle/1")
        .doc("Channels of all groups in turns (ShuffleNet: Zhang, Zhou, Lin, Sun 2017). Channel j * groups + g "
             "of y is channel g * (C / groups) + j of x")
        .attr_i64("groups", "a divisor of C")
        .required()
        .range("[1,)")
        .input("x", "[N,C,...], any dtype of 1, 2, 4 or 8 bytes")
        .output("y", "as x")
        .infer(tenon::plugins::channel_shuffle_infer)
        .reference(tenon::plugins::channel_shuffle_reference)
        .tolerance(0, 0),
    tenon::kernel<tenon::plugins::ChannelShuffleKernel>("tenon.channel_shuffle/1", "tenon.channel_shuffle.permute")
        .deterministic()
        .more_combos(tenon::plugins::channel_shuffle_combos),
    tenon::plugins::channel_shuffle_rules())
