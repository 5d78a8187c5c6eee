#include "kernels/cuda/common.cuh"
#include "kernels/cuda/epilogue.cuh"
#include "kernels/cuda/pointwise.h"

namespace tenon::cuda {
namespace {

constexpr int kThreads = 256;

// Threads stride over packs of kPack neighbours: of one channel in NCHW (`cells` divisible by kPack), of neighbouring
// channels in NHWC (`c` divisible by kPack). Bound: memory.
template <class T, int kPack, bool kNhwc, class Index>
__global__ void __launch_bounds__(kThreads)
    affine_kernel(int64_t packs, Divider<Index> channel_packs, Divider<Index> channels, const T* x, const float* scale,
                  const float* shift, DeviceEpilogue epilogue, T* y) {
  for (int64_t i = global_thread(); i < packs; i += global_threads()) {
    Index channel = static_cast<Index>(i);
    if (kNhwc) {
      channel_packs.split(&channel);
      channel *= kPack;
    } else {
      channel = channel_packs.quotient(channel);
      channels.split(&channel);
    }
    Pack<T, kPack> v = reinterpret_cast<const Pack<T, kPack>*>(x)[i];
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const Index c = kNhwc ? channel + j : channel;
      v.v[j] = from_float<T>(apply(epilogue, to_float(v.v[j]) * scale[c] + shift[c]));
    }
    reinterpret_cast<Pack<T, kPack>*>(y)[i] = v;
  }
}

template <class T, int kPack, bool kNhwc>
cudaError_t launch(int64_t n, int64_t c, int64_t cells, const T* x, const float* scale, const float* shift,
                   const Epilogue& epilogue, T* y, cudaStream_t stream) {
  const int64_t packs = n * c * cells / kPack;
  with_index(n * c * cells, [&](auto index) {
    using Index = decltype(index);
    affine_kernel<T, kPack, kNhwc, Index><<<grid_for(packs, kThreads), kThreads, 0, stream>>>(
        packs, Divider<Index>((kNhwc ? c : cells) / kPack), Divider<Index>(c), x, scale, shift, epilogue, y);
  });
  return cudaGetLastError();
}

}  // namespace

cudaError_t channel_affine(ElementType type, Layout layout, int64_t n, int64_t c, int64_t cells, const void* x,
                           const float* scale, const float* shift, const Epilogue& epilogue, void* y,
                           cudaStream_t stream) noexcept {
  if (layout_block(layout) != 1) return cudaErrorInvalidValue;
  if (n <= 0 || c <= 0 || cells <= 0) return cudaSuccess;
  cudaError_t error = cudaErrorInvalidValue;
  with_float(type, [&](auto element) {
    using T = decltype(element);
    constexpr int kPack = 16 / sizeof(T);
    const bool nhwc = layout == Layout::kNhwc;
    const bool packs = (nhwc ? c : cells) % kPack == 0 && is_aligned(x, 16) && is_aligned(y, 16);
    const auto function = nhwc ? (packs ? launch<T, kPack, true> : launch<T, 1, true>)
                               : (packs ? launch<T, kPack, false> : launch<T, 1, false>);
    error = function(n, c, cells, static_cast<const T*>(x), scale, shift, epilogue, static_cast<T*>(y), stream);
  });
  return error;
}

}  // namespace tenon::cuda
