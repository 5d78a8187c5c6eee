// Glyphs are written as paths in a grid where capitals are 14 units high, x to the right, y up from the baseline:
//   M x y               move the pen
//   L x y               line
//   Q cx cy x y         quadratic curve with control point (cx, cy)
//   A cx cy rx ry s e   arc of the ellipse around (cx, cy), from angle s to e in degrees counter-clockwise from the
//                       right; the arc is joined to the path by a line, unless an M without numbers came before it
#include "pipeline/stroke_font.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numbers>

namespace tenon::pipeline {
namespace {

constexpr float kUnitsPerCapital = 14;
constexpr float kLetterGap = 3.6f;  // between the centre lines of two upright stems
constexpr float kSpaceWidth = 2.4f;
constexpr int kStepsPerCircle = 32;
constexpr int kStepsPerCurve = 8;

struct Glyph {
  float width;  // between the outermost centre lines
  const char* path;
};

// From ' ' (32) to '~' (126). One glyph a line is easier to read than what the formatter makes of it.
// clang-format off
constexpr std::array<Glyph, 95> kGlyphs{{
    {kSpaceWidth, ""},                                                                         // space
    {0, "M0 14 L0 4.6 M0 0 L0 0"},                                                             // !
    {3.4f, "M0 14 L0 10.4 M3.4 14 L3.4 10.4"},                                                 // "
    {9, "M3 13 L1.4 1 M7.6 13 L6 1 M0.4 9.2 L9 9.2 M0 4.8 L8.6 4.8"},                          // #
    {8, "M A4.1 9.9 3.5 2.9 30 270 A4.1 4.1 3.8 2.9 90 -145 M4.1 15 L4.1 -1"},                 // $
    {13, "M A2.9 10.8 2.9 3.2 0 360 M A10.1 3.2 2.9 3.2 0 360 M10.6 14 L2.4 0"},               // %
    {10, "M10 0 L2.3 9 Q1 10.6 1.2 11.6 A3.9 11.4 2.7 2.6 180 0 Q6.6 9.4 3.4 7.6 Q0 5.8 0 3.6 A4 3.6 4 3.6 180 270 "
         "Q8.4 0 9 6.4"},                                                                      // &
    {0, "M0 14 L0 10.4"},                                                                      // '
    {3, "M3 15.4 Q0 11.6 0 6.2 Q0 0.8 3 -3"},                                                  // (
    {3, "M0 15.4 Q3 11.6 3 6.2 Q3 0.8 0 -3"},                                                  // )
    {6, "M3 14 L3 7.6 M0.2 12.4 L5.8 9.2 M5.8 12.4 L0.2 9.2"},                                 // *
    {8, "M0 6 L8 6 M4 10 L4 2"},                                                               // +
    {1, "M1 0.4 L0 -2.8"},                                                                     // ,
    {5, "M0 5.4 L5 5.4"},                                                                      // -
    {0, "M0 0 L0 0"},                                                                          // .
    {5.6f, "M0 -1.6 L5.6 15"},                                                                 // /
    {8.4f, "M A4.2 7 4.2 7 0 360"},                                                            // 0
    {4.2f, "M0 11.2 L4.2 14 L4.2 0"},                                                          // 1
    {8, "M A4 10.1 3.8 3.9 165 -32 L0 0 L8 0"},                                                // 2
    {8, "M A3.8 10.6 3.6 3.4 150 -90 M A3.8 3.6 4.1 3.6 90 -152"},                             // 3
    {8.8f, "M6.4 0 L6.4 14 L0 4 L8.8 4"},                                                      // 4
    {8, "M7.2 14 L1.3 14 L0.7 7.4 A3.8 4.5 4.2 4.5 132 -148"},                                 // 5
    {8.4f, "M A4.2 4.4 4.2 4.4 0 360 M0 4.4 Q0.2 11.6 6.4 14"},                                // 6
    {8, "M0 14 L8 14 L2.8 0"},                                                                 // 7
    {8.4f, "M A4.2 10.6 3.6 3.4 0 360 M A4.2 3.6 4.2 3.6 0 360"},                              // 8
    {8.4f, "M A4.2 9.6 4.2 4.4 0 360 M8.4 9.6 Q8.2 2.4 2 0"},                                  // 9
    {0, "M0 0 L0 0 M0 8.6 L0 8.6"},                                                            // :
    {1, "M1 0.4 L0 -2.8 M1 8.6 L1 8.6"},                                                       // ;
    {7.4f, "M7.4 10.6 L0 6.2 L7.4 1.8"},                                                       // <
    {8, "M0 8.2 L8 8.2 M0 3.8 L8 3.8"},                                                        // =
    {7.4f, "M0 10.6 L7.4 6.2 L0 1.8"},                                                         // >
    {6.8f, "M A3.4 10.6 3.4 3.4 165 -40 Q3.4 7 3.4 4.4 M3.4 0 L3.4 0"},                        // ?
    {13, "M A6.4 5.6 2.8 3.2 0 360 M9.2 8.8 L9.2 4.6 Q9.4 2.4 11.2 2.6 Q13 3 13 6 A6.5 6 6.5 7.4 0 305"},  // @
    {10.4f, "M0 0 L5.2 14 L10.4 0 M1.8 4.6 L8.6 4.6"},                                         // A
    {8.6f, "M0 7.6 L0 14 L4.6 14 A4.6 10.8 3.3 3.2 90 -90 L0 7.6 L0 0 L4.8 0 A4.8 3.8 3.8 3.8 -90 90"},   // B
    {10, "M A5.6 7 5.6 7 48 312"},                                                             // C
    {9.6f, "M0 0 L0 14 L3.4 14 A3.4 7 6.2 7 90 -90 L0 0"},                                     // D
    {7.4f, "M7.4 14 L0 14 L0 0 L7.4 0 M0 7.3 L6.4 7.3"},                                       // E
    {7.2f, "M7.2 14 L0 14 L0 0 M0 7.1 L6.2 7.1"},                                              // F
    {10.8f, "M A5.6 7 5.6 7 48 340 L10.9 6.4 L6.6 6.4"},                                       // G
    {9.2f, "M0 0 L0 14 M9.2 0 L9.2 14 M0 7.2 L9.2 7.2"},                                       // H
    {0, "M0 0 L0 14"},                                                                         // I
    {6, "M6 14 L6 3.4 A3 3.4 3 3.4 0 -165"},                                                   // J
    {8.6f, "M0 0 L0 14 M8.2 14 L0 5.4 M3.2 8.6 L8.6 0"},                                       // K
    {7, "M0 14 L0 0 L7 0"},                                                                    // L
    {11.4f, "M0 0 L0 14 L5.7 4 L11.4 14 L11.4 0"},                                             // M
    {9.4f, "M0 0 L0 14 L9.4 0 L9.4 14"},                                                       // N
    {11.2f, "M A5.6 7 5.6 7 0 360"},                                                           // O
    {8.2f, "M0 0 L0 14 L4.3 14 A4.3 10.1 3.9 3.9 90 -90 L0 6.2"},                              // P
    {11.2f, "M A5.6 7 5.6 7 0 360 M6.8 3.6 L10.8 -1"},                                         // Q
    {8.6f, "M0 0 L0 14 L4.3 14 A4.3 10.2 3.9 3.8 90 -90 L0 6.4 M4.3 6.4 L8.6 0"},              // R
    {8.2f, "M A4.2 10.5 3.7 3.5 38 270 A4.1 3.5 4.1 3.5 90 -142"},                             // S
    {9.2f, "M0 14 L9.2 14 M4.6 14 L4.6 0"},                                                    // T
    {9.2f, "M0 14 L0 4.6 A4.6 4.6 4.6 4.6 180 360 L9.2 14"},                                   // U
    {10, "M0 14 L5 0 L10 14"},                                                                 // V
    {14.4f, "M0 14 L3.6 0 L7.2 12.4 L10.8 0 L14.4 14"},                                        // W
    {9.2f, "M0 14 L9.2 0 M9.2 14 L0 0"},                                                       // X
    {9.2f, "M0 14 L4.6 6.8 L9.2 14 M4.6 6.8 L4.6 0"},                                          // Y
    {8.8f, "M0 14 L8.8 14 L0 0 L8.8 0"},                                                       // Z
    {2.6f, "M2.6 15.4 L0 15.4 L0 -3 L2.6 -3"},                                                 // [
    {5.6f, "M0 15 L5.6 -1.6"},                                                                 // backslash
    {2.6f, "M0 15.4 L2.6 15.4 L2.6 -3 L0 -3"},                                                 // ]
    {7, "M0 9.6 L3.5 14 L7 9.6"},                                                              // ^
    {8, "M0 -2.4 L8 -2.4"},                                                                    // _
    {2.4f, "M0 14.4 L2.4 11.8"},                                                               // `
    {8.2f, "M A4.1 5 4.1 5 0 360 M8.2 10 L8.2 0"},                                             // a
    {8.2f, "M0 14 L0 0 M A4.1 5 4.1 5 0 360"},                                                 // b
    {7.6f, "M A4.2 5 4.2 5 46 314"},                                                           // c
    {8.2f, "M A4.1 5 4.1 5 0 360 M8.2 14 L8.2 0"},                                             // d
    {8.4f, "M0.1 5.2 L8.4 5.2 A4.2 5 4.2 5 2 318"},                                            // e
    {5.2f, "M1.9 0 L1.9 11 A4.7 11 2.8 3 180 78 M0 9.6 L5 9.6"},                               // f
    {8.2f, "M A4.1 5 4.1 5 0 360 M8.2 10 L8.2 -0.4 A4.1 -0.4 4.1 3.8 0 -150"},                 // g
    {7.6f, "M0 14 L0 0 M0 5.6 A3.8 6.2 3.8 3.8 180 0 L7.6 0"},                                 // h
    {0, "M0 9.8 L0 0 M0 13.8 L0 13.8"},                                                        // i
    {1.8f, "M1.8 9.8 L1.8 -1.6 Q1.8 -4.2 0 -4.2 M1.8 13.8 L1.8 13.8"},                         // j
    {7.2f, "M0 14 L0 0 M6.8 10 L0 3.8 M2.6 6.2 L7.2 0"},                                       // k
    {0, "M0 14 L0 0"},                                                                         // l
    {12.4f, "M0 10 L0 0 M0 6.4 A3.1 6.8 3.1 3.2 180 0 L6.2 0 M6.2 6.4 A9.3 6.8 3.1 3.2 180 0 L12.4 0"},  // m
    {7.6f, "M0 10 L0 0 M0 5.6 A3.8 6.2 3.8 3.8 180 0 L7.6 0"},                                 // n
    {8.4f, "M A4.2 5 4.2 5 0 360"},                                                            // o
    {8.2f, "M0 10 L0 -4.2 M A4.1 5 4.1 5 0 360"},                                              // p
    {8.2f, "M8.2 10 L8.2 -4.2 M A4.1 5 4.1 5 0 360"},                                          // q
    {5, "M0 10 L0 0 M0 5.6 A3.8 6.2 3.8 3.8 180 72"},                                          // r
    {6.8f, "M A3.5 7.5 3.1 2.5 32 270 A3.4 2.5 3.4 2.5 90 -148"},                              // s
    {5.2f, "M2 13 L2 3 A4.7 3 2.7 3 180 282 M0 9.6 L5 9.6"},                                   // t
    {7.6f, "M0 10 L0 3.8 A3.8 3.8 3.8 3.8 180 360 M7.6 10 L7.6 0"},                            // u
    {8, "M0 10 L4 0 L8 10"},                                                                   // v
    {12, "M0 10 L3 0 L6 9.4 L9 0 L12 10"},                                                     // w
    {7.6f, "M0 10 L7.6 0 M7.6 10 L0 0"},                                                       // x
    {8, "M0 10 L4 0.2 M8 10 L3.5 -2 Q2.6 -4.2 0.2 -4.2"},                                      // y
    {7, "M0 10 L7 10 L0 0 L7 0"},                                                              // z
    {3.4f, "M3.4 15.4 Q1.6 15.4 1.6 12 Q1.6 6.6 0 6.2 Q1.6 5.8 1.6 0.4 Q1.6 -3 3.4 -3"},       // {
    {0, "M0 15.4 L0 -3"},                                                                      // |
    {3.4f, "M0 15.4 Q1.8 15.4 1.8 12 Q1.8 6.6 3.4 6.2 Q1.8 5.8 1.8 0.4 Q1.8 -3 0 -3"},         // }
    {8, "M0 5 Q1.6 8 4 6.4 Q6.4 4.8 8 7.6"},                                                   // ~
}};
// clang-format on

/// Turns a path into strokes at the pen's place.
class Pen {
 public:
  Pen(float x, std::vector<Stroke>& strokes) : origin_(x), strokes_(strokes) {}

