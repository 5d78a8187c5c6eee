#include "pipeline/draw.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "pipeline/labels.h"
#include "pipeline/stroke_font.h"

namespace tenon::pipeline {
namespace {

// Shares of the picture's mean side, chosen by eye on pictures from 64 to 4000 pixels.
constexpr float kThicknessShare = 0.0042f;
constexpr float kLetterShare = 0.0175f;
constexpr float kSmallestLetter = 8;   // height of a capital in pixels; below this, words are hard to read
constexpr float kTiniestLetter = 5.5;  // used only where the picture is too narrow for more
constexpr float kPadding = 0.5f;       // around the text, in capital heights; holds the descenders
constexpr float kThinnestPen = 1.25f;  // pixels

float mean_side(const Image& image) { return 0.5f * static_cast<float>(image.width + image.height); }

void blend(std::uint8_t* pixel, const Rgb& color, float share) {
  for (int c = 0; c < 3; ++c) {
    pixel[c] = static_cast<std::uint8_t>(std::lround(pixel[c] + (color[c] - pixel[c]) * share));
  }
}

/// Fills the part of a rectangle that lies in the picture; corners may lie far outside.
void fill(Image& image, double left, double top, double right, double bottom, const Rgb& color, float share = 1) {
  const int x0 = static_cast<int>(std::clamp(left, 0.0, double(image.width)));
  const int x1 = static_cast<int>(std::clamp(right, 0.0, double(image.width)));
  const int y0 = static_cast<int>(std::clamp(top, 0.0, double(image.height)));
  const int y1 = static_cast<int>(std::clamp(bottom, 0.0, double(image.height)));
  for (int y = y0; y < y1; ++y) {
    for (int x = x0; x < x1; ++x) blend(image.pixel(x, y), color, share);
  }
}

float distance_to(const Stroke& stroke, float x, float y) {
  const float dx = stroke.x1 - stroke.x0;
  const float dy = stroke.y1 - stroke.y0;
  const float length2 = dx * dx + dy * dy;
  const float along = length2 > 0 ? ((x - stroke.x0) * dx + (y - stroke.y0) * dy) / length2 : 0;
  const float t = std::clamp(along, 0.0f, 1.0f);
  return std::hypot(x - (stroke.x0 + t * dx), y - (stroke.y0 + t * dy));
}

/// Draws text with its left edge at `left` and its baseline at `baseline`, capitals `size` pixels high. The coverage of
/// a pixel falls from 1 to 0 within one pixel of the stroke's edge. REQUIRES: the text lies in the picture.
void draw_text(Image& image, const TextLayout& layout, float left, float baseline, float size, const Rgb& color) {
  const float radius = std::max(kThinnestPen, kPenWidth * size) / 2;
  const int x0 = std::max(0, static_cast<int>(left) - 1);
  const int x1 = std::min(image.width, static_cast<int>(left + layout.width * size) + 3);
  const int y0 = std::max(0, static_cast<int>(baseline - 1.2f * size) - 1);
  const int y1 = std::min(image.height, static_cast<int>(baseline + (kDescent + kPenWidth) * size) + 3);
  if (x1 <= x0 || y1 <= y0) return;
  std::vector<float> coverage(std::size_t(x1 - x0) * std::size_t(y1 - y0), 0.0f);
  for (const Stroke& in_units : layout.strokes) {
    const Stroke stroke{left + in_units.x0 * size, baseline - in_units.y0 * size, left + in_units.x1 * size,
                        baseline - in_units.y1 * size};
    const float reach = radius + 1;
    const int sx0 = std::max(x0, static_cast<int>(std::min(stroke.x0, stroke.x1) - reach));
    const int sx1 = std::min(x1, static_cast<int>(std::max(stroke.x0, stroke.x1) + reach) + 1);
    const int sy0 = std::max(y0, static_cast<int>(std::min(stroke.y0, stroke.y1) - reach));
    const int sy1 = std::min(y1, static_cast<int>(std::max(stroke.y0, stroke.y1) + reach) + 1);
    for (int y = sy0; y < sy1; ++y) {
      for (int x = sx0; x < sx1; ++x) {
        const float distance = distance_to(stroke, static_cast<float>(x) + 0.5f, static_cast<float>(y) + 0.5f);
        float& covered = coverage[std::size_t(y - y0) * std::size_t(x1 - x0) + std::size_t(x - x0)];
        covered = std::max(covered, std::clamp(radius + 0.5f - distance, 0.0f, 1.0f));
      }
    }
  }
  for (int y = y0; y < y1; ++y) {
    for (int x = x0; x < x1; ++x) {
      blend(image.pixel(x, y), color, coverage[std::size_t(y - y0) * std::size_t(x1 - x0) + std::size_t(x - x0)]);
    }
  }
}

/// A text with the size at which it fits the picture.
struct Tag {
  TextLayout layout;
  float size = 0;
  int width = 0;
  int height = 0;
};

/// Nothing when not even one letter fits.
std::optional<Tag> fit(const Image& image, std::string text) {
  const auto width_of = [](const TextLayout& layout, float size) {
    return static_cast<int>(std::ceil((layout.width + 2 * kPadding) * size));
  };
  const auto height_of = [](float size) { return static_cast<int>(std::ceil((1 + 2 * kPadding) * size)); };
  float size = std::max(kSmallestLetter, std::round(kLetterShare * mean_side(image) * 2) / 2);
  for (; !text.empty(); text.pop_back()) {
    const TextLayout layout = layout_text(text);
    while (size > kTiniestLetter && (width_of(layout, size) > image.width || height_of(size) > image.height)) {
      size -= 0.5f;
    }
    if (height_of(size) > image.height) return {};
    if (width_of(layout, size) <= image.width) return Tag{layout, size, width_of(layout, size), height_of(size)};
  }
  return {};
}

bool meets(const PixelRect& a, const PixelRect& b) {
  return a.left < b.left + b.width && b.left < a.left + a.width && a.top < b.top + b.height && b.top < a.top + a.height;
}

/// The frame of a detection in whole pixels: outer edge, and inner edge `thickness` further in.
struct Frame {
  double left;
  double top;
  double right;
  double bottom;
};

Frame frame_of(const Box& box) {
  return {std::round(double(box.left)), std::round(double(box.top)), std::round(double(box.left) + box.width),
          std::round(double(box.top) + box.height)};
}

void draw_frame(Image& image, const Frame& frame, int thickness, const Rgb& color) {
  const double t = std::min<double>(thickness, std::max(1.0, (frame.bottom - frame.top) / 2));
  fill(image, frame.left, frame.top, frame.right, frame.top + t, color);
  fill(image, frame.left, frame.bottom - t, frame.right, frame.bottom, color);
  fill(image, frame.left, frame.top + t, frame.left + t, frame.bottom - t, color);
  fill(image, frame.right - t, frame.top + t, frame.right, frame.bottom - t, color);
}

/// Above the frame, else inside at its top, below it, or inside at its bottom; the first that is free of other tags.
PixelRect place_tag(const Image& image, const Tag& tag, const Frame& frame, std::span<const PixelRect> taken) {
  const double tops[] = {frame.top - tag.height, frame.top, frame.bottom, frame.bottom - tag.height};
  const auto within = [](double position, int length, int limit) {
    return static_cast<int>(std::clamp(position, 0.0, double(limit - length)));
  };
  std::optional<PixelRect> first;
  for (const double top : tops) {
    const PixelRect rect{within(frame.left, tag.width, image.width), within(top, tag.height, image.height), tag.width,
                         tag.height};
    if (rect.top != top) continue;  // this one would leave the picture
    if (!first) first = rect;
    if (std::none_of(taken.begin(), taken.end(), [&](const PixelRect& other) { return meets(rect, other); })) {
      return rect;
    }
  }
  if (first) return *first;
  return {within(frame.left, tag.width, image.width), within(frame.top, tag.height, image.height), tag.width,
          tag.height};
}

void draw_tag_text(Image& image, const Tag& tag, const PixelRect& rect, const Rgb& color) {
  const float baseline = std::round(static_cast<float>(rect.top) + (1 + kPadding) * tag.size);
  draw_text(image, tag.layout, static_cast<float>(rect.left) + kPadding * tag.size, baseline, tag.size, color);
}

double linear(std::uint8_t channel) {  // sRGB to linear light, IEC 61966-2-1
  const double value = channel / 255.0;
  return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
}

}  // namespace

Rgb class_color(int class_id) {
  // Steps of the golden ratio around the colour circle keep any run of classes far apart; HSV with full value.
  constexpr double kGoldenRatio = 0.61803398874989485;
  constexpr double kFirstHue = 0.36;  // class 0 is green
  constexpr double kSaturation = 0.82;
  const double turns = kFirstHue + kGoldenRatio * static_cast<double>(class_id);
  const double hue = (turns - std::floor(turns)) * 6;
  Rgb color{};
  const double offsets[] = {5, 3, 1};
  for (int c = 0; c < 3; ++c) {
    const double k = std::fmod(offsets[c] + hue, 6);
    const double value = 1 - kSaturation * std::clamp(std::min(k, 4 - k), 0.0, 1.0);
    color[c] = static_cast<std::uint8_t>(std::lround(255 * value));
  }
  return color;
}

Rgb text_color(const Rgb& background) {
  const double luminance =
      0.2126 * linear(background[0]) + 0.7152 * linear(background[1]) + 0.0722 * linear(background[2]);
  const bool black = (luminance + 0.05) / 0.05 >= 1.05 / (luminance + 0.05);
  return black ? Rgb{0, 0, 0} : Rgb{255, 255, 255};
}

std::vector<PixelRect> draw_detections(Image& image, std::span<const Detection> detections,
                                       const std::vector<std::string>& labels) {
  std::vector<std::size_t> best_first(detections.size());
  for (std::size_t i = 0; i < best_first.size(); ++i) best_first[i] = i;
  std::stable_sort(best_first.begin(), best_first.end(),
                   [&](std::size_t a, std::size_t b) { return detections[a].score > detections[b].score; });
  const int thickness = std::max(1, static_cast<int>(std::lround(kThicknessShare * mean_side(image))));

  std::vector<PixelRect> rects(detections.size());
  std::vector<std::optional<Tag>> tags(detections.size());
  std::vector<PixelRect> taken;
  for (const std::size_t i : best_first) {
    const Detection& found = detections[i];
    tags[i] = fit(image, printable_ascii(label_of(labels, found.class_id)) + " " +
                             std::to_string(std::lround(found.score * 100)) + "%");
    if (!tags[i]) continue;
    rects[i] = place_tag(image, *tags[i], frame_of(found.box), taken);
    taken.push_back(rects[i]);
  }
  for (auto it = best_first.rbegin(); it != best_first.rend(); ++it) {
    draw_frame(image, frame_of(detections[*it].box), thickness, class_color(detections[*it].class_id));
  }
  for (auto it = best_first.rbegin(); it != best_first.rend(); ++it) {
    if (!tags[*it]) continue;
    const PixelRect& rect = rects[*it];
    const Rgb color = class_color(detections[*it].class_id);
    fill(image, rect.left, rect.top, rect.left + rect.width, rect.top + rect.height, color);
    draw_tag_text(image, *tags[*it], rect, text_color(color));
  }
  return rects;
}

PixelRect draw_lines(Image& image, std::span<const std::string> lines) {
  constexpr Rgb kField{0, 0, 0};
  constexpr Rgb kLetters{255, 255, 255};
  constexpr float kFieldShare = 0.65f;
  std::vector<Tag> tags;
  PixelRect field;
  for (const std::string& line : lines) {
    std::optional<Tag> tag = fit(image, printable_ascii(line));
    if (!tag || field.height + tag->height > image.height) break;
    field.width = std::max(field.width, tag->width);
    field.height += tag->height;
    tags.push_back(std::move(*tag));
  }
  fill(image, 0, 0, field.width, field.height, kField, kFieldShare);
  int top = 0;
  for (const Tag& tag : tags) {
    draw_tag_text(image, tag, {0, top, tag.width, tag.height}, kLetters);
    top += tag.height;
  }
  return field;
}

}  // namespace tenon::pipeline
