#include "kernels/cuda/common.cuh"
#include "kernels/cuda/epilogue.cuh"
#include "kernels/cuda/pointwise.h"

namespace tenon::cuda {
namespace {

constexpr int kThreads = 256;

__device__ __forceinline__ float combine(BinaryKind kind, float a, float b) {
  switch (kind) {
    case BinaryKind::kAdd:
      return a + b;
    case BinaryKind::kSub:
      return a - b;
    case BinaryKind::kMul:
      return a * b;
    case BinaryKind::kDiv:
      return a / b;
    case BinaryKind::kMin:
      return isnan(a) || isnan(b) ? a + b : fminf(a, b);
    case BinaryKind::kMax:
      return isnan(a) || isnan(b) ? a + b : fmaxf(a, b);
  }
  return a;
}

// The shape in vectors of kPack along the last dimension.
template <class Index>
struct Walk {
  int rank;
  Divider<Index> dims[kPointwiseMaxRank];
  int64_t a_strides[kPointwiseMaxRank];
  int64_t b_strides[kPointwiseMaxRank];
};

template <int kPack, class T>
__device__ __forceinline__ Pack<T, kPack> load(const T* p, bool repeat) {
  if (!repeat) return *reinterpret_cast<const Pack<T, kPack>*>(p);
  Pack<T, kPack> v;
#pragma unroll
  for (int j = 0; j < kPack; ++j) v.v[j] = *p;
  return v;
}

// Threads stride over packs of the output; each finds its operands by division. An operand that does not move along the
// last dimension is repeated within the pack. Bound: memory, but for small packs of many dimensions.
template <class T, int kPack, class Index>
__global__ void __launch_bounds__(kThreads)
    binary_kernel(BinaryKind kind, Walk<Index> walk, int64_t packs, bool a_repeats, bool b_repeats, const T* a,
                  const T* b, DeviceEpilogue epilogue, T* y) {
  for (int64_t i = global_thread(); i < packs; i += global_threads()) {
    Index rest = static_cast<Index>(i);
    int64_t a_offset = 0;
    int64_t b_offset = 0;
    for (int d = walk.rank - 1; d > 0; --d) {
      Index place = rest;
      rest = walk.dims[d].split(&place);
      a_offset += place * walk.a_strides[d];
      b_offset += place * walk.b_strides[d];
    }
    a_offset += rest * walk.a_strides[0];
    b_offset += rest * walk.b_strides[0];
    const Pack<T, kPack> av = load<kPack>(a + a_offset, kPack > 1 && a_repeats);
    const Pack<T, kPack> bv = load<kPack>(b + b_offset, kPack > 1 && b_repeats);
    Pack<T, kPack> v;
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      v.v[j] = from_float<T>(apply(epilogue, combine(kind, to_float(av.v[j]), to_float(bv.v[j]))));
    }
    reinterpret_cast<Pack<T, kPack>*>(y)[i] = v;
  }
}

// Drops dimensions of size 1 and joins neighbours that both operands walk as one.
BroadcastShape collapse(const BroadcastShape& shape) {
  BroadcastShape result;
  for (int i = 0; i < shape.rank; ++i) {
    if (shape.dims[i] == 1) continue;
    const int last = result.rank - 1;
    const bool joins = last >= 0 && result.a_strides[last] == shape.a_strides[i] * shape.dims[i] &&
                       result.b_strides[last] == shape.b_strides[i] * shape.dims[i];
    const int to = joins ? last : result.rank++;
    result.dims[to] = joins ? result.dims[to] * shape.dims[i] : shape.dims[i];
    result.a_strides[to] = shape.a_strides[i];
    result.b_strides[to] = shape.b_strides[i];
  }
  if (result.rank == 0) {
    result.rank = 1;
    result.dims[0] = 1;
  }
  return result;
}

bool operand_packs(const void* pointer, int element_size, int pack, int rank, const int64_t* strides) {
  const int64_t inner = strides[rank - 1];
  if (inner == 0) return true;
  if (inner != 1 || !is_aligned(pointer, pack * element_size)) return false;
  return std::all_of(strides, strides + rank - 1, [=](int64_t stride) { return stride % pack == 0; });
}

template <class T, int kPack>
cudaError_t launch(BinaryKind kind, const BroadcastShape& shape, const T* a, const T* b, const Epilogue& epilogue, T* y,
                   cudaStream_t stream) {
  const int last = shape.rank - 1;
  int64_t packs = 1;
  for (int i = 0; i < shape.rank; ++i) packs *= i == last ? shape.dims[i] / kPack : shape.dims[i];
  with_index(packs, [&](auto index) {
    using Index = decltype(index);
    Walk<Index> walk;
    walk.rank = shape.rank;
    for (int i = 0; i < shape.rank; ++i) {
      const int64_t step = i == last ? kPack : 1;
      walk.dims[i] = Divider<Index>(shape.dims[i] / step);
      walk.a_strides[i] = shape.a_strides[i] * step;
      walk.b_strides[i] = shape.b_strides[i] * step;
    }
    binary_kernel<T, kPack, Index><<<grid_for(packs, kThreads), kThreads, 0, stream>>>(
        kind, walk, packs, shape.a_strides[last] == 0, shape.b_strides[last] == 0, a, b, epilogue, y);
  });
  return cudaGetLastError();
}

template <class T>
cudaError_t run(BinaryKind kind, const BroadcastShape& given, const T* a, const T* b, const Epilogue& epilogue, T* y,
                cudaStream_t stream) {
  constexpr int kPack = 16 / sizeof(T);
  BroadcastShape shape = collapse(given);
  const int last = shape.rank - 1;
  const bool packs = is_aligned(y, 16) && operand_packs(a, sizeof(T), kPack, shape.rank, shape.a_strides) &&
                     operand_packs(b, sizeof(T), kPack, shape.rank, shape.b_strides);
  if (!packs || shape.dims[last] < kPack || (shape.rank > 1 && shape.dims[last] % kPack != 0)) {
    return launch<T, 1>(kind, shape, a, b, epilogue, y, stream);
  }
  // One run: whole packs first, then the rest.
  const int64_t count = shape.dims[last];
  shape.dims[last] -= count % kPack;
  const cudaError_t error = launch<T, kPack>(kind, shape, a, b, epilogue, y, stream);
  if (error != cudaSuccess || count % kPack == 0) return error;
  const int64_t done = shape.dims[last];
  shape.dims[last] = count - done;
  return launch<T, 1>(kind, shape, a + done * shape.a_strides[last], b + done * shape.b_strides[last], epilogue,
                      y + done, stream);
}

}  // namespace

