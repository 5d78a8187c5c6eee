#include "kernels/cuda/normalize.h"

#include "kernels/cuda/epilogue.cuh"
#include "kernels/cuda/team.cuh"

namespace tenon::cuda {
namespace {

constexpr int kThreads = 256;

struct Lists {
  NormShape shape;
  Team team;
  Divider<uint32_t> run;  // where `axis` < 2^31

  __device__ __forceinline__ int64_t factor(int64_t list, int64_t i) const {
    const int64_t place = shape.axis <= kInt32Max ? run.quotient(static_cast<uint32_t>(i)) : i / shape.run;
    return list % shape.groups * shape.factors + place;
  }
};

struct Add {
  __device__ __forceinline__ float operator()(float a, float b) const { return a + b; }
};

// The sum of function(x) over a list; all threads of the block call.
template <class T, class Function>
__device__ __forceinline__ float sum_of(const Lists& l, const T* x, bool active, float* shared,
                                        const Function& function) {
  float sum = 0.0f;
  if (active) {
#pragma unroll 4
    for (int64_t i = l.team.slice(); i < l.shape.axis; i += l.team.slices) {
      sum += function(to_float(x[i * l.shape.inner]));
    }
  }
  return l.team.fold(sum, shared, Add());
}

// A team for each list, which it reads two or three times (after the first time from a cache). A thread reads and
// writes the same elements, so x may be y. Bound: memory.
template <class T>
__global__ void __launch_bounds__(kTeamThreads)
    normalize_kernel(Lists l, NormKind kind, int64_t lists, float epsilon, const T* input, const T* scale,
                     const T* bias, DeviceEpilogue epilogue, T* output) {
  __shared__ float shared[kTeamThreads];
  const int64_t step = static_cast<int64_t>(gridDim.x) * l.team.lanes;
  const float count = static_cast<float>(l.shape.axis);
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * l.team.lanes; first < lists; first += step) {
    const int64_t list = first + l.team.lane();
    const bool active = list < lists;
    const int64_t row = l.shape.inner == 1 ? list : list / l.shape.inner;
    const int64_t start = row * l.shape.axis * l.shape.inner + (list - row * l.shape.inner);
    const T* x = input + start;
    float mean = 0.0f;
    float divisor;
    if (kind == NormKind::kL1) {
      divisor = sum_of(l, x, active, shared, [](float v) { return fabsf(v); });
    } else {
      if (kind == NormKind::kLayer) mean = sum_of(l, x, active, shared, [](float v) { return v; }) / count;
      const float squares = sum_of(l, x, active, shared, [mean](float v) { return (v - mean) * (v - mean); });
      divisor = sqrtf(kind == NormKind::kL2 ? squares : squares / count + epsilon);
    }
    if (!active) continue;
    const bool is_length = kind == NormKind::kL1 || kind == NormKind::kL2;
    for (int64_t i = l.team.slice(); i < l.shape.axis; i += l.team.slices) {
      float v = is_length && divisor == 0.0f ? 0.0f : (to_float(x[i * l.shape.inner]) - mean) / divisor;
      if (scale != nullptr) v *= to_float(scale[l.factor(list, i)]);
      if (bias != nullptr) v += to_float(bias[l.factor(list, i)]);
      output[start + i * l.shape.inner] = from_float<T>(apply(epilogue, v));
    }
  }
}

// A thread for each element; neighbouring channels overlap in the caches. Bound: memory, and powf.
template <class T>
__global__ void __launch_bounds__(kThreads)
    lrn_kernel(LrnParams p, int64_t count, int64_t channels, int64_t inner, const T* input, T* output) {
  for (int64_t i = global_thread(); i < count; i += global_threads()) {
    const int64_t channel = i / inner % channels;
    const int64_t before = min(channel, (p.size - 1) / 2);
    const int64_t after = min(channels - 1 - channel, p.size / 2);
    float sum = 0.0f;
    for (int64_t k = -before; k <= after; ++k) {
      const float v = to_float(input[i + k * inner]);
      sum += v * v;
    }
    const float divisor = powf(p.bias + p.alpha / static_cast<float>(p.size) * sum, p.beta);
    output[i] = from_float<T>(to_float(input[i]) / divisor);
  }
}

}  // namespace

cudaError_t normalize(ElementType type, NormKind kind, const NormShape& shape, float epsilon, const void* x,
                      const void* scale, const void* bias, const Epilogue& epilogue, void* y,
                      cudaStream_t stream) noexcept {
  const int64_t lists = shape.outer * shape.inner;
  if (shape.outer <= 0 || shape.axis <= 0 || shape.inner <= 0) return cudaSuccess;
  Lists l;
  l.shape = shape;
  l.team = Team::make(lists, shape.axis, shape.inner == 1);
  if (shape.axis <= kInt32Max) l.run = Divider<uint32_t>(shape.run);
  cudaError_t error = cudaErrorInvalidValue;
  with_float(type, [&](auto element) {
    using T = decltype(element);
    normalize_kernel<T><<<grid_for(lists, l.team.lanes), kTeamThreads, 0, stream>>>(
        l, kind, lists, epsilon, static_cast<const T*>(x), static_cast<const T*>(scale), static_cast<const T*>(bias),
        epilogue, static_cast<T*>(y));
    error = cudaGetLastError();
  });
  return error;
}

cudaError_t local_response_norm(ElementType type, const LrnParams& params, int64_t outer, int64_t channels,
                                int64_t inner, const void* x, void* y, cudaStream_t stream) noexcept {
  if (outer <= 0 || channels <= 0 || inner <= 0) return cudaSuccess;
  const int64_t count = outer * channels * inner;
  cudaError_t error = cudaErrorInvalidValue;
  with_float(type, [&](auto element) {
    using T = decltype(element);
    lrn_kernel<T><<<grid_for(count, kThreads), kThreads, 0, stream>>>(params, count, channels, inner,
                                                                      static_cast<const T*>(x), static_cast<T*>(y));
    error = cudaGetLastError();
  });
  return error;
}

}  // namespace tenon::cuda
