// What a query of attention sees.
#ifndef TENON_KERNELS_CUDA_ATTENTION_RANGE_CUH_
#define TENON_KERNELS_CUDA_ATTENTION_RANGE_CUH_

#include "kernels/cuda/attention.h"
#include "kernels/cuda/common.cuh"

namespace tenon::cuda {

struct Range {
  int64_t begin, end;
};

// The keys that a query may see, whatever the mask says. `length` < 0: not given.
__device__ __forceinline__ Range range_of(const AttentionShape& s, int64_t query, int64_t length) {
  Range r = {0, length >= 0 ? min(length, s.keys) : s.keys};
  r.end = min(r.end, s.mask_keys);
  const int64_t place = query + (length >= 0 ? length - s.queries : s.past);
  if (s.causal) r.end = min(r.end, place + 1);
  if (s.right >= 0 && s.right < s.keys) r.end = min(r.end, place + s.right + 1);
  if (s.left >= 0 && s.left <= place) r.begin = place - s.left;
  r.end = max(r.end, int64_t{0});
  r.begin = min(r.begin, r.end);
  return r;
}

// The score of a key from its product with a query: -inf if it is hidden.
template <class T>
__device__ __forceinline__ float masked_score(const AttentionShape& s, const AttentionBuffers& b, int64_t batch,
                                              int64_t head, int64_t query, int64_t key, const Range& seen,
                                              float product) {
  if (key < seen.begin || key >= seen.end) return -INFINITY;
  const float score = s.softcap > 0.0f ? s.softcap * tanhf(product / s.softcap) : product;
  if (b.allowed == nullptr && b.bias == nullptr) return score;
  const int64_t place =
      batch * s.mask_strides[0] + head * s.mask_strides[1] + query * s.mask_strides[2] + key * s.mask_strides[3];
  if (b.allowed != nullptr) return b.allowed[place] == 0 ? -INFINITY : score;
  const float bias = to_float(static_cast<const T*>(b.bias)[place]);
  return bias == -INFINITY ? -INFINITY : score + bias;
}

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_ATTENTION_RANGE_CUH_
