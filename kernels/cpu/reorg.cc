#include "kernels/cpu/reorg.h"

#include <algorithm>

namespace tenon::cpu {

bool reorg_supports(int64_t c, int64_t h, int64_t w, int64_t stride) noexcept {
  // The square of a large stride does not fit.
  return stride >= 1 && c >= 0 && h >= 0 && w >= 0 && c % stride == 0 && c / stride % stride == 0 && h % stride == 0 &&
         w % stride == 0;
}

void reorg_darknet(int64_t n, int64_t c, int64_t h, int64_t w, int64_t stride, const float* input, float* output,
                   const Parallel& parallel) noexcept {
  const int64_t image = c * h * w;
  if (n <= 0 || image <= 0) return;
  const int64_t depth = c / (stride * stride);
  constexpr int64_t kGrain = 16 * 1024;  // elements below which another thread costs more than it gives
  parallel_ranges(parallel, n * c * h, std::max<int64_t>(kGrain / w, 1), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t j = row % h;
      const int64_t k = row / h % c;
      const int64_t place = k / depth;
      const int64_t y = j * stride + place / stride;
      const float* from = input + row / h / c * image + (k % depth * h * stride + y) * w * stride + place % stride;
      float* to = output + row * w;
      for (int64_t i = 0; i < w; ++i) to[i] = from[i * stride];
    }
  });
}

}  // namespace tenon::cpu
