// tenon.matmul/1 as one batched product with constant strides, as the GPU's kernels want it.
#ifndef TENON_PLUGINS_MATMUL_MATMUL_CUDA_H_
#define TENON_PLUGINS_MATMUL_MATMUL_CUDA_H_

#include <tenon/sdk/site.hpp>

#include "kernels/cuda/gemm.h"
#include "plugins/common/cuda.h"
#include "plugins/matmul/matmul.h"

namespace tenon::plugins {

// Declined where batches are broadcast otherwise than one operand as a whole.
inline cuda::GemmShape matmul_cuda_shape(const Dims& a, const Dims& b, bool transpose_a, bool transpose_b,
                                         cuda::ElementType type) {
  MatmulGeometry g = MatmulGeometry::make(a, b, transpose_a, transpose_b);
  g.fold_batches();
  const int64_t of_a = g.batch_a.elements(), of_b = g.batch_b.elements();
  if ((of_a != 1 && of_a != g.matrices()) || (of_b != 1 && of_b != g.matrices())) {
    throw Declined("the batches of A and B are broadcast against each other");
  }
  cuda::GemmShape shape = cuda::GemmShape::dense(g.m, g.n, g.k, transpose_a, transpose_b, g.matrices(), type);
  if (of_a == 1) shape.a_stride = 0;
  if (of_b == 1) shape.b_stride = 0;
  return shape;
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_MATMUL_MATMUL_CUDA_H_
