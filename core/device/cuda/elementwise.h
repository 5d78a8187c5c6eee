// The two things that the core itself computes on a GPU: expressions after kernels that cannot apply them, and copies
// between strides. Everything else is a plugin's.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace tenon {

/// A pointwise expression over one operand, as kernels take it by value. Primitives and arguments as TnExprInstr's.
struct CudaExpression {
  static constexpr int kMaxInstrs = 48;
  struct Instr {
    std::int16_t primitive;
    std::int16_t a, b, c;
    float value;
  };
  int count = 0;
  Instr instrs[kMaxInstrs];
};

/// Whether launch_expression knows a primitive.
bool knows_primitive(std::int32_t primitive);

/// data[i] = expression(data[i]), i < count.
cudaError_t launch_expression(const CudaExpression& expression, float* data, std::int64_t count, cudaStream_t stream);

struct CudaStrides {
  static constexpr int kMaxRank = 8;
  int rank = 0;
  std::int64_t dims[kMaxRank];
  std::int64_t to[kMaxRank];    ///< in elements
  std::int64_t from[kMaxRank];  ///< in elements
};

/// Copies every element; element_bytes is 1, 2, 4 or 8; dims are all at least 1.
cudaError_t launch_copy(void* to, const void* from, const CudaStrides& strides, std::size_t element_bytes,
                        cudaStream_t stream);

}  // namespace tenon
