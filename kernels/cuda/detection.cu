#include "kernels/cuda/detection.h"

#include "kernels/cuda/epilogue.cuh"
#include "kernels/cuda/softmax.cuh"

namespace tenon::cuda {
namespace {

constexpr int kLanes = 32;
constexpr int kSlices = 8;
constexpr int kThreads = kLanes * kSlices;

// Blocks stride over groups of kLanes pixels of one box each; its entries are dealt to kSlices threads a pixel.
// xy becomes logistic * scale + shift. Bound: memory; latency for the small grids of these heads.
template <bool kSoftmax>
__global__ void __launch_bounds__(kThreads)
    head_kernel(int64_t blocks, int64_t pixel_blocks, int64_t pixels, int64_t coords, int64_t classes, float scale,
                float shift, const float* input, float* output) {
  __shared__ float shared[kSlices][kLanes];
  const int slice = threadIdx.x / kLanes;
  const int64_t entries = coords + 1 + classes;
  for (int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    const int64_t box = block / pixel_blocks;
    const int64_t pixel = (block - box * pixel_blocks) * kLanes + threadIdx.x % kLanes;
    const bool active = pixel < pixels;
    const float* x = input + box * entries * pixels + pixel;
    float* y = output + box * entries * pixels + pixel;
    const int64_t end = !active ? 0 : kSoftmax ? coords + 1 : entries;
    for (int64_t entry = slice; entry < end; entry += kSlices) {
      const float v = x[entry * pixels];
      const bool untouched = entry >= 2 && entry < coords;
      float result = untouched ? v : logistic(v);
      if (entry < 2) result = result * scale + shift;
      y[entry * pixels] = result;
    }
    if (kSoftmax) {
      const int64_t first = (coords + 1) * pixels;
      softmax_column<false, kLanes, kSlices>(active, classes, pixels, x + first, y + first, shared);
    }
  }
}

cudaError_t launch(bool softmax, int64_t boxes, int64_t pixels, int64_t coords, int64_t classes, float scale,
                   float shift, const float* input, float* output, cudaStream_t stream) {
  if (boxes <= 0 || pixels <= 0) return cudaSuccess;
  const int64_t pixel_blocks = ceil_div(pixels, kLanes);
  const int64_t blocks = boxes * pixel_blocks;
  const auto kernel = softmax ? head_kernel<true> : head_kernel<false>;
  kernel<<<grid_for(blocks, 1), kThreads, 0, stream>>>(blocks, pixel_blocks, pixels, coords, classes, scale, shift,
                                                       input, output);
  return cudaGetLastError();
}

}  // namespace

cudaError_t region_head(int64_t n, int64_t anchors, int64_t coords, int64_t classes, int64_t pixels, bool softmax,
                        const float* input, float* output, cudaStream_t stream) noexcept {
  return launch(softmax, n * anchors, pixels, coords, classes, 1.0f, 0.0f, input, output, stream);
}

cudaError_t yolo_head(int64_t n, int64_t anchors, int64_t classes, int64_t pixels, float scale_x_y, const float* input,
                      float* output, cudaStream_t stream) noexcept {
  return launch(false, n * anchors, pixels, 4, classes, scale_x_y, -0.5f * (scale_x_y - 1.0f), input, output, stream);
}

}  // namespace tenon::cuda
