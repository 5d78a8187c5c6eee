// tenon.layer_norm/1 and tenon.rms_norm/1: the innermost axes of a tensor normalised by their own statistics.
#include <cmath>
#include <memory>
#include <string>
#include <tenon/sdk/plugin.hpp>

#include "kernels/cpu/normalize.h"
#include "plugins/common/parallel.h"
#include "plugins/common/tolerance.h"
#include "plugins/layer_norm/layer_norm.h"

namespace tenon::plugins {
namespace {

using cpu::NormKind;

constexpr int kX = 0, kScale = 1, kBias = 2;  // input numbers

int num_inputs(NormKind kind) { return kind == NormKind::kLayer ? 3 : 2; }

void layer_norm_infer(NormKind kind, const Infer& question) {
  const Tensor x = question.input(kX);
  if (!is_floating(x.dtype())) throw Invalid(text("input x: expected a floating dtype, found ", dtype_name(x.dtype())));
  normalize_axis(question.attrs().i64("axis"), x.rank());
  for (int n = kScale; n < num_inputs(kind); ++n) {
    if (!question.has_input(n)) continue;
    const Tensor factor = question.input(n);
    const bool broadcasts = factor.rank() <= x.rank() && broadcast_dims(factor.dims(), x.dims()) == x.dims();
    if (!broadcasts || factor.dtype() != x.dtype()) {
      throw Invalid(text("input ", n == kScale ? "scale" : "bias", ": expected ", dtype_name(x.dtype()),
                         " that broadcasts to ", to_text(x.dims()), ", found ", dtype_name(factor.dtype()), " ",
                         to_text(factor.dims())));
    }
  }
  question.output(0, x.dtype(), x.dims());
}

void layer_norm_reference(NormKind kind, const Reference& call) {
  const Dims dims = call.input(kX).dims();
  const int axis = normalize_axis(call.attrs().i64("axis"), dims.rank);
  const int64_t length = dims.product(axis, dims.rank);
  const double epsilon = call.attrs().f64("epsilon");
  visit_floating(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = call.input(kX).data<T>();
    const auto factor = [&](int n, const int64_t* index, double absent) {
      if (!call.has_input(n)) return absent;
      int64_t strides[TN_MAX_RANK] = {};
      broadcast_strides(call.input(n).dims(), dims, strides);
      return static_cast<double>(call.input(n).data<T>()[offset_of(index, strides, dims.rank)]);
    };
    // Neighbours in the box mostly share their row, so its statistics are kept until another row is asked for.
    int64_t row = -1;
    double mean = 0, deviation = 0;
    call.fill<T>(0, [&](const int64_t* index, int64_t linear) {
      if (const int64_t own = linear / length; own != row) {
        row = own;
        mean = deviation = 0;
        for (int64_t i = 0; i < length && kind == NormKind::kLayer; ++i) {
          mean += static_cast<double>(x[row * length + i]);
        }
        mean /= static_cast<double>(length);
        for (int64_t i = 0; i < length; ++i) {
          const double d = static_cast<double>(x[row * length + i]) - mean;
          deviation += d * d;
        }
        deviation = std::sqrt(deviation / static_cast<double>(length) + epsilon);
      }
      const double y = (static_cast<double>(x[linear]) - mean) / deviation;
      return static_cast<T>(y * factor(kScale, index, 1) + factor(kBias, index, 0));
    });
  });
}

class LayerNormKernel final : public IPlugin {
 public:
  explicit LayerNormKernel(NormKind kind) : kind_(kind) {}

  void configure(const Config& config) override {
    const Site site = config.site();
    axis_ = normalize_axis(site.attrs().i64("axis"), site.dims(kX).rank);
    epsilon_ = static_cast<float>(site.attrs().f64("epsilon"));
    has_scale_ = site.has_input(kScale);
    has_bias_ = site.has_input(kBias);
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims dims = inputs[kX].dims;
    const auto data = [&](bool has, int n) { return has ? static_cast<const float*>(inputs[n].data) : nullptr; };
    cpu::normalize_rows(kind_, dims.product(0, axis_), dims.product(axis_, dims.rank), epsilon_, data(true, kX),
                        data(has_scale_, kScale), data(has_bias_, kBias), static_cast<float*>(outputs[0].data),
                        to_parallel(exec), cpu::detect_isa());
  }

 private:
  NormKind kind_;
  int axis_ = 0;
  float epsilon_ = 0;
  bool has_scale_ = false, has_bias_ = false;
};

void layer_norm_supports(const Site& site) {
  const Dims x = site.dims(kX);
  const int axis = normalize_axis(site.attrs().i64("axis"), x.rank);
  for (const int n : {kScale, kBias}) {
    if (!site.has_input(n)) continue;
    const Dims factor = site.dims(n);
    bool whole = site.is_static() && factor.elements() == x.product(axis, x.rank);
    for (int back = 1; back <= factor.rank && whole; ++back) {
      whole = factor[factor.rank - back] == (x.rank - back >= axis ? x[x.rank - back] : 1);
    }
    if (!whole) throw Declined("scale and bias must have the shape of the normalised axes");
  }
}

Definitions layer_norm_definitions() {
  Definitions all;
  for (const NormKind kind : {NormKind::kLayer, NormKind::kRms}) {
    const bool layer = kind == NormKind::kLayer;
    const std::string name = layer ? "tenon.layer_norm" : "tenon.rms_norm";
    Op definition(name + "/1");
    definition
        .doc(layer ? "Layer normalisation (Ba, Kiros, Hinton 2016). y = (x - mean) / sqrt(variance + epsilon) * scale "
                     "+ bias, mean and variance over all axes from `axis` on"
                   : "Normalisation by the root mean square (Zhang, Sennrich 2019). y = x / sqrt(mean(x^2) + epsilon) "
                     "* scale, mean over all axes from `axis` on")
        .attr_i64("axis", "the first normalised axis; negative: counted from the end")
        .default_value("-1")
        .attr_f64("epsilon", "keeps the divisor away from 0")
        .default_value("1e-05")
        .input("x", "floating")
        .input("scale", "broadcasts to x")
        .optional();
    if (layer) definition.input("bias", "broadcasts to x").optional();
    definition.output("y", "as x")
        .infer([kind](const Infer& question) { layer_norm_infer(kind, question); })
        .reference([kind](const Reference& call) { layer_norm_reference(kind, call); })
        .tolerance([](const Attrs&, int32_t dtype) { return sum_tolerance(dtype); });
    Kernel fast(name + "/1", name + ".vector.f32", [kind] { return std::make_unique<LayerNormKernel>(kind); });
    if (layer) {
      fast.combo({f32_row(), f32_row(), f32_row()}, {f32_row()});
    } else {
      fast.combo({f32_row(), f32_row()}, {f32_row()});
    }
    fast.may_alias(0, kX).deterministic().supports(layer_norm_supports);
    all.add(definition);
    all.add(fast);
  }
  return all;
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.layer_norm", "1", "Apache-2.0", tenon::plugins::layer_norm_definitions(),
             tenon::plugins::layer_norm_rules())
