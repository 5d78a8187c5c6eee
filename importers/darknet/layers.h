// What each section of a cfg means: sizes worked out and checked, nothing read from the weights and nothing built yet.
//
// Thread rule: plain values and free functions; call from any thread.
#ifndef TENON_IMPORTERS_DARKNET_LAYERS_H_
#define TENON_IMPORTERS_DARKNET_LAYERS_H_

#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "importers/darknet/cfg.h"

namespace tenon::darknet {

// One example's value between two sections: an image, or (image false) a row of `channels` numbers.
struct Shape {
  int64_t channels = 0;
  int64_t height = 1;
  int64_t width = 1;
  bool image = true;

  int64_t elements() const { return channels * height * width; }
};
std::string to_text(const Shape& shape);  // "3x416x416" (channels, height, width) or "1470"
bool operator==(const Shape& a, const Shape& b);

// An op of one input, or none for linear.
struct Activation {
  std::string op;
  double alpha = 0;  // 0: the op has no such attribute
};

struct Convolution {
  int64_t filters, size, stride_y, stride_x, padding, dilation, groups;
  bool batch_normalize;
  Activation activation;
  uint64_t weights;  // floats
};
struct Connected {
  int64_t outputs;
  bool batch_normalize;
  Activation activation;
};
struct MaxPool {
  int64_t size, stride_y, stride_x;
  std::array<int64_t, 4> pads;  // top, left, bottom, right; the last two may be negative
};
struct AveragePool {};
// The middle of the image; then x * 2 - 1 if `adjust`.
struct Crop {
  int64_t top, left;
  bool adjust;
};
struct Softmax {
  int64_t groups;
  double temperature;
};
// Part `group_id` of the channels of each layer, one after the other.
struct Route {
  std::vector<int> layers;
  int64_t groups, group_id;
};
// The section's input with layers added to it. One with fewer or more channels is added over those that both have; of
// one with a larger image every n-th row and column is added, n being the quotient of the sizes.
struct Shortcut {
  std::vector<int> layers;
  Activation activation;
};
struct Upsample {
  int64_t stride;
  double scale;
};
struct Reorg {
  int64_t stride;
};
// [region] and [yolo]. anchors holds width and height of each box that this head uses, in its own order.
struct Head {
  bool yolo;
  int64_t boxes, classes, coords;
  std::vector<double> anchors;
  bool softmax;
  double scale_x_y;
  std::string nms_kind;
};
// YOLOv1's head. With softmax, over `classes` numbers at a time, `cells` times from the first number on.
struct Detection {
  bool softmax;
  int64_t classes, cells;
};
// Nothing at inference: [dropout], [cost], [route] of one whole layer. Its value is that of `layer`, -1: the input.
struct Alias {
  int layer;
};
using Operation = std::variant<Convolution, Connected, MaxPool, AveragePool, Crop, Softmax, Route, Shortcut, Upsample,
                               Reorg, Head, Detection, Alias>;

struct Layer {
  Shape in, out;
  uint64_t floats = 0;  // in the weights file
  Operation operation;
};

struct PlanOptions {
  bool maxpool_2017 = false;  // (in + 2 * padding) / stride, windows from -padding
};

// The input that [net] describes.
Shape plan_input(const Section& net);

// False for a section that is not Darknet's own, or that this importer cannot read.
bool knows(const Section& section);

// The layer of `section`, whose input is the last of `before` (outputs of the layers before it) or `input`. Fails with
// Invalid, naming section, line, what was expected and what was found. REQUIRES: knows(section).
Layer plan_layer(const Section& section, const Shape& input, const std::vector<Shape>& before,
                 const PlanOptions& options);

// Darknet's names of activations, with "expected ..." if there is no op for one.
Activation plan_activation(const Section& section, const std::string& fallback);

}  // namespace tenon::darknet

#endif  // TENON_IMPORTERS_DARKNET_LAYERS_H_
