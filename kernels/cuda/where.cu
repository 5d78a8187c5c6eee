#include "kernels/cuda/broadcast.cuh"
#include "kernels/cuda/elementwise.h"

namespace tenon::cuda {
namespace {

template <class T>
struct Select {
  __device__ __forceinline__ T operator()(uint8_t condition, T a, T b) const { return condition != 0 ? a : b; }
};

}  // namespace

cudaError_t where(int element_size, const Broadcast<3>& shape, const void* condition, const void* a, const void* b,
                  void* y, cudaStream_t stream) noexcept {
  cudaError_t error = cudaErrorInvalidValue;
  with_bits(element_size, [&](auto bits) {
    using T = decltype(bits);
    error = broadcast(Select<T>{}, shape, stream, static_cast<T*>(y), static_cast<const uint8_t*>(condition),
                      static_cast<const T*>(a), static_cast<const T*>(b));
  });
  return error;
}

}  // namespace tenon::cuda
