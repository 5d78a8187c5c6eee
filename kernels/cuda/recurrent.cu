#include "kernels/cuda/recurrent.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/epilogue.cuh"
#include "kernels/cuda/tile.cuh"

namespace tenon::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kRows = 4;  // of the batch that a warp computes together

__device__ __noinline__ float apply_gate(const GateFunction& f, float x) {
  using Kind = GateFunction::Kind;
  switch (f.kind) {
    case Kind::kRelu:
      return at_least(0.0f, x);
    case Kind::kTanh:
      return tanhf(x);
    case Kind::kSigmoid:
      return logistic(x);
    case Kind::kAffine:
      return f.alpha * x + f.beta;
    case Kind::kLeakyRelu:
      return x < 0.0f ? f.alpha * x : x;
    case Kind::kThresholdedRelu:
      return x >= f.alpha ? x : 0.0f;
    case Kind::kScaledTanh:
      return f.alpha * tanhf(f.beta * x);
    case Kind::kHardSigmoid:
      return at_most(1.0f, at_least(0.0f, f.alpha * x + f.beta));
    case Kind::kElu:
      return x < 0.0f ? f.alpha * expm1f(x) : x;
    case Kind::kSoftsign:
      return x / (1.0f + fabsf(x));
    case Kind::kSoftplus:
      return at_least(0.0f, x) + log1pf(expf(-fabsf(x)));
  }
  return x;
}

// Where a direction's parts of everything begin, at one step.
template <class T>
struct Step {
  int64_t batch, hidden, gates, t;
  GateFunction functions[3];
  float clip;
  bool input_forget;
  const T* product;     // x W' of the step: [batch][gates]
  const T* recurrence;  // [gates][hidden]
  const T* bias;        // [2][gates] or null
  const T* peepholes;   // [3][hidden] or null
  const int32_t* lengths32;
  const int64_t* lengths64;
  const float* h;  // [batch][hidden], before the step
  float* next_h;
  float* c;       // LSTM, in place
  float* reset;   // GRU: r * h
  float* update;  // GRU: z
  T* y;           // [batch][hidden]

  __device__ __forceinline__ float gate(int n, float x) const {
    if (clip > 0.0f) x = at_most(clip, at_least(-clip, x));
    return apply_gate(functions[n], x);
  }
  // What gate g of unit j gets besides the product with the state.
  __device__ __forceinline__ float input(int64_t row, int g, int64_t j) const {
    const int64_t n = g * hidden + j;
    return to_float(product[row * gates + n]) + (bias == nullptr ? 0.0f : to_float(bias[n]));
  }
  __device__ __forceinline__ float recurrent_bias(int g, int64_t j) const {
    return bias == nullptr ? 0.0f : to_float(bias[gates + g * hidden + j]);
  }
  __device__ __forceinline__ float peephole(int g, int64_t j, float cell) const {
    return peepholes == nullptr ? 0.0f : to_float(peepholes[g * hidden + j]) * cell;
  }
  __device__ __forceinline__ bool is_over(int64_t row) const {
    return (lengths32 != nullptr && t >= lengths32[row]) || (lengths64 != nullptr && t >= lengths64[row]);
  }
};

// What a pass over the units computes. A GRU whose reset gate acts before the product takes two.
enum class Pass { kRnn, kLstm, kGru, kGruGates, kGruCandidate };

__host__ __device__ constexpr int pass_gates(Pass pass) {
  return pass == Pass::kLstm ? 4 : pass == Pass::kGru ? 3 : pass == Pass::kGruGates ? 2 : 1;
}

// A warp for a unit of kRows rows of the batch: its rows of the recurrence weights times the states, then, a lane for
// each row, the cell. Bound: reads of the weights, which a second-level cache holds.
template <class T, Pass kPass>
__global__ void __launch_bounds__(kThreads) step_kernel(Step<T> s) {
  constexpr int kGates = pass_gates(kPass), kFirst = kPass == Pass::kGruCandidate ? 2 : 0;
  const int lane = threadIdx.x % 32;
  const int64_t chunks = (s.batch + kRows - 1) / kRows;
  const float* state = kPass == Pass::kGruCandidate ? s.reset : s.h;
  for (int64_t item = global_thread() / 32; item < s.hidden * chunks; item += global_threads() / 32) {
    const int64_t chunk = item / s.hidden, j = item - chunk * s.hidden;
    const int64_t first = chunk * kRows;
    const int rows = static_cast<int>(min(static_cast<int64_t>(kRows), s.batch - first));
    float sums[kRows][kGates] = {};
    for (int64_t k = lane; k < s.hidden; k += 32) {
      float weights[kGates];
#pragma unroll
      for (int g = 0; g < kGates; ++g) {
        weights[g] = to_float(s.recurrence[((kFirst + g) * s.hidden + j) * s.hidden + k]);
      }
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const float h = state[(first + min(r, rows - 1)) * s.hidden + k];
#pragma unroll
        for (int g = 0; g < kGates; ++g) sums[r][g] = fmaf(weights[g], h, sums[r][g]);
      }
    }
    float own[kGates] = {};
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int g = 0; g < kGates; ++g) {
        const float sum = warp_sum(sums[r][g]);
        if (lane == r) own[g] = sum;
      }
    }
    if (lane >= rows) continue;
    const int64_t row = first + lane, at = row * s.hidden + j;
