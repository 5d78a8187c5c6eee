// The per-instruction-set part of normalize.
#ifndef TENON_KERNELS_CPU_INTERNAL_NORMALIZE_ISA_H_
#define TENON_KERNELS_CPU_INTERNAL_NORMALIZE_ISA_H_

#include "kernels/cpu/normalize.h"

namespace tenon::cpu {

struct Moments {
  float mean;     // 0 for kRms
  float inverse;  // 1 / sqrt(variance + epsilon)
};

struct NormalizeTable {
  Moments (*moments)(NormKind kind, int64_t length, float epsilon, const float* input);
  // y = (x - mean) * inverse * scale[i] + bias[i]
  void (*row)(const Moments& moments, int64_t length, const float* input, const float* scale, const float* bias,
              float* output);
  // y = (x - mean) * inverse * scale + bias
  void (*channel)(const Moments& moments, int64_t length, const float* input, float scale, float bias, float* output);
  // One contiguous vector, and `columns` neighbouring columns of one [axis][inner] matrix.
  void (*length_row)(int p, int64_t axis, const float* input, float* output);
  void (*length_columns)(int p, int64_t axis, int64_t inner, int64_t columns, const float* input, float* output);
  // `columns` columns of one [channels][inner] matrix.
  void (*lrn)(const LrnParams& params, int64_t channels, int64_t inner, int64_t columns, const float* input,
              float* output);
  // Pixels [begin, end) of one image.
  void (*lrn_image)(const LrnParams& params, const LrnImage& image, int64_t begin, int64_t end, const float* input,
                    float* output);
};

namespace baseline {
extern const NormalizeTable kNormalizeTable;
}
namespace avx2 {
extern const NormalizeTable kNormalizeTable;
}
namespace avx512 {
extern const NormalizeTable kNormalizeTable;
}

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_INTERNAL_NORMALIZE_ISA_H_
