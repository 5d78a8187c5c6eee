// tenon.matmul/1 on kernels/cuda's gemm: float32 throughout, in several tiles.
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/cuda.h"
#include "plugins/common/gemm_tactics_cuda.h"
#include "plugins/matmul/matmul_cuda.h"

namespace tenon::plugins {
namespace {

class MatmulCuda final : public IPlugin {
 public:
  static void tactics(const Site& site, const Combo&, Tactics& tactics) {
    const cuda::GemmShape most = matmul_cuda_shape(site, true);
    for (int i = 0; i < cuda::gemm_tactic_count(); ++i) {
      const cuda::GemmTactic tactic = cuda::gemm_tactic(i);
      if (!cuda::gemm_supports(most, tactic)) continue;
      tactics.add(cuda_gemm_params(tactic), cuda::gemm_workspace_bytes(most, tactic));
    }
  }

  void configure(const Config& config) override {
    const Site site = config.site();
    tactic_ = cuda_gemm_tactic_of(config.params());
    transpose_a_ = site.attrs().flag("transpose_a");
    transpose_b_ = site.attrs().flag("transpose_b");
    epilogue_ = cuda_epilogue(site);
    const cuda::GemmShape most = matmul_cuda_shape(site, true);
    if (!cuda::gemm_supports(most, tactic_)) throw Declined("this tile cannot compute this product");
    sizes_.workspace = cuda::gemm_workspace_bytes(most, tactic_);
  }
  Sizes sizes() const override { return sizes_; }

  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const cuda::GemmShape shape = matmul_cuda_shape(inputs[0].dims, inputs[1].dims, transpose_a_, transpose_b_);
    cuda::GemmOutput output;
    output.c = static_cast<float*>(outputs[0].data);
    output.epilogue = epilogue_.activation;
    if (epilogue_.residual >= 0) output.residual = static_cast<const float*>(inputs[2 + epilogue_.residual].data);
    check_cuda(cuda::gemm(shape, static_cast<const float*>(inputs[0].data), static_cast<const float*>(inputs[1].data),
                          output, tactic_, exec.workspace<void>(), cuda_stream(exec)));
  }

 private:
  cuda::GemmTactic tactic_;
  bool transpose_a_ = false, transpose_b_ = false;
  CudaEpilogue epilogue_;
  Sizes sizes_;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.matmul.cuda", "1", "Apache-2.0",
             tenon::plugins::cuda_kernel<tenon::plugins::MatmulCuda>("tenon.matmul/1", "tenon.matmul.tiled.f32.cuda")
                 .combo({tenon::f32_row(), tenon::f32_row()}, {tenon::f32_row()})
                 .tactics(tenon::plugins::MatmulCuda::tactics)
                 .epilogue([](const tenon::Site& site) { tenon::plugins::cuda_epilogue(site); }))
