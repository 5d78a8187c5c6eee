// tenon.deform_conv/1: deformable convolution, and Tenon's kernel for it.
#include <algorithm>
#include <cmath>
#include <tenon/sdk/plugin.hpp>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/sample.h"
#include "plugins/common/parallel.h"
#include "plugins/common/tolerance.h"
#include "plugins/common/windows.h"

namespace tenon::plugins {
namespace {

constexpr int kX = 0, kWeights = 1, kOffset = 2, kBias = 3, kMask = 4;

struct DeformShape {
  cpu::Windows windows;
  int64_t n = 0, inputs = 0, outputs = 0, groups = 1, offset_groups = 1;
};

DeformShape deform_shape(const Attrs& attrs, const Dims& x, const Dims& weights) {
  if (x.rank < 3 || weights.rank != x.rank) {
    throw Invalid(
        text("expected x [N,C,d1,...] and weights of the same rank, found ", to_text(x), " and ", to_text(weights)));
  }
  DeformShape shape;
  shape.n = x[0], shape.inputs = x[1], shape.outputs = weights[0];
  shape.groups = attrs.i64("groups");
  shape.offset_groups = attrs.i64("offset_groups");
  if (shape.inputs % shape.groups != 0 || shape.outputs % shape.groups != 0) {
    throw Invalid(text("attribute 'groups': expected a divisor of ", shape.inputs, " input and ", shape.outputs,
                       " output channels, found ", shape.groups));
  }
  if (shape.inputs % shape.offset_groups != 0) {
    throw Invalid(text("attribute 'offset_groups': expected a divisor of ", shape.inputs, " channels, found ",
                       shape.offset_groups));
  }
  if (weights[1] != shape.inputs / shape.groups) {
    throw Invalid(text("input weights: expected ", shape.inputs / shape.groups, " channels, found ", to_text(weights)));
  }
  shape.windows = windows_of(attrs, weights.d + 2, weights.rank - 2);
  slide_over(attrs, x.d + 2, &shape.windows);
  return shape;
}

void check_input(const Infer& question, int n, const char* name, const Dims& dims) {
  const Tensor input = question.input(n);
  const int32_t dtype = question.input(kX).dtype();
  if (input.dims() != dims || input.dtype() != dtype) {
    throw Invalid(text("input ", name, ": expected ", to_text(dims), " of ", dtype_name(dtype), ", found ",
                       to_text(input.dims()), " of ", dtype_name(input.dtype())));
  }
}

void deform_infer(const Infer& question) {
  const Tensor x = question.input(kX);
  if (!is_floating(x.dtype())) throw Invalid(text("input x: expected a floating dtype, found ", dtype_name(x.dtype())));
  const Dims weights = question.input(kWeights).dims();
  const DeformShape shape = deform_shape(question.attrs(), x.dims(), weights);
  check_input(question, kWeights, "weights", weights);
  Dims dims = {shape.n, shape.outputs};
  for (int axis = 0; axis < shape.windows.rank; ++axis) dims.push_back(shape.windows.count[axis]);
  Dims field = dims;
  field[1] = checked_product(shape.offset_groups, shape.windows.taps(), "offsets");
  if (question.has_input(kMask)) check_input(question, kMask, "mask", field);
  field[1] = checked_product(field[1], shape.windows.rank, "offsets");
  check_input(question, kOffset, "offset", field);
  if (question.has_input(kBias)) check_input(question, kBias, "bias", {shape.outputs});
  question.output(0, x.dtype(), dims);
}

// The point that tap number `tap` at `position` (one number per axis) reads: the 2^rank pixels around it and their
// weights for linear interpolation. Those outside have weight 0 and index 0. `offset` is that of the tap along the
// first axis, those along the others follow at distances of `step`.
template <class T, class Weight>
void corners_of(const cpu::Windows& w, const int64_t* position, int64_t tap, const T* offset, int64_t step,
                double scale, int64_t* index, Weight* weight) {
  int64_t low[cpu::kMaxWindowAxes] = {};
  double part[cpu::kMaxWindowAxes] = {};
  const int corners = 1 << w.rank;
  for (int axis = w.rank - 1; axis >= 0; --axis) {
    const int64_t pixel = position[axis] * w.stride[axis] - w.pad[axis] + tap % w.kernel[axis] * w.dilation[axis];
    const double point = static_cast<double>(pixel) + static_cast<double>(offset[axis * step]);
    tap /= w.kernel[axis];
    if (!(point > -1 && point < static_cast<double>(w.image[axis]))) {
      for (int corner = 0; corner < corners; ++corner) index[corner] = 0, weight[corner] = 0;
      return;
    }
    low[axis] = static_cast<int64_t>(std::floor(point));
    part[axis] = point - std::floor(point);
  }
  for (int corner = 0; corner < corners; ++corner) {
    double product = scale;
    int64_t at = 0;
    for (int axis = 0; axis < w.rank; ++axis) {
      const int high = corner >> axis & 1;
      const int64_t pixel = low[axis] + high;
      if (pixel < 0 || pixel >= w.image[axis]) product = 0;
      product *= high != 0 ? part[axis] : 1 - part[axis];
      at = at * w.image[axis] + pixel;
    }
    index[corner] = product == 0 ? 0 : at;
    weight[corner] = static_cast<Weight>(product);
  }
}

void deform_reference(const Reference& call) {
  const DeformShape shape = deform_shape(call.attrs(), call.input(kX).dims(), call.input(kWeights).dims());
  const cpu::Windows& w = shape.windows;
  const int64_t in = shape.inputs / shape.groups, out = shape.outputs / shape.groups, taps = w.taps();
  const int64_t positions = w.positions(), per_offset = shape.inputs / shape.offset_groups;
  visit_floating(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = call.input(kX).data<T>();
    const T* weights = call.input(kWeights).data<T>();
    const T* offset = call.input(kOffset).data<T>();
    const T* bias = call.has_input(kBias) ? call.input(kBias).data<T>() : nullptr;
    const T* mask = call.has_input(kMask) ? call.input(kMask).data<T>() : nullptr;
    call.fill<T>(0, [&](const int64_t* index, int64_t linear) {
      const int64_t n = index[0], k = index[1], position = linear % positions;
      double sum = bias != nullptr ? static_cast<double>(bias[k]) : 0.0;
      for (int64_t c = 0; c < in; ++c) {
        const int64_t channel = k / out * in + c;
        const T* image = x + (n * shape.inputs + channel) * w.pixels();
        for (int64_t tap = 0; tap < taps; ++tap) {
          const int64_t field = (n * shape.offset_groups + channel / per_offset) * taps + tap;
          int64_t corner[1 << cpu::kMaxWindowAxes];
          double part[1 << cpu::kMaxWindowAxes], value = 0;
          corners_of(w, index + 2, tap, offset + field * w.rank * positions + position, positions,
                     mask != nullptr ? static_cast<double>(mask[field * positions + position]) : 1, corner, part);
          for (int i = 0; i < 1 << w.rank; ++i) {
            if (part[i] != 0) value += part[i] * static_cast<double>(image[corner[i]]);
          }
          sum += value * static_cast<double>(weights[(k * in + c) * taps + tap]);
        }
      }
      return static_cast<T>(sum);
    });
  });
}

// Columns of sampled pixels for a block of positions, then a matrix product with the weights of each group. Each thread
// takes other blocks.
class DeformConvKernel final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Site site = config.site();
    if (!site.is_static()) throw Declined("it works on fixed dims");
    shape_ = deform_shape(site.attrs(), site.dims(kX), site.dims(kWeights));
    has_bias_ = site.has_input(kBias);
    has_mask_ = site.has_input(kMask);
    sizes_.workspace = workspace(shape_, site.threads());
  }
  static uint64_t workspace(const DeformShape& shape, int threads) {
    return static_cast<uint64_t>(slot_bytes(shape)) * static_cast<uint64_t>(threads);
  }
  Sizes sizes() const override { return sizes_; }

  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const cpu::Windows& w = shape_.windows;
    const int64_t positions = w.positions(), blocks = (positions + kBlock - 1) / kBlock;
    cpu::parallel_tasks(to_parallel(exec), shape_.n * blocks, [&](int64_t slot, int64_t task) {
      const int64_t begin = task % blocks * kBlock;
      run(inputs, outputs, task / blocks, begin, std::min(kBlock, positions - begin),
          exec.workspace<char>() + slot * slot_bytes(shape_));
    });
  }

 private:
  static constexpr int64_t kBlock = 128;
  static int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }
  static int64_t corners(const DeformShape& shape) { return int64_t{1} << shape.windows.rank; }
  static cpu::GemmShape product(const DeformShape& shape, int64_t count) {
    cpu::GemmShape gemm =
        cpu::GemmShape::dense(shape.outputs / shape.groups, count, shape.inputs / shape.groups * shape.windows.taps());
    gemm.ldc = shape.windows.positions();
    return gemm;
  }
  static int64_t column_bytes(const DeformShape& shape) {
    return aligned(shape.inputs * shape.windows.taps() * kBlock * static_cast<int64_t>(sizeof(float)));
  }
  static int64_t corner_bytes(const DeformShape& shape) {
    return aligned(kBlock * corners(shape) * static_cast<int64_t>(sizeof(int64_t) + sizeof(float)));
  }
  static int64_t slot_bytes(const DeformShape& shape) {
    const cpu::Isa isa = cpu::detect_isa();
    return column_bytes(shape) + corner_bytes(shape) +
           aligned(static_cast<int64_t>(
               cpu::gemm_workspace_bytes(product(shape, kBlock), cpu::gemm_tactic(0, isa), 1, isa)));
  }

  void run(const TnTensor* inputs, const TnTensor* outputs, int64_t n, int64_t begin, int64_t count,
           char* scratch) const {
    const auto floats = [&](int input) { return static_cast<const float*>(inputs[input].data); };
    const cpu::Windows& w = shape_.windows;
    const int64_t taps = w.taps(), positions = w.positions(), per_offset = shape_.inputs / shape_.offset_groups;
    auto* columns = reinterpret_cast<float*>(scratch);
    auto* index = reinterpret_cast<int64_t*>(scratch + column_bytes(shape_));
    auto* weight = reinterpret_cast<float*>(index + kBlock * corners(shape_));
    for (int64_t group = 0; group < shape_.offset_groups; ++group) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t field = (n * shape_.offset_groups + group) * taps + tap;
        for (int64_t p = 0; p < count; ++p) {
          int64_t at[cpu::kMaxWindowAxes], rest = begin + p;
          for (int axis = w.rank - 1; axis >= 0; --axis) {
            at[axis] = rest % w.count[axis];
            rest /= w.count[axis];
          }
          const double scale = has_mask_ ? static_cast<double>(floats(kMask)[field * positions + begin + p]) : 1;
          corners_of(w, at, tap, floats(kOffset) + field * w.rank * positions + begin + p, positions, scale,
                     index + p * corners(shape_), weight + p * corners(shape_));
        }
        const int64_t channel = group * per_offset;
        cpu::sample(per_offset, count, static_cast<int>(corners(shape_)), index, weight,
                    floats(kX) + (n * shape_.inputs + channel) * w.pixels(), w.pixels(),
                    columns + (channel * taps + tap) * count, taps * count);
      }
    }
    const cpu::Isa isa = cpu::detect_isa();
    const cpu::GemmShape gemm = product(shape_, count);
    for (int64_t group = 0; group < shape_.groups; ++group) {
      cpu::GemmOutput output;
      output.c = static_cast<float*>(outputs[0].data) + (n * shape_.outputs + group * gemm.m) * positions + begin;
      output.bias = has_bias_ ? floats(kBias) + group * gemm.m : nullptr;
      output.bias_axis = has_bias_ ? cpu::BiasAxis::kPerRow : cpu::BiasAxis::kNone;
      cpu::gemm(gemm, floats(kWeights) + group * gemm.m * gemm.k, columns + group * gemm.k * count, output,
                cpu::gemm_tactic(0, isa), scratch + column_bytes(shape_) + corner_bytes(shape_), cpu::Parallel{}, isa);
    }
  }

  DeformShape shape_;
  bool has_bias_ = false, has_mask_ = false;
  Sizes sizes_;
};

