// tenon.fully_connected/1 on kernels/cuda's gemm: float32 throughout, in several tiles.
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/cuda.h"
#include "plugins/common/gemm_tactics_cuda.h"
#include "plugins/fully_connected/fully_connected.h"

namespace tenon::plugins {
namespace {

cuda::GemmShape shape_of(const Dims& x, const Dims& weights) {
  const FullyConnectedGeometry g = FullyConnectedGeometry::make(x, weights, nullptr);
  return cuda::GemmShape::dense(g.n, g.outputs, g.features, false, true);
}

class FullyConnectedCuda final : public IPlugin {
 public:
  static void tactics(const Site& site, const Combo&, Tactics& tactics) {
    const cuda::GemmShape most = shape_of(site.max_dims(0), site.max_dims(1));
    for (int i = 0; i < cuda::gemm_tactic_count(); ++i) {
      const cuda::GemmTactic tactic = cuda::gemm_tactic(i);
      if (!cuda::gemm_supports(most, tactic)) continue;
      tactics.add(cuda_gemm_params(tactic), cuda::gemm_workspace_bytes(most, tactic));
    }
  }

  void configure(const Config& config) override {
    const Site site = config.site();
    tactic_ = cuda_gemm_tactic_of(config.params());
    has_bias_ = site.has_input(2);
    epilogue_ = cuda_epilogue(site);
    num_inputs_ = site.num_inputs();
    const cuda::GemmShape most = shape_of(site.max_dims(0), site.max_dims(1));
    if (!cuda::gemm_supports(most, tactic_)) throw Declined("this tile cannot compute this product");
    sizes_.workspace = cuda::gemm_workspace_bytes(most, tactic_);
  }
  Sizes sizes() const override { return sizes_; }

  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    cuda::GemmOutput output;
    output.c = static_cast<float*>(outputs[0].data);
    output.epilogue = epilogue_.activation;
    if (has_bias_) {
      output.bias = static_cast<const float*>(inputs[2].data);
      output.bias_axis = cuda::BiasAxis::kPerColumn;
    }
    if (epilogue_.residual >= 0) {
      output.residual = static_cast<const float*>(inputs[num_inputs_ + epilogue_.residual].data);
    }
    check_cuda(cuda::gemm(shape_of(inputs[0].dims, inputs[1].dims), static_cast<const float*>(inputs[0].data),
                          static_cast<const float*>(inputs[1].data), output, tactic_, exec.workspace<void>(),
                          cuda_stream(exec)));
  }

 private:
  cuda::GemmTactic tactic_;
  bool has_bias_ = false;
  int num_inputs_ = 0;
  CudaEpilogue epilogue_;
  Sizes sizes_;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.fully_connected.cuda", "1", "Apache-2.0",
             tenon::plugins::cuda_kernel<tenon::plugins::FullyConnectedCuda>("tenon.fully_connected/1",
                                                                             "tenon.fully_connected.tiled.f32.cuda")
                 .combo({tenon::f32_row(), tenon::f32_row(), tenon::f32_row()}, {tenon::f32_row()})
                 .tactics(tenon::plugins::FullyConnectedCuda::tactics)
                 .epilogue([](const tenon::Site& site) { tenon::plugins::cuda_epilogue(site); }))
