#include "core/device/cuda/elementwise.h"

#include <tenon/plugin/ext/expression.h>

namespace tenon {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 1 << 16;

unsigned blocks_for(std::int64_t count) {
  const std::int64_t blocks = (count + kThreads - 1) / kThreads;
  return static_cast<unsigned>(blocks < kMaxBlocks ? blocks : kMaxBlocks);
}

// As the host's evaluator: NaN in either operand gives NaN.
__device__ float min_nan(float a, float b) { return a != a ? a : (b != b ? b : fminf(a, b)); }
__device__ float max_nan(float a, float b) { return a != a ? a : (b != b ? b : fmaxf(a, b)); }

__device__ float step(const CudaExpression::Instr& instr, const float* values, float x) {
  const float a = instr.a >= 0 ? values[instr.a] : 0.0f;
  const float b = instr.b >= 0 ? values[instr.b] : 0.0f;
  switch (instr.primitive) {
    case TN_EX_INPUT:
      return x;
    case TN_EX_CONSTANT:
      return instr.value;
    case TN_EX_ADD:
      return a + b;
    case TN_EX_SUB:
      return a - b;
    case TN_EX_MUL:
      return a * b;
    case TN_EX_DIV:
      return a / b;
    case TN_EX_MIN:
      return min_nan(a, b);
    case TN_EX_MAX:
      return max_nan(a, b);
    case TN_EX_NEG:
      return -a;
    case TN_EX_ABS:
      return fabsf(a);
    case TN_EX_EXP:
      return expf(a);
    case TN_EX_LOG:
      return logf(a);
    case TN_EX_TANH:
      return tanhf(a);
    case TN_EX_ERF:
      return erff(a);
    case TN_EX_SQRT:
      return sqrtf(a);
    case TN_EX_RSQRT:
      return 1.0f / sqrtf(a);
    case TN_EX_POW:
      return powf(a, b);
    case TN_EX_SIN:
      return sinf(a);
    case TN_EX_COS:
      return cosf(a);
    case TN_EX_FLOOR:
      return floorf(a);
    case TN_EX_CEIL:
      return ceilf(a);
    case TN_EX_ROUND_EVEN:
      return rintf(a);
    case TN_EX_SIGN:
      return a > 0 ? 1.0f : (a < 0 ? -1.0f : a);
    case TN_EX_MOD:
      return fmodf(a, b);
    case TN_EX_AND:
      return a != 0 && b != 0 ? 1.0f : 0.0f;
    case TN_EX_OR:
      return a != 0 || b != 0 ? 1.0f : 0.0f;
    case TN_EX_XOR:
      return (a != 0) != (b != 0) ? 1.0f : 0.0f;
    case TN_EX_NOT:
      return a == 0 ? 1.0f : 0.0f;
    case TN_EX_LESS:
      return a < b ? 1.0f : 0.0f;
    case TN_EX_LESS_EQUAL:
      return a <= b ? 1.0f : 0.0f;
    case TN_EX_EQUAL:
      return a == b ? 1.0f : 0.0f;
    case TN_EX_SELECT:
      return a != 0 ? b : (instr.c >= 0 ? values[instr.c] : 0.0f);
    default:
      return a;  // knows_primitive keeps others away
  }
}

__global__ void expression_kernel(CudaExpression expression, float* data, std::int64_t count) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count; i += stride) {
    float values[CudaExpression::kMaxInstrs];
    const float x = data[i];
    float result = x;
    for (int n = 0; n < expression.count; ++n) values[n] = result = step(expression.instrs[n], values, x);
    data[i] = result;
  }
}

template <class Element>
__global__ void copy_kernel(Element* to, const Element* from, CudaStrides strides, std::int64_t count) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count; i += stride) {
    std::int64_t rest = i, target = 0, source = 0;
    for (int axis = strides.rank - 1; axis >= 0; --axis) {
      const std::int64_t index = rest % strides.dims[axis];
      rest /= strides.dims[axis];
      target += index * strides.to[axis];
      source += index * strides.from[axis];
    }
    to[target] = from[source];
  }
}

template <class Element>
cudaError_t copy(void* to, const void* from, const CudaStrides& strides, cudaStream_t stream) {
  std::int64_t count = 1;
  for (int axis = 0; axis < strides.rank; ++axis) count *= strides.dims[axis];
  copy_kernel<<<blocks_for(count), kThreads, 0, stream>>>(static_cast<Element*>(to), static_cast<const Element*>(from),
                                                          strides, count);
  return cudaGetLastError();
}

}  // namespace

bool knows_primitive(std::int32_t primitive) { return primitive >= TN_EX_INPUT && primitive <= TN_EX_SELECT; }

cudaError_t launch_expression(const CudaExpression& expression, float* data, std::int64_t count, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  expression_kernel<<<blocks_for(count), kThreads, 0, stream>>>(expression, data, count);
  return cudaGetLastError();
}

cudaError_t launch_copy(void* to, const void* from, const CudaStrides& strides, std::size_t element_bytes,
                        cudaStream_t stream) {
  switch (element_bytes) {
    case 1:
      return copy<std::uint8_t>(to, from, strides, stream);
    case 2:
      return copy<std::uint16_t>(to, from, strides, stream);
    case 4:
      return copy<std::uint32_t>(to, from, strides, stream);
    default:
      return copy<std::uint64_t>(to, from, strides, stream);
  }
}

}  // namespace tenon