Definitions deform_conv_definitions() {
  Op definition = op("tenon.deform_conv/1");
  definition
      .doc(
          "Deformable convolution (https://arxiv.org/abs/1703.06211, 1811.11168): as tenon.conv/1, but tap t at o "
          "reads "
          "mask[n, g*taps + t, o...] * x at o*stride - pad + t*dilation + offset[n, (g*taps + t)*axes + axis, o...], "
          "linearly interpolated, 0 outside; g is the offset group of the channel")
      .attr_i64("groups", "input and output channels are split into as many groups")
      .default_value("1")
      .range("[1,)")
      .attr_i64("offset_groups", "input channels are split into as many groups, each with its own offsets")
      .default_value("1")
      .range("[1,)")
      .input("x", "[N,C,d1,...], floating")
      .input("weights", "[K,C/groups,t1,...]")
      .input("offset", "[N,offset_groups*taps*axes,o1,...]")
      .input("bias", "[K]")
      .optional()
      .input("mask", "[N,offset_groups*taps,o1,...]")
      .optional()
      .output("y", "[N,K,o1,...]")
      .infer(deform_infer)
      .reference(deform_reference)
      .tolerance([](const Attrs&, int32_t dtype) { return sum_tolerance(dtype); });
  add_window_attributes(definition);
  Kernel kernel = tenon::kernel<DeformConvKernel>("tenon.deform_conv/1", "tenon.deform_conv.columns.f32");
  kernel.combo({f32_row(), f32_row(), f32_row(), f32_row(), f32_row()}, {f32_row()})
      .tactics([](const Site& site, const Combo&, Tactics& tactics) {
        if (!site.is_static()) throw Declined("it works on fixed dims");
        const DeformShape shape = deform_shape(site.attrs(), site.dims(kX), site.dims(kWeights));
        tactics.add("", DeformConvKernel::workspace(shape, site.threads()));
      })
      .deterministic();
  return {definition, kernel};
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.deform_conv", "1", "Apache-2.0", tenon::plugins::deform_conv_definitions())
