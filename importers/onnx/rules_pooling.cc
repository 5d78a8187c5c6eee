// Poolings. Tenon's pool images; maxima and means over more axes are those of images and then those of the other axes,
// one after the other.
#include <algorithm>

#include "importers/onnx/rules.h"
#include "importers/onnx/window.h"

namespace tenon::onnx {
namespace {

/// Sizes of the axes before, from and after the pair of axes that the images of a step have.
struct Images {
  int64_t channels, height, width;
};

/// Pools a value of dims [n, ...] as images; gives [n, channels, oh, ow].
TnValueId pool_images(OnnxNode& node, const std::string& op, NewAttrs attrs, TnValueId x, const Images& images,
                      const Window& window, int64_t ceil) {
  const int64_t n = node.dims_of(x)[0];
  const Dims as_images = {n, images.channels, images.height, images.width};
  if (node.dims_of(x) != as_images) x = node.reshape(x, {n, images.channels, images.height, images.width});
  return node.add(op,
                  attrs.i64s("kernel", window.kernel)
                      .i64s("strides", window.strides)
                      .i64s("dilations", window.dilations)
                      .i64s("pads", window.pads())
                      .str("rounding", ceil != 0 && !window.automatic ? "ceil" : "floor"),
                  {x});
}

Window part(const Window& window, size_t axis) {
  Window part;
  part.automatic = window.automatic;
  part.kernel = {window.kernel[axis]};
  part.strides = {window.strides[axis]};
  part.dilations = {window.dilations[axis]};
  part.begin = {window.begin[axis]};
  part.end = {window.end[axis]};
  return part;
}
Window join(Window a, const Window& b) {
  const auto append = [](std::vector<int64_t>& to, const std::vector<int64_t>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  append(a.kernel, b.kernel);
  append(a.strides, b.strides);
  append(a.dilations, b.dilations);
  append(a.begin, b.begin);
  append(a.end, b.end);
  return a;
}

const Window kSingle = {{1}, {1}, {1}, {0}, {0}, false};

/// Pools the spatial axes of x. `attrs` makes the attributes beyond those of the window.
template <class Attrs>
TnValueId pool(OnnxNode& node, const std::string& op, const Attrs& attrs, TnValueId x, const Window& window) {
  const int64_t ceil = node.i64("ceil_mode", 0);
  Dims dims = node.dims_of(x);
  int last = dims.rank - 1;
  const auto before = [&](int axis) { return dims.product(1, axis); };
  if (window.rank() == 1) {
    x = pool_images(node, op, attrs(), x, {before(last), 1, dims[last]}, join(kSingle, window), ceil);
    dims[last] = node.dims_of(x)[3];
    return node.reshape(x, {dims.begin(), dims.end()});
  }
  const size_t rank = window.rank();
  x = pool_images(node, op, attrs(), x, {before(last - 1), dims[last - 1], dims[last]},
                  join(part(window, rank - 2), part(window, rank - 1)), ceil);
  dims[last - 1] = node.dims_of(x)[2];
  dims[last] = node.dims_of(x)[3];
  for (size_t n = rank - 2; n-- > 0;) {
    const int axis = static_cast<int>(n) + 2;
    x = pool_images(node, op, attrs(), x, {before(axis), dims[axis], dims.product(axis + 1, dims.rank)},
                    join(part(window, n), kSingle), ceil);
    dims[axis] = node.dims_of(x)[2];
  }
  return rank == 2 ? x : node.reshape(x, {dims.begin(), dims.end()});
}

/// The attributes of Tenon's poolings over any axes.
NewAttrs pool_attrs(OnnxNode& node, const Window& window) {
  NewAttrs attrs = node.attrs();
  attrs.i64s("kernel", window.kernel)
      .i64s("strides", window.strides)
      .i64s("dilations", window.dilations)
      .i64s("pads", window.pads())
      .str("rounding", node.i64("ceil_mode", 0) != 0 && !window.automatic ? "ceil" : "floor");
  return attrs;
}

/// The exponent, a float in version 1.
double p_of(const OnnxNode& node) {
  return node.since() == 1 ? node.f64("p", 2) : static_cast<double>(node.i64("p", 2));
}

void max_pool(OnnxNode& node) {
  const Window window = window_over(node, node.dims(0), node.i64s("kernel_shape"));
  // All values of the integer types are values of f32 too.
  const int32_t dtype = node.dtype(0);
  const TnValueId x = is_floating(dtype) ? node.input(0) : node.cast(node.input(0), TN_F32);
  node.output(0, node.cast(pool(
                               node, "tenon.max_pool/1", [&] { return node.attrs(); }, x, window),
                           dtype));
  if (!node.wants(1)) return;
  NewAttrs attrs = pool_attrs(node, window);
  attrs.i64("storage_order", node.flag("storage_order", false) ? 1 : 0);
  node.output(1, node.add("tenon.max_pool_indices/1", attrs, {node.input(0)}));
}

void lp_pool(OnnxNode& node) {
  const Window window = window_over(node, node.dims(0), node.i64s("kernel_shape"));
  NewAttrs attrs = pool_attrs(node, window);
  attrs.f64("p", p_of(node));
  node.output(0, node.add("tenon.lp_pool/1", attrs, {node.input(0)}));
}

void max_unpool(OnnxNode& node) {
  const Window window = explicit_window(node, node.i64s("kernel_shape"));
  NewAttrs attrs = node.attrs();
  attrs.i64s("kernel", window.kernel).i64s("strides", window.strides).i64s("pads", window.pads());
  node.output(0, node.add("tenon.max_unpool/1", attrs, {node.input(0), node.input(1), node.optional_input(2)}));
}

void average_pool(OnnxNode& node) {
  const Window window = window_over(node, node.dims(0), node.i64s("kernel_shape"));
  const int64_t include = node.flag("count_include_pad", false) ? 1 : 0;
  const auto attrs = [&] { return std::move(node.attrs().i64("count_include_pad", include)); };
  node.output(0, pool(node, "tenon.avg_pool/1", attrs, node.input(0), window));
}

/// x with its spatial axes as those of an image, whatever their number. `shape`: dims of the pooled output.
TnValueId whole_image(OnnxNode& node, std::vector<int64_t>* shape) {
  const Dims dims = node.dims(0);
  if (dims.rank < 3) throw Invalid(text("expected an input [N,C,d1,...], found ", to_text(dims)));
  shape->assign(static_cast<size_t>(dims.rank), 1);
  std::copy_n(dims.begin(), 2, shape->begin());
  return dims.rank == 4 ? node.input(0)
                        : node.reshape(node.input(0), {dims[0], dims[1], dims[2], dims.product(3, dims.rank)});
}
void output_whole(OnnxNode& node, TnValueId y, const std::vector<int64_t>& shape) {
  node.output(0, shape.size() == 4 ? y : node.reshape(y, shape));
}

void global_average_pool(OnnxNode& node) {
  std::vector<int64_t> shape;
  const TnValueId x = whole_image(node, &shape);
  output_whole(node, node.add("tenon.global_avg_pool/1", {x}), shape);
}

void global_max_pool(OnnxNode& node) {
  std::vector<int64_t> shape;
  const TnValueId x = whole_image(node, &shape);
  const Dims dims = node.dims_of(x);
  output_whole(node, node.add("tenon.max_pool/1", node.attrs().i64s("kernel", {dims[2], dims[3]}), {x}), shape);
}

void global_lp_pool(OnnxNode& node) {
  std::vector<int64_t> shape;
  const TnValueId x = whole_image(node, &shape);
  const Dims dims = node.dims_of(x);
  output_whole(node,
               node.add("tenon.lp_pool/1", node.attrs().i64s("kernel", {dims[2], dims[3]}).f64("p", p_of(node)), {x}),
               shape);
}

const Rule kRules[] = {
    {"MaxPool", {1, 8, 10, 11, 12, 22}, max_pool},
    {"AveragePool", {1, 7, 10, 11, 19, 22}, average_pool},
    {"GlobalAveragePool", {1, 22}, global_average_pool},
    {"GlobalMaxPool", {1, 22}, global_max_pool},
    {"LpPool", {1, 2, 11, 18, 22}, lp_pool},
    {"GlobalLpPool", {1, 2, 22}, global_lp_pool},
    {"MaxUnpool", {9, 11, 22}, max_unpool},
};

}  // namespace

std::span<const Rule> pooling_rules() { return kRules; }

}  // namespace tenon::onnx
