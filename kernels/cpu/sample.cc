#include "kernels/cpu/sample.h"

namespace tenon::cpu {

void sample(int64_t channels, int64_t count, int taps, const int64_t* index, const float* weight, const float* x,
            int64_t x_plane, float* y, int64_t y_plane) noexcept {
  for (int64_t c = 0; c < channels; ++c, x += x_plane, y += y_plane) {
    if (taps == 4) {
      const int64_t* i = index;
      const float* w = weight;
      for (int64_t p = 0; p < count; ++p, i += 4, w += 4) {
        y[p] = (w[0] * x[i[0]] + w[1] * x[i[1]]) + (w[2] * x[i[2]] + w[3] * x[i[3]]);
      }
      continue;
    }
    for (int64_t p = 0; p < count; ++p) {
      float sum = 0;
      for (int64_t t = p * taps; t < (p + 1) * taps; ++t) sum += weight[t] * x[index[t]];
      y[p] = sum;
    }
  }
}

}  // namespace tenon::cpu
