#include "importers/darknet/layers.h"

#include <algorithm>
#include <numeric>
#include <tenon/sdk/error.hpp>

namespace tenon::darknet {
namespace {

// Darknet counts elements, weights and pixels in int.
constexpr int64_t kMost = INT32_MAX;

struct Context {
  const Section& section;
  const Shape& input;
  const std::vector<Shape>& before;
  const PlanOptions& options;

  Shape in() const { return before.empty() ? input : before.back(); }
};

// The product, which must stay within Darknet's own limit.
int64_t product(const Section& section, const char* what, std::initializer_list<int64_t> factors) {
  int64_t result = 1;
  for (const int64_t factor : factors) {
    if (__builtin_mul_overflow(result, factor, &result) || result > kMost) {
      section.fail(text(what, ": expected at most ", kMost, ", found more"));
    }
  }
  return result;
}

Shape checked(const Section& section, const Shape& shape) {
  if (shape.channels < 1 || shape.height < 1 || shape.width < 1) {
    section.fail(text("expected an output of at least one element, found ", to_text(shape)));
  }
  product(section, "elements of the output", {shape.channels, shape.height, shape.width});
  return shape;
}

Shape image_input(const Context& c) {
  const Shape in = c.in();
  if (!in.image) c.section.fail(text("expected an image as input, found a row of ", to_text(in), " numbers"));
  return in;
}

int64_t out_size(const Section& section, const char* what, int64_t in, int64_t pads, int64_t window, int64_t stride) {
  if (in + pads < window) {
    section.fail(text("a window of ", window, " does not fit into ", what, " ", in, " with ", pads, " of padding"));
  }
  return (in + pads - window) / stride + 1;
}

void refuse(const Section& section, std::initializer_list<const char*> keys) {
  for (const char* key : keys) section.must_be(key, 0);
}

void strides(const Section& section, int64_t fallback, int64_t* vertical, int64_t* horizontal) {
  const int64_t both = section.integer("stride", fallback, 1, kMost);
  *vertical = section.integer("stride_y", both, 1, kMost);
  *horizontal = section.integer("stride_x", both, 1, kMost);
}

Layer plan_convolution(const Context& c) {
  const Section& s = c.section;
  refuse(s, {"binary", "xnor", "bin_output", "flipped", "dot", "antialiasing", "sway", "rotate", "stretch",
             "stretch_sway", "deform", "assisted_excitation", "coordconv", "dontload", "dontloadscales", "reverse"});
  if (s.has("share_index")) s.fail_at("share_index", "share_index is not supported");
  const Shape in = image_input(c);
  Convolution conv{};
  conv.filters = s.integer("filters", 1, 1, kMost);
  conv.size = s.integer("size", 1, 1, kMost);
  strides(s, 1, &conv.stride_y, &conv.stride_x);
  conv.groups = s.integer("groups", 1, 1, kMost);
  conv.dilation = conv.size == 1 ? 1 : s.integer("dilation", 1, 1, kMost);
  const bool pad = s.integer("pad", 0, INT32_MIN, kMost) != 0;
  const int64_t padding = pad ? conv.size / 2 : s.integer("padding", 0, 0, kMost);
  conv.batch_normalize = s.integer("batch_normalize", 0, INT32_MIN, kMost) != 0;
  conv.activation = plan_activation(s, "logistic");
  if (in.channels % conv.groups != 0 || conv.filters % conv.groups != 0) {
    s.fail_at("groups", text("groups=", conv.groups, " must divide the ", in.channels, " input channels and the ",
                             conv.filters, " filters"));
  }
  // The fork pads dilated windows by padding * dilation, but works the output size out as if they were dense.
  conv.padding = product(s, "padding * dilation", {padding, conv.dilation});
  const int64_t window = product(s, "dilation * (size - 1)", {conv.dilation, conv.size - 1}) + 1;
  Shape out = in;
  out.channels = conv.filters;
  out.height = out_size(s, "height", in.height, 2 * conv.padding, window, conv.stride_y);
  out.width = out_size(s, "width", in.width, 2 * conv.padding, window, conv.stride_x);
  if (2 * conv.padding - window != 2 * padding - conv.size) {
    s.fail_at("dilation", text("dilation=", conv.dilation, " with size=", conv.size, " and padding=", padding,
                               " is not supported: Darknet's output size does not fit its own windows; use pad=1"));
  }
  conv.weights =
      static_cast<uint64_t>(product(s, "weights", {conv.filters, in.channels / conv.groups, conv.size, conv.size}));
  const uint64_t vectors = conv.batch_normalize ? 4 : 1;
  return {in, checked(s, out), conv.weights + vectors * static_cast<uint64_t>(conv.filters), conv};
}

Layer plan_connected(const Context& c) {
  refuse(c.section, {"flipped", "dontload", "dontloadscales"});
  const Shape in = c.in();
  Connected dense{};
  dense.outputs = c.section.integer("output", 1, 1, kMost);
  dense.batch_normalize = c.section.integer("batch_normalize", 0, INT32_MIN, kMost) != 0;
  dense.activation = plan_activation(c.section, "logistic");
  const int64_t weights = product(c.section, "weights", {dense.outputs, in.elements()});
  const int64_t vectors = dense.batch_normalize ? 4 : 1;
  return {in, {dense.outputs, 1, 1, false}, static_cast<uint64_t>(weights + vectors * dense.outputs), dense};
}

Layer plan_max_pool(const Context& c) {
  const Section& s = c.section;
  refuse(s, {"maxpool_depth", "antialiasing", "maxpool_zero_nonmax"});
  const Shape in = image_input(c);
  MaxPool pool{};
  strides(s, 1, &pool.stride_y, &pool.stride_x);
  pool.size = s.integer("size", pool.stride_x, 1, kMost);
  const int64_t padding = s.integer("padding", c.options.maxpool_2017 ? (pool.size - 1) / 2 : pool.size - 1, 0, kMost);
  // `begin` cells before the image; `end` cells behind it, which makes the output size what the rule says.
  const auto axis = [&](const char* what, int64_t size, int64_t stride, int64_t* begin, int64_t* end) {
    int64_t out = 0;
    if (c.options.maxpool_2017) {
      *begin = padding;
      out = (size + 2 * padding) / stride;
      *end = (out - 1) * stride + pool.size - size - padding;
    } else {
      *begin = padding / 2;
      *end = padding - *begin;
      out = out_size(s, what, size, padding, pool.size, stride);
    }
    const int64_t last = (out - 1) * stride - *begin;
    if (out < 1 || *begin >= pool.size || last >= size) {
      s.fail(text("size=", pool.size, " stride=", stride, " padding=", padding, " on ", what, " ", size,
                  ": expected windows that each touch the image, found one that lies outside it"));
    }
    return out;
  };
  Shape out = in;
  out.height = axis("height", in.height, pool.stride_y, &pool.pads[0], &pool.pads[2]);
  out.width = axis("width", in.width, pool.stride_x, &pool.pads[1], &pool.pads[3]);
  return {in, checked(s, out), 0, pool};
}

Layer plan_average_pool(const Context& c) {
  if (c.section.has("size") || c.section.has("stride")) {
    c.section.fail("expected a pool over the whole image, found size or stride; those are not supported");
  }
  const Shape in = image_input(c);
  return {in, {in.channels, 1, 1, true}, 0, AveragePool{}};
}

Layer plan_crop(const Context& c) {
  const Shape in = image_input(c);
  Shape out = in;
  out.height = c.section.integer("crop_height", 1, 1, in.height);
  out.width = c.section.integer("crop_width", 1, 1, in.width);
  const bool adjust = c.section.integer("noadjust", 0, INT32_MIN, kMost) == 0;
  return {in, out, 0, Crop{(in.height - out.height) / 2, (in.width - out.width) / 2, adjust}};
}

Layer plan_softmax(const Context& c) {
  refuse(c.section, {"spatial"});
  if (c.section.has("tree")) c.section.fail_at("tree", "a softmax tree is not supported");
  const Shape in = c.in();
  Softmax softmax{};
  softmax.groups = c.section.integer("groups", 1, 1, kMost);
  softmax.temperature = c.section.number("temperature", 1);
  if (softmax.temperature <= 0) c.section.fail_at("temperature", "temperature: expected a number above 0");
  if (in.elements() % softmax.groups != 0) {
    c.section.fail_at("groups", text("groups=", softmax.groups, " must divide the ", in.elements(), " inputs"));
  }
  return {in, in, 0, softmax};
}

// A layer that `key` names: -1 is the one before this section.
int earlier_layer(const Context& c, const char* key, int64_t written) {
  const int64_t layer = written < 0 ? c.section.index + written : written;
  if (layer < 0 || layer >= c.section.index) {
    c.section.fail_at(key, text(key, "=", written, " names layer ", layer, "; expected ",
                                c.section.index == 0 ? "none, as this is the first layer"
                                                     : text("one of 0 to ", c.section.index - 1)));
  }
  return static_cast<int>(layer);
}

std::vector<int> earlier_layers(const Context& c, const char* key) {
  std::vector<int> layers;
  for (const int64_t written : c.section.integers(key)) layers.push_back(earlier_layer(c, key, written));
  if (layers.empty()) c.section.fail(text(key, " is missing: expected the numbers of earlier layers"));
  return layers;
}

Layer plan_route(const Context& c) {
  Route route;
  route.layers = earlier_layers(c, "layers");
  route.groups = c.section.integer("groups", 1, 1, kMost);
  route.group_id = c.section.integer("group_id", 0, 0, route.groups - 1);
  const auto shape_of = [&](int layer) { return c.before[static_cast<size_t>(layer)]; };
  Shape out = shape_of(route.layers[0]);
  out.channels = 0;
  for (const int layer : route.layers) {
    const Shape part = shape_of(layer);
    if (part.image != out.image || part.height != out.height || part.width != out.width) {
      c.section.fail_at("layers",
                        text("expected layers of one height and width, found ", to_text(shape_of(route.layers[0])),
                             " in layer ", route.layers[0], " and ", to_text(part), " in layer ", layer));
    }
    if (part.channels % route.groups != 0) {
      c.section.fail_at(
          "groups", text("groups=", route.groups, " must divide the ", part.channels, " channels of layer ", layer));
    }
    out.channels += part.channels / route.groups;
  }
  checked(c.section, out);
  const Shape in = c.in();
  if (route.layers.size() == 1 && route.groups == 1) return {in, out, 0, Alias{route.layers[0]}};
  return {in, out, 0, route};
}

Layer plan_shortcut(const Context& c) {
  const Section& s = c.section;
  if (s.word("weights_type", "none") != "none") s.fail_at("weights_type", "weights_type: only none is supported");
  for (const char* key : {"alpha", "beta"}) {
    if (s.number(key, 1) != 1) s.fail_at(key, text(key, ": only 1 is supported"));
  }
  refuse(s, {"assisted_excitation"});
  const Shape in = c.in();
  Shortcut shortcut;
  shortcut.layers = earlier_layers(c, "from");
  shortcut.activation = plan_activation(s, "linear");
  for (const int layer : shortcut.layers) {
    const Shape from = c.before[static_cast<size_t>(layer)];
    // The original steps through a larger image by the quotient of the sizes, which must be one number.
    if (from.image != in.image || from.height < in.height || from.width < in.width ||
        from.height / in.height != from.width / in.width) {
      s.fail_at("from", text("expected a layer of the height and width of the input ", to_text(in),
                             ", or of a multiple of both, found ", to_text(from), " in layer ", layer));
    }
  }
  return {in, in, 0, shortcut};
}

Layer plan_upsample(const Context& c) {
  const Shape in = image_input(c);
  Upsample upsample{};
  upsample.stride = c.section.integer("stride", 2, 1, kMost);
  upsample.scale = c.section.number("scale", 1);
  Shape out = in;
  out.height = product(c.section, "height", {in.height, upsample.stride});
  out.width = product(c.section, "width", {in.width, upsample.stride});
  return {in, checked(c.section, out), 0, upsample};
}

Layer plan_reorg(const Context& c) {
  refuse(c.section, {"reverse", "flatten", "extra"});
  const Shape in = image_input(c);
  const int64_t stride = c.section.integer("stride", 1, 1, kMost);
  const int64_t area = product(c.section, "stride * stride", {stride, stride});
  if (in.channels % area != 0 || in.height % stride != 0 || in.width % stride != 0) {
    c.section.fail_at("stride", text("stride=", stride, " needs channels divisible by ", area,
                                     " and height and width divisible by ", stride, ", found ", to_text(in)));
  }
  return {in, {in.channels * area, in.height / stride, in.width / stride, true}, 0, Reorg{stride}};
}

// Width and height of each of the `num` boxes of [net]'s or the grid's unit.
std::vector<double> plan_anchors(const Section& section, int64_t num) {
  std::vector<double> anchors = section.numbers("anchors");
  if (static_cast<int64_t>(anchors.size()) != 2 * num) {
    section.fail_at("anchors", text("anchors: expected 2 * num = ", 2 * num, " numbers, found ", anchors.size()));
  }
  for (const double anchor : anchors) {
    if (anchor <= 0) section.fail_at("anchors", text("anchors: expected numbers above 0, found ", anchor));
  }
  return anchors;
}

Layer finish_head(const Context& c, Head head) {
  const Shape in = image_input(c);
  const int64_t channels = product(c.section, "channels", {head.boxes, head.coords + 1 + head.classes});
  if (in.channels != channels) {
    c.section.fail(text("expected ", head.boxes, " boxes * (", head.coords, " coords + 1 + ", head.classes,
                        " classes) = ", channels, " input channels, found ", in.channels));
  }
  return {in, in, 0, std::move(head)};
}

Layer plan_region(const Context& c) {
  refuse(c.section, {"background"});
  if (c.section.has("tree")) c.section.fail_at("tree", "a softmax tree is not supported");
  Head head{};
  head.yolo = false;
  head.boxes = c.section.integer("num", 1, 1, kMost / 2);
  head.classes = c.section.integer("classes", 20, 1, kMost / 2);
  head.coords = c.section.integer("coords", 4, 4, kMost / 2);
  head.softmax = c.section.integer("softmax", 0, INT32_MIN, kMost) != 0;
  head.scale_x_y = 1;
  head.nms_kind = "default";
  head.anchors = plan_anchors(c.section, head.boxes);
  return finish_head(c, std::move(head));
}

Layer plan_yolo(const Context& c) {
  const Section& s = c.section;
  refuse(s, {"new_coords"});
  if (s.has("embedding_layer")) s.fail_at("embedding_layer", "embedding_layer is not supported");
  const int64_t num = s.integer("num", 1, 1, kMost / 2);
  const std::vector<double> anchors = plan_anchors(s, num);
  std::vector<int64_t> mask = s.integers("mask");
  if (mask.empty()) {
    mask.resize(static_cast<size_t>(num));
    std::iota(mask.begin(), mask.end(), 0);
  }
  Head head{};
  head.yolo = true;
  head.boxes = static_cast<int64_t>(mask.size());
  head.classes = s.integer("classes", 20, 1, kMost / 2);
  head.coords = 4;
  head.softmax = false;
  head.scale_x_y = s.number("scale_x_y", 1);
  head.nms_kind = s.word("nms_kind", "default");
  constexpr const char* kNmsKinds[] = {"default", "greedynms", "diounms", "cornersnms"};
  if (std::find(std::begin(kNmsKinds), std::end(kNmsKinds), head.nms_kind) == std::end(kNmsKinds)) {
    s.fail_at("nms_kind",
              text("nms_kind: expected default, greedynms, diounms or cornersnms, found '", head.nms_kind, "'"));
  }
  for (const int64_t box : mask) {
    if (box < 0 || box >= num) {
      s.fail_at("mask", text("mask: expected numbers of 0 to ", num - 1, " (num=", num, "), found ", box));
    }
    head.anchors.push_back(anchors[static_cast<size_t>(2 * box)]);
    head.anchors.push_back(anchors[static_cast<size_t>(2 * box + 1)]);
  }
  return finish_head(c, std::move(head));
}

Layer plan_detection(const Context& c) {
  const Section& s = c.section;
  refuse(s, {"reorg"});
  const Shape in = c.in();
  const int64_t side = s.integer("side", 7, 1, kMost);
  const int64_t classes = s.integer("classes", 1, 1, kMost);
  const int64_t coords = s.integer("coords", 1, 1, kMost);
  const int64_t num = s.integer("num", 1, 1, kMost);
  const int64_t cells = product(s, "side * side", {side, side});
  const int64_t boxes = product(s, "(1 + coords) * num", {1 + coords, num});
  const int64_t expected = product(s, "inputs", {cells, boxes + classes});
  if (in.elements() != expected) {
    s.fail(
        text("expected side * side * ((1 + coords) * num + classes) = ", expected, " inputs, found ", in.elements()));
  }
  const bool softmax = s.integer("softmax", 0, INT32_MIN, kMost) != 0;
  return {in, {expected, 1, 1, false}, 0, Detection{softmax, classes, cells}};
}

Layer plan_nothing(const Context& c) { return {c.in(), c.in(), 0, Alias{c.section.index - 1}}; }

struct Kind {
  std::string_view type;
  Layer (*plan)(const Context&);
};
constexpr Kind kKinds[] = {
    {"convolutional", plan_convolution},
    {"connected", plan_connected},
    {"maxpool", plan_max_pool},
    {"avgpool", plan_average_pool},
    {"crop", plan_crop},
    {"softmax", plan_softmax},
    {"route", plan_route},
    {"shortcut", plan_shortcut},
    {"upsample", plan_upsample},
    {"reorg", plan_reorg},
    {"region", plan_region},
    {"yolo", plan_yolo},
    {"detection", plan_detection},
    {"dropout", plan_nothing},
    {"cost", plan_nothing},
};

const Kind* kind_of(const Section& section) {
  const auto kind =
      std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& k) { return k.type == section.type; });
  return kind == std::end(kKinds) ? nullptr : kind;
}

}  // namespace

