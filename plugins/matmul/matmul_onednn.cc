// tenon.matmul/1 through oneDNN; one tactic for each of its implementations. A constant B is kept in oneDNN's layout.
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/onednn_make.hpp"
#include "plugins/common/pack_key.h"
#include "plugins/matmul/matmul.h"

namespace tenon::plugins {
namespace {

// A matrix or a batch of them, seen with `rank` dims; transposed ones through their strides.
dnnl::memory::desc matrix_desc(const Dims& dims, int rank, bool transposed) {
  Dims padded;
  for (int axis = dims.rank; axis < rank; ++axis) padded.push_back(1);
  for (int64_t size : dims) padded.push_back(size);
  dnnl::memory::desc desc = onednn_row(TN_F32, padded);
  if (!transposed) return desc;
  std::vector<int> axes(static_cast<size_t>(rank));
  for (int axis = 0; axis < rank; ++axis) axes[static_cast<size_t>(axis)] = axis;
  std::swap(axes[static_cast<size_t>(rank) - 1], axes[static_cast<size_t>(rank) - 2]);
  return desc.permute_axes(axes);
}

struct MatmulDescs {
  dnnl::memory::desc a, b, y;
  bool pack_b = false;  // B is constant: oneDNN chooses its layout
  std::vector<OnednnOperand> operands;

  explicit MatmulDescs(const Site& site) {
    const MatmulGeometry g = MatmulGeometry::make(site.dims(0), site.dims(1), site.attrs().flag("transpose_a"),
                                                  site.attrs().flag("transpose_b"));
    const int rank = g.result.rank;
    a = matrix_desc(site.dims(0), rank, g.transpose_a);
    b = matrix_desc(site.dims(1), rank, g.transpose_b);
    y = matrix_desc(g.result, rank, false);
    pack_b = site.is_constant(1) && rank == 2;
  }
  OnednnDesc<dnnl::matmul> make(const Site& site) {
    const dnnl::post_ops ops = onednn_post_ops(site, row_format(), &operands);
    const OnednnThreads threads(site.threads());
    return onednn_or_decline([&] {
      return make_matmul(a, pack_b ? onednn_any(TN_F32, {b_rows(), b_columns()}) : b, {}, y, onednn_attr(ops));
    });
  }
  int64_t b_rows() const { return onednn_shape(b)[0]; }
  int64_t b_columns() const { return onednn_shape(b)[1]; }
};

class MatmulOnednn final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Site site = config.site();
    MatmulDescs descs(site);
    auto desc = descs.make(site);
    select_impl(&desc, config.params().str("impl"));
    a_ = descs.a;
    given_b_ = descs.b;
    y_ = descs.y;
    used_b_ = desc.query_md(dnnl::query::weights_md, 0);
    operands_ = descs.operands;
    threads_ = site.threads();
    packed_ = descs.pack_b && used_b_ != given_b_;
    sizes_.workspace = onednn_scratchpad(desc);
    if (packed_) {
      sizes_.persistent = used_b_.get_size();
      PackKey()
          .add(text("tenon.matmul.onednn ", DNNL_VERSION_MAJOR, ".", DNNL_VERSION_MINOR, config.params().text(),
                    site.attrs().flag("transpose_b"), to_text(site.dims(0)), threads_))
          .add(site.constant(1))
          .store(&sizes_);
    }
    const OnednnThreads scope(threads_);
    primitive_ = OnednnPrimitive(desc);
  }
  Sizes sizes() const override { return sizes_; }
  void initialize(const Init& init) override {
    persistent_ = init.persistent<void>();
    if (packed_ && !init.filled()) onednn_reorder(given_b_, init.constant(1).data(), used_b_, persistent_, threads_);
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    std::vector<OnednnArg> more;
    for (const OnednnOperand& operand : operands_) {
      more.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(operand.post_op) | DNNL_ARG_SRC_1, &operand.desc,
                      inputs[2 + operand.extra].data});
    }
    primitive_.execute(exec.threads(),
                       {{DNNL_ARG_SRC, &a_, inputs[0].data},
                        {DNNL_ARG_WEIGHTS, &used_b_, packed_ ? persistent_ : inputs[1].data},
                        {DNNL_ARG_DST, &y_, outputs[0].data}},
                       exec.workspace<void>(), more);
  }

 private:
  dnnl::memory::desc a_, given_b_, used_b_, y_;
  std::vector<OnednnOperand> operands_;
  bool packed_ = false;
  int threads_ = 1;
  Sizes sizes_;
  void* persistent_ = nullptr;
  OnednnPrimitive primitive_;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.matmul.onednn", "1", "Apache-2.0",
             tenon::kernel<tenon::plugins::MatmulOnednn>("tenon.matmul/1", "tenon.matmul.onednn.f32")
                 .combo({tenon::f32_row(), tenon::f32_row()}, {tenon::f32_row()})
                 .deterministic()
                 .relocatable()
                 .supports([](const tenon::Site& site) { tenon::plugins::onednn_supports(site); })
                 .tactics([](const tenon::Site& site, const tenon::Combo&, tenon::Tactics& tactics) {
                   tenon::plugins::add_onednn_tactics(tenon::plugins::MatmulDescs(site).make(site), tactics);
                 })
                 .epilogue([](const tenon::Site& site) { tenon::plugins::MatmulDescs(site).make(site); }))
