// reorg: Darknet's reorganisation layer, NCHW, elements of 1, 2, 4 or 8 bytes. It is not space-to-depth: Darknet calls
// its routine with the input's dimensions where the output's are meant, and trained models depend on the permutation
// that results.
#ifndef TENON_KERNELS_CUDA_REORG_H_
#define TENON_KERNELS_CUDA_REORG_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tenon::cuda {

// Whether a reorg of c x h x w is defined: stride >= 1, c divisible by stride^2, h and w divisible by stride.
bool reorg_supports(int64_t c, int64_t h, int64_t w, int64_t stride) noexcept;

// Input [n][c][h][w], output [n][c*stride^2][h/stride][w/stride]. With C2 = c / stride^2, the output's flat position
// (k*h + j)*w + i, k < c, j < h, i < w, takes the input's flat position
//   (k % C2 * h*stride + j*stride + (k / C2) / stride) * w*stride + i*stride + (k / C2) % stride
// (both within one image). No overlap. Launches on the stream, allocates nothing, does not wait, may be captured;
// returns the error of the launch, and cudaErrorInvalidValue where reorg_supports is false.
cudaError_t reorg_darknet(int64_t n, int64_t c, int64_t h, int64_t w, int64_t stride, int element_size,
                          const void* input, void* output, cudaStream_t stream) noexcept;

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_REORG_H_
