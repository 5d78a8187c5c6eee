// What the algorithms of conv_nd share.
#ifndef TENON_KERNELS_CUDA_CONV_ND_INTERNAL_CUH_
#define TENON_KERNELS_CUDA_CONV_ND_INTERNAL_CUH_

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/conv_nd.h"
#include "kernels/cuda/epilogue.cuh"

namespace tenon::cuda {

struct ConvAxis {
  int x_size, y_size, kernel, stride, dilation, pad;

  // Where tap t of output `at` lies in x; -1 if nowhere.
  template <bool kTransposed>
  __device__ __forceinline__ int place(int at, int tap) const {
    int x;
    if (kTransposed) {
      x = at + pad - tap * dilation;
      if (x < 0 || x % stride != 0) return -1;
      x /= stride;
    } else {
      x = at * stride - pad + tap * dilation;
    }
    return x >= 0 && x < x_size ? x : -1;
  }
};

struct ConvNd {
  ConvAxis axes[kConvNdMaxAxes];  // missing ones, of size 1, come first
  int64_t n, inputs, outputs, groups;
  int64_t in, out;  // channels of a group
  int64_t taps;
  int64_t x_plane, y_plane;
  int64_t w_input, w_output;  // distances between weights of neighbouring channels
};

ConvNd conv_nd_of(const ConvNdShape& shape) noexcept;

template <class T>
struct ConvNdBuffers {
  const T* x;
  const T* weights;
  const T* bias;
  const T* residual;
  T* y;
};

// For float and __half. conv_nd has checked the shape.
template <class T>
cudaError_t conv_nd_implicit(bool transposed, const ConvNd& conv, const ConvNdBuffers<T>& buffers,
                             const Epilogue& epilogue, cudaStream_t stream) noexcept;

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_CONV_ND_INTERNAL_CUH_
