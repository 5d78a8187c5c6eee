// tenon.concat/1 on kernels/cuda: one strided copy an input.
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/copy_strided.h"
#include "plugins/common/cuda.h"
#include "plugins/common/move.h"

namespace tenon::plugins {
namespace {

class ConcatCuda final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Site site = config.site();
    format_ = config.combo().output(0).format;
    num_inputs_ = site.num_inputs();
    axis_ = physical_axis(format_, normalize_axis(site.attrs().i64("axis"), site.dims(0).rank));
    bytes_ = move_bytes(site.dtype(0));
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims to = physical_dims(format_, outputs[0].dims);
    const int64_t inner = to.product(axis_ + 1, to.rank);
    int64_t place = 0;
    for (int n = 0; n < num_inputs_; ++n) {
      const Dims from = physical_dims(format_, inputs[n].dims);
      const int64_t dims[] = {from.product(0, axis_), from[axis_] * inner};
      const int64_t input_strides[] = {from[axis_] * inner, 1};
      const int64_t output_strides[] = {to[axis_] * inner, 1};
      check_cuda(cuda::copy_strided(2, dims, input_strides, output_strides, bytes_, inputs[n].data,
                                    static_cast<char*>(outputs[0].data) + place * inner * bytes_, cuda_stream(exec)));
      place += from[axis_];
    }
  }

 private:
  TnFormat format_{};
  int num_inputs_ = 0, axis_ = 0, bytes_ = 0;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.concat.cuda", "1", "Apache-2.0",
             tenon::plugins::cuda_kernel<tenon::plugins::ConcatCuda>("tenon.concat/1", "tenon.concat.copy.cuda")
                 .more_combos([](const tenon::Site& site, tenon::Combos& combos) {
                   tenon::plugins::add_cuda_move_combos(site, combos, site.num_inputs());
                 }))
