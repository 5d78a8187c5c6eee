// tenon.conv2d/1 on kernels/cpu. One kernel for each algorithm:
//   tenon.conv2d.gemm1x1.f32           1x1 convolutions as one matrix product
//   tenon.conv2d.im2col.f32            patches gathered in cache, then a matrix product; any geometry
//   tenon.conv2d.direct.f32            register-blocked over output width, channels blocked or last
//   tenon.conv2d.first.f32             images of few channels, into a blocked format
//   tenon.conv2d.depthwise.f32         one filter a channel
//   tenon.conv2d.depthwise_rows.f32    the same in rows: 3x3 and 5x5 filters, several output rows at a time
//   tenon.conv2d.winograd.f32          3x3 filters with stride 1 through F(2x2, 3x3)
#include <memory>
#include <utility>
#include <vector>

#include <tenon/sdk/kernel.hpp>

#include "plugins/common/epilogue.h"
#include "plugins/common/gemm_tactics.h"
#include "plugins/common/layout.h"
#include "plugins/common/pack_key.h"
#include "plugins/common/parallel.h"
#include "plugins/conv2d/conv2d.h"

namespace tenon::plugins {
namespace {

using cpu::Conv2dAlgorithm;

struct Method {
  Conv2dAlgorithm algorithm;
  const char* name;
  bool gemm;                                                             // has blockings to choose from
  std::vector<std::pair<Port (*)(int32_t), Port (*)(int32_t)>> formats;  // input and output
};

const std::vector<Method>& methods() {
  static const std::vector<Method> all = {
      {Conv2dAlgorithm::kGemm1x1, "tenon.conv2d.gemm1x1.f32", true, {{row, row}, {nhwc, nhwc}}},
      {Conv2dAlgorithm::kIm2col, "tenon.conv2d.im2col.f32", true, {{row, row}}},
      {Conv2dAlgorithm::kDirect,
       "tenon.conv2d.direct.f32",
       false,
       {{nhwc, nhwc}, {nchw8c, nchw8c}, {nchw16c, nchw16c}}},
      {Conv2dAlgorithm::kFirst, "tenon.conv2d.first.f32", false, {{row, nhwc}, {row, nchw8c}, {row, nchw16c}}},
      {Conv2dAlgorithm::kDepthwise,
       "tenon.conv2d.depthwise.f32",
       false,
       {{row, row}, {nhwc, nhwc}, {nchw8c, nchw8c}, {nchw16c, nchw16c}}},
      {Conv2dAlgorithm::kDepthwiseRows, "tenon.conv2d.depthwise_rows.f32", false, {{row, row}}},
      {Conv2dAlgorithm::kWinograd2x2, "tenon.conv2d.winograd.f32", false, {{nchw8c, nchw8c}, {nchw16c, nchw16c}}}};
  return all;
}

cpu::Conv2dConfig config_for(Conv2dAlgorithm algorithm, const TnFormat& input, const TnFormat& output, cpu::Isa isa) {
  cpu::Conv2dConfig config;
  config.algorithm = algorithm;
  config.input_layout = to_layout(input);
  config.output_layout = to_layout(output);
  config.isa = isa;
  return config;
}

// The matrix product behind a blocking: [m,k] x [k,n].
void product_size(const cpu::Conv2dGeometry& g, bool nhwc_layout, int64_t* m, int64_t* n, int64_t* k) {
  *m = nhwc_layout ? g.n * g.oh * g.ow : g.k / g.groups;
  *n = nhwc_layout ? g.k / g.groups : g.oh * g.ow;
  *k = g.c / g.groups * g.r * g.s;
}

void list_tactics(const Method& method, const Site& site, const Combo& combo, Tactics& tactics) {
  const cpu::Conv2dGeometry g = conv2d_geometry(site);
  const TnFormat& in = combo.input(kConvX).format;
  const TnFormat& out = combo.output(0).format;
  const auto offer = [&](cpu::Conv2dConfig config, const std::string& params) {
    if (!cpu::conv2d_supports(g, config)) return;
    tactics.add(params, cpu::conv2d_workspace_bytes(g, config, site.threads()));
  };
  if (!method.gemm) {
    const cpu::Isa isa = cpu::detect_isa();
    const cpu::Conv2dConfig config = config_for(method.algorithm, in, out, isa);
    for (const int threads : worthwhile_threads(site, cpu::conv2d_work(g))) {
      offer(config, text("isa=", cpu::isa_name(isa), threads_param(site, threads)));
    }
    return;
  }
  int64_t m = 0, n = 0, k = 0;
  product_size(g, is_nhwc(in), &m, &n, &k);
  for_each_gemm_tactic(m, n, k, [&](cpu::Isa isa, const cpu::GemmTactic& blocks) {
    cpu::Conv2dConfig config = config_for(method.algorithm, in, out, isa);
    config.tactic = blocks;
    offer(config, gemm_params(isa, blocks));
  });
}

class Conv2dKernel final : public IPlugin {
 public:
  explicit Conv2dKernel(const Method& method) : method_(method) {}