#pragma unroll
    for (int g = 0; g < kGates; ++g) own[g] += s.recurrent_bias(kFirst + g, j);
    const auto sum = [&](int g) { return s.input(row, kFirst + g, j) + own[g]; };
    float h = s.h[at];
    if (kPass == Pass::kGruGates) {
      s.update[at] = s.gate(0, sum(0));
      s.reset[at] = s.gate(0, sum(1)) * h;
      continue;
    }
    if (s.is_over(row)) {
      s.next_h[at] = h;
      s.y[at] = from_float<T>(0.0f);
      continue;
    }
    if (kPass == Pass::kRnn) {
      h = s.gate(0, sum(0));
    } else if (kPass == Pass::kLstm) {
      float cell = s.c[at];
      const float in = s.gate(0, sum(0) + s.peephole(0, j, cell));
      const float forget = s.input_forget ? 1.0f - in : s.gate(0, sum(2) + s.peephole(2, j, cell));
      cell = forget * cell + in * s.gate(1, sum(3));
      s.c[at] = cell;
      h = s.gate(0, sum(1) + s.peephole(1, j, cell)) * apply_gate(s.functions[2], cell);
    } else {
      const float update = kPass == Pass::kGru ? s.gate(0, sum(0)) : s.update[at];
      const float candidate =
          kPass == Pass::kGru ? s.gate(1, s.input(row, 2, j) + s.gate(0, sum(1)) * own[kGates - 1]) : s.gate(1, sum(0));
      h = (1.0f - update) * candidate + update * h;
    }
    s.next_h[at] = h;
    s.y[at] = from_float<T>(h);
  }
}

// The inputs of all steps times the weights: [rows][gates] = x [rows][inputs] * weights [gates][inputs]'. A block for a
// tile, see tile.cuh; one size of tile, where gemm.h would bring all of its own along. Bound: compute.
template <class T>
__global__ void __launch_bounds__(Tile64x64::kThreads, Tile64x64::kMinBlocks)
    product_kernel(int64_t rows, int64_t gates, int inputs, Divider<uint32_t> row_tiles, bool vector_x, bool vector_w,
                   const T* x, const T* weights, TileOutput<T> out, DeviceEpilogue epilogue) {
  using Tile = Tile64x64;
  __shared__ typename Tile::Shared shared;
  uint32_t row_tile = blockIdx.x;
  const int64_t column = static_cast<int64_t>(row_tiles.split(&row_tile)) * Tile::kColumns;
  const int64_t row = static_cast<int64_t>(row_tile) * Tile::kRows;
  MatrixLoader<true, Tile::kRows, Tile::kDepth, Tile::kThreads, T> a(x, inputs, vector_x, row, rows, 0, inputs);
  MatrixLoader<true, Tile::kColumns, Tile::kDepth, Tile::kThreads, T> b(weights, inputs, vector_w, column, gates, 0,
                                                                        inputs);
  typename Tile::Sums sums = {};
  tile_product<Tile>(a, b, (inputs + Tile::kDepth - 1) / Tile::kDepth, shared, sums);
  store_tile<Tile>(sums, row, column, rows, gates, out, epilogue);
}

template <class T>
cudaError_t product(const RecurrentShape& s, const T* x, const T* weights, T* y, cudaStream_t stream) {
  const int64_t rows = s.steps * s.batch, gates = s.gates();
  const int64_t row_tiles = ceil_div(rows, Tile64x64::kRows), column_tiles = ceil_div(gates, Tile64x64::kColumns);
  if (s.inputs > kInt32Max || gates > kInt32Max || row_tiles > kInt32Max / column_tiles) return cudaErrorInvalidValue;
  if (rows == 0) return cudaSuccess;
  const auto vector = [&](const T* data) { return is_aligned(data, 4 * sizeof(T)) && s.inputs % 4 == 0; };
  TileOutput<T> out = {};
  out.data = y;
  out.row_stride = gates;
  out.run = Divider<uint32_t>(gates);
  out.vector = gates % 4 == 0;
  product_kernel<T><<<static_cast<unsigned>(row_tiles * column_tiles), Tile64x64::kThreads, 0, stream>>>(
      rows, gates, static_cast<int>(s.inputs), Divider<uint32_t>(row_tiles), vector(x), vector(weights), x, weights,
      out, Epilogue::none());
  return cudaGetLastError();
}

// to = from, or 0 where that is null.
template <class To, class From>
__global__ void __launch_bounds__(kThreads) convert_kernel(int64_t count, const From* from, To* to) {
  for (int64_t i = global_thread(); i < count; i += global_threads()) {
    to[i] = from_float<To>(from == nullptr ? 0.0f : to_float(from[i]));
  }
}