bool broadcast_shape(int a_rank, const int64_t* a_dims, int b_rank, const int64_t* b_dims,
                     BroadcastShape* shape) noexcept {
  if (a_rank < 0 || b_rank < 0 || a_rank > kPointwiseMaxRank || b_rank > kPointwiseMaxRank) return false;
  shape->rank = std::max(a_rank, b_rank);
  int64_t a_stride = 1;
  int64_t b_stride = 1;
  for (int i = shape->rank - 1; i >= 0; --i) {
    const int ai = i - (shape->rank - a_rank);
    const int bi = i - (shape->rank - b_rank);
    const int64_t a = ai >= 0 ? a_dims[ai] : 1;
    const int64_t b = bi >= 0 ? b_dims[bi] : 1;
    if (a != b && a != 1 && b != 1) return false;
    shape->dims[i] = a == 1 ? b : a;
    shape->a_strides[i] = a == 1 ? 0 : a_stride;
    shape->b_strides[i] = b == 1 ? 0 : b_stride;
    a_stride *= a;
    b_stride *= b;
  }
  return true;
}

cudaError_t pointwise_binary(ElementType type, BinaryKind kind, const BroadcastShape& shape, const void* a,
                             const void* b, const Epilogue& epilogue, void* y, cudaStream_t stream) noexcept {
  for (int i = 0; i < shape.rank; ++i) {
    if (shape.dims[i] <= 0) return cudaSuccess;
  }
  cudaError_t error = cudaErrorInvalidValue;
  with_float(type, [&](auto element) {
    using T = decltype(element);
    error = run(kind, shape, static_cast<const T*>(a), static_cast<const T*>(b), epilogue, static_cast<T*>(y), stream);
  });
  return error;
}

}  // namespace tenon::cuda
