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

// The queries [first, last] of a head, what they read, and the keys [begin, end) that any of them may see.
template <class T>
struct QueryBlock {
  int64_t batch, head, first, last, length, begin, end;
  const T* q;
  const T* k;
  const T* v;

  // Number `block` of all, with `count` queries each and `blocks_of_head` in a head.
  __device__ __forceinline__ QueryBlock(const AttentionShape& s, const AttentionBuffers& b, int64_t block,
                                        int64_t blocks_of_head, int count) {
    const int64_t head_of_all = block / blocks_of_head;
    first = (block - head_of_all * blocks_of_head) * count;
    last = min(first + count, s.queries) - 1;
    batch = head_of_all / s.heads;
    head = head_of_all - batch * s.heads;
    const int64_t key_head = head / (s.heads / s.key_heads);
    q = static_cast<const T*>(b.q) + batch * s.q.batch + head * s.q.head;
    k = static_cast<const T*>(b.k) + batch * s.k.batch + key_head * s.k.head;
    v = static_cast<const T*>(b.v) + batch * s.v.batch + key_head * s.v.head;
    length = b.lengths == nullptr ? -1 : max(b.lengths[batch], int64_t{0});
    // Both ends of the range grow with the query.
    begin = range_of(s, first, length).begin;
    end = range_of(s, last, length).end;
  }
  // What the query that is `n` behind the first may see; nothing for one behind the last.
  __device__ __forceinline__ Range range(const AttentionShape& s, int64_t n) const {
    return first + n > last ? Range{0, 0} : range_of(s, first + n, length);
  }
};

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
