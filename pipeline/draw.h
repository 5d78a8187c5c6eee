// Drawing detections into a picture: a frame in the colour of the class, and a tag such as "dog 65%".
//
// Thread rule: free functions; call from any thread, on different pictures.
#ifndef TENON_PIPELINE_DRAW_H
#define TENON_PIPELINE_DRAW_H

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/detection.h"
#include "pipeline/image.h"

namespace tenon::pipeline {

using Rgb = std::array<std::uint8_t, 3>;

/// The colour of a class: vivid, fixed for a number, and far apart for neighbouring numbers.
Rgb class_color(int class_id);

/// Black or white, whichever has the greater contrast on this background (WCAG 2.1 relative luminance).
Rgb text_color(const Rgb& background);

/// A rectangle of whole pixels.
struct PixelRect {
  int left = 0;
  int top = 0;
  int width = 0;
  int height = 0;
};

/// Draws each frame, better scores over worse ones. Thickness and letters grow with the picture. A tag stands above its
/// frame, or inside or below it where the picture ends or another tag stands; it never leaves the picture, and a text
/// that is too wide for the picture is made smaller and then cut. Characters outside ASCII are shown as '?'.
/// Returns the place of each tag in the order of `detections`; a picture too small for any letter gets empty ones.
std::vector<PixelRect> draw_detections(Image& image, std::span<const Detection> detections,
                                       const std::vector<std::string>& labels);

/// Draws lines of text, such as the classes of a classifier, on a dark field in the upper left corner.
/// Returns the place of the field, empty when the picture is too small.
PixelRect draw_lines(Image& image, std::span<const std::string> lines);

}  // namespace tenon::pipeline

#endif  // TENON_PIPELINE_DRAW_H
