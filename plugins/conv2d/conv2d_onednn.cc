// tenon.conv2d/1 through oneDNN: one tactic for each algorithm and implementation. Weights are kept in oneDNN's layout
// and in the dtype of x.
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/onednn_make.hpp"
#include "plugins/common/pack_key.h"
#include "plugins/conv2d/conv2d.h"

namespace tenon::plugins {
namespace {

struct ConvDescs {
  dnnl::memory::desc x, y, given_weights, any_weights, bias;
  OnednnWindow window;
  std::vector<OnednnOperand> operands;  // of the epilogue
  dnnl::post_ops post_ops;
  int64_t work;  // multiply-adds

  ConvDescs(const Site& site, const Combo& combo) {
    const TnPort& in = combo.input(kConvX);
    const TnPort& out = combo.output(0);
    const cpu::Conv2dGeometry g = conv2d_geometry(site);
    x = onednn_desc(in.dtype, {g.n, g.c, g.h, g.w}, in.format);
    y = onednn_desc(out.dtype, {g.n, g.k, g.oh, g.ow}, out.format);
    const Dims weights =
        g.groups == 1 ? Dims{g.k, g.c, g.r, g.s} : Dims{g.groups, g.k / g.groups, g.c / g.groups, g.r, g.s};
    given_weights = onednn_row(TN_F32, weights);
    work = cpu::conv2d_work(g);
    any_weights = onednn_any(in.dtype, weights);
    if (site.has_input(kConvBias)) bias = onednn_row(TN_F32, {g.k});
    // The output size is given, so that the bottom and right pads follow from it: rows that no window reaches are
    // unused.
    window.strides = {g.stride_h, g.stride_w};
    window.dilations = {g.dilation_h, g.dilation_w};
    window.pads_begin = {g.pad_top, g.pad_left};
    window.pads_end = {(g.oh - 1) * g.stride_h + g.dilation_h * (g.r - 1) + 1 - g.h - g.pad_top,
                       (g.ow - 1) * g.stride_w + g.dilation_w * (g.s - 1) + 1 - g.w - g.pad_left};
    post_ops = onednn_post_ops(site, out, &operands);
  }

  OnednnDesc<dnnl::convolution_forward> make(dnnl::algorithm algorithm, int threads) const {
    const OnednnThreads scope(threads);
    return onednn_or_decline(
        [&] { return make_convolution(algorithm, x, any_weights, bias, y, window, onednn_attr(post_ops)); });
  }
};

constexpr std::pair<const char*, dnnl::algorithm> kAlgorithms[] = {{"direct", dnnl::algorithm::convolution_direct},
                                                                   {"winograd", dnnl::algorithm::convolution_winograd}};

dnnl::algorithm algorithm_of(const std::string& name) {
  for (const auto& [known, algorithm] : kAlgorithms) {
    if (name == known) return algorithm;
  }
  throw Declined(text("no such tactic: expected algo=direct or algo=winograd, found '", name, "'"));
}

void conv_tactics(const Site& site, const Combo& combo, Tactics& tactics) {
  const ConvDescs descs(site, combo);
  std::string reason;
  for (const int threads : worthwhile_threads(site, descs.work)) {
    for (const auto& [name, algorithm] : kAlgorithms) {
      try {
        for (const OnednnImpl& impl : onednn_impls(descs.make(algorithm, threads))) {
          // Its gemm with a tensor as post-op gives wrong results (oneDNN 2.6).
          if (!descs.operands.empty() && impl.name.find("gemm") != std::string::npos) continue;
          tactics.add(text("algo=", name, ";impl=", impl.name, threads_param(site, threads)), impl.workspace);
        }
      } catch (const Declined& declined) {
        if (reason.empty()) reason = declined.what();
      }
    }
  }
  if (tactics.count() == 0) throw Declined(reason);
}

class ConvOnednn final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Site site = config.site();
    const ConvDescs descs(site, config.combo());
    threads_ = threads_of(site, config.params());
    auto desc = descs.make(algorithm_of(config.params().str("algo")), threads_);
    select_impl(&desc, config.params().str("impl"));
    x_ = descs.x;
    y_ = descs.y;
    bias_ = descs.bias;
    given_weights_ = descs.given_weights;
    operands_ = descs.operands;
    num_inputs_ = site.num_inputs();
    weights_ = desc.weights_desc();
    has_bias_ = site.has_input(kConvBias);
    sizes_.workspace = onednn_scratchpad(desc);
    sizes_.persistent = weights_.get_size();
    const int32_t dtype = config.combo().input(kConvX).dtype;
    PackKey()
        .add(text("tenon.conv2d.onednn ", dtype == TN_F32 ? "" : "bf16 ", DNNL_VERSION_MAJOR, ".", DNNL_VERSION_MINOR,
                  config.params().text(), ";", config.combo().input(kConvX).format.num_blocks, ";",
                  to_text(site.dims(kConvX)), ";", threads_, ";", to_text(site.output_dims(0)), ";",
                  site.attrs().i64("groups")))
        .add(site.constant(kConvWeights))
        .add(&config.combo().input(kConvX).format, sizeof(TnFormat))
        .add(&config.combo().output(0).format, sizeof(TnFormat))
        .store(&sizes_);
    const OnednnThreads scope(threads_);
    primitive_ = OnednnPrimitive(desc);
  }

