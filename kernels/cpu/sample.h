// sample: pixels of images as weighted sums of a few pixels of others, the same for all channels. Serial: callers give
// each thread its own pixels.
#ifndef TENON_KERNELS_CPU_SAMPLE_H_
#define TENON_KERNELS_CPU_SAMPLE_H_

#include <cstdint>

namespace tenon::cpu {

// y[c * y_plane + p] = sum over t < taps of weight[p * taps + t] * x[c * x_plane + index[p * taps + t]], p < count. All
// indices lie in [0, x_plane), whatever their weight.
void sample(int64_t channels, int64_t count, int taps, const int64_t* index, const float* weight, const float* x,
            int64_t x_plane, float* y, int64_t y_plane) noexcept;

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_SAMPLE_H_
