#include "kernels/cuda/conv_nd_internal.cuh"
#include "kernels/cuda/tile.cuh"

namespace tenon::cuda {
namespace {

// How a step of k is a channel and a tap.
struct Steps {
  int count;
  Divider<uint32_t> taps, rows, columns;  // taps of a channel, of the last two axes, of the last axis

  struct Step {
    int channel, tap, t0, t1, t2;
  };
  __device__ __forceinline__ Step at(int k) const {
    uint32_t rest = static_cast<uint32_t>(k);
    Step step;
    step.channel = static_cast<int>(taps.split(&rest));
    step.tap = static_cast<int>(rest);
    step.t0 = static_cast<int>(rows.split(&rest));
    step.t1 = static_cast<int>(columns.split(&rest));
    step.t2 = static_cast<int>(rest);
    return step;
  }
};

// Loaders of 64 rows (columns) and 16 steps of k: a thread has four neighbours of one step.
constexpr int kQuads = 16;
static_assert(Tile64x64::kRows == 4 * kQuads && Tile64x64::kColumns == 4 * kQuads &&
              Tile64x64::kThreads == kQuads * Tile64x64::kDepth);

class QuadLoader {
 public:
  __device__ __forceinline__ void commit(float* shared) const {
    *reinterpret_cast<float4*>(shared + threadIdx.x / kQuads * (4 * kQuads + 4) + threadIdx.x % kQuads * 4) = values_;
  }

 protected:
  float4 values_;
};

// Patches: columns are pixels of y.
template <class T, bool kTransposed>
class PatchLoader : public QuadLoader {
 public:
  __device__ __forceinline__ PatchLoader(const ConvNd& conv, const Steps& steps, const T* planes, int64_t first)
      : conv_(conv), steps_(steps), planes_(planes), k_(threadIdx.x / kQuads) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int64_t pixel = first + threadIdx.x % kQuads * 4 + j;
      inside_[j] = pixel < conv.y_plane;
      const int at = inside_[j] ? static_cast<int>(pixel) : 0;
      const int row = at / conv.axes[2].y_size;
      at_[j][2] = at - row * conv.axes[2].y_size;
      at_[j][0] = row / conv.axes[1].y_size;
      at_[j][1] = row - at_[j][0] * conv.axes[1].y_size;
    }
  }
  __device__ __forceinline__ void fetch() {
    float v[4] = {};
    if (k_ < steps_.count) {
      const Steps::Step step = steps_.at(k_);
      const T* plane = planes_ + step.channel * conv_.x_plane;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int p0 = conv_.axes[0].template place<kTransposed>(at_[j][0], step.t0);
        const int p1 = conv_.axes[1].template place<kTransposed>(at_[j][1], step.t1);
        const int p2 = conv_.axes[2].template place<kTransposed>(at_[j][2], step.t2);
        if (!inside_[j] || p0 < 0 || p1 < 0 || p2 < 0) continue;
        v[j] = to_float(plane[(static_cast<int64_t>(p0) * conv_.axes[1].x_size + p1) * conv_.axes[2].x_size + p2]);
      }
    }
    values_ = make_float4(v[0], v[1], v[2], v[3]);
    k_ += Tile64x64::kDepth;
  }

 private:
  const ConvNd& conv_;
  const Steps& steps_;
  const T* planes_;
  int k_;
  int at_[4][3];
  bool inside_[4];
};

// Weights: rows are channels of y.
template <class T>
class WeightLoader : public QuadLoader {
 public:
  __device__ __forceinline__ WeightLoader(const ConvNd& conv, const Steps& steps, const T* weights, int64_t first)
      : conv_(conv),
        steps_(steps),
        weights_(weights),
        row_(first + threadIdx.x % kQuads * 4),
        k_(threadIdx.x / kQuads) {}
  __device__ __forceinline__ void fetch() {
    float v[4] = {};
    if (k_ < steps_.count) {
      const Steps::Step step = steps_.at(k_);
      const T* from = weights_ + step.channel * conv_.w_input + step.tap;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        if (row_ + j < conv_.out) v[j] = to_float(from[(row_ + j) * conv_.w_output]);
      }
    }
    values_ = make_float4(v[0], v[1], v[2], v[3]);
    k_ += Tile64x64::kDepth;
  }

 private:
  const ConvNd& conv_;
  const Steps& steps_;
  const T* weights_;
  int64_t row_;
  int k_;
};

