// Windows that slide over images: attributes and output sizes shared by max_pool, avg_pool and their adapters.
#ifndef TENON_PLUGINS_COMMON_POOL_GEOMETRY_H_
#define TENON_PLUGINS_COMMON_POOL_GEOMETRY_H_

#include <algorithm>
#include <tenon/sdk/op.hpp>
#include <tenon/sdk/site.hpp>

#include "kernels/cpu/pool.h"
#include "plugins/common/cell_combos.h"
#include "plugins/common/checked.h"
#include "plugins/common/layout.h"
#include "plugins/common/parallel.h"

namespace tenon::plugins {

// Adds the attributes that pool_geometry reads.
inline void add_pool_attributes(Op& op) {
  op.attr_i64s("kernel", "window height and width").required().range("[1,)");
  op.attr_i64s("strides", "vertical, horizontal").default_value("1,1").range("[1,)");
  op.attr_i64s("dilations", "vertical, horizontal distance between cells of a window")
      .default_value("1,1")
      .range("[1,)");
  op.attr_i64s("pads",
               "top, left, bottom, right. The window of output (y, x) starts at (y * stride - top, x * stride - "
               "left); bottom and right decide the output size and may be negative")
      .default_value("0,0,0,0");
  op.attr_str("rounding",
              "of the output size: (in + pads - window) / stride + 1. With ceil, a last window that would "
              "start behind the image and its leading pad is dropped")
      .default_value("floor")
      .range("floor|ceil");
}

inline int64_t pool_output_size(const char* what, int64_t in, int64_t kernel, int64_t stride, int64_t dilation,
                                int64_t begin, int64_t end, bool ceil) {
  const int64_t window = dilation * (kernel - 1) + 1;
  const int64_t room = in + begin + end - window;
  if (room < 0) {
    throw Invalid(text("the window does not fit: expected ", what, " plus pads of at least ", window, ", found ", in,
                       " + ", begin, " + ", end));
  }
  int64_t out = (room + (ceil ? stride - 1 : 0)) / stride + 1;
  if (ceil && (out - 1) * stride >= in + begin) --out;
  return out;
}

// Of an image [n, c, h, w]. Invalid names the attribute, what was expected and what was found.
inline cpu::PoolGeometry pool_geometry(const Attrs& attrs, const Dims& x) {
  if (x.rank != 4) throw Invalid(text("input x: expected rank 4, found shape ", to_text(x)));
  const List<int64_t> kernel = pixels(attrs, "kernel", 2, 1);
  const List<int64_t> strides = pixels(attrs, "strides", 2, 1);
  const List<int64_t> dilations = pixels(attrs, "dilations", 2, 1);
  const List<int64_t> pads = pixels(attrs, "pads", 4, -INT32_MAX);
  for (int n = 0; n < 2; ++n) {
    if (pads[n] < 0) throw Invalid(text("attribute 'pads': expected top and left of at least 0, found ", pads[n]));
  }
  const std::string rounding = attrs.str("rounding");
  if (rounding != "floor" && rounding != "ceil") {
    throw Invalid(text("attribute 'rounding': expected floor or ceil, found '", rounding, "'"));
  }
  cpu::PoolGeometry g;
  g.n = x[0];
  g.c = x[1];
  g.h = x[2];
  g.w = x[3];
  g.kernel_h = kernel[0];
  g.kernel_w = kernel[1];
  g.stride_h = strides[0];
  g.stride_w = strides[1];
  g.dilation_h = dilations[0];
  g.dilation_w = dilations[1];
  g.pad_top = pads[0];
  g.pad_left = pads[1];
  const bool ceil = rounding == "ceil";
  g.oh = pool_output_size("height", g.h, kernel[0], strides[0], dilations[0], pads[0], pads[2], ceil);
  g.ow = pool_output_size("width", g.w, kernel[1], strides[1], dilations[1], pads[1], pads[3], ceil);
  g.pad_bottom = std::max<int64_t>(pads[2], 0);
  g.pad_right = std::max<int64_t>(pads[3], 0);
  return g;
}

inline void pool_infer(const Infer& question) {
  const Tensor x = question.input(0);
  if (!is_floating(x.dtype())) throw Invalid(text("input x: expected a floating dtype, found ", dtype_name(x.dtype())));
  const cpu::PoolGeometry g = pool_geometry(question.attrs(), x.dims());
  question.output(0, x.dtype(), {g.n, g.c, g.oh, g.ow});
}

// Calls visit(y, x) for the cells inside the image of the window of output (oh, ow).
template <class Visit>
void for_each_window_cell(const cpu::PoolGeometry& g, int64_t oh, int64_t ow, Visit&& visit) {
  for (int64_t r = 0; r < g.kernel_h; ++r) {
    const int64_t y = oh * g.stride_h - g.pad_top + r * g.dilation_h;
    if (y < 0 || y >= g.h) continue;
    for (int64_t s = 0; s < g.kernel_w; ++s) {
      const int64_t x = ow * g.stride_w - g.pad_left + s * g.dilation_w;
      if (x >= 0 && x < g.w) visit(y, x);
    }
  }
}

// An instance of kernels/cpu's pool; `kind` is that of the node.
class PoolKernel final : public IPlugin {
 public:
  using KindOf = cpu::PoolKind (*)(const Attrs&);
  explicit PoolKernel(KindOf kind_of) : kind_of_(kind_of) {}

  static void tactics(const Site& site, const Combo& combo, Tactics& tactics) {
    const cpu::PoolGeometry most = pool_geometry(site.attrs(), site.max_dims(0));
    const cpu::Layout layout = to_layout(combo.input(0).format);
    tactics.add("", cpu::pool_workspace_bytes(most, layout, site.threads(), cpu::detect_isa()));
  }

  static void more_combos(const Site& site, Combos& combos) { add_cell_combos(site, combos, TN_F32, image_ports()); }

  void configure(const Config& config) override {
    const Site site = config.site();
    geometry_ = pool_geometry(site.attrs(), site.max_dims(0));
    kind_ = kind_of_(site.attrs());
    layout_ = to_layout(config.combo().input(0).format);
    sizes_.workspace = cpu::pool_workspace_bytes(geometry_, layout_, site.threads(), cpu::detect_isa());
  }
  Sizes sizes() const override { return sizes_; }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    cpu::PoolGeometry g = geometry_;
    g.n = inputs[0].dims.d[0];
    g.c = inputs[0].dims.d[1];
    g.h = inputs[0].dims.d[2];
    g.w = inputs[0].dims.d[3];
    g.oh = outputs[0].dims.d[2];
    g.ow = outputs[0].dims.d[3];
    cpu::pool(kind_, g, layout_, static_cast<const float*>(inputs[0].data), static_cast<float*>(outputs[0].data),
              exec.workspace<void>(), to_parallel(exec), cpu::detect_isa());
  }

 private:
  KindOf kind_of_;
  cpu::PoolGeometry geometry_;
  cpu::PoolKind kind_ = cpu::PoolKind::kMax;
  cpu::Layout layout_ = cpu::Layout::kNchw;
  Sizes sizes_;
};

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_POOL_GEOMETRY_H_
