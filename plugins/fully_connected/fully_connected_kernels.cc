// tenon.fully_connected/1 on Tenon's gemm, weights packed once:
//   tenon.fully_connected.gemm.f32    in the gemm's tiles; several blockings
//   tenon.fully_connected.direct.f32  transposed only, read in place; for few rows
#include <memory>
#include <tenon/sdk/kernel.hpp>

#include "kernels/cpu/gemm.h"
#include "plugins/common/epilogue.h"
#include "plugins/common/gemm_tactics.h"
#include "plugins/common/pack_key.h"
#include "plugins/common/parallel.h"
#include "plugins/fully_connected/fully_connected.h"

namespace tenon::plugins {
namespace {

cpu::GemmShape fully_connected_shape(const Site& site, const Dims& x, const Dims& weights) {
  const FullyConnectedGeometry g = FullyConnectedGeometry::make(x, weights, nullptr, site.attrs().i64("axis"));
  return cpu::GemmShape::dense(g.n, g.outputs, g.features, false, true);
}

void fully_connected_supports(const Site& site) {
  if (!site.is_constant(1)) throw Declined("the weights are not constant");
  if (site.has_input(2) && !site.is_constant(2)) throw Declined("the bias is not constant");
  if (site.dtype(1) != TN_F32) throw Declined(text("the weights are ", dtype_name(site.dtype(1)), ", expected f32"));
}

class FullyConnectedKernel final : public IPlugin {
 public:
  explicit FullyConnectedKernel(bool direct) : direct_(direct) {}

  static void tactics(bool direct, const Site& site, Tactics& tactics) {
    if (direct) {
      for (cpu::Isa isa : gemm_isas()) tactics.add(text("isa=", cpu::isa_name(isa)));
      return;
    }
    const cpu::GemmShape shape = fully_connected_shape(site, site.dims(0), site.dims(1));
    const cpu::GemmShape most = fully_connected_shape(site, site.max_dims(0), site.max_dims(1));
    for_each_gemm_tactic(shape.m, shape.n, shape.k, [&](cpu::Isa isa, const cpu::GemmTactic& blocks) {
      tactics.add(gemm_params(isa, blocks), cpu::gemm_prepacked_b_workspace_bytes(most, blocks, site.threads(), isa));
    });
  }

  void configure(const Config& config) override {
    const Site site = config.site();
    fully_connected_supports(site);
    isa_ = isa_of(config.params());
    epilogue_ = cpu_epilogue(site);
    has_bias_ = site.has_input(2);
    num_inputs_ = site.num_inputs();
    axis_ = FullyConnectedGeometry::make(site.dims(0), site.dims(1), nullptr, site.attrs().i64("axis")).result.rank - 1;
    shape_ = fully_connected_shape(site, site.max_dims(0), site.max_dims(1));
    const uint64_t weights = static_cast<uint64_t>(shape_.n * shape_.k) * sizeof(float);
    if (!direct_) {
      blocks_ = gemm_blocks_of(config.params());
      sizes_.workspace = cpu::gemm_prepacked_b_workspace_bytes(shape_, blocks_, site.threads(), isa_);
    }
    weights_bytes_ = (direct_ ? weights : cpu::gemm_packed_b_bytes(shape_.k, shape_.n, isa_)) + 63;
    weights_bytes_ -= weights_bytes_ % 64;
    sizes_.persistent = weights_bytes_ + (has_bias_ ? static_cast<uint64_t>(shape_.n) * sizeof(float) : 0);
    PackKey key;
    key.add(text("tenon.fully_connected ", direct_, cpu::isa_name(isa_))).add(site.constant(1));
    if (has_bias_) key.add(site.constant(2));
    key.store(&sizes_);
  }

  Sizes sizes() const override { return sizes_; }

  // Persistent memory: weights, then the bias.
  void initialize(const Init& init) override {
    char* memory = init.persistent<char>();
    weights_ = reinterpret_cast<float*>(memory);
    bias_ = has_bias_ ? reinterpret_cast<float*>(memory + weights_bytes_) : nullptr;
    if (init.filled()) return;
    const float* weights = init.constant(1).data<float>();
    if (direct_) {
      for (int64_t k = 0; k < shape_.k; ++k) {
        for (int64_t n = 0; n < shape_.n; ++n) weights_[k * shape_.n + n] = weights[n * shape_.k + k];
      }
    } else {
      cpu::gemm_pack_b(shape_, weights, weights_, cpu::Parallel(), isa_);
    }
    if (has_bias_) std::copy_n(init.constant(2).data<float>(), shape_.n, bias_);
  }

  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const int64_t rows = Dims(inputs[0].dims).product(0, axis_);
    const float* x = static_cast<const float*>(inputs[0].data);
    cpu::GemmOutput output;
    output.c = static_cast<float*>(outputs[0].data);
    output.bias = bias_;
    output.bias_axis = bias_ ? cpu::BiasAxis::kPerColumn : cpu::BiasAxis::kNone;
    output.epilogue = epilogue_.activation;
    if (epilogue_.residual >= 0) {
      output.residual = static_cast<const float*>(inputs[num_inputs_ + epilogue_.residual].data);
    }
    const cpu::GemmShape shape = cpu::GemmShape::dense(rows, shape_.n, shape_.k, false, !direct_);
    if (direct_) return cpu::gemm_direct(shape, x, weights_, output, to_parallel(exec), isa_);
    cpu::gemm_prepacked_b(shape, x, weights_, output, blocks_, exec.workspace<void>(), to_parallel(exec), isa_);
  }

 private:
  bool direct_;
  bool has_bias_ = false;
  int num_inputs_ = 0;
  int axis_ = 1;
  cpu::Isa isa_ = cpu::Isa::kBaseline;
  cpu::GemmTactic blocks_;
  cpu::GemmShape shape_;
  CpuEpilogue epilogue_;
  Sizes sizes_;
  uint64_t weights_bytes_ = 0;
  float* weights_ = nullptr;
  float* bias_ = nullptr;
};

}  // namespace

Definitions fully_connected_kernels() {
  Definitions all;
  for (const bool direct : {false, true}) {
    Kernel definition("tenon.fully_connected/1",
                      direct ? "tenon.fully_connected.direct.f32" : "tenon.fully_connected.gemm.f32",
                      [direct] { return std::make_unique<FullyConnectedKernel>(direct); });
    definition.combo({f32_row(), any_constant(), any_constant()}, {f32_row()})
        .deterministic()
        .relocatable()
        .supports(fully_connected_supports)
        .tactics([direct](const Site& site, const Combo&, Tactics& tactics) {
          FullyConnectedKernel::tactics(direct, site, tactics);
        })
        .epilogue([](const Site& site) { cpu_epilogue(site); });
    all.add(definition);
  }
  return all;
}

}  // namespace tenon::plugins
