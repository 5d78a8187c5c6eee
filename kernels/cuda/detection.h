// detection: the activations of Darknet's detection heads, float32. Input and output are
// [n][anchors][coords + 1 + classes][pixels]: for each anchor x, y, the other coords, objectness, then the classes.
// They may be the same buffer, or must not overlap.
// Launches on the stream, allocates nothing, does not wait, may be captured; returns the error of the launch.
#ifndef TENON_KERNELS_CUDA_DETECTION_H_
#define TENON_KERNELS_CUDA_DETECTION_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tenon::cuda {

// YOLOv2: logistic on x, y and objectness, the other coords untouched, softmax over the classes, or logistic on each if
// `softmax` is false. REQUIRES: coords >= 2.
cudaError_t region_head(int64_t n, int64_t anchors, int64_t coords, int64_t classes, int64_t pixels, bool softmax,
                        const float* input, float* output, cudaStream_t stream) noexcept;

// YOLOv3, coords 4: logistic on x, y, objectness and classes, the other two coords untouched; then x and y become
// v * scale_x_y - (scale_x_y - 1) / 2.
cudaError_t yolo_head(int64_t n, int64_t anchors, int64_t classes, int64_t pixels, float scale_x_y, const float* input,
                      float* output, cudaStream_t stream) noexcept;

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_DETECTION_H_