// blockIdx.x: the tile, down the channels first; z strides over images and groups. See tile.cuh.
template <class T, bool kTransposed>
__global__ void __launch_bounds__(Tile64x64::kThreads, Tile64x64::kMinBlocks)
    implicit_kernel(ConvNd c, Steps steps, Divider<uint32_t> row_tiles, ConvNdBuffers<T> b, TileOutput<T> out,
                    bool vector_weights, DeviceEpilogue epilogue) {
  __shared__ Tile64x64::Shared shared;
  uint32_t row_tile = blockIdx.x;
  const int64_t column = static_cast<int64_t>(row_tiles.split(&row_tile)) * Tile64x64::kColumns;
  const int64_t row = static_cast<int64_t>(row_tile) * Tile64x64::kRows;
  const int count = (steps.count + Tile64x64::kDepth - 1) / Tile64x64::kDepth;
  for (int64_t list = blockIdx.z; list < c.n * c.groups; list += gridDim.z) {
    const int64_t image = list / c.groups, group = list - image * c.groups;
    PatchLoader<T, kTransposed> patches(c, steps, b.x + (image * c.inputs + group * c.in) * c.x_plane, column);
    Tile64x64::Sums sums = {};
    if constexpr (kTransposed) {
      WeightLoader<T> weights(c, steps, b.weights + group * c.in * c.w_input, row);
      tile_product<Tile64x64>(weights, patches, count, shared, sums);
    } else {
      MatrixLoader<true, Tile64x64::kRows, Tile64x64::kDepth, Tile64x64::kThreads, T> weights(
          b.weights + group * c.out * c.w_output, steps.count, vector_weights, row, c.out, 0, steps.count);
      tile_product<Tile64x64>(weights, patches, count, shared, sums);
    }
    TileOutput<T> to = out;
    const int64_t first = (image * c.outputs + group * c.out) * c.y_plane;
    to.data += first;
    if (to.residual != nullptr) to.residual += first;
    if (to.row_bias != nullptr) to.row_bias += group * c.out;
    store_tile<Tile64x64>(sums, row, column, c.out, c.y_plane, to, epilogue);
  }
}

}  // namespace

template <class T>
cudaError_t conv_nd_implicit(bool transposed, const ConvNd& c, const ConvNdBuffers<T>& b, const Epilogue& epilogue,
                             cudaStream_t stream) noexcept {
  Steps steps = {};
  steps.count = static_cast<int>(c.in * c.taps);
  steps.taps = Divider<uint32_t>(c.taps);
  steps.rows = Divider<uint32_t>(c.axes[1].kernel * int64_t{c.axes[2].kernel});
  steps.columns = Divider<uint32_t>(c.axes[2].kernel);
  TileOutput<T> out = {};
  out.data = b.y;
  out.residual = b.residual;
  out.row_bias = b.bias;
  out.row_stride = c.y_plane;
  out.run = Divider<uint32_t>(c.y_plane);
  out.vector = c.y_plane % 4 == 0 && is_aligned(b.y, 4 * sizeof(T)) && is_aligned(b.residual, 4 * sizeof(T));
  const bool vector_weights = steps.count % 4 == 0 && is_aligned(b.weights, 4 * sizeof(T));
  const int64_t row_tiles = ceil_div(c.out, Tile64x64::kRows), column_tiles = ceil_div(c.y_plane, Tile64x64::kColumns);
  if (row_tiles > kInt32Max / column_tiles) return cudaErrorInvalidValue;
  const dim3 grid(static_cast<unsigned>(row_tiles * column_tiles), 1,
                  static_cast<unsigned>(std::min<int64_t>(c.n * c.groups, 65535)));
  const auto kernel = transposed ? implicit_kernel<T, true> : implicit_kernel<T, false>;
  kernel<<<grid, Tile64x64::kThreads, 0, stream>>>(c, steps, Divider<uint32_t>(row_tiles), b, out, vector_weights,
                                                   epilogue);
  return cudaGetLastError();
}

template cudaError_t conv_nd_implicit<float>(bool, const ConvNd&, const ConvNdBuffers<float>&, const Epilogue&,
                                             cudaStream_t) noexcept;
template cudaError_t conv_nd_implicit<__half>(bool, const ConvNd&, const ConvNdBuffers<__half>&, const Epilogue&,
                                              cudaStream_t) noexcept;

}  // namespace tenon::cuda
