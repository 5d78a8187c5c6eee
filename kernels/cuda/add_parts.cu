#include "kernels/cuda/common.cuh"
#include "kernels/cuda/epilogue.cuh"
#include "kernels/cuda/gemm_internal.h"

namespace tenon::cuda {
namespace {

constexpr int kThreads = 256;

// Threads stride over the elements of one part. Bound: memory.
template <class Index>
__global__ void __launch_bounds__(kThreads)
    add_kernel(const float* parts, int count, int64_t size, Divider<Index> rows, Divider<Index> columns, int64_t ldc,
               int64_t c_stride, const float* row_bias, const float* column_bias, const float* residual,
               DeviceEpilogue epilogue, float* c) {
  for (int64_t i = global_thread(); i < size; i += global_threads()) {
    float sum = parts[i];
    for (int part = 1; part < count; ++part) sum += parts[part * size + i];
    Index column = static_cast<Index>(i);
    Index row = columns.split(&column);
    const Index batch = rows.split(&row);
    const int64_t at = batch * c_stride + row * ldc + column;
    float bias = 0.0f;
    if (row_bias != nullptr) bias = row_bias[row];
    if (column_bias != nullptr) bias = column_bias[column];
    const float add = residual != nullptr ? residual[at] : 0.0f;
    c[at] = apply(epilogue, sum + bias + add);
  }
}

}  // namespace

cudaError_t add_parts(const float* parts, int count, int64_t batches, int64_t rows, int64_t columns, int64_t ldc,
                      int64_t c_stride, const GemmOutput& output, cudaStream_t stream) noexcept {
  const int64_t size = batches * rows * columns;
  if (size <= 0) return cudaSuccess;
  const float* bias = static_cast<const float*>(output.bias);
  with_index(size, [&](auto index) {
    using Index = decltype(index);
    add_kernel<Index><<<grid_for(size, kThreads), kThreads, 0, stream>>>(
        parts, count, size, Divider<Index>(rows), Divider<Index>(columns), ldc, c_stride,
        output.bias_axis == BiasAxis::kPerRow ? bias : nullptr,
        output.bias_axis == BiasAxis::kPerColumn ? bias : nullptr, static_cast<const float*>(output.residual),
        output.epilogue, static_cast<float*>(output.c));
  });
  return cudaGetLastError();
}

}  // namespace tenon::cuda
