// tenon.matmul/1 through oneDNN; one tactic for each of its implementations. A constant B is kept in oneDNN's layout
// and in the dtype of A.
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/onednn_make.hpp"
#include "plugins/common/pack_key.h"
#include "plugins/matmul/matmul.h"

namespace tenon::plugins {
namespace {

// A matrix or a batch of them, seen with `rank` dims; transposed ones through their strides.
dnnl::memory::desc matrix_desc(int32_t dtype, const Dims& dims, int rank, bool transposed) {
  Dims padded;
  for (int axis = dims.rank; axis < rank; ++axis) padded.push_back(1);
  for (int64_t size : dims) padded.push_back(size);
  dnnl::memory::desc desc = onednn_row(dtype, padded);
  if (!transposed) return desc;
  std::vector<int> axes(static_cast<size_t>(rank));
  for (int axis = 0; axis < rank; ++axis) axes[static_cast<size_t>(axis)] = axis;
  std::swap(axes[static_cast<size_t>(rank) - 1], axes[static_cast<size_t>(rank) - 2]);
  return desc.permute_axes(axes);
}

struct MatmulDescs {
  dnnl::memory::desc a, b, y;
  TnPort out;
  int32_t dtype;        // of A and the B that is used
  bool pack_b = false;  // B is constant: oneDNN chooses its layout
  std::vector<OnednnOperand> operands;
  int64_t work;  // multiply-adds

  MatmulDescs(const Site& site, const TnPort& a_port, const TnPort& y_port) : out(y_port), dtype(a_port.dtype) {
    const MatmulGeometry g = MatmulGeometry::make(site.dims(0), site.dims(1), site.attrs().flag("transpose_a"),
                                                  site.attrs().flag("transpose_b"));
    const int rank = g.result.rank;
    work = g.result.elements() * g.k;
    const bool constant_b = site.is_constant(1);
    a = matrix_desc(dtype, site.dims(0), rank, g.transpose_a);
    b = matrix_desc(constant_b ? TN_F32 : dtype, site.dims(1), rank, g.transpose_b);
    y = matrix_desc(out.dtype, g.result, rank, false);
    pack_b = constant_b && rank == 2;
    if (constant_b && !pack_b && dtype != TN_F32) throw Declined("only a constant matrix is packed, no batch of them");
  }
  OnednnDesc<dnnl::matmul> make(const Site& site, int thread_count) {
    const dnnl::post_ops ops = onednn_post_ops(site, out, &operands);
    const OnednnThreads threads(thread_count);
    return onednn_or_decline([&] {
      return make_matmul(a, pack_b ? onednn_any(dtype, {b_rows(), b_columns()}) : b, {}, y, onednn_attr(ops));
    });
  }
  int64_t b_rows() const { return onednn_shape(b)[0]; }
  int64_t b_columns() const { return onednn_shape(b)[1]; }
};

class MatmulOnednn final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Site site = config.site();
    MatmulDescs descs(site, config.combo().input(0), config.combo().output(0));
    threads_ = threads_of(site, config.params());
    auto desc = descs.make(site, threads_);
    select_impl(&desc, config.params().str("impl"));
    a_ = descs.a;
    given_b_ = descs.b;
    y_ = descs.y;
    used_b_ = desc.query_md(dnnl::query::weights_md, 0);
    operands_ = descs.operands;
    packed_ = descs.pack_b && used_b_ != given_b_;
    sizes_.workspace = onednn_scratchpad(desc);
    if (packed_) {
      sizes_.persistent = used_b_.get_size();
      PackKey()
          .add(text("tenon.matmul.onednn ", descs.dtype == TN_F32 ? "" : "bf16 ", DNNL_VERSION_MAJOR, ".",
                    DNNL_VERSION_MINOR, config.params().text(), site.attrs().flag("transpose_b"), to_text(site.dims(0)),
                    threads_))
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
    primitive_.execute(threads_,
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

Kernel matmul_kernel(int32_t dtype) {
  Kernel definition = kernel<MatmulOnednn>("tenon.matmul/1", std::string("tenon.matmul.onednn.") + dtype_name(dtype));
  // B as A is, but where it is constant.
  for (const int32_t b : dtype == TN_F32 ? std::vector<int32_t>{TN_F32} : std::vector<int32_t>{dtype, TN_F32}) {
    definition.combo({row(dtype), row(b)}, {f32_row()});
    if (dtype != TN_F32) definition.combo({row(dtype), row(b)}, {row(dtype)});
  }
  definition.deterministic()
      .relocatable()
      .supports([dtype](const Site& site) {
        onednn_supports(site);
        if (dtype == TN_BF16) bf16_supports(site);
      })
      .tactics([](const Site& site, const Combo& combo, Tactics& tactics) {
        if (combo.input(1).dtype != combo.input(0).dtype && !site.is_constant(1)) {
          throw Declined("both matrices have one dtype");
        }
        const MatmulDescs descs(site, combo.input(0), combo.output(0));
        const auto make = [&](int threads) { return MatmulDescs(descs).make(site, threads); };
        add_onednn_tactics(site, descs.work, make, tactics);
      })
      .epilogue([dtype](const Site& site) { MatmulDescs(site, row(dtype), row(dtype)).make(site, site.threads()); });
  return definition;
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.matmul.onednn", "1", "Apache-2.0", tenon::plugins::matmul_kernel(TN_F32),
             tenon::plugins::matmul_kernel(TN_BF16))
