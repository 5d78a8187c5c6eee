#include "plugins/pointwise/pointwise_source.h"

#include <cstdio>
#include <cstring>

#include "plugins/pointwise/pointwise.h"

namespace tenon::plugins {
namespace {

std::string literal(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "__uint_as_float(0x%08xu)", bits);
  return buffer;
}

std::string cast_source(int32_t dtype, const std::string& a) {
  if (dtype == TN_F32 || dtype == TN_F64) return a;
  if (dtype == TN_BOOL) return "float(" + a + " != 0.0f)";
  if (dtype == TN_F16) return "widen_f16(narrow_f16(" + a + "))";
  if (dtype == TN_BF16) return "widen_bf16(narrow_bf16(" + a + "))";
  const IntegerBounds bounds = integer_bounds(dtype);
  return "to_integer(" + a + ", " + literal(bounds.low) + ", " + literal(bounds.high) + ")";
}

// $ of a form stands for the arguments in turn: "$1" is the first.
const char* form_of(int32_t primitive) {
  switch (primitive) {
    case TN_EX_ADD:
      return "$1 + $2";
    case TN_EX_SUB:
      return "$1 - $2";
    case TN_EX_MUL:
      return "$1 * $2";
    case TN_EX_DIV:
      return "$1 / $2";
    case TN_EX_MIN:
      return "$2 < $1 || $2 != $2 ? $2 : $1";
    case TN_EX_MAX:
      return "$2 > $1 || $2 != $2 ? $2 : $1";
    case TN_EX_NEG:
      return "-$1";
    case TN_EX_ABS:
      return "fabsf($1)";
    case TN_EX_EXP:
      return "expf($1)";
    case TN_EX_LOG:
      return "logf($1)";
    case TN_EX_TANH:
      return "tanhf($1)";
    case TN_EX_ERF:
      return "erff($1)";
    case TN_EX_SQRT:
      return "sqrtf($1)";
    case TN_EX_RSQRT:
      return "1.0f / sqrtf($1)";
    case TN_EX_POW:
      return "$2 == 2.0f ? $1 * $1 : powf($1, $2)";
    case TN_EX_SIN:
      return "sinf($1)";
    case TN_EX_COS:
      return "cosf($1)";
    case TN_EX_FLOOR:
      return "floorf($1)";
    case TN_EX_CEIL:
      return "ceilf($1)";
    case TN_EX_ROUND_EVEN:
      return "rintf($1)";
    case TN_EX_SIGN:
      return "$1 != $1 ? $1 : float($1 > 0.0f) - float($1 < 0.0f)";
    case TN_EX_MOD:
      return "fmodf($1, $2)";
    case TN_EX_AND:
      return "float($1 != 0.0f && $2 != 0.0f)";
    case TN_EX_OR:
      return "float($1 != 0.0f || $2 != 0.0f)";
    case TN_EX_XOR:
      return "float(($1 != 0.0f) != ($2 != 0.0f))";
    case TN_EX_NOT:
      return "float($1 == 0.0f)";
    case TN_EX_LESS:
      return "float($1 < $2)";
    case TN_EX_LESS_EQUAL:
      return "float($1 <= $2)";
    case TN_EX_EQUAL:
      return "float($1 == $2)";
    case TN_EX_SELECT:
      return "$1 != 0.0f ? $2 : $3";
    default:
      return nullptr;
  }
}

std::string name_of(int32_t step) { return "s" + std::to_string(step); }

std::string step_source(const TnExprInstr& step) {
  if (step.primitive == TN_EX_INPUT) return "x" + std::to_string(step.operand);
  if (step.primitive == TN_EX_CONSTANT) return literal(static_cast<float>(step.value));
  if (step.primitive == TN_EX_CAST) return cast_source(step.dtype, name_of(step.a));
  const char* form = form_of(step.primitive);
  if (form == nullptr) throw Declined(text("no code for primitive ", step.primitive));
  const int32_t arguments[] = {step.a, step.b, step.c};
  std::string result;
  for (; *form != '\0'; ++form) {
    if (*form == '$') {
      result += name_of(arguments[*++form - '1']);
    } else {
      result += *form;
    }
  }
  return result;
}

// `piece` once for each operand, # being its number.
std::string for_operands(int num_operands, const std::string& piece, const std::string& between = "") {
  std::string result;
  for (int n = 0; n < num_operands; ++n) {
    if (n > 0) result += between;
    for (const char c : piece) {
      if (c == '#') {
        result += std::to_string(n);
      } else {
        result += c;
      }
    }
  }
  return result;
}

// Conversions by instruction: the compiler has no header at hand.
const char kConversions[] = R"(
static __device__ __forceinline__ float widen_f16(unsigned short x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
}
static __device__ __forceinline__ unsigned short narrow_f16(float x) {
  unsigned short y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
static __device__ __forceinline__ float widen_bf16(unsigned short x) { return __uint_as_float((unsigned)x << 16); }
static __device__ __forceinline__ unsigned short narrow_bf16(float x) {
  unsigned short y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
static __device__ __forceinline__ float to_integer(float x, float low, float high) {
  return x != x ? 0.0f : truncf(fminf(fmaxf(x, low), high)) + 0.0f;
}
)";

const char kLoads[] = R"(
template <int N>
struct alignas(N * sizeof(Element)) Pack {
  Element v[N];
};
template <int N>
static __device__ __forceinline__ Pack<N> load(const void* operand, unsigned offset, unsigned column, unsigned step) {
  const Element* from = static_cast<const Element*>(operand) + offset;
  if (step != 0) return *reinterpret_cast<const Pack<N>*>(from + column);
  Pack<N> repeated;
  for (int n = 0; n < N; ++n) repeated.v[n] = *from;
  return repeated;
}
)";

}  // namespace

