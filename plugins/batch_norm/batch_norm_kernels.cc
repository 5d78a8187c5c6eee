// tenon.batch_norm/1 as one multiply-add a value, with factor and offset of each channel worked out once.
#include <optional>

#include <tenon/sdk/kernel.hpp>

#include "plugins/batch_norm/batch_norm.h"
#include "plugins/common/layout.h"
#include "plugins/common/pack_key.h"
#include "plugins/common/parallel.h"

namespace tenon::plugins {
namespace {

// Persistent memory: [2][padded channels] floats, factors then offsets. Filling channels have 0 and 0.
class BatchNormKernel final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Site site = config.site();
    form_ = NormForm(site.attrs());
    format_ = config.combo().input(kNormX).format;
    const int block = channel_block(format_);
    channels_ = site.dims(kNormX)[1];
    padded_ = block == 0 ? channels_ : (channels_ + block - 1) / block * block;
    sizes_.persistent = static_cast<uint64_t>(2 * padded_) * sizeof(float);
    PackKey key;
    key.add(text("tenon.batch_norm.affine ", padded_, form_->outside)).add(&form_->epsilon, sizeof(double));
    for (int n = kNormScale; n <= kNormVariance; ++n) key.add(site.constant(n));
    key.store(&sizes_);
  }
  Sizes sizes() const override { return sizes_; }

  void initialize(const Init& init) override {
    float* factors = init.persistent<float>();
    factors_ = factors;
    if (init.filled()) return;
    const auto at = [&](int n, int64_t c) { return static_cast<double>(init.constant(n).data<float>()[c]); };
    for (int64_t c = 0; c < padded_; ++c) {
      Affine affine{0, 0};
      if (c < channels_) {
        affine = form_->affine(at(kNormScale, c), at(kNormBias, c), at(kNormMean, c), at(kNormVariance, c));
      }
      factors[c] = static_cast<float>(affine.factor);
      factors[padded_ + c] = static_cast<float>(affine.offset);
    }
  }

  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims dims = inputs[kNormX].dims;
    const float* x = static_cast<const float*>(inputs[kNormX].data);
    float* y = static_cast<float*>(outputs[0].data);
    const int64_t pixels = dims.product(2, dims.rank);
    if (is_nhwc(format_)) {
      cpu::parallel_for(to_parallel(exec), dims[0] * pixels,
                        [&](int64_t row) { apply(x, y, row * channels_, channels_, 0); });
    } else if (const int block = channel_block(format_)) {
      const int64_t blocks = padded_ / block;
      cpu::parallel_for(to_parallel(exec), dims[0] * blocks, [&](int64_t i) {
        for (int64_t p = 0; p < pixels; ++p) apply(x, y, (i * pixels + p) * block, block, i % blocks * block);
      });
    } else {
      cpu::parallel_for(to_parallel(exec), dims[0] * channels_, [&](int64_t i) {
        const float factor = factors_[i % channels_], offset = factors_[padded_ + i % channels_];
        for (int64_t p = i * pixels; p < (i + 1) * pixels; ++p) y[p] = x[p] * factor + offset;
      });
    }
  }

 private:
  void apply(const float* x, float* y, int64_t at, int64_t count, int64_t channel) const {
    const float* factors = factors_ + channel;
    const float* offsets = factors + padded_;
    for (int64_t c = 0; c < count; ++c) y[at + c] = x[at + c] * factors[c] + offsets[c];
  }

  std::optional<NormForm> form_;
  TnFormat format_{};
  int64_t channels_ = 0, padded_ = 0;
  Sizes sizes_;
  const float* factors_ = nullptr;
};

}  // namespace

Definitions batch_norm_kernels() {
  Definitions all;
  Kernel definition = kernel<BatchNormKernel>("tenon.batch_norm/1", "tenon.batch_norm.affine.f32");
  for (const auto make : image_ports()) {
    definition.combo({make(TN_F32), f32_row(), f32_row(), f32_row(), f32_row()}, {make(TN_F32)}).may_alias(0, 0);
  }
  all.add(definition.deterministic().relocatable().supports(batch_norm_supports));
  return all;
}

}  // namespace tenon::plugins
