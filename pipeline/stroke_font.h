// A small sans-serif font of lines and arcs, drawn for Tenon: printable ASCII, scalable, no files and no licence to
// carry.
//
// Thread rule: free functions; call from any thread.
#ifndef TENON_PIPELINE_STROKE_FONT_H
#define TENON_PIPELINE_STROKE_FONT_H

#include <string>
#include <string_view>
#include <vector>

namespace tenon::pipeline {

/// Width of the pen in the units of TextLayout; the ends of strokes are round.
inline constexpr float kPenWidth = 0.155f;

/// How far letters such as g reach below the baseline, without the pen.
inline constexpr float kDescent = 0.3f;

/// The centre line of a piece of a stroke, from (x0, y0) to (x1, y1).
struct Stroke {
  float x0 = 0;
  float y0 = 0;
  float x1 = 0;
  float y1 = 0;
};

/// A line of text: x to the right from the pen's left edge, y up from the baseline, capital letters 1 high.
struct TextLayout {
  std::vector<Stroke> strokes;
  float width = 0;  ///< including the pen
};

/// Lays out a line of printable ASCII; anything else becomes '?'.
TextLayout layout_text(std::string_view text);

/// The text with each character outside printable ASCII (a whole UTF-8 sequence counts as one) replaced by '?'.
std::string printable_ascii(std::string_view text);

}  // namespace tenon::pipeline

#endif  // TENON_PIPELINE_STROKE_FONT_H
