// tenon.matmul/1 on kernels/cuda's gemm, in several tiles: sums in float32, never tf32.
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/cuda.h"
#include "plugins/common/gemm_tactics_cuda.h"
#include "plugins/matmul/matmul_cuda.h"

namespace tenon::plugins {
namespace {

cuda::GemmShape most(const Site& site) {
  return matmul_cuda_shape(site.max_dims(0), site.max_dims(1), site.attrs().flag("transpose_a"),
                           site.attrs().flag("transpose_b"), to_cuda_float(site.dtype(0)));
}

class MatmulCuda final : public IPlugin {
 public:
  static void tactics(const Site& site, const Combo&, Tactics& tactics) {
    add_cuda_gemm_tactics(site, most(site), tactics);
  }

  void configure(const Config& config) override {
    const Site site = config.site();
    tactic_ = cuda_gemm_tactic_of(config.params());
    transpose_a_ = site.attrs().flag("transpose_a");
    transpose_b_ = site.attrs().flag("transpose_b");
    epilogue_ = cuda_epilogue(site);
    const cuda::GemmShape shape = most(site);
    if (!cuda::gemm_supports(shape, tactic_)) throw Declined("this tile cannot compute this product");
    type_ = shape.type;
    sizes_.workspace = cuda::gemm_workspace_bytes(shape, tactic_);
  }
  Sizes sizes() const override { return sizes_; }
  void initialize(const Init&) override { require_cuda_cluster(tactic_); }

  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const cuda::GemmShape shape = matmul_cuda_shape(inputs[0].dims, inputs[1].dims, transpose_a_, transpose_b_, type_);
    cuda::GemmOutput output;
    output.c = outputs[0].data;
    output.epilogue = epilogue_.activation;
    if (epilogue_.residual >= 0) output.residual = inputs[2 + epilogue_.residual].data;
    check_cuda(
        cuda::gemm(shape, inputs[0].data, inputs[1].data, output, tactic_, exec.workspace<void>(), cuda_stream(exec)));
  }

 private:
  cuda::GemmTactic tactic_;
  cuda::ElementType type_ = cuda::ElementType::kF32;
  bool transpose_a_ = false, transpose_b_ = false;
  CudaEpilogue epilogue_;
  Sizes sizes_;
};

Kernel matmul_cuda(int32_t dtype) {
  return cuda_kernel<MatmulCuda>("tenon.matmul/1", cuda_name("tenon.matmul.tiled", dtype))
      .combo({row(dtype), row(dtype)}, {row(dtype)})
      .tactics(MatmulCuda::tactics)
      .epilogue([](const Site& site) { cuda_epilogue(site); });
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.matmul.cuda", "1", "Apache-2.0", tenon::plugins::for_cuda_floats(tenon::plugins::matmul_cuda))
