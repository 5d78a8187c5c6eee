// Normalisation of float32 rows and groups by their own statistics, and across neighbouring channels.
// REQUIRES everywhere: isa <= detect_isa(). Nothing is allocated or thrown; the same bits for every thread count.
#ifndef TENON_KERNELS_CPU_NORMALIZE_H_
#define TENON_KERNELS_CPU_NORMALIZE_H_

#include <cstdint>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"

namespace tenon::cpu {

enum class NormKind {
  kLayer,  // y = (x - mean) / sqrt(mean((x - mean)^2) + epsilon)
  kRms,    // y = x / sqrt(mean(x^2) + epsilon)
};

// Each of `rows` rows of `length` elements, then y * scale[i] + bias[i]; scale and bias have `length` elements, or are
// null for 1 and 0. Input and output may be the same buffer, or must not overlap.
void normalize_rows(NormKind kind, int64_t rows, int64_t length, float epsilon, const float* input, const float* scale,
                    const float* bias, float* output, const Parallel& parallel, Isa isa) noexcept;

// Groups of neighbouring channels of [n][groups * channels][pixels] as kLayer, then y * scale[c] + bias[c] with c the
// channel, or the group if there is one of each for a group. In place as above.
struct GroupNormShape {
  int64_t n;
  int64_t groups;
  int64_t channels;  // of a group
  int64_t pixels;
  bool scale_of_group;
};
void normalize_groups(const GroupNormShape& shape, float epsilon, const float* input, const float* scale,
                      const float* bias, float* output, const Parallel& parallel, Isa isa) noexcept;

// y = x / (sum |x|^p)^(1/p), 0 where that sum is 0; along the middle dimension of [outer][axis][inner]. In place as
// above. REQUIRES: p is 1 or 2.
void normalize_length(int p, int64_t outer, int64_t axis, int64_t inner, const float* input, float* output,
                      const Parallel& parallel, Isa isa) noexcept;

// y[c] = x[c] / (bias + alpha / size * sum(x[i]^2))^beta, i in [c - (size - 1) / 2, c + size / 2] as far as there are
// channels, of [outer][channels][inner]. Input and output must not overlap. REQUIRES: 1 <= size.
struct LrnParams {
  int64_t size;
  float alpha;
  float beta;
  float bias;
};
void local_response_norm(const LrnParams& params, int64_t outer, int64_t channels, int64_t inner, const float* input,
                         float* output, const Parallel& parallel, Isa isa) noexcept;

// The same of images [n][ceil(channels / block)][pixels][block]: block is `channels` for NHWC, 8 or 16 for blocked
// formats, in which channels that fill up the last block are 0 and stay so. REQUIRES: size <= kLrnMaxSize.
constexpr int64_t kLrnMaxSize = 64;
struct LrnImage {
  int64_t n;
  int64_t channels;
  int64_t pixels;
  int64_t block;
};
void local_response_norm_image(const LrnParams& params, const LrnImage& image, const float* input, float* output,
                               const Parallel& parallel, Isa isa) noexcept;

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_NORMALIZE_H_
