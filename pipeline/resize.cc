// Compiled with -ffp-contract=off: a fused multiply-add gives other last bits than Darknet.
#include "pipeline/resize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>

namespace tenon::pipeline {
namespace {

std::string size_text(int width, int height) { return std::to_string(width) + " x " + std::to_string(height); }

std::size_t area(int width, int height) { return std::size_t(width) * std::size_t(height); }

/// (float)(byte / 255.0) of every byte.
std::array<float, 256> unit_values() {
  std::array<float, 256> values{};
  for (int byte = 0; byte < 256; ++byte) values[byte] = static_cast<float>(byte / 255.0);
  return values;
}

Planes to_planes(const Image& image, Color color) {
  static const std::array<float, 256> unit = unit_values();
  const std::size_t pixels = area(image.width, image.height);
  Planes planes{color == Color::kGray ? 1 : 3, image.height, image.width, {}};
  planes.data.resize(pixels * planes.channels);
  const std::uint8_t* rgb = image.rgb.data();
  float* out = planes.data.data();
  if (color == Color::kGray) {
    for (std::size_t i = 0; i < pixels; ++i, rgb += 3) {
      out[i] = static_cast<float>((0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2]) / 255.0);
    }
    return planes;
  }
  const int red = color == Color::kRgb ? 0 : 2;
  for (std::size_t i = 0; i < pixels; ++i, rgb += 3) {
    out[i] = unit[rgb[red]];
    out[pixels + i] = unit[rgb[1]];
    out[2 * pixels + i] = unit[rgb[2 - red]];
  }
  return planes;
}

/// Copies `content` into a canvas at (offset_x, offset_y), cutting off what lies outside.
Planes place(const Planes& content, const Geometry& geometry, float filler) {
  Planes canvas{content.channels, geometry.net_height, geometry.net_width, {}};
  canvas.data.assign(area(canvas.width, canvas.height) * canvas.channels, filler);
  const int first_x = std::max(0, geometry.offset_x);
  const int last_x = std::min(canvas.width, geometry.offset_x + content.width);
  const int first_y = std::max(0, geometry.offset_y);
  const int last_y = std::min(canvas.height, geometry.offset_y + content.height);
  for (int c = 0; c < content.channels; ++c) {
    for (int y = first_y; y < last_y; ++y) {
      const float* from = content.data.data() +
                          (std::size_t(c) * content.height + (y - geometry.offset_y)) * content.width +
                          (first_x - geometry.offset_x);
      float* to = canvas.data.data() + (std::size_t(c) * canvas.height + y) * canvas.width + first_x;
      std::copy(from, from + std::max(0, last_x - first_x), to);
    }
  }
  return canvas;
}

/// A sample of a resized axis lies between two of the source; its position is low + part.
struct Sample {
  int low, high;
  float part;
};

std::vector<Sample> samples(int from, int to, bool align_corners) {
  std::vector<Sample> list(to, {from - 1, from - 1, 0.0f});
  if (from == 1) return list;
  const float scale = align_corners ? static_cast<float>(from - 1) / static_cast<float>(to - 1)
                                    : static_cast<float>(from) / static_cast<float>(to);
  // With aligned corners the last sample is that of the source, whatever rounding makes of it.
  for (int i = 0; i < (align_corners ? to - 1 : to); ++i) {
    const float center = (static_cast<float>(i) + 0.5f) * scale - 0.5f;
    const float position =
        align_corners ? static_cast<float>(i) * scale : std::clamp(center, 0.0f, static_cast<float>(from - 1));
    const int low = static_cast<int>(position);
    list[i] = {low, std::min(low + 1, from - 1), position - static_cast<float>(low)};
  }
  return list;
}

Status check_per_channel(const char* key, const std::vector<double>& values, int channels, const char* color) {
  if (values.empty() || values.size() == std::size_t(channels)) return {};
  return Status(Code::kInvalid, std::string("preprocess.") + key + " has " + std::to_string(values.size()) +
                                    " values, but color " + color + " has " + std::to_string(channels) +
                                    " channels; give one value a channel");
}

/// (byte * scale - mean) / std on values that hold byte / 255.
void normalise(Planes& planes, const PreprocessOptions& options) {
  const float gain = static_cast<float>(options.scale * 255.0);
  const std::size_t plane = area(planes.width, planes.height);
  for (int c = 0; c < planes.channels; ++c) {
    const float mean = options.mean.empty() ? 0.0f : static_cast<float>(options.mean[c]);
    const float std = options.std.empty() ? 1.0f : static_cast<float>(options.std[c]);
    if (gain == 1.0f && mean == 0.0f && std == 1.0f) continue;
    float* values = planes.data.data() + c * plane;
    for (std::size_t i = 0; i < plane; ++i) values[i] = (values[i] * gain - mean) / std;
  }
}

}  // namespace

