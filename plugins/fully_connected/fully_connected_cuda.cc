// tenon.fully_connected/1 on kernels/cuda's gemm, in several tiles: sums in float32, never tf32.
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/cuda.h"
#include "plugins/common/gemm_tactics_cuda.h"
#include "plugins/fully_connected/fully_connected.h"

namespace tenon::plugins {
namespace {

cuda::GemmShape shape_of(const Dims& x, const Dims& weights, int64_t axis, cuda::ElementType type) {
  const FullyConnectedGeometry g = FullyConnectedGeometry::make(x, weights, nullptr, axis);
  return cuda::GemmShape::dense(g.n, g.outputs, g.features, false, true, 1, type);
}
cuda::GemmShape most(const Site& site) {
  return shape_of(site.max_dims(0), site.max_dims(1), site.attrs().i64("axis"), to_cuda_float(site.dtype(0)));
}

class FullyConnectedCuda final : public IPlugin {
 public:
  static void tactics(const Site& site, const Combo&, Tactics& tactics) {
    add_cuda_gemm_tactics(site, most(site), tactics);
  }

  void configure(const Config& config) override {
    const Site site = config.site();
    tactic_ = cuda_gemm_tactic_of(config.params());
    has_bias_ = site.has_input(2);
    epilogue_ = cuda_epilogue(site);
    num_inputs_ = site.num_inputs();
    const cuda::GemmShape shape = most(site);
    if (!cuda::gemm_supports(shape, tactic_)) throw Declined("this tile cannot compute this product");
    axis_ = site.attrs().i64("axis");
    type_ = shape.type;
    sizes_.workspace = cuda::gemm_workspace_bytes(shape, tactic_);
  }
  Sizes sizes() const override { return sizes_; }
  void initialize(const Init&) override { require_cuda_cluster(tactic_); }

  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    cuda::GemmOutput output;
    output.c = outputs[0].data;
    output.epilogue = epilogue_.activation;
    if (has_bias_) {
      output.bias = inputs[2].data;
      output.bias_axis = cuda::BiasAxis::kPerColumn;
    }
    if (epilogue_.residual >= 0) output.residual = inputs[num_inputs_ + epilogue_.residual].data;
    check_cuda(cuda::gemm(shape_of(inputs[0].dims, inputs[1].dims, axis_, type_), inputs[0].data, inputs[1].data,
                          output, tactic_, exec.workspace<void>(), cuda_stream(exec)));
  }

 private:
  cuda::GemmTactic tactic_;
  cuda::ElementType type_ = cuda::ElementType::kF32;
  int64_t axis_ = 1;
  bool has_bias_ = false;
  int num_inputs_ = 0;
  CudaEpilogue epilogue_;
  Sizes sizes_;
};

Kernel fully_connected_cuda(int32_t dtype) {
  return cuda_kernel<FullyConnectedCuda>("tenon.fully_connected/1", cuda_name("tenon.fully_connected.tiled", dtype))
      .combo({row(dtype), row(dtype), row(dtype)}, {row(dtype)})
      .tactics(FullyConnectedCuda::tactics)
      .epilogue([](const Site& site) { cuda_epilogue(site); });
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.fully_connected.cuda", "1", "Apache-2.0",
             tenon::plugins::for_cuda_floats(tenon::plugins::fully_connected_cuda))