  void draw(std::string_view path) {
    rest_ = path;
    for (char command = next(); command != '\0'; command = next()) {
      if (command == 'M') {
        down_ = false;
        if (!number_follows()) continue;
        const auto [x, y] = numbers<2>();
        move(x, y);
      } else if (command == 'L') {
        const auto [x, y] = numbers<2>();
        line(x, y);
      } else if (command == 'Q') {
        const auto [cx, cy, x, y] = numbers<4>();
        curve(cx, cy, x, y);
      } else {
        const auto [cx, cy, rx, ry, start, end] = numbers<6>();
        arc(cx, cy, rx, ry, start, end);
      }
    }
  }

 private:
  char next() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
    if (rest_.empty()) return '\0';
    const char command = rest_.front();
    rest_.remove_prefix(1);
    return command;
  }
  bool number_follows() const { return !rest_.empty() && rest_.front() != ' '; }
  template <std::size_t kCount>
  std::array<float, kCount> numbers() {
    std::array<float, kCount> values;
    for (float& value : values) value = number();
    return values;
  }
  float number() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
    float value = 0;
    const auto result = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    rest_.remove_prefix(static_cast<std::size_t>(result.ptr - rest_.data()));
    return value;
  }
  void move(float x, float y) {
    x_ = x;
    y_ = y;
    down_ = true;
  }
  void line(float x, float y) {
    strokes_.push_back({(origin_ + x_) / kUnitsPerCapital, y_ / kUnitsPerCapital, (origin_ + x) / kUnitsPerCapital,
                        y / kUnitsPerCapital});
    move(x, y);
  }
  void curve(float cx, float cy, float x, float y) {
    const float x0 = x_;
    const float y0 = y_;
    for (int i = 1; i <= kStepsPerCurve; ++i) {
      const float t = static_cast<float>(i) / kStepsPerCurve;
      const float s = 1 - t;
      line(s * s * x0 + 2 * s * t * cx + t * t * x, s * s * y0 + 2 * s * t * cy + t * t * y);
    }
  }
  void arc(float cx, float cy, float rx, float ry, float start, float end) {
    const int steps = std::max(2, static_cast<int>(std::fabs(end - start) * kStepsPerCircle / 360));
    for (int i = 0; i <= steps; ++i) {
      const float angle =
          (start + (end - start) * static_cast<float>(i) / static_cast<float>(steps)) * std::numbers::pi_v<float> / 180;
      const float x = cx + rx * std::cos(angle);
      const float y = cy + ry * std::sin(angle);
      down_ ? line(x, y) : move(x, y);
    }
  }

  float origin_;
  std::vector<Stroke>& strokes_;
  std::string_view rest_;
  float x_ = 0;
  float y_ = 0;
  bool down_ = false;
};

const Glyph& glyph_of(char c) {
  const bool printable = c >= ' ' && c <= '~';
  return kGlyphs[static_cast<std::size_t>((printable ? c : '?') - ' ')];
}

}  // namespace

TextLayout layout_text(std::string_view text) {
  TextLayout layout;
  constexpr float kPen = kPenWidth * kUnitsPerCapital;
  float x = kPen / 2;
  for (const char c : text) {
    const Glyph& glyph = glyph_of(c);
    Pen(x, layout.strokes).draw(glyph.path);
    x += glyph.width + kLetterGap;
  }
  if (!text.empty()) layout.width = (x - kLetterGap + kPen / 2) / kUnitsPerCapital;
  return layout;
}

std::string printable_ascii(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool continues = (static_cast<unsigned char>(c) & 0xC0) == 0x80;
    if (continues && !result.empty()) continue;
    result += c >= ' ' && c <= '~' ? c : '?';
  }
  return result;
}

}  // namespace tenon::pipeline
