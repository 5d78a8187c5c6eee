#include "kernels/cpu/upsample.h"

#include <algorithm>
#include <cstring>

namespace tenon::cpu {
namespace {

// One input row to one output row; a pixel has `channels` floats.
void widen(int64_t w, int64_t channels, int64_t factor, float scale, const float* from, float* to) {
  if (channels == 1 && factor == 2) {
    for (int64_t x = 0; x < w; ++x) to[2 * x] = to[2 * x + 1] = scale * from[x];
    return;
  }
  for (int64_t x = 0; x < w; ++x, from += channels) {
    for (int64_t i = 0; i < factor; ++i, to += channels) {
      for (int64_t c = 0; c < channels; ++c) to[c] = scale * from[c];
    }
  }
}

// Without a scale bits are copied, so that NaN payloads survive.
void widen_bits(int64_t w, int64_t channels, int64_t factor, const float* from, float* to) {
  for (int64_t x = 0; x < w; ++x, from += channels) {
    for (int64_t i = 0; i < factor; ++i, to += channels) {
      if (channels == 1) {
        *to = *from;
      } else {
        std::memcpy(to, from, channels * sizeof(float));
      }
    }
  }
}

}  // namespace

void upsample_nearest(Layout layout, int64_t n, int64_t c, int64_t h, int64_t w, int64_t factor_h, int64_t factor_w,
                      float scale, const float* input, float* output, const Parallel& parallel) noexcept {
  const int64_t channels = layout == Layout::kNhwc ? c : layout_block(layout);
  if (n <= 0 || c <= 0 || h <= 0 || w <= 0) return;
  const int64_t rows = layout_elements(layout, n, c, h, w) / (w * channels);
  const int64_t row = w * channels;
  const int64_t wide = row * factor_w;
  constexpr int64_t kGrain = 16 * 1024;  // outputs below which another thread costs more than it gives
  parallel_ranges(parallel, rows, std::max<int64_t>(kGrain / (wide * factor_h), 1), [&](int64_t begin, int64_t end) {
    for (int64_t y = begin; y < end; ++y) {
      float* to = output + y * factor_h * wide;
      if (scale == 1.0f) {
        widen_bits(w, channels, factor_w, input + y * row, to);
      } else {
        widen(w, channels, factor_w, scale, input + y * row, to);
      }
      for (int64_t i = 1; i < factor_h; ++i) std::memcpy(to + i * wide, to, wide * sizeof(float));
    }
  });
}

}  // namespace tenon::cpu
