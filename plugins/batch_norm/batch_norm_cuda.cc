// tenon.batch_norm/1 on kernels/cuda: one multiply-add a value, with factor and offset of each channel worked out once.
#include <cuda_fp16.h>

#include <tenon/sdk/plugin.hpp>
#include <vector>

#include "kernels/cuda/pointwise.h"
#include "plugins/batch_norm/batch_norm.h"
#include "plugins/common/cuda.h"
#include "plugins/common/pack_key.h"

namespace tenon::plugins {
namespace {

// Persistent memory: [2][channels] floats, factors then offsets.
class BatchNormCuda final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Site site = config.site();
    const NormForm form(site.attrs());
    type_ = to_cuda_float(config.combo().input(kNormX).dtype);
    layout_ = to_cuda_layout(config.combo().input(kNormX).format);
    activation_ = cuda_activation_epilogue(site);
    const auto at = [&](int n, int64_t c) {
      const void* values = site.constant(n).data();
      return static_cast<double>(type_ == cuda::ElementType::kF16 ? __half2float(static_cast<const __half*>(values)[c])
                                                                  : static_cast<const float*>(values)[c]);
    };
    const int64_t channels = site.dims(kNormX)[1];
    affine_.resize(static_cast<size_t>(2 * channels));
    for (int64_t c = 0; c < channels; ++c) {
      const Affine affine = form.affine(at(kNormScale, c), at(kNormBias, c), at(kNormMean, c), at(kNormVariance, c));
      affine_[static_cast<size_t>(c)] = static_cast<float>(affine.factor);
      affine_[static_cast<size_t>(channels + c)] = static_cast<float>(affine.offset);
    }
    sizes_.persistent = affine_.size() * sizeof(float);
    PackKey().add("tenon.batch_norm.affine.cuda").add(affine_.data(), sizes_.persistent).store(&sizes_);
  }
  Sizes sizes() const override { return sizes_; }

  void initialize(const Init& init) override {
    factors_ = init.persistent<float>();
    if (init.filled()) return;
    check_cuda(cudaMemcpyAsync(init.persistent<float>(), affine_.data(), sizes_.persistent, cudaMemcpyHostToDevice,
                               static_cast<cudaStream_t>(init.raw().exec->stream)));
  }

  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims dims = inputs[kNormX].dims;
    check_cuda(cuda::channel_affine(type_, layout_, dims[0], dims[1], dims.product(2, dims.rank), inputs[kNormX].data,
                                    factors_, factors_ + dims[1], activation_, outputs[0].data, cuda_stream(exec)));
  }

 private:
  cuda::ElementType type_ = cuda::ElementType::kF32;
  cuda::Layout layout_ = cuda::Layout::kNchw;
  cuda::Epilogue activation_;
  std::vector<float> affine_;
  Sizes sizes_;
  const float* factors_ = nullptr;
};

Kernel batch_norm_cuda(int32_t dtype) {
  Kernel definition = cuda_kernel<BatchNormCuda>("tenon.batch_norm/1", cuda_name("tenon.batch_norm.affine", dtype));
  const Port channels = row(dtype);
  for (const auto make : cuda_image_ports()) {
    definition.combo({make(dtype), channels, channels, channels, channels}, {make(dtype)}).may_alias(0, 0);
  }
  return definition.relocatable().supports(batch_norm_supports).epilogue([](const Site& site) {
    cuda_activation_epilogue(site);
  });
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.batch_norm.cuda", "1", "Apache-2.0",
             tenon::plugins::for_cuda_floats(tenon::plugins::batch_norm_cuda))
