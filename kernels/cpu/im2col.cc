#include "kernels/cpu/im2col.h"

#include <algorithm>
#include <cstring>

namespace tenon::cpu {
namespace {

// One tap: where its pixels lie.
struct Tap {
  int64_t offset[kMaxWindowAxes];  // of the pixel of position 0
  int64_t first, last;             // positions along the last axis whose pixels lie in the image: [first, last)
};

Tap tap_of(const Windows& w, int64_t number) {
  Tap tap{};
  for (int axis = w.rank - 1; axis >= 0; --axis) {
    tap.offset[axis] = number % w.kernel[axis] * w.dilation[axis] - w.pad[axis];
    number /= w.kernel[axis];
  }
  const int last = w.rank - 1;
  const int64_t stride = w.stride[last], offset = tap.offset[last];
  tap.first = std::min(w.count[last], offset >= 0 ? 0 : (-offset + stride - 1) / stride);
  const int64_t room = w.image[last] - 1 - offset;  // the largest p * stride
  tap.last = std::max(tap.first, std::min(w.count[last], room < 0 ? 0 : room / stride + 1));
  return tap;
}

// The first pixel of the image row that a row of positions touches with a tap; -1 if it lies outside.
int64_t image_row(const Windows& w, const Tap& tap, int64_t row, int64_t outer_begin, int64_t outer_end) {
  int64_t at = 0, step = w.image[w.rank - 1];
  for (int axis = w.rank - 2; axis >= 0; --axis) {
    const int64_t pixel = row % w.count[axis] * w.stride[axis] + tap.offset[axis];
    row /= w.count[axis];
    if (pixel < 0 || pixel >= w.image[axis]) return -1;
    if (axis == 0 && (pixel < outer_begin || pixel >= outer_end)) return -1;
    at += pixel * step;
    step *= w.image[axis];
  }
  return at;
}

}  // namespace

void im2col(const Windows& w, int64_t channels, int64_t row_begin, int64_t row_end, const float* images, float* columns,
            const Parallel& parallel) noexcept {
  const int64_t taps = w.taps(), pixels = w.pixels(), run = w.count[w.rank - 1], stride = w.stride[w.rank - 1];
  const int64_t length = (row_end - row_begin) * run;
  parallel_ranges(parallel, channels * taps, std::max<int64_t>(1, 16 * 1024 / std::max<int64_t>(length, 1)),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t line = begin; line < end; ++line) {
                      const Tap tap = tap_of(w, line % taps);
                      const float* image = images + line / taps * pixels;
                      float* to = columns + line * length;
                      for (int64_t row = row_begin; row < row_end; ++row, to += run) {
                        const int64_t at = image_row(w, tap, row, 0, w.image[0]);
                        if (at < 0) {
                          std::fill_n(to, run, 0.0f);
                          continue;
                        }
                        std::fill_n(to, tap.first, 0.0f);
                        // Kept as numbers: the pixel of position 0 may lie before the image.
                        const int64_t start = at + tap.offset[w.rank - 1];
                        if (stride == 1) {
                          std::copy_n(image + (start + tap.first), tap.last - tap.first, to + tap.first);
                        } else {
                          for (int64_t p = tap.first; p < tap.last; ++p) to[p] = image[start + p * stride];
                        }
                        std::fill(to + tap.last, to + run, 0.0f);
                      }
                    }
                  });
}

void col2im(const Windows& w, int64_t channels, const float* columns, const float* bias, float* images,
            const Parallel& parallel) noexcept {
  const int64_t taps = w.taps(), pixels = w.pixels(), run = w.count[w.rank - 1], stride = w.stride[w.rank - 1];
  const int64_t rows = w.rows(), positions = rows * run;
  // With few channels each thread takes a part of the outermost axis.
  const int64_t outer = w.rank > 1 ? w.image[0] : 1;
  const int64_t wanted = (parallel_threads(parallel) + channels - 1) / std::max<int64_t>(channels, 1);
  const int64_t parts = std::min(outer, std::max<int64_t>(1, wanted));
  parallel_for(parallel, channels * parts, [&](int64_t task) {
    const int64_t c = task / parts;
    float* image = images + c * pixels;
    const Range range = split_range(outer, parts, task % parts);
    std::fill(image + range.begin * (pixels / outer), image + range.end * (pixels / outer),
              bias == nullptr ? 0.0f : bias[c]);
    for (int64_t t = 0; t < taps; ++t) {
      const Tap tap = tap_of(w, t);
      const float* from = columns + (c * taps + t) * positions;
      for (int64_t row = 0; row < rows; ++row, from += run) {
        const int64_t at = image_row(w, tap, row, range.begin, range.end);
        if (at < 0) continue;
        const int64_t start = at + tap.offset[w.rank - 1];
        if (stride == 1) {
          float* to = image + (start + tap.first);
          for (int64_t p = 0; p < tap.last - tap.first; ++p) to[p] += from[tap.first + p];
        } else {
          for (int64_t p = tap.first; p < tap.last; ++p) image[start + p * stride] += from[p];
        }
      }
    }
  });
}

}  // namespace tenon::cpu