  void configure(const Config& config) override {
    const Site site = config.site();
    geometry_ = conv2d_geometry(site);
    config_ = config_for(method_.algorithm, config.combo().input(kConvX).format, config.combo().output(0).format,
                         isa_of(config.params()));
    if (method_.gemm) config_.tactic = gemm_blocks_of(config.params());
    if (!cpu::conv2d_supports(geometry_, config_)) throw Declined("this algorithm cannot compute this convolution");
    one_thread_ = threads_of(site, config.params()) == 1;
    epilogue_ = cpu_epilogue(site);
    has_bias_ = site.has_input(kConvBias);
    if (epilogue_.residual >= 0) residual_ = site.num_inputs() + epilogue_.residual;
    sizes_.workspace = cpu::conv2d_workspace_bytes(geometry_, config_, site.threads());
    sizes_.persistent = cpu::conv2d_packed_bytes(geometry_, config_);
    if (sizes_.persistent != 0) {
      PackKey()
          .add(text(method_.name, config.params().text(), ";", static_cast<int>(config_.input_layout), ";",
                    static_cast<int>(config_.output_layout), ";", geometry_.groups))
          .add(site.constant(kConvWeights))
          .store(&sizes_);
    }
  }

  Sizes sizes() const override { return sizes_; }

  void initialize(const Init& init) override {
    packed_ = init.persistent<void>();
    bias_ = has_bias_ ? init.constant(kConvBias).data<float>() : nullptr;
    if (!init.filled()) {
      cpu::conv2d_pack_weights(geometry_, config_, init.constant(kConvWeights).data<float>(), packed_);
    }
  }

  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    cpu::Conv2dBuffers buffers;
    buffers.input = static_cast<const float*>(inputs[kConvX].data);
    buffers.packed_weights = packed_;
    buffers.bias = bias_;
    if (residual_ >= 0) buffers.residual = static_cast<const float*>(inputs[residual_].data);
    buffers.output = static_cast<float*>(outputs[0].data);
    buffers.workspace = exec.workspace<void>();
    cpu::conv2d(geometry_, config_, buffers, epilogue_.activation, one_thread_ ? cpu::Parallel{} : to_parallel(exec));
  }

 private:
  const Method& method_;
  cpu::Conv2dGeometry geometry_;
  cpu::Conv2dConfig config_;
  CpuEpilogue epilogue_;
  int residual_ = -1;  // number of the input that is added; -1: none
  bool has_bias_ = false;
  bool one_thread_ = false;
  Sizes sizes_;
  void* packed_ = nullptr;
  const float* bias_ = nullptr;
};

}  // namespace

Definitions conv2d_kernels() {
  Definitions all;
  for (const Method& entry : methods()) {
    const Method* method = &entry;
    Kernel definition("tenon.conv2d/1", method->name, [method] { return std::make_unique<Conv2dKernel>(*method); });
    for (const auto& [input, output] : method->formats) {
      definition.combo({input(TN_F32), f32_row(), f32_row()}, {output(TN_F32)});
    }
    definition.deterministic()
        .relocatable()
        .supports([](const Site& site) { require_static_constant(site); })
        .tactics([method](const Site& site, const Combo& combo, Tactics& tactics) {
          list_tactics(*method, site, combo, tactics);
        })
        .epilogue([](const Site& site) { cpu_epilogue(site); });
    all.add(definition);
  }
  return all;
}

}  // namespace tenon::plugins