const char* resize_name(Resize resize) {
  switch (resize) {
    case Resize::kStretch:
      return "stretch";
    case Resize::kLetterbox:
      return "letterbox";
    case Resize::kShortSideCrop:
      return "short_side_crop";
    case Resize::kNone:
      return "none";
  }
  return "unknown";
}

const char* color_name(Color color) {
  switch (color) {
    case Color::kRgb:
      return "rgb";
    case Color::kBgr:
      return "bgr";
    case Color::kGray:
      return "gray";
  }
  return "unknown";
}

const char* placement_name(Placement placement) { return placement == Placement::kTopLeft ? "top_left" : "center"; }

Planes resize_bilinear(const Planes& source, int width, int height, bool align_corners) {
  if (width == source.width && height == source.height) return source;
  const std::vector<Sample> columns = samples(source.width, width, align_corners);
  const std::vector<Sample> lines = samples(source.height, height, align_corners);
  Planes rows{source.channels, source.height, width, {}};
  rows.data.resize(area(width, source.height) * source.channels);
  for (std::size_t r = 0; r < std::size_t(source.channels) * source.height; ++r) {
    const float* in = source.data.data() + r * source.width;
    float* out = rows.data.data() + r * width;
    for (const Sample& column : columns) *out++ = (1 - column.part) * in[column.low] + column.part * in[column.high];
  }

  Planes result{source.channels, height, width, {}};
  result.data.resize(area(width, height) * source.channels);
  for (int c = 0; c < source.channels; ++c) {
    const float* in = rows.data.data() + area(width, source.height) * c;
    float* out = result.data.data() + area(width, height) * c;
    for (const Sample& line : lines) {
      const float* upper = in + area(width, line.low);
      const float* lower = in + area(width, line.high);
      for (int x = 0; x < width; ++x) {
        const float upper_share = (1 - line.part) * upper[x];
        out[x] = upper_share + line.part * lower[x];
      }
      out += width;
    }
  }
  return result;
}

