#include "kernels/cuda/common.cuh"
#include "kernels/cuda/epilogue.cuh"
#include "kernels/cuda/gemm_internal.h"

namespace tenon::cuda {
namespace {

constexpr int kMostRows = 8;
constexpr int kWarps = 8;    // of a block of dot_kernel
constexpr int kSlices = 16;  // of k, one for each warp of a block of column_kernel
constexpr int64_t kMostZ = 65535;

// Few rows of A (rows <= kMostRows) times a wide B, with free strides: element (i, l) of A is at i * a_row + l * a_k.
struct Skinny {
  const float* a;
  const float* b;
  int64_t a_row, a_k, b_k, b_column, c_row, c_column;
  int64_t a_stride, b_stride, c_stride;
  int rows;
  int64_t columns, k, batches;
  const float* row_bias;
  const float* column_bias;
  const float* residual;
  float* c;
  bool vector;
};

__device__ __forceinline__ void store(const Skinny& s, const DeviceEpilogue& epilogue, int64_t batch, int row,
                                      int64_t column, float sum) {
  const int64_t at = batch * s.c_stride + row * s.c_row + column * s.c_column;
  float bias = 0.0f;
  if (s.row_bias != nullptr) bias = s.row_bias[row];
  if (s.column_bias != nullptr) bias = s.column_bias[column];
  const float add = s.residual != nullptr ? s.residual[at] : 0.0f;
  s.c[at] = apply(epilogue, sum + bias + add);
}

// B contiguous along k: kTeam warps for each column, their lanes along k, and a sum over the lanes. Bound: memory.
template <int kRows, int kTeam>
__global__ void __launch_bounds__(kWarps * 32) dot_kernel(Skinny s, DeviceEpilogue epilogue) {
  __shared__ float partial[kWarps][kRows];
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * (kWarps / kTeam) + warp / kTeam;
  const int64_t member = warp % kTeam * 32 + lane;
  for (int64_t batch = blockIdx.z; batch < s.batches; batch += gridDim.z) {
    float sums[kRows] = {};
    if (column < s.columns) {
      const float* a = s.a + batch * s.a_stride;
      const float* b = s.b + batch * s.b_stride + column * s.b_column;
      const int64_t quads = s.vector ? s.k / 4 : 0;
#pragma unroll 2
      for (int64_t l = member; l < quads; l += kTeam * 32) {
        const float4 y = reinterpret_cast<const float4*>(b)[l];
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
          const float4 x = reinterpret_cast<const float4*>(a + min(i, s.rows - 1) * s.a_row)[l];
          sums[i] = fmaf(x.w, y.w, fmaf(x.z, y.z, fmaf(x.y, y.y, fmaf(x.x, y.x, sums[i]))));
        }
      }
      for (int64_t l = quads * 4 + member; l < s.k; l += kTeam * 32) {
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
          sums[i] = fmaf(a[min(i, s.rows - 1) * s.a_row + l * s.a_k], b[l], sums[i]);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      sums[i] = warp_sum(sums[i]);
      if (lane == 0) partial[warp][i] = sums[i];
    }
    __syncthreads();
    if (warp % kTeam == 0 && lane < min(kRows, s.rows) && column < s.columns) {
      float sum = partial[warp][lane];
      for (int i = 1; i < kTeam; ++i) sum += partial[warp + i][lane];
      store(s, epilogue, batch, lane, column, sum);
    }
    __syncthreads();
  }
}

// B contiguous along the columns: a lane for each column, a warp for each slice of k. Bound: memory.
template <int kRows>
__global__ void __launch_bounds__(kSlices * 32) column_kernel(Skinny s, DeviceEpilogue epilogue) {
  __shared__ float partial[kSlices][kRows][32];
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * 32;
  for (int64_t batch = blockIdx.z; batch < s.batches; batch += gridDim.z) {
    float sums[kRows] = {};
    if (first + lane < s.columns) {
      const float* a = s.a + batch * s.a_stride;
      const float* b = s.b + batch * s.b_stride + (first + lane) * s.b_column;
#pragma unroll 4
      for (int64_t l = warp; l < s.k; l += kSlices) {
        const float y = b[l * s.b_k];
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
          sums[i] = fmaf(a[min(i, s.rows - 1) * s.a_row + l * s.a_k], y, sums[i]);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) partial[warp][i][lane] = sums[i];
    __syncthreads();
    if (warp < min(kRows, s.rows) && first + lane < s.columns) {
      float sum = partial[0][warp][lane];
      for (int slice = 1; slice < kSlices; ++slice) sum += partial[slice][warp][lane];
      store(s, epilogue, batch, warp, first + lane, sum);
    }
    __syncthreads();
  }
}

template <int kRows>
cudaError_t launch(const Skinny& s, const Epilogue& epilogue, cudaStream_t stream) {
  const unsigned z = static_cast<unsigned>(std::min(s.batches, kMostZ));
  if (s.b_k != 1) {
    column_kernel<kRows>
        <<<dim3(static_cast<unsigned>(ceil_div(s.columns, 32)), 1, z), kSlices * 32, 0, stream>>>(s, epilogue);
  } else if (s.k >= 512 && s.columns * s.batches < 8192) {  // too few columns to fill the GPU with a warp each
    dot_kernel<kRows, kWarps><<<dim3(static_cast<unsigned>(s.columns), 1, z), kWarps * 32, 0, stream>>>(s, epilogue);
  } else {
    dot_kernel<kRows, 1>
        <<<dim3(static_cast<unsigned>(ceil_div(s.columns, kWarps)), 1, z), kWarps * 32, 0, stream>>>(s, epilogue);
  }
  return cudaGetLastError();
}

}  // namespace

cudaError_t gemm_skinny(const GemmShape& shape, const float* a, const float* b, const GemmOutput& output,
                        cudaStream_t stream) noexcept {
  Skinny s = {};
  s.a = a;
  s.b = b;
  s.a_row = shape.trans_a ? 1 : shape.lda;
  s.a_k = shape.trans_a ? shape.lda : 1;
  s.b_k = shape.trans_b ? 1 : shape.ldb;
  s.b_column = shape.trans_b ? shape.ldb : 1;
  s.c_row = shape.ldc;
  s.c_column = 1;
  s.a_stride = shape.a_stride;
  s.b_stride = shape.b_stride;
  s.c_stride = shape.c_stride;
  s.columns = shape.n;
  s.k = shape.k;
  s.batches = shape.batches;
  const float* bias = static_cast<const float*>(output.bias);
  s.row_bias = output.bias_axis == BiasAxis::kPerRow ? bias : nullptr;
  s.column_bias = output.bias_axis == BiasAxis::kPerColumn ? bias : nullptr;
  s.residual = static_cast<const float*>(output.residual);
  s.c = static_cast<float*>(output.c);
  int64_t rows = shape.m;
  if (shape.m > kMostRows || (shape.n <= kMostRows && shape.n < shape.m)) {  // C transposed: B' A'
    std::swap(s.a, s.b);
    const Skinny given = s;
    s.a_row = given.b_column;
    s.a_k = given.b_k;
    s.b_k = given.a_k;
    s.b_column = given.a_row;
    std::swap(s.c_row, s.c_column);
    std::swap(s.a_stride, s.b_stride);
    std::swap(s.row_bias, s.column_bias);
    std::swap(rows, s.columns);
  }
  s.rows = static_cast<int>(rows);
  const auto quads = [&](const float* pointer, int64_t line, int64_t stride) {
    return is_aligned(pointer, 16) && line % 4 == 0 && (s.batches == 1 || stride % 4 == 0);
  };
  s.vector = s.b_k == 1 && s.a_k == 1 && quads(s.a, s.a_row, s.a_stride) && quads(s.b, s.b_column, s.b_stride);
  if (s.rows <= 1) return launch<1>(s, output.epilogue, stream);
  if (s.rows <= 2) return launch<2>(s, output.epilogue, stream);
  if (s.rows <= 4) return launch<4>(s, output.epilogue, stream);
  return launch<8>(s, output.epilogue, stream);
}

}  // namespace tenon::cuda
