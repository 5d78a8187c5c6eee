// From a picture to the tensor that a network reads, in exactly the arithmetic of Darknet.
//
// Thread rule: plain values and free functions; call from any thread.
#ifndef TENON_PIPELINE_RESIZE_H
#define TENON_PIPELINE_RESIZE_H

#include <tenon/status.hpp>
#include <vector>

#include "pipeline/detection.h"
#include "pipeline/image.h"

namespace tenon::pipeline {

/// How a picture is brought to the size of the network.
enum class Resize {
  kStretch,        ///< to the network's size; the aspect ratio is not kept
  kLetterbox,      ///< the whole picture, aspect ratio kept, the rest filled
  kShortSideCrop,  ///< the network is filled, aspect ratio kept, what sticks out is cut off on both sides alike
  kNone,           ///< the picture must have the network's size already
};

/// Where a letterboxed picture lies in the network's input.
enum class Placement { kCenter, kTopLeft };

/// Channel order of the tensor. Gray is 0.299 R + 0.587 G + 0.114 B (ITU-R BT.601), one channel.
enum class Color { kRgb, kBgr, kGray };

const char* resize_name(Resize resize);           ///< "stretch", "letterbox", "short_side_crop", "none"
const char* color_name(Color color);              ///< "rgb", "bgr", "gray"
const char* placement_name(Placement placement);  ///< "center", "top_left"

/// Planes of float: value (c, y, x) is data[(c * height + y) * width + x].
struct Planes {
  int channels = 0;
  int height = 0;
  int width = 0;
  std::vector<float> data;
};

/// How a picture lies in the network's input: needed to map boxes back.
struct Geometry {
  int image_width = 0;
  int image_height = 0;
  int net_width = 0;
  int net_height = 0;
  int content_width = 0;  ///< of the whole resized picture, in net pixels; may exceed the net after a crop
  int content_height = 0;
  int offset_x = 0;  ///< where the resized picture begins; negative after a crop
  int offset_y = 0;
  Placement placement = Placement::kCenter;
};

struct PreprocessOptions {
  Resize resize = Resize::kLetterbox;
  Placement placement = Placement::kCenter;
  double pad = 127.5;         ///< the byte that fills a letterbox; the default is Darknet's 0.5
  bool align_corners = true;  ///< see resize_bilinear
  Color color = Color::kRgb;
  double scale = 1.0 / 255.0;
  std::vector<double> mean;  ///< one value a channel in `color` order, or empty for 0
  std::vector<double> std;   ///< likewise, or empty for 1
};

struct Preprocessed {
  Planes tensor;  ///< the network's input for one picture, NCHW with N = 1
  Geometry geometry;
};

/// Bilinear, the x pass before the y pass, all in float32 without fused multiply-add. With align_corners as Darknet's
/// resize_image: source position c * (float)(in - 1) / (out - 1); the last column and row are copies of the source's.
/// Without: (c + 0.5) * in / out - 0.5, clamped to the source, as OpenCV and PyTorch do.
/// REQUIRES: source not empty, width and height at least 1.
Planes resize_bilinear(const Planes& source, int width, int height, bool align_corners = true);

/// Where a picture goes in a network input of this size. Fails with kInvalid when a size is not positive, or when
/// kNone is asked for and the sizes differ.
Result<Geometry> plan_geometry(Resize resize, int image_width, int image_height, int net_width, int net_height,
                               Placement placement = Placement::kCenter);

/// Resizes in the range 0..1 (byte / 255.0, rounded to float), as Darknet does, and then gives each value
/// (byte * scale - mean) / std, where byte is value * 255; with scale 1/255 and no mean and std, values stay as they
/// are. With Resize::kNone, net_width and net_height may be 0 for "the picture's size". Fails with kInvalid, naming the
/// option, when mean or std have not one value a channel or std holds 0.
Result<Preprocessed> preprocess(const Image& image, const PreprocessOptions& options, int net_width, int net_height);

/// Maps a box from shares of the network's input to shares of the picture.
/// The margin of a centred letterbox is taken as (net - content) / 2 without rounding, as Darknet's correct_yolo_boxes
/// does, although the picture is placed at the rounded-down integer: for an odd margin this is half a net pixel apart,
/// and equal boxes with Darknet are worth more here.
RelativeBox to_picture(const Geometry& geometry, const RelativeBox& in_net);

/// A box in shares of the picture as pixels of the picture.
Box to_pixels(const Geometry& geometry, const RelativeBox& in_picture);

}  // namespace tenon::pipeline

#endif  // TENON_PIPELINE_RESIZE_H