std::string to_text(const Shape& shape) {
  return shape.image ? text(shape.channels, "x", shape.height, "x", shape.width) : text(shape.channels);
}

bool operator==(const Shape& a, const Shape& b) {
  return a.channels == b.channels && a.height == b.height && a.width == b.width && a.image == b.image;
}

Shape plan_input(const Section& net) {
  Shape shape;
  const auto size = [&](const char* key) {
    if (!net.has(key)) net.fail(text(key, " is missing: expected the ", key, " of the input image"));
    return net.integer(key, 0, 1, kMost);
  };
  shape.channels = size("channels");
  shape.height = size("height");
  shape.width = size("width");
  return checked(net, shape);
}

bool knows(const Section& section) { return kind_of(section) != nullptr; }

Layer plan_layer(const Section& section, const Shape& input, const std::vector<Shape>& before,
                 const PlanOptions& options) {
  return kind_of(section)->plan({section, input, before, options});
}

Activation plan_activation(const Section& section, const std::string& fallback) {
  struct Known {
    const char* name;
    Activation activation;
  };
  static const Known known[] = {
      {"linear", {"", 0}},
      {"leaky", {"tenon.leaky_relu/1", 0.1}},
      {"relu", {"tenon.relu/1", 0}},
      {"relu6", {"tenon.relu6/1", 0}},
      {"logistic", {"tenon.logistic/1", 0}},
      {"tanh", {"tenon.tanh/1", 0}},
      {"elu", {"tenon.elu/1", 1}},
      {"mish", {"tenon.mish/1", 0}},
      {"swish", {"tenon.swish/1", 0}},
  };
  const std::string name = section.word("activation", fallback);
  for (const Known& entry : known) {
    if (name == entry.name) return entry.activation;
  }
  std::string names;
  for (const Known& entry : known) names += text(names.empty() ? "" : ", ", entry.name);
  section.fail_at("activation", text("activation '", name, "' is not supported; expected one of ", names));
}

}  // namespace tenon::darknet