std::string pointwise_source(const std::vector<TnExprInstr>& steps, int num_operands, int32_t dtype) {
  if (num_operands < 1 || num_operands > kSourceOperands) {
    throw Declined(text("it takes 1 to ", kSourceOperands, " operands, found ", num_operands));
  }
  const bool f32 = dtype == TN_F32;
  if (!f32 && dtype != TN_F16 && dtype != TN_BF16) throw Declined(text("no code for ", dtype_name(dtype)));
  const std::string kind = dtype == TN_F16 ? "_f16" : "_bf16";
  const std::string axes = std::to_string(kSourceAxes), most = std::to_string(kSourceOperands);
  std::string source =
      text("typedef ", f32 ? "float" : "unsigned short", " Element;\n", "struct Launch {\n", "  const void* operands[",
           most, "];\n  void* output;\n", "  unsigned axes, columns, chunks, total;\n  unsigned sizes[", axes, "];\n",
           "  unsigned strides[", most, "][", axes, "];\n  unsigned steps[", most, "];\n};\n");
  source += kConversions;
  source += "static __device__ __forceinline__ float widen(Element x) { return ";
  source += f32 ? "x; }\n" : "widen" + kind + "(x); }\n";
  source += "static __device__ __forceinline__ Element narrow(float x) { return ";
  source += f32 ? "x; }\n" : "narrow" + kind + "(x); }\n";
  source += kLoads;

  source += "static __device__ __forceinline__ Element compute(";
  source += for_operands(num_operands, "Element e#", ", ") + ") {\n";
  source += for_operands(num_operands, "  const float x# = widen(e#);\n");
  for (size_t n = 0; n < steps.size(); ++n) {
    source += "  const float s" + std::to_string(n) + " = " + step_source(steps[n]) + ";\n";
  }
  source += "  return narrow(s" + std::to_string(steps.size() - 1) + ");\n}\n";

  // One thread, one chunk of N elements of a row. Only a single row may end within a chunk.
  source +=
      "template <int N>\n"
      "static __device__ __forceinline__ void run(const Launch& launch) {\n"
      "  const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  if (at >= launch.total) return;\n"
      "  unsigned row = launch.axes == 0 ? 0 : at / launch.chunks;\n"
      "  const unsigned column = (at - row * launch.chunks) * N;\n";
  source += for_operands(num_operands, "  unsigned o# = 0;\n");
  source +=
      "  for (unsigned axis = launch.axes; axis-- > 0;) {\n"
      "    const unsigned next = row / launch.sizes[axis];\n"
      "    const unsigned index = row - next * launch.sizes[axis];\n"
      "    row = next;\n";
  source += for_operands(num_operands, "    o# += index * launch.strides[#][axis];\n");
  source +=
      "  }\n"
      "  Element* output = static_cast<Element*>(launch.output) + static_cast<unsigned long long>(at) * N;\n"
      "  if (N > 1 && column + N > launch.columns) {\n"
      "    for (unsigned n = 0; column + n < launch.columns; ++n) {\n"
      "      output[n] = compute(";
  source += for_operands(num_operands, "load<1>(launch.operands[#], o#, column + n, launch.steps[#]).v[0]", ", ");
  source += ");\n    }\n    return;\n  }\n";
  source +=
      for_operands(num_operands, "  const Pack<N> p# = load<N>(launch.operands[#], o#, column, launch.steps[#]);\n");
  source += "  Pack<N> result;\n#pragma unroll\n  for (int n = 0; n < N; ++n) result.v[n] = compute(";
  source += for_operands(num_operands, "p#.v[n]", ", ");
  source += ");\n  *reinterpret_cast<Pack<N>*>(output) = result;\n}\n";
  source +=
      text("extern \"C\" __global__ void pointwise_vector(const __grid_constant__ Launch launch) { run<",
           vector_elements(dtype), ">(launch); }\n",
           "extern \"C\" __global__ void pointwise_single(const __grid_constant__ Launch launch) { run<1>(launch); "
           "}\n");
  return source;
}

}  // namespace tenon::plugins
