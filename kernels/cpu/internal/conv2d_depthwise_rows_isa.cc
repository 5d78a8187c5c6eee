// Depthwise convolution of row-major planes, kernels of 3x3 and 5x5, for one instruction set with masked loads. A block
// of one vector of columns slides down the plane, several output rows at a time: each vector of an input row is loaded
// once for all of them. Columns outside the image are masked away and rows outside it read zeros, so that the loops
// have no borders. Sums run over r, then s, as in conv2d_depthwise_isa.cc.
#include "kernels/cpu/internal/columns.h"
#include "kernels/cpu/internal/conv2d_depthwise_isa.h"
#include "kernels/cpu/internal/tile.h"

namespace tenon::cpu::TENON_CPU_ISA {

#if defined(__AVX2__)
namespace {

alignas(64) constexpr float kZeros[Columns<5, 2>::kFloats] = {};

struct Plane {
  const Conv2dGeometry& g;
  const float* input;
  const float* residual;
  float* output;
  float bias;
  float lo;
  float hi;
};

// Output rows [oh, oh + kRows) of the columns from `ow` on.
template <int kTaps, int kStride, int kRows>
TENON_CPU_INLINE void block_rows(const Plane& plane, const Columns<kTaps, kStride>& columns,
                                 const Vec (&weights)[kTaps * kTaps], int64_t oh, int64_t ow) {
  const Conv2dGeometry& g = plane.g;
  const int64_t top = oh * kStride - g.pad_top;
  const float* from = plane.input + top * g.w + ow * kStride - g.pad_left;
  Vec acc[kRows];
#pragma GCC unroll 8
  for (int p = 0; p < kRows; ++p) acc[p] = zero();
#pragma GCC unroll 20
  for (int i = 0; i < (kRows - 1) * kStride + kTaps; ++i) {
    const bool inside = static_cast<uint64_t>(top + i) < static_cast<uint64_t>(g.h);
    Vec taps[kTaps];
    columns.template load_taps<false>(inside ? from + i * g.w : kZeros, zero(), taps);
#pragma GCC unroll 8
    for (int p = 0; p < kRows; ++p) {
      const int r = i - p * kStride;
      if (r < 0 || r >= kTaps) continue;
#pragma GCC unroll 5
      for (int s = 0; s < kTaps; ++s) acc[p] = fma(taps[s], weights[r * kTaps + s], acc[p]);
    }
  }
  const int64_t lanes = g.ow - ow;
#pragma GCC unroll 8
  for (int p = 0; p < kRows; ++p) {
    const int64_t at = (oh + p) * g.ow + ow;
    Vec x = add(acc[p], broadcast(plane.bias));
    if (plane.residual != nullptr) x = add(x, load_first(plane.residual + at, lanes));
    x = at_most(broadcast(plane.hi), at_least(broadcast(plane.lo), x));
    // A last block that is not full may write into the next row, which comes later: masked stores are slow.
    if (at + kWidth <= g.oh * g.ow) {
      store(plane.output + at, x);
    } else {
      store_first(plane.output + at, x, lanes);
    }
  }
}

template <int kTaps, int kStride>
void plane_rows(const Plane& plane, const float* weights) {
  constexpr int kRows = 7;                    // sizes of images are often multiples of it
  constexpr int64_t kChunkFloats = 4 * 1024;  // of the input, so that it stays in the first-level cache
  const Conv2dGeometry& g = plane.g;
  Vec w[kTaps * kTaps];
  for (int i = 0; i < kTaps * kTaps; ++i) w[i] = broadcast(weights[i]);
  const int64_t chunk = max_of(kChunkFloats / (kStride * max_of(g.w, 1)), kRows) / kRows * kRows;
  for (int64_t begin = 0; begin < g.oh; begin += chunk) {
    const int64_t end = min_of(begin + chunk, g.oh);
    for (int64_t ow = (g.ow - 1) / kWidth * kWidth; ow >= 0; ow -= kWidth) {
      Columns<kTaps, kStride> columns;
      columns.set(ow * kStride - g.pad_left, 0, g.w);
      int64_t oh = begin;
      for (; oh + kRows <= end; oh += kRows) block_rows<kTaps, kStride, kRows>(plane, columns, w, oh, ow);
      for (; oh + 2 <= end; oh += 2) block_rows<kTaps, kStride, 2>(plane, columns, w, oh, ow);
      if (oh < end) block_rows<kTaps, kStride, 1>(plane, columns, w, oh, ow);
    }
  }
}

}  // namespace

void depthwise_rows(const DepthwiseConv& conv, const float* input, const float* weights, float bias,
                    const float* residual, float* output) {
  const Conv2dGeometry& g = conv.geometry;
  TileOutput out;
  set_epilogue(conv.epilogue, &out);
  const bool clip = out.kind == Epilogue::Kind::kClip;
  const float infinity = __builtin_inff();
  const Plane plane = {g, input, residual, output, bias, clip ? out.lo : -infinity, clip ? out.hi : infinity};
  if (g.s == 3) {
    g.stride_w == 1 ? plane_rows<3, 1>(plane, weights) : plane_rows<3, 2>(plane, weights);
  } else {
    g.stride_w == 1 ? plane_rows<5, 1>(plane, weights) : plane_rows<5, 2>(plane, weights);
  }
  if (clip || out.kind == Epilogue::Kind::kNone) return;
  const int64_t count = g.oh * g.ow;
  for (int64_t i = 0; i < count; i += kWidth) {
    const Vec x = activate(load_first(output + i, count - i), out.kind, out.alpha, out.lo, out.hi);
    store_first(output + i, x, count - i);
  }
}

#else

void depthwise_rows(const DepthwiseConv&, const float*, const float*, float, const float*, float*) {}

#endif

}  // namespace tenon::cpu::TENON_CPU_ISA
