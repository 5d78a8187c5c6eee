// tenon.fully_connected/1 through oneDNN's inner product, weights kept in oneDNN's layout and in the dtype of x.
#include <algorithm>
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/onednn_make.hpp"
#include "plugins/common/pack_key.h"
#include "plugins/fully_connected/fully_connected.h"

namespace tenon::plugins {
namespace {

struct FullyConnectedDescs {
  FullyConnectedGeometry g;
  dnnl::memory::desc x, weights, bias, y;
  int32_t dtype, y_dtype;  // of x, and of y and operands of the epilogue
  std::vector<OnednnOperand> operands;

  FullyConnectedDescs(const Site& site, int32_t from, int32_t to)
      : g(FullyConnectedGeometry::make(site.dims(0), site.dims(1), nullptr, site.attrs().i64("axis"))),
        x(onednn_row(from, {g.n, g.features})),
        weights(onednn_row(TN_F32, {g.outputs, g.features})),
        y(onednn_row(to, {g.n, g.outputs})),
        dtype(from),
        y_dtype(to) {
    if (site.has_input(2)) bias = onednn_row(TN_F32, {g.outputs});
  }
  OnednnDesc<dnnl::inner_product_forward> make(const Site& site, int thread_count) {
    const dnnl::post_ops ops = onednn_post_ops(site, row(y_dtype), &operands, Dims{g.n, g.outputs});
    const OnednnThreads threads(thread_count);
    return onednn_or_decline([&] {
      return make_inner_product(x, onednn_any(dtype, {g.outputs, g.features}), bias, y, onednn_attr(ops));
    });
  }
};

void fully_connected_onednn_supports(const Site& site) {
  onednn_supports(site);
  if (!site.is_constant(1)) throw Declined("the weights are not constant");
  if (site.has_input(2) && !site.is_constant(2)) throw Declined("the bias is not constant");
  if (site.dtype(1) != TN_F32) throw Declined(text("the weights are ", dtype_name(site.dtype(1)), ", expected f32"));
}

class FullyConnectedOnednn final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Site site = config.site();
    FullyConnectedDescs descs(site, config.combo().input(0).dtype, config.combo().output(0).dtype);
    threads_ = threads_of(site, config.params());
    auto desc = descs.make(site, threads_);
    select_impl(&desc, config.params().str("impl"));
    x_ = descs.x;
    given_ = descs.weights;
    used_ = desc.query_md(dnnl::query::weights_md, 0);
    bias_desc_ = descs.bias;
    y_ = descs.y;
    has_bias_ = site.has_input(2);
    operands_ = descs.operands;
    num_inputs_ = site.num_inputs();
    outputs_ = descs.g.outputs;
    bias_offset_ = (used_.get_size() + 63) / 64 * 64;
    sizes_.workspace = onednn_scratchpad(desc);
    sizes_.persistent = bias_offset_ + (has_bias_ ? static_cast<uint64_t>(outputs_) * sizeof(float) : 0);
    PackKey key;
    key.add(text("tenon.fully_connected.onednn ", descs.dtype == TN_F32 ? "" : "bf16 ", DNNL_VERSION_MAJOR, ".",
                 DNNL_VERSION_MINOR, config.params().text(), descs.g.n, " ", threads_))
        .add(site.constant(1));
    if (has_bias_) key.add(site.constant(2));
    key.store(&sizes_);
    const OnednnThreads scope(threads_);
    primitive_ = OnednnPrimitive(desc);
  }
  Sizes sizes() const override { return sizes_; }
  // Persistent memory: weights, then the bias.
  void initialize(const Init& init) override {
    weights_ = init.persistent<char>();
    bias_ = weights_ + bias_offset_;
    if (init.filled()) return;
    onednn_reorder(given_, init.constant(1).data(), used_, weights_, threads_);
    if (has_bias_) std::copy_n(init.constant(2).data<float>(), outputs_, reinterpret_cast<float*>(bias_));
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    std::vector<OnednnArg> more;
    for (const OnednnOperand& operand : operands_) {
      more.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(operand.post_op) | DNNL_ARG_SRC_1, &operand.desc,
                      inputs[num_inputs_ + operand.extra].data});
    }
    primitive_.execute(threads_,
                       {{DNNL_ARG_SRC, &x_, inputs[0].data},
                        {DNNL_ARG_WEIGHTS, &used_, weights_},
                        {DNNL_ARG_BIAS, has_bias_ ? &bias_desc_ : nullptr, bias_},
                        {DNNL_ARG_DST, &y_, outputs[0].data}},
                       exec.workspace<void>(), more);
  }

 private:
  dnnl::memory::desc x_, given_, used_, bias_desc_, y_;
  std::vector<OnednnOperand> operands_;
  bool has_bias_ = false;
  int num_inputs_ = 0;
  int64_t outputs_ = 0;
  int threads_ = 1;
  uint64_t bias_offset_ = 0;
  Sizes sizes_;
  char* weights_ = nullptr;
  char* bias_ = nullptr;
  OnednnPrimitive primitive_;
};

Kernel fully_connected_kernel(int32_t dtype) {
  Kernel definition = kernel<FullyConnectedOnednn>("tenon.fully_connected/1",
                                                   std::string("tenon.fully_connected.onednn.") + dtype_name(dtype));
  definition.combo({row(dtype), any_constant(), any_constant()}, {f32_row()});
  if (dtype != TN_F32) definition.combo({row(dtype), any_constant(), any_constant()}, {row(dtype)});
  definition.deterministic()
      .relocatable()
      .supports([dtype](const Site& site) {
        fully_connected_onednn_supports(site);
        if (dtype == TN_BF16) bf16_supports(site);
      })
      .tactics([](const Site& site, const Combo& combo, Tactics& tactics) {
        const FullyConnectedDescs descs(site, combo.input(0).dtype, combo.output(0).dtype);
        const auto make = [&](int threads) { return FullyConnectedDescs(descs).make(site, threads); };
        add_onednn_tactics(site, descs.g.n * descs.g.features * descs.g.outputs, make, tactics);
      })
      .epilogue([dtype](const Site& site) { FullyConnectedDescs(site, dtype, TN_F32).make(site, site.threads()); });
  return definition;
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.fully_connected.onednn", "1", "Apache-2.0", tenon::plugins::fully_connected_kernel(TN_F32),
             tenon::plugins::fully_connected_kernel(TN_BF16))
