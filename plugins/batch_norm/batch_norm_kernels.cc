// tenon.batch_norm/1 as one multiply-add a value, with factor and offset of each channel worked out once.
#include <optional>

#include <tenon/sdk/kernel.hpp>

#include "plugins/batch_norm/batch_norm.h"
#include "plugins/common/bf16.h"
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
    bf16_ = config.combo().input(kNormX).dtype == TN_BF16;
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
    if (bf16_) {
      run<uint16_t>(exec, inputs[kNormX], outputs[0]);
    } else {
      run<float>(exec, inputs[kNormX], outputs[0]);
    }
  }

 private:
  template <class T>
  void run(const Exec& exec, const TnTensor& input, const TnTensor& output) const {
    const Dims dims = input.dims;
    const T* x = static_cast<const T*>(input.data);
    T* y = static_cast<T*>(output.data);
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
        for (int64_t p = i * pixels; p < (i + 1) * pixels; ++p) store_float(load_float(x[p]) * factor + offset, &y[p]);
      });
    }
  }

  template <class T>
  void apply(const T* x, T* y, int64_t at, int64_t count, int64_t channel) const {
    const float* factors = factors_ + channel;
    const float* offsets = factors + padded_;
    for (int64_t c = 0; c < count; ++c) {
      store_float(load_float(x[at + c]) * factors[c] + offsets[c], &y[at + c]);
    }
  }

  std::optional<NormForm> form_;
  TnFormat format_{};
  bool bf16_ = false;
  int64_t channels_ = 0, padded_ = 0;
  Sizes sizes_;
  const float* factors_ = nullptr;
};

}  // namespace

Definitions batch_norm_kernels() {
  Definitions all;
  for (const int32_t dtype : {TN_F32, TN_BF16}) {
    Kernel definition =
        kernel<BatchNormKernel>("tenon.batch_norm/1", std::string("tenon.batch_norm.affine.") + dtype_name(dtype));
    for (const auto make : image_ports(dtype)) {
      definition.combo({make(dtype), f32_row(), f32_row(), f32_row(), f32_row()}, {make(dtype)}).may_alias(0, 0);
    }
    all.add(definition.deterministic().relocatable().supports([dtype](const Site& site) {
      batch_norm_supports(site);
      if (dtype == TN_BF16) bf16_supports(site);
    }));
  }
  return all;
}

}  // namespace tenon::plugins