  Sizes sizes() const override { return sizes_; }

  void initialize(const Init& init) override {
    packed_ = init.persistent<void>();
    bias_data_ = has_bias_ ? init.constant(kConvBias).data() : nullptr;
    if (!init.filled()) {
      onednn_reorder(given_weights_, init.constant(kConvWeights).data(), weights_, packed_, threads_);
    }
  }

  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    std::vector<OnednnArg> more;
    if (has_bias_) more.push_back({DNNL_ARG_BIAS, &bias_, bias_data_});
    for (const OnednnOperand& operand : operands_) {
      more.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(operand.post_op) | DNNL_ARG_SRC_1, &operand.desc,
                      inputs[num_inputs_ + operand.extra].data});
    }
    primitive_.execute(threads_,
                       {{DNNL_ARG_SRC, &x_, inputs[kConvX].data},
                        {DNNL_ARG_WEIGHTS, &weights_, packed_},
                        {DNNL_ARG_DST, &y_, outputs[0].data}},
                       exec.workspace<void>(), more);
  }

 private:
  dnnl::memory::desc x_, y_, bias_, given_weights_, weights_;
  std::vector<OnednnOperand> operands_;
  int num_inputs_ = 0;
  bool has_bias_ = false;
  int threads_ = 1;
  Sizes sizes_;
  void* packed_ = nullptr;
  const void* bias_data_ = nullptr;
  OnednnPrimitive primitive_;
};

void conv_supports(const Site& site) {
  onednn_supports(site);
  if (!site.is_constant(kConvWeights)) throw Declined("the weights are not constant");
  if (site.has_input(kConvBias) && !site.is_constant(kConvBias)) throw Declined("the bias is not constant");
}

Kernel conv_kernel(int32_t dtype) {
  Kernel definition = kernel<ConvOnednn>("tenon.conv2d/1", std::string("tenon.conv2d.onednn.") + dtype_name(dtype));
  using Make = Port (*)(int32_t);
  const std::pair<Make, Make> formats[] = {{row, row},     {nhwc, nhwc},  {nchw8c, nchw8c}, {nchw16c, nchw16c},
                                           {row, nchw16c}, {row, nchw8c}, {row, nhwc}};
  for (const auto& [input, output] : formats) {
    // In bf16 these are seldom the fastest (9 of 138 layers of three networks), and each form has conversions to
    // measure.
    const bool row_output = is_row(output(dtype).format);
    if (dtype == TN_BF16 && (row_output || channel_block(output(dtype).format) == 8)) continue;
    definition.combo({input(dtype), f32_row(), f32_row()}, {output(dtype)});
    if (dtype == TN_BF16) definition.combo({input(dtype), f32_row(), f32_row()}, {output(TN_F32)});
  }
  definition.deterministic()
      .relocatable()
      .supports([dtype](const Site& site) {
        conv_supports(site);
        if (dtype == TN_BF16) bf16_supports(site);
      })
      .tactics(conv_tactics)
      .epilogue([](const Site& site) {
        std::vector<OnednnOperand> operands;
        onednn_post_ops(site, f32_row(), &operands);
      });
  return definition;
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.conv2d.onednn", "1", "Apache-2.0", tenon::plugins::conv_kernel(TN_F32),
             tenon::plugins::conv_kernel(TN_BF16))
