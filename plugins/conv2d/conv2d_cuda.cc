// tenon.conv2d/1 on kernels/cuda. One kernel for each algorithm:
//   tenon.conv2d.implicit.f32.cuda   a product whose patches are gathered as they are read; any geometry; .f16 too
//   tenon.conv2d.gemm1x1.f32.cuda    1x1 convolutions as one product
//   tenon.conv2d.depthwise.f32.cuda  one filter a channel
#include <memory>
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/conv2d.h"
#include "plugins/common/cuda.h"
#include "plugins/common/gemm_tactics_cuda.h"
#include "plugins/common/pack_key.h"
#include "plugins/conv2d/conv2d.h"

namespace tenon::plugins {
namespace {

using cuda::Conv2dAlgorithm;

struct Method {
  Conv2dAlgorithm algorithm;
  const char* name;
};
constexpr Method kMethods[] = {{Conv2dAlgorithm::kImplicitGemm, "tenon.conv2d.implicit"},
                               {Conv2dAlgorithm::kGemm1x1, "tenon.conv2d.gemm1x1"},
                               {Conv2dAlgorithm::kDepthwise, "tenon.conv2d.depthwise"}};

cuda::Conv2dConfig config_of(const Method& method, const TnPort& input) {
  return {method.algorithm, to_cuda_layout(input.format), {}, to_cuda_float(input.dtype)};
}

class Conv2dCuda final : public IPlugin {
 public:
  explicit Conv2dCuda(const Method& method) : method_(method) {}

  static void tactics(const Method& method, const Site& site, const Combo& combo, Tactics& tactics) {
    const cuda::Conv2dGeometry g = conv2d_geometry(site);
    cuda::Conv2dConfig config = config_of(method, combo.input(kConvX));
    if (method.algorithm == Conv2dAlgorithm::kDepthwise) {
      if (cuda::conv2d_supports(g, config)) tactics.add("");
      return;
    }
    for_each_cuda_gemm_tactic(site, [&](const cuda::GemmTactic& tactic) {
      config.tactic = tactic;
      if (!cuda::conv2d_supports(g, config)) return;
      tactics.add(cuda_gemm_params(tactic), cuda::conv2d_workspace_bytes(g, config));
    });
  }

  void configure(const Config& config) override {
    const Site site = config.site();
    geometry_ = conv2d_geometry(site);
    config_ = config_of(method_, config.combo().input(kConvX));
    if (method_.algorithm != Conv2dAlgorithm::kDepthwise) config_.tactic = cuda_gemm_tactic_of(config.params());
    if (!cuda::conv2d_supports(geometry_, config_)) throw Declined("this algorithm cannot compute this convolution");
    epilogue_ = cuda_epilogue(site);
    num_inputs_ = site.num_inputs();
    has_bias_ = site.has_input(kConvBias);
    sizes_.workspace = cuda::conv2d_workspace_bytes(geometry_, config_);
    sizes_.persistent = cuda::conv2d_packed_bytes(geometry_, config_);
    if (sizes_.persistent != 0) {
      PackKey()
          .add(text(method_.name, static_cast<int>(config_.layout), ";", cuda_tile_name(config_.tactic.tile), ";",
                    geometry_.groups))
          .add(site.constant(kConvWeights))
          .store(&sizes_);
    }
  }
  Sizes sizes() const override { return sizes_; }

  void initialize(const Init& init) override {
    require_cuda_cluster(config_.tactic);
    packed_ = init.persistent<void>();
    bias_ = has_bias_ ? init.device_constant<void>(kConvBias) : nullptr;
    if (init.filled()) return;
    check_cuda(cuda::conv2d_pack_weights(geometry_, config_, init.device_constant<void>(kConvWeights), packed_,
                                         static_cast<cudaStream_t>(init.raw().exec->stream)));
  }

  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    cuda::Conv2dBuffers buffers;
    buffers.input = inputs[kConvX].data;
    buffers.packed_weights = packed_;
    buffers.bias = bias_;
    buffers.output = outputs[0].data;
    buffers.workspace = exec.workspace<void>();
    if (epilogue_.residual >= 0) buffers.residual = inputs[num_inputs_ + epilogue_.residual].data;
    check_cuda(cuda::conv2d(geometry_, config_, buffers, epilogue_.activation, cuda_stream(exec)));
  }

 private:
  const Method& method_;
  cuda::Conv2dGeometry geometry_;
  cuda::Conv2dConfig config_;
  CudaEpilogue epilogue_;
  int num_inputs_ = 0;
  bool has_bias_ = false;
  Sizes sizes_;
  void* packed_ = nullptr;
  const void* bias_ = nullptr;
};

Kernel conv2d_cuda(const Method* method, int32_t dtype) {
  Kernel definition = cuda_kernel("tenon.conv2d/1", cuda_name(method->name, dtype),
                                  [method] { return std::make_unique<Conv2dCuda>(*method); });
  for (const auto make : cuda_image_ports()) definition.combo({make(dtype), row(dtype), row(dtype)}, {make(dtype)});
  return definition.relocatable()
      .supports([](const Site& site) { require_static_constant(site); })
      .tactics([method](const Site& site, const Combo& combo, Tactics& tactics) {
        Conv2dCuda::tactics(*method, site, combo, tactics);
      })
      .epilogue([](const Site& site) { cuda_epilogue(site); });
}

Definitions conv2d_cuda() {
  Definitions all = conv2d_cuda(&kMethods[0], TN_F16);  // any geometry
  for (const Method& method : kMethods) all.add(conv2d_cuda(&method, TN_F32));
  return all;
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.conv2d.cuda", "1", "Apache-2.0", tenon::plugins::conv2d_cuda())
