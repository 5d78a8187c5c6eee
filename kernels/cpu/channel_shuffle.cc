#include "kernels/cpu/channel_shuffle.h"

#include <algorithm>

#include "kernels/cpu/internal/channel_shuffle_isa.h"

namespace tenon::cpu {
namespace {

constexpr int64_t kGrain = 16 * 1024;  // elements below which another thread costs more than it gives
constexpr int64_t kPixels = 256;       // of a task, so that its channels stay in the second cache

ShuffleVector* vector_function(Isa isa) {
  return isa == Isa::kAvx512 ? avx512::shuffle_vector
         : isa == Isa::kAvx2 ? avx2::shuffle_vector
                             : baseline::shuffle_vector;
}

}  // namespace

void channel_shuffle(const ChannelShuffleShape& shape, const float* input, float* output, const Parallel& parallel,
                     Isa isa) noexcept {
  if (shape.n <= 0 || shape.channels <= 0 || shape.pixels <= 0) return;
  if (shape.block == 8) isa = std::min(isa, Isa::kAvx2);  // a vector is no longer than a block
  ShuffleVector* const function = vector_function(isa);
  const int64_t width = isa == Isa::kAvx512 ? 16 : isa == Isa::kAvx2 ? 8 : 4;
  const int64_t blocks = (shape.channels + shape.block - 1) / shape.block;
  const int64_t vectors = (shape.block + width - 1) / width;  // of a block
  const int64_t image = blocks * shape.block * shape.pixels;
  const int64_t chunks = (shape.pixels + kPixels - 1) / kPixels;
  const int64_t grain = std::max<int64_t>(kGrain / (std::min(shape.pixels, kPixels) * width), 1);
  parallel_ranges(parallel, shape.n * chunks * blocks * vectors, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t vector = task % vectors;
      const int64_t block = task / vectors % blocks;
      const int64_t chunk = task / (vectors * blocks) % chunks;
      const int64_t first = chunk * kPixels;
      const int64_t at = task / (vectors * blocks * chunks) * image + first * shape.block;
      function(shape, block * shape.block + vector * width, std::min(kPixels, shape.pixels - first), input + at,
               output + at);
    }
  });
}

}  // namespace tenon::cpu
