// Constants, shapes, and what moves, repeats or borders whole tensors.
#include <algorithm>
#include <numeric>

#include "importers/onnx/rules.h"

namespace tenon::onnx {
namespace {

using Integers = std::vector<int64_t>;

/// What was an attribute before version `since_input` of the operator and is input n from there on.
std::optional<Integers> integers(const OnnxNode& node, const char* attr, int n, int since_input) {
  if (node.since() >= since_input) return node.known_i64s(n);
  if (!node.has(attr)) return std::nullopt;
  return node.i64s(attr);
}

/// A reshape to these dims, of which the first may vary at run time if it stays.
TnValueId to_dims(OnnxNode& node, TnValueId value, const Dims& dims) {
  const Integers shape(dims.begin(), dims.end());
  if (dims.elements() != 0) return node.reshape(value, shape);
  return node.add("tenon.reshape/1", node.attrs().i64s("shape", shape).i64("allow_zero", 1), {value});
}

/// `axes` of a tensor of `rank` as flags; Invalid for one that is out of range or there twice.
std::vector<bool> axis_flags(const Integers& axes, int rank) {
  std::vector<bool> flags(static_cast<size_t>(rank), false);
  for (const int64_t axis : axes) {
    const auto at = static_cast<size_t>(normalize_axis(axis, rank, "axes"));
    if (flags[at]) throw Invalid(text("attribute 'axes': axis ", axis, " is there twice"));
    flags[at] = true;
  }
  return flags;
}

// --- constants ---

TnValueId floats(OnnxNode& node, const std::vector<double>& values, const Dims& dims) {
  const std::vector<float> data(values.begin(), values.end());
  return node.constant(host_tensor(TN_F32, dims, data.data()));
}

void constant(OnnxNode& node) {
  if (node.has("value")) return node.output(0, node.tensor("value"));
  if (node.has("value_float")) return node.output(0, floats(node, {node.f64("value_float")}, Dims{}));
  if (node.has("value_floats")) {
    const std::vector<double> values = node.f64s("value_floats");
    return node.output(0, floats(node, values, Dims{static_cast<int64_t>(values.size())}));
  }
  if (node.has("value_int")) {
    const int64_t value = node.i64("value_int");
    return node.output(0, node.constant(host_tensor(TN_I64, Dims{}, &value)));
  }
  if (node.has("value_ints")) return node.output(0, node.constant(node.i64s("value_ints")));
  for (const char* attr : {"value_string", "value_strings", "sparse_value"}) {
    if (node.has(attr)) throw Unsupported{text("attribute ", attr)};
  }
  throw Invalid("expected an attribute that holds the value, found none");
}

void constant_of_shape(OnnxNode& node) {
  TnValueId value = node.has("value") ? node.tensor("value") : floats(node, {0.0}, Dims{});
  if (node.dims_of(value).elements() != 1) {
    throw Invalid(text("attribute value: expected one element, found dims ", to_text(node.dims_of(value))));
  }
  value = to_dims(node, value, Dims{});
  node.output(0, node.add("tenon.expand/1", {value, node.input(0)}));
}

// --- dims ---

void shape(OnnxNode& node) {
  node.output(0, node.add("tenon.shape/1",
                          node.attrs().i64("start", node.i64("start", 0)).i64("end", node.i64("end", INT64_MAX)),
                          {node.input(0)}));
}

void size(OnnxNode& node) { node.output(0, node.add("tenon.size/1", {node.input(0)})); }

void reshape(OnnxNode& node) {
  NewAttrs attrs = node.attrs();
  attrs.i64("allow_zero", node.flag("allowzero", false) ? 1 : 0);
  const Integers shape = node.required_i64s(1);
  if (node.is_computed(1)) return node.output(0, node.add("tenon.reshape/1", attrs, {node.input(0), node.input(1)}));
  node.output(0, node.add("tenon.reshape/1", attrs.i64s("shape", shape), {node.input(0)}));
}

/// The product of the dims from `begin` to `end` as a list of one number.
TnValueId dims_product(OnnxNode& node, int64_t begin, int64_t end) {
  const TnValueId dims = node.add("tenon.shape/1", node.attrs().i64("start", begin).i64("end", end), {node.input(0)});
  return node.add("tenon.reduce_prod/1", node.attrs().i64("keepdims", 1), {dims, node.constant(Integers{0})});
}

void flatten(OnnxNode& node) {
  const Dims dims = node.dims(0);
  const int64_t axis = node.i64("axis", 1);
  if (axis < -dims.rank || axis > dims.rank) {
    throw Invalid(text("attribute axis: expected ", -dims.rank, " to ", dims.rank, ", found ", axis));
  }
  const int at = static_cast<int>(axis < 0 ? axis + dims.rank : axis), last = dims.rank - 1;
  if (at == 1 && dims.rank == 2) return node.output(0, node.input(0));
  const auto reshaped = [&](const Integers& shape, const Integers& copies) {
    node.output(0,
                node.add("tenon.reshape/1", node.attrs().i64s("shape", shape).i64s("copies", copies), {node.input(0)}));
  };
  if (at == 0) return reshaped({1, -1}, {-1, -1});
  if (at == dims.rank) return reshaped({-1, 1}, {-1, -1});
  // Where a dim is copied, the rest can only be worked out if it is not 0.
  if (at == 1 && dims[0] != 0) return reshaped({0, -1}, {0, -1});
  if (at == last && dims[last] != 0) return reshaped({-1, 0}, {-1, last});
  const TnValueId shape = node.add("tenon.concat/1", node.attrs().i64("axis", 0),
                                   {dims_product(node, 0, at), dims_product(node, at, dims.rank)});
  node.output(0, node.add("tenon.reshape/1", node.attrs().i64("allow_zero", 1), {node.input(0), shape}));
}

void squeeze(OnnxNode& node) {
  const Dims dims = node.dims(0);
  const std::optional<Integers> axes = integers(node, "axes", 1, 13);
  const std::vector<bool> flags = axis_flags(axes ? *axes : Integers(), dims.rank);
  Integers left;
  for (int axis = 0; axis < dims.rank; ++axis) {
    const bool drop = axes ? flags[static_cast<size_t>(axis)] : dims[axis] == 1;
    if (drop && dims[axis] != 1) {
      throw Invalid(text("attribute 'axes': expected axes of size 1, found ", axis, " of ", to_text(dims)));
    }
    if (!drop) left.push_back(axis);
  }
  node.output(0, node.keep_axes(node.input(0), left));
}

void unsqueeze(OnnxNode& node) {
  const Dims dims = node.dims(0);
  const std::optional<Integers> axes = integers(node, "axes", 1, 13);
  if (!axes) throw Invalid("the axes are required but absent");
  if (axes->size() > TN_MAX_RANK) throw Invalid(text("attribute 'axes': found ", axes->size(), " axes"));
  const std::vector<bool> flags = axis_flags(*axes, dims.rank + static_cast<int>(axes->size()));
  Integers all;
  int64_t from = 0;
  for (const bool added : flags) all.push_back(added ? -1 : from++);
  node.output(0, node.keep_axes(node.input(0), all));
}

// --- movement ---

void expand(OnnxNode& node) { node.output(0, node.add("tenon.expand/1", {node.input(0), node.input(1)})); }

void tile(OnnxNode& node) { node.output(0, node.add("tenon.tile/1", {node.input(0), node.input(1)})); }

void concat(OnnxNode& node) {
  const std::vector<TnValueId> inputs = node.inputs_from(0);
  const int axis = normalize_axis(node.i64("axis"), node.rank(0));
  node.output(0, inputs.size() == 1 ? inputs[0] : node.add("tenon.concat/1", node.attrs().i64("axis", axis), inputs));
}

void slice(OnnxNode& node) {
  const bool in_attrs = node.since() < 10;
  const std::optional<Integers> starts = integers(node, "starts", 1, 10), ends = integers(node, "ends", 2, 10),
                                axes = integers(node, "axes", 3, 10);
  const std::optional<Integers> steps = in_attrs ? std::nullopt : node.known_i64s(4);
  if (!starts || !ends) throw Invalid("starts and ends are required but absent");
  NewAttrs attrs = node.attrs();
  if (!in_attrs && (node.is_computed(1) || node.is_computed(2) || node.is_computed(3) || node.is_computed(4))) {
    return node.output(
        0, node.add("tenon.slice/1", attrs,
                    {node.input(0), node.input(1), node.input(2), node.optional_input(3), node.optional_input(4)}));
  }
  attrs.i64s("starts", *starts).i64s("ends", *ends);
  if (axes) attrs.i64s("axes", *axes);
  if (steps) attrs.i64s("steps", *steps);
  node.output(0, node.add("tenon.slice/1", attrs, {node.input(0)}));
}

void transpose(OnnxNode& node) {
  Integers perm(static_cast<size_t>(node.rank(0)));
  std::iota(perm.rbegin(), perm.rend(), 0);
  const Integers given = node.i64s("perm", perm);
  if (given.size() != perm.size()) {
    throw Invalid(text("attribute perm: expected ", perm.size(), " axes, found ", given.size()));
  }
  node.output(0, node.transpose(node.input(0), given));
}

void gather(OnnxNode& node) {
  node.output(
      0, node.add("tenon.gather/1", node.attrs().i64("axis", node.i64("axis", 0)), {node.input(0), node.input(1)}));
}

/// Sizes of the outputs of Split.
Integers split_sizes(OnnxNode& node, int64_t size) {
  const int64_t count = node.i64("num_outputs", node.num_outputs());
  if (count != node.num_outputs()) {
    throw Invalid(
        text("attribute num_outputs: expected ", node.num_outputs(), ", the number of outputs, found ", count));
  }
  if (const std::optional<Integers> given = integers(node, "split", 1, 13)) {
    if (node.has("num_outputs")) throw Invalid("input split and attribute num_outputs cannot stand together");
    int64_t left = size;
    bool fits = static_cast<int64_t>(given->size()) == count;
    for (const int64_t part : *given) {
      fits = fits && part >= 0 && part <= left;
      if (fits) left -= part;
    }
    if (!fits || left != 0) {
      throw Invalid(
          text("split: expected ", count, " sizes that add up to ", size, ", found ", given->size(), " that do not"));
    }
    return *given;
  }
  if (!node.has("num_outputs") && size % count != 0) {
    throw Invalid(text("expected an axis that splits into ", count, " equal parts, found one of ", size));
  }
  const int64_t part = size / count + (size % count != 0 ? 1 : 0);
  Integers sizes;
  for (int64_t n = 0, left = size; n < count; ++n) {
    sizes.push_back(std::min(part, left));
    left -= sizes.back();
  }
  return sizes;
}

void split(OnnxNode& node) {
  const Dims dims = node.dims(0);
  const int axis = normalize_axis(node.i64("axis", 0), dims.rank);
  if (node.num_outputs() == 0) return;
  int64_t from = 0;
  int n = 0;
  for (const int64_t part : split_sizes(node, dims[axis])) {
    if (node.wants(n)) {
      node.output(n, node.add("tenon.slice/1",
                              node.attrs().i64s("starts", {from}).i64s("ends", {from + part}).i64s("axes", {axis}),
                              {node.input(0)}));
    }
    from += part;
    ++n;
  }
}

void pad(OnnxNode& node) {
  const bool in_attrs = node.since() < 11;
  const std::optional<Integers> pads = integers(node, "pads", 1, 11);
  if (!pads) throw Invalid("the pads are required but absent");
  TnValueId value = in_attrs ? node.scalar(node.dtype(0), node.f64("value", 0.0)) : node.optional_input(2);
  const TnValueId axes = in_attrs ? TN_NO_ID : node.optional_input(3);
  if (std::all_of(pads->begin(), pads->end(), [](int64_t pad) { return pad == 0; }) && axes == TN_NO_ID &&
      (in_attrs || !node.is_computed(1)) && pads->size() == 2 * static_cast<size_t>(node.rank(0))) {
    return node.output(0, node.input(0));
  }
  node.output(0, node.add("tenon.pad/1", node.attrs().str("mode", node.str("mode", "constant")),
                          {node.input(0), in_attrs ? node.constant(*pads) : node.input(1), value, axes}));
}

/// A crop where an axis is too long and zeros where it is too short, half of them on each side.
void center_crop_pad(OnnxNode& node) {
  const Dims dims = node.dims(0);
  Integers axes(static_cast<size_t>(dims.rank));
  std::iota(axes.begin(), axes.end(), 0);
  axes = node.i64s("axes", axes);
  const Integers sizes = node.required_i64s(1);
  if (sizes.size() != axes.size()) {
    throw Invalid(text("shape: expected ", axes.size(), " sizes, one for each axis, found ", sizes.size()));
  }
  axis_flags(axes, dims.rank);
  const auto rank = static_cast<size_t>(dims.rank);
  Integers pads(2 * rank, 0);
  for (size_t n = 0; n < axes.size(); ++n) {
    const auto axis = static_cast<size_t>(normalize_axis(axes[n], dims.rank, "axes"));
    const int64_t size = dims[static_cast<int>(axis)], wanted = sizes[n];
    if (wanted < 0) throw Invalid(text("shape: expected sizes of at least 0, found ", wanted));
    // Half of what is missing, rounded down on both ways: an odd one more is added behind and cut behind.
    const int64_t before = wanted >= size ? (wanted - size) / 2 : -((size - wanted) / 2);
    pads[axis] = before;
    pads[axis + rank] = wanted - size - before;
  }
  node.output(0, node.add("tenon.pad/1", {node.input(0), node.constant(pads)}));
}

/// Dims [N,C,H,W] of an image and the block size; Invalid unless `divided` axes are multiples of `by`.
int64_t block_size(OnnxNode& node, bool of_depth) {
  const Dims dims = node.dims(0);
  const int64_t block = node.i64("blocksize");
  if (dims.rank != 4) throw Invalid(text("input 0: expected rank 4, found ", to_text(dims)));
  if (block < 1 || block > INT32_MAX) throw Invalid(text("attribute blocksize: expected 1 or more, found ", block));
  const bool fits = of_depth ? dims[1] % (block * block) == 0 : dims[2] % block == 0 && dims[3] % block == 0;
  if (!fits) throw Invalid(text("attribute blocksize: ", block, " does not divide ", to_text(dims)));
  return block;
}

TnValueId to_shape(OnnxNode& node, TnValueId value, std::initializer_list<int64_t> dims) {
  return to_dims(node, value, Dims(dims));
}

void depth_to_space(OnnxNode& node) {
  const int64_t b = block_size(node, true);
  const Dims d = node.dims(0);
  const int64_t c = d[1] / (b * b);
  const std::string mode = node.str("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") throw Invalid(text("attribute mode: expected DCR or CRD, found ", mode));
  const TnValueId moved =
      mode == "DCR" ? node.transpose(to_shape(node, node.input(0), {d[0], b, b, c, d[2], d[3]}), {0, 3, 4, 1, 5, 2})
                    : node.transpose(to_shape(node, node.input(0), {d[0], c, b, b, d[2], d[3]}), {0, 1, 4, 2, 5, 3});
  node.output(0, to_shape(node, moved, {d[0], c, d[2] * b, d[3] * b}));
}

void space_to_depth(OnnxNode& node) {
  const int64_t b = block_size(node, false);
  const Dims d = node.dims(0);
  const TnValueId blocks = to_shape(node, node.input(0), {d[0], d[1], d[2] / b, b, d[3] / b, b});
  node.output(0, to_shape(node, node.transpose(blocks, {0, 3, 5, 1, 2, 4}), {d[0], d[1] * b * b, d[2] / b, d[3] / b}));
}

void trilu(OnnxNode& node) {
  node.output(0, node.add("tenon.trilu/1", node.attrs().i64("upper", node.flag("upper", true) ? 1 : 0),
                          {node.input(0), node.optional_input(1)}));
}

// --- made from numbers ---

/// The dtype in which references compute what ends up as `dtype`.
int32_t computed_as(int32_t dtype) { return dtype == TN_F16 || dtype == TN_BF16 ? TN_F32 : dtype; }

void range(OnnxNode& node) {
  const int32_t dtype = node.dtype(0);
  std::vector<TnValueId> numbers;
  for (int n = 0; n < 3; ++n) numbers.push_back(node.cast(node.input(n), computed_as(node.dtype(n))));
  node.output(0, node.cast(node.add("tenon.range/1", numbers), dtype));
}

void eye_like(OnnxNode& node) {
  const auto dtype = static_cast<int32_t>(node.i64("dtype", node.dtype(0)));
  const TnValueId eye = node.add(
      "tenon.eye_like/1", node.attrs().i64("k", node.i64("k", 0)).dtype("dtype", computed_as(dtype)), {node.input(0)});
  node.output(0, node.cast(eye, dtype));
}

const Rule kRules[] = {
    {"Constant", {1, 9, 11, 12, 13, 19, 21, 23, 24, 25}, constant},
    {"ConstantOfShape", {9, 20, 21, 23, 24, 25}, constant_of_shape},
    {"Shape", {1, 13, 15, 19, 21, 23, 24, 25}, shape},
    {"Size", {1, 13, 19, 21, 23, 24, 25}, size},
    {"Reshape", {5, 13, 14, 19, 21, 23, 24, 25}, reshape},
    {"Flatten", {1, 9, 11, 13, 21, 23, 24, 25}, flatten},
    {"Squeeze", {1, 11, 13, 21, 23, 24, 25}, squeeze},
    {"Unsqueeze", {1, 11, 13, 21, 23, 24, 25}, unsqueeze},
    {"Expand", {8, 13}, expand},
    {"Tile", {6, 13}, tile},
    {"Concat", {4, 11, 13}, concat},
    {"Slice", {1, 10, 11, 13}, slice},
    {"Transpose", {1, 13, 21, 23, 24, 25}, transpose},
    {"Gather", {1, 11, 13}, gather},
    {"Split", {2, 11, 13, 18}, split},
    {"Pad", {2, 11, 13, 18, 19, 21, 23, 24, 25}, pad},
    {"CenterCropPad", {18}, center_crop_pad},
    {"DepthToSpace", {1, 11, 13}, depth_to_space},
    {"SpaceToDepth", {1, 13}, space_to_depth},
    {"Trilu", {14}, trilu},
    {"Range", {11, 27}, range},
    {"EyeLike", {9, 22}, eye_like},
};

}  // namespace

std::span<const Rule> shape_rules() { return kRules; }

}  // namespace tenon::onnx
