// What a node of tenon.grid_sample/1 does, shared by its definition and its kernels.
#ifndef TENON_PLUGINS_GRID_SAMPLE_GRID_SAMPLE_H_
#define TENON_PLUGINS_GRID_SAMPLE_GRID_SAMPLE_H_

#include <string>
#include <tenon/sdk/site.hpp>

namespace tenon::plugins {

inline constexpr int kMostAxes = 6;
enum class SampleMode { kNearest, kLinear, kCubic };
enum class SamplePadding { kZeros, kBorder, kReflection };

// What a call does; sizes of x and y without n and c.
struct Sampling {
  SampleMode mode = SampleMode::kLinear;
  SamplePadding padding = SamplePadding::kZeros;
  bool align_corners = false;
  int rank = 0;
  int64_t x[kMostAxes] = {};
  int64_t x_pixels = 1, y_pixels = 1;

  int taps_per_axis() const { return mode == SampleMode::kNearest ? 1 : mode == SampleMode::kLinear ? 2 : 4; }
  int taps() const {
    int all = 1;
    for (int axis = 0; axis < rank; ++axis) all *= taps_per_axis();
    return all;
  }
};

inline Sampling sampling_of(const Attrs& attrs, const Dims& x, const Dims& grid) {
  const int rank = x.rank - 2;
  if (rank < 1 || grid.rank != x.rank) {
    throw Invalid(
        text("expected x [N,C,d1,...] and grid of the same rank, found ", to_text(x), " and ", to_text(grid)));
  }
  if (grid[0] != x[0] || grid[rank + 1] != rank) {
    throw Invalid(text("input grid: expected [", x[0], ",o1,...,", rank, "], found ", to_text(grid)));
  }
  Sampling s;
  const std::string mode = attrs.str("mode"), padding = attrs.str("padding_mode");
  s.mode = mode == "nearest" ? SampleMode::kNearest : mode == "linear" ? SampleMode::kLinear : SampleMode::kCubic;
  s.padding = padding == "zeros"    ? SamplePadding::kZeros
              : padding == "border" ? SamplePadding::kBorder
                                    : SamplePadding::kReflection;
  s.align_corners = attrs.flag("align_corners");
  s.rank = rank;
  for (int axis = 0; axis < rank; ++axis) {
    s.x[axis] = x[axis + 2];
    if (s.x[axis] < 1) throw Invalid(text("input x: expected images with at least one pixel, found ", to_text(x)));
  }
  s.x_pixels = x.product(2, x.rank);
  s.y_pixels = grid.product(1, grid.rank - 1);
  return s;
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_GRID_SAMPLE_GRID_SAMPLE_H_
