#include "kernels/cuda/reorg.h"

#include "kernels/cuda/common.cuh"

namespace tenon::cuda {
namespace {

constexpr int kThreads = 256;

// Threads stride over the outputs; reads skip `stride` elements. Bound: memory.
template <class T, class Index>
__global__ void __launch_bounds__(kThreads)
    reorg_kernel(int64_t count, Divider<Index> c, Divider<Index> h, Divider<Index> w, Divider<Index> depth,
                 Divider<Index> stride, const T* input, T* output) {
  for (int64_t at = global_thread(); at < count; at += global_threads()) {
    Index i = static_cast<Index>(at);
    Index j = w.split(&i);
    Index k = h.split(&j);
    const int64_t image = c.split(&k);
    Index x = depth.split(&k);  // k is now k % C2
    const Index y = stride.split(&x);
    const int64_t step = stride.divisor;
    const int64_t row = k * (h.divisor * step) + j * step + y;
    const int64_t size = static_cast<int64_t>(c.divisor) * h.divisor * w.divisor;
    output[at] = input[image * size + row * (w.divisor * step) + i * step + x];
  }
}

}  // namespace

bool reorg_supports(int64_t c, int64_t h, int64_t w, int64_t stride) noexcept {
  return stride >= 1 && c >= 0 && h >= 0 && w >= 0 && c % (stride * stride) == 0 && h % stride == 0 && w % stride == 0;
}

cudaError_t reorg_darknet(int64_t n, int64_t c, int64_t h, int64_t w, int64_t stride, int element_size,
                          const void* input, void* output, cudaStream_t stream) noexcept {
  if (!reorg_supports(c, h, w, stride)) return cudaErrorInvalidValue;
  const int64_t count = n * c * h * w;
  if (count <= 0) return cudaSuccess;
  cudaError_t error = cudaErrorInvalidValue;
  with_bits(element_size, [&](auto bits) {
    using T = decltype(bits);
    with_index(count, [&](auto index) {
      using Index = decltype(index);
      reorg_kernel<T, Index><<<grid_for(count, kThreads), kThreads, 0, stream>>>(
          count, Divider<Index>(c), Divider<Index>(h), Divider<Index>(w), Divider<Index>(c / (stride * stride)),
          Divider<Index>(stride), static_cast<const T*>(input), static_cast<T*>(output));
    });
    error = cudaGetLastError();
  });
  return error;
}

}  // namespace tenon::cuda
