// attention: y = softmax(scale * q k' + mask) v, and rotary position embedding; float types (element_type.h),
// arithmetic in float32. Launches on the stream, allocates nothing, does not wait, may be captured; returns the error
// of the launch. The same sizes give the same bits. No overlap unless said.
#ifndef TENON_KERNELS_CUDA_ATTENTION_H_
#define TENON_KERNELS_CUDA_ATTENTION_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/element_type.h"

namespace tenon::cuda {

constexpr int64_t kAttentionMaxSize = 256;

// Elements from one batch, head and row to the next; the numbers of a row follow each other.
struct AttentionStrides {
  int64_t batch = 0, head = 0, row = 0;
};

// q has `heads` heads of `queries` rows of `size` numbers, k `key_heads` heads of `keys` rows of `size`, v such heads
// of `keys` rows of `value_size`, y `heads` heads of `queries` rows of `value_size`.
struct AttentionShape {
  int64_t batch = 0, heads = 0, key_heads = 0, queries = 0, keys = 0, size = 0, value_size = 0;
  AttentionStrides q, k, v, y;
  int64_t mask_keys = 0;         // keys behind these are hidden; `keys` without a mask
  int64_t mask_strides[4] = {};  // of batch, head, query, key
  float scale = 1;
  float softcap = 0;  // products become softcap * tanh(product / softcap); 0: not
  // A query's place is its number plus `past`, or with lengths such that the queries are the last of the sequence. It
  // sees the keys [place - left, place + right], -1: without bound, and with `causal` none behind its place.
  bool causal = false;
  int64_t past = 0, left = -1, right = -1;
};

struct AttentionBuffers {
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  const unsigned char* allowed = nullptr;  // 0 hides a key; may be null
  const void* bias = nullptr;              // is added; may be null
  const int64_t* lengths = nullptr;        // [batch] keys of each sequence; may be null
  void* y = nullptr;                       // 0 for a query that sees no key
};

// cudaErrorInvalidValue if size or value_size is above kAttentionMaxSize. REQUIRES: key_heads divides heads.
cudaError_t attention(ElementType type, const AttentionShape& shape, const AttentionBuffers& buffers,
                      cudaStream_t stream) noexcept;

// Pairs (a, b) of each of the rows x[batch][steps][heads][size] (heads_first: [batch][heads][steps][size]) become
// (a cos - b sin, a sin + b cos); a pair is n and n + half, or interleaved 2n and 2n + 1, for n < half; the elements
// behind 2 * half are copied. cos and sin are [table_rows][half]; the row is positions[batch][step], or without
// positions batch * steps + step. A position that is no row gives NaN. x and y may be the same buffer.
struct RotaryShape {
  int64_t batch = 0, steps = 0, heads = 0, size = 0, half = 0, table_rows = 0;
  bool heads_first = false, interleaved = false;
};
cudaError_t rotary_embedding(ElementType type, const RotaryShape& shape, const void* x, const void* cos,
                             const void* sin, const int64_t* positions, void* y, cudaStream_t stream) noexcept;

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_ATTENTION_H_