Result<Geometry> plan_geometry(Resize resize, int image_width, int image_height, int net_width, int net_height,
                               Placement placement) {
  if (image_width < 1 || image_height < 1) return Status(Code::kInvalid, "the picture is empty");
  if (net_width < 1 || net_height < 1) {
    return Status(Code::kInvalid, "the network's input size " + size_text(net_width, net_height) + " is not positive");
  }
  Geometry geometry{image_width, image_height, net_width, net_height, net_width, net_height, 0, 0};
  if (resize == Resize::kStretch) return geometry;
  if (resize == Resize::kNone) {
    if (image_width == net_width && image_height == net_height) return geometry;
    return Status(Code::kInvalid, "preprocess.resize is none, but the picture is " +
                                      size_text(image_width, image_height) + " and the network's input " +
                                      size_text(net_width, net_height) + "; use stretch, letterbox or short_side_crop");
  }
  const float x_ratio = static_cast<float>(net_width) / static_cast<float>(image_width);
  const float y_ratio = static_cast<float>(net_height) / static_cast<float>(image_height);
  const bool fit_width = resize == Resize::kLetterbox ? x_ratio < y_ratio : x_ratio > y_ratio;
  const auto proportional = [](int side, int net_side, int image_side) {
    return static_cast<int>(std::clamp<std::int64_t>(std::int64_t(side) * net_side / image_side, 1, 1 << 24));
  };
  if (fit_width) {
    geometry.content_height = proportional(image_height, net_width, image_width);
  } else {
    geometry.content_width = proportional(image_width, net_height, image_height);
  }
  const bool crop = resize == Resize::kShortSideCrop;
  if (resize == Resize::kLetterbox && placement == Placement::kTopLeft) {
    geometry.placement = placement;
    return geometry;
  }
  geometry.offset_x = crop ? -((geometry.content_width - net_width) / 2) : (net_width - geometry.content_width) / 2;
  geometry.offset_y = crop ? -((geometry.content_height - net_height) / 2) : (net_height - geometry.content_height) / 2;
  if (std::uint64_t(geometry.content_width) * std::uint64_t(geometry.content_height) > kMaxImagePixels) {
    return Status(Code::kInvalid, "resizing a picture of " + size_text(image_width, image_height) + " to " +
                                      size_text(geometry.content_width, geometry.content_height) +
                                      " takes too much memory; use letterbox or stretch");
  }
  return geometry;
}

Result<Preprocessed> preprocess(const Image& image, const PreprocessOptions& options, int net_width, int net_height) {
  if (options.resize == Resize::kNone && net_width == 0) net_width = image.width;
  if (options.resize == Resize::kNone && net_height == 0) net_height = image.height;
  TENON_ASSIGN(const Geometry geometry,
               plan_geometry(options.resize, image.width, image.height, net_width, net_height, options.placement));
  const int channels = options.color == Color::kGray ? 1 : 3;
  TENON_RETURN_IF_ERROR(check_per_channel("mean", options.mean, channels, color_name(options.color)));
  TENON_RETURN_IF_ERROR(check_per_channel("std", options.std, channels, color_name(options.color)));
  if (std::find(options.std.begin(), options.std.end(), 0.0) != options.std.end()) {
    return Status(Code::kInvalid, "preprocess.std holds 0, by which nothing can be divided");
  }
  Planes tensor = resize_bilinear(to_planes(image, options.color), geometry.content_width, geometry.content_height,
                                  options.align_corners);
  if (tensor.width != net_width || tensor.height != net_height) {
    tensor = place(tensor, geometry, static_cast<float>(options.pad / 255.0));
  }
  normalise(tensor, options);
  return Preprocessed{std::move(tensor), geometry};
}

RelativeBox to_picture(const Geometry& geometry, const RelativeBox& in_net) {
  const bool exact = geometry.placement == Placement::kTopLeft;
  const auto center = [exact](float position, int net, int content, int offset) {
    const double margin = (exact || content > net ? offset : (net - content) / 2.0) / net;
    return static_cast<float>((position - margin) / (static_cast<float>(content) / static_cast<float>(net)));
  };
  const auto extent = [](float size, int net, int content) {
    return size * (static_cast<float>(net) / static_cast<float>(content));
  };
  return {center(in_net.x, geometry.net_width, geometry.content_width, geometry.offset_x),
          center(in_net.y, geometry.net_height, geometry.content_height, geometry.offset_y),
          extent(in_net.width, geometry.net_width, geometry.content_width),
          extent(in_net.height, geometry.net_height, geometry.content_height)};
}

Box to_pixels(const Geometry& geometry, const RelativeBox& in_picture) {
  const float image_width = static_cast<float>(geometry.image_width);
  const float image_height = static_cast<float>(geometry.image_height);
  return {(in_picture.x - in_picture.width / 2) * image_width, (in_picture.y - in_picture.height / 2) * image_height,
          in_picture.width * image_width, in_picture.height * image_height};
}

}  // namespace tenon::pipeline