template <class To, class From>
void convert(int64_t count, const From* from, To* to, cudaStream_t stream) {
  convert_kernel<To, From><<<grid_for(count, kThreads), kThreads, 0, stream>>>(count, from, to);
}

// The workspace, in bytes from its start.
struct Places {
  size_t product, h[2], c, reset, update, bytes;

  Places(ElementType type, const RecurrentShape& s) {
    size_t used = 0;
    const auto take = [&](int64_t count, int size) {
      const size_t at = used;
      used += (static_cast<size_t>(count) * size + 255) / 256 * 256;
      return at;
    };
    const int64_t states = s.batch * s.hidden;
    product = take(s.steps * s.batch * s.gates(), element_type_size(type));
    h[0] = take(states, sizeof(float));
    h[1] = take(states, sizeof(float));
    c = s.kind == CellKind::kLstm ? take(states, sizeof(float)) : 0;
    reset = s.kind == CellKind::kGru ? take(states, sizeof(float)) : 0;
    update = s.kind == CellKind::kGru ? take(states, sizeof(float)) : 0;
    bytes = used;
  }
};

template <class T, Pass kPass>
void launch(const Step<T>& step, cudaStream_t stream) {
  const int64_t items = step.hidden * ceil_div(step.batch, kRows);
  step_kernel<T, kPass><<<grid_for(items, kThreads / 32), kThreads, 0, stream>>>(step);
}

template <class T>
cudaError_t run(ElementType type, const RecurrentShape& s, const RecurrentBuffers& b, cudaStream_t stream) {
  const Places places(type, s);
  char* memory = static_cast<char*>(b.workspace);
  const auto floats = [&](size_t at) { return reinterpret_cast<float*>(memory + at); };
  const auto part = [](const void* list, int64_t at) {
    return list == nullptr ? nullptr : static_cast<const T*>(list) + at;
  };
  T* product_of_x = reinterpret_cast<T*>(memory + places.product);
  const int64_t states = s.batch * s.hidden, gates = s.gates();
  for (int d = 0; d < s.directions; ++d) {
    const cudaError_t error = product(s, part(b.x, 0), part(b.weights, d * gates * s.inputs), product_of_x, stream);
    if (error != cudaSuccess) return error;
    float* c = floats(places.c);
    convert<float, T>(states, part(b.initial_h, d * states), floats(places.h[0]), stream);
    if (s.kind == CellKind::kLstm) convert<float, T>(states, part(b.initial_c, d * states), c, stream);

    Step<T> step = {};
    step.batch = s.batch, step.hidden = s.hidden, step.gates = gates;
    std::copy_n(s.functions[d], 3, step.functions);
    step.clip = s.clip, step.input_forget = s.input_forget;
    step.recurrence = part(b.recurrence, d * gates * s.hidden);
    step.bias = part(b.bias, d * 2 * gates);
    step.peepholes = part(b.peepholes, d * 3 * s.hidden);
    step.lengths32 = b.lengths32, step.lengths64 = b.lengths64;
    step.c = c, step.reset = floats(places.reset), step.update = floats(places.update);
    for (int64_t n = 0; n < s.steps; ++n) {
      step.t = d == 1 || s.reverse ? s.steps - 1 - n : n;
      step.product = product_of_x + step.t * s.batch * gates;
      step.h = floats(places.h[n % 2]), step.next_h = floats(places.h[(n + 1) % 2]);
      step.y = static_cast<T*>(b.y) + (step.t * s.directions + d) * states;
      if (s.kind == CellKind::kRnn) {
        launch<T, Pass::kRnn>(step, stream);
      } else if (s.kind == CellKind::kLstm) {
        launch<T, Pass::kLstm>(step, stream);
      } else if (s.linear_before_reset) {
        launch<T, Pass::kGru>(step, stream);
      } else {
        launch<T, Pass::kGruGates>(step, stream);
        launch<T, Pass::kGruCandidate>(step, stream);
      }
    }
    convert<T, float>(states, floats(places.h[s.steps % 2]), static_cast<T*>(b.y_h) + d * states, stream);
    if (s.kind == CellKind::kLstm) convert<T, float>(states, c, static_cast<T*>(b.y_c) + d * states, stream);
  }
  return cudaGetLastError();
}

}  // namespace

size_t recurrent_workspace_bytes(ElementType type, const RecurrentShape& shape) noexcept {
  return Places(type, shape).bytes;
}

cudaError_t recurrent(ElementType type, const RecurrentShape& shape, const RecurrentBuffers& buffers,
                      cudaStream_t stream) noexcept {
  if (shape.batch <= 0 || shape.hidden <= 0) return cudaSuccess;
  cudaError_t error = cudaErrorInvalidValue;
  with_float(type, [&](auto element) { error = run<decltype(element)>(type, shape, buffers, stream); });
  return error;
}

}  // namespace tenon::cuda
