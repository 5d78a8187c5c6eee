// pad, one_hot, trilu: tensors from a few rules about positions. They move bits, so one function serves all types of a
// size (1, 2, 4 or 8; cudaErrorInvalidValue for others). Every function launches on the stream, allocates nothing, does
// not wait, may be captured, and returns the error of the launch; buffers are device memory, aligned to their element,
// and do not overlap where nothing else is said.
#ifndef TENON_KERNELS_CUDA_PAD_H_
#define TENON_KERNELS_CUDA_PAD_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tenon::cuda {

constexpr int kPadMaxRank = 8;

enum class PadMode : int {
  kConstant,  // a value
  kEdge,      // the last position
  kReflect,   // the mirrored contents, the last position only once
  kWrap,      // a torus
};

// Output position i of axis d is the input's i - begin[d] where that lies in [first[d], last[d]), else what the mode
// says of these positions. REQUIRES: 0 <= first[d] <= last[d] <= the input's size; below it but for kConstant.
struct PadShape {
  int rank = 0;
  int64_t dims[kPadMaxRank] = {};     // of the output
  int64_t strides[kPadMaxRank] = {};  // of the input
  int64_t begin[kPadMaxRank] = {};
  int64_t first[kPadMaxRank] = {};
  int64_t last[kPadMaxRank] = {};
};

// `fill` is one element in device memory for kConstant; nullptr: zero bits.
cudaError_t pad(const PadShape& shape, PadMode mode, int element_size, const void* input, const void* fill,
                void* output, cudaStream_t stream) noexcept;

// output [outer][depth][inner] is values[1] where the position on the middle axis is that of indices [outer][inner],
// which count from the end if they are negative, else values[0]; `values` is in device memory.
cudaError_t one_hot(int64_t outer, int64_t depth, int64_t inner, bool indices_are_i64, const void* indices,
                    int element_size, const void* values, void* output, cudaStream_t stream) noexcept;

// Matrices with zeros below (upper) or above diagonal number k, which is one i64 or i32 in device memory; nullptr: 0.
// input and output may be the same buffer.
cudaError_t trilu(int64_t matrices, int64_t rows, int64_t columns, bool upper, bool k_is_i64, const void* k,
                  int element_size, const void* input, void* output, cudaStream_t stream) noexcept;

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_PAD_H_
