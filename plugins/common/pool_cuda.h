// An instance of kernels/cuda's pool, shared by max_pool and avg_pool.
#ifndef TENON_PLUGINS_COMMON_POOL_CUDA_H_
#define TENON_PLUGINS_COMMON_POOL_CUDA_H_

#include "kernels/cuda/pool.h"
#include "plugins/common/cuda.h"
#include "plugins/common/pool_geometry.h"

namespace tenon::plugins {

class PoolCuda final : public IPlugin {
 public:
  using KindOf = cuda::PoolKind (*)(const Attrs&);
  explicit PoolCuda(KindOf kind_of) : kind_of_(kind_of) {}

  static void tactics(const Site& site, const Combo& combo, Tactics& tactics) {
    if (!cuda::pool_supports(pool_geometry(site.attrs(), site.max_dims(0)), to_cuda_layout(combo.input(0).format))) {
      throw Declined("the image is too large for it");
    }
    tactics.add("");
  }
  void configure(const Config& config) override {
    type_ = to_cuda_float(config.combo().input(0).dtype);
    geometry_ = pool_geometry(config.site().attrs(), config.site().max_dims(0));
    kind_ = kind_of_(config.site().attrs());
    layout_ = to_cuda_layout(config.combo().input(0).format);
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    cuda::PoolGeometry g = geometry_;
    g.n = inputs[0].dims.d[0], g.c = inputs[0].dims.d[1], g.h = inputs[0].dims.d[2], g.w = inputs[0].dims.d[3];
    g.oh = outputs[0].dims.d[2], g.ow = outputs[0].dims.d[3];
    check_cuda(cuda::pool(type_, kind_, g, layout_, inputs[0].data, outputs[0].data, cuda_stream(exec)));
  }

 private:
  KindOf kind_of_;
  cuda::ElementType type_ = cuda::ElementType::kF32;
  cuda::PoolGeometry geometry_;
  cuda::PoolKind kind_ = cuda::PoolKind::kMax;
  cuda::Layout layout_ = cuda::Layout::kNchw;
};

inline Definitions pool_cuda(const std::string& op, PoolCuda::KindOf kind_of) {
  return for_cuda_floats([&](int32_t dtype) {
    Kernel definition = cuda_kernel(op + "/1", cuda_name(op + ".window", dtype),
                                    [kind_of] { return std::make_unique<PoolCuda>(kind_of); });
    for (auto port : cuda_image_ports()) definition.combo({port(dtype)}, {port(dtype)});
    definition.more_combos(
        [dtype](const Site& site, Combos& combos) { add_cell_combos(site, combos, dtype, cuda_image_ports()); });
    return definition.tactics(PoolCuda::tactics);
  });
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_POOL_CUDA_H_
