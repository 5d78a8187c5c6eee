// tenon.matmul/1 on Tenon's gemm, in three ways:
//   tenon.matmul.tiled.f32      packs both operands at each call; the general one
//   tenon.matmul.direct.f32     packs nothing; for small matrices
//   tenon.matmul.prepacked.f32  B is constant and packed once
// Each in several blockings, for each instruction set worth timing.
#include <memory>
#include <tenon/sdk/kernel.hpp>

#include "kernels/cpu/gemm.h"
#include "plugins/common/epilogue.h"
#include "plugins/common/gemm_tactics.h"
#include "plugins/common/pack_key.h"
#include "plugins/common/parallel.h"
#include "plugins/matmul/matmul.h"

namespace tenon::plugins {
namespace {

enum class Method { kTiled, kDirect, kPrepacked };

MatmulGeometry site_geometry(const Site& site, const Dims& a, const Dims& b) {
  MatmulGeometry g = MatmulGeometry::make(a, b, site.attrs().flag("transpose_a"), site.attrs().flag("transpose_b"));
  g.fold_batches();
  return g;
}

cpu::GemmShape shape_of(const MatmulGeometry& g) {
  return cpu::GemmShape::dense(g.m, g.n, g.k, g.transpose_a, g.transpose_b);
}

uint64_t workspace_of(Method method, const MatmulGeometry& g, const cpu::GemmTactic& blocks, int threads,
                      cpu::Isa isa) {
  switch (method) {
    case Method::kTiled:
      return cpu::gemm_workspace_bytes(shape_of(g), blocks, threads, isa);
    case Method::kPrepacked:
      return cpu::gemm_prepacked_b_workspace_bytes(shape_of(g), blocks, threads, isa);
    case Method::kDirect:
      return 0;
  }
  return 0;
}

void matmul_supports(Method method, const Site& site) {
  const MatmulGeometry g = site_geometry(site, site.max_dims(0), site.max_dims(1));
  if (method == Method::kDirect && g.transpose_b) throw Declined("it reads B in place, and B is transposed");
  if (method == Method::kPrepacked) {
    if (!site.is_constant(1)) throw Declined("B is not constant");
    if (!g.single_b()) throw Declined("B is more than one matrix");
  }
}

void matmul_tactics(Method method, const Site& site, Tactics& tactics) {
  const MatmulGeometry g = site_geometry(site, site.dims(0), site.dims(1));
  if (method == Method::kDirect) {
    for (cpu::Isa isa : gemm_isas()) tactics.add(text("isa=", cpu::isa_name(isa)));
    return;
  }
  const MatmulGeometry most = site_geometry(site, site.max_dims(0), site.max_dims(1));
  for_each_gemm_tactic(g.m, g.n, g.k, [&](cpu::Isa isa, const cpu::GemmTactic& blocks) {
    tactics.add(gemm_params(isa, blocks), workspace_of(method, most, blocks, site.threads(), isa));
  });
}

class MatmulKernel final : public IPlugin {
 public:
  explicit MatmulKernel(Method method) : method_(method) {}

  void configure(const Config& config) override {
    const Site site = config.site();
    matmul_supports(method_, site);
    isa_ = isa_of(config.params());
    if (method_ != Method::kDirect) blocks_ = gemm_blocks_of(config.params());
    transpose_a_ = site.attrs().flag("transpose_a");
    transpose_b_ = site.attrs().flag("transpose_b");
    epilogue_ = cpu_epilogue(site);
    const MatmulGeometry most = site_geometry(site, site.max_dims(0), site.max_dims(1));
    sizes_.workspace = workspace_of(method_, most, blocks_, site.threads(), isa_);
    if (method_ == Method::kPrepacked) {
      shape_ = shape_of(most);
      sizes_.persistent = cpu::gemm_packed_b_bytes(most.k, most.n, isa_);
      PackKey()
          .add(text("tenon.matmul.prepacked ", cpu::isa_name(isa_), transpose_b_))
          .add(site.constant(1))
          .store(&sizes_);
    }
  }

  Sizes sizes() const override { return sizes_; }

  void initialize(const Init& init) override {
    packed_ = init.persistent<void>();
    if (method_ == Method::kPrepacked && !init.filled()) {
      cpu::gemm_pack_b(shape_, init.constant(1).data<float>(), packed_, cpu::Parallel(), isa_);
    }
  }

  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    MatmulGeometry g = MatmulGeometry::make(inputs[0].dims, inputs[1].dims, transpose_a_, transpose_b_);
    g.fold_batches();
    int64_t a_strides[TN_MAX_RANK] = {};
    int64_t b_strides[TN_MAX_RANK] = {};
    broadcast_strides(g.batch_a, g.batch, a_strides);
    broadcast_strides(g.batch_b, g.batch, b_strides);
    const float* a = static_cast<const float*>(inputs[0].data);
    const float* b = static_cast<const float*>(inputs[1].data);
    const float* residual =
        epilogue_.residual < 0 ? nullptr : static_cast<const float*>(inputs[2 + epilogue_.residual].data);
    float* y = static_cast<float*>(outputs[0].data);
    const cpu::GemmShape shape = shape_of(g);
    const cpu::Parallel parallel = to_parallel(exec);
    TnBox batches{};
    for (int axis = 0; axis < g.batch.rank; ++axis) batches.size[axis] = g.batch[axis];
    for_each_in_box(g.batch, batches, [&](const int64_t* index, int64_t matrix, int64_t) {
      cpu::GemmOutput output;
      output.c = y + matrix * g.m * g.n;
      output.residual = residual ? residual + matrix * g.m * g.n : nullptr;
      output.epilogue = epilogue_.activation;
      const float* x = a + offset_of(index, a_strides, g.batch.rank) * g.m * g.k;
      const float* w = b + offset_of(index, b_strides, g.batch.rank) * g.k * g.n;
      switch (method_) {
        case Method::kTiled:
          cpu::gemm(shape, x, w, output, blocks_, exec.workspace<void>(), parallel, isa_);
          break;
        case Method::kDirect:
          cpu::gemm_direct(shape, x, w, output, parallel, isa_);
          break;
        case Method::kPrepacked:
          cpu::gemm_prepacked_b(shape, x, packed_, output, blocks_, exec.workspace<void>(), parallel, isa_);
          break;
      }
    });
  }

 private:
  Method method_;
  cpu::Isa isa_ = cpu::Isa::kBaseline;
  cpu::GemmTactic blocks_;
  bool transpose_a_ = false;
  bool transpose_b_ = false;
  CpuEpilogue epilogue_;
  cpu::GemmShape shape_;
  Sizes sizes_;
  void* packed_ = nullptr;
};

}  // namespace

Definitions matmul_kernels() {
  Definitions all;
  const std::pair<Method, const char*> methods[] = {{Method::kTiled, "tenon.matmul.tiled.f32"},
                                                    {Method::kDirect, "tenon.matmul.direct.f32"},
                                                    {Method::kPrepacked, "tenon.matmul.prepacked.f32"}};
  for (const auto& [method, name] : methods) {
    const Method how = method;
    Kernel definition("tenon.matmul/1", name, [how] { return std::make_unique<MatmulKernel>(how); });
    definition.combo({f32_row(), f32_row()}, {f32_row()})
        .deterministic()
        .relocatable()
        .supports([how](const Site& site) { matmul_supports(how, site); })
        .tactics([how](const Site& site, const Combo&, Tactics& tactics) { matmul_tactics(how, site, tactics); })
        .epilogue([](const Site& site) { cpu_epilogue(site); });
    all.add(definition);
  }
  return all;
}

}  // namespace tenon::plugins
