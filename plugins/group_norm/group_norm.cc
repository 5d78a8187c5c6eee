// tenon.group_norm/1: groups of channels normalised by their own statistics. With one channel a group it is instance
// normalisation.
#include <cmath>
#include <tenon/sdk/plugin.hpp>

#include "kernels/cpu/normalize.h"
#include "plugins/common/parallel.h"
#include "plugins/common/tolerance.h"

namespace tenon::plugins {
namespace {

constexpr int kX = 0, kScale = 1, kBias = 2;  // input numbers

cpu::GroupNormShape shape_of(const Attrs& attrs, const Dims& x, const Dims& scale) {
  if (x.rank < 2) throw Invalid(text("input x: expected rank of at least 2 [N,C,...], found ", to_text(x)));
  const int64_t groups = attrs.i64("groups");
  if (groups < 1 || x[1] % groups != 0) {
    throw Invalid(text("attribute 'groups': expected a divisor of the ", x[1], " channels, found ", groups));
  }
  return {x[0], groups, x[1] / groups, x.product(2, x.rank), scale[0] != x[1]};
}

void group_norm_infer(const Infer& question) {
  const Tensor x = question.input(kX);
  if (!is_floating(x.dtype())) throw Invalid(text("input x: expected a floating dtype, found ", dtype_name(x.dtype())));
  const Dims scale = question.input(kScale, 1).dims();
  const cpu::GroupNormShape shape = shape_of(question.attrs(), x.dims(), scale);
  for (const int n : {kScale, kBias}) {
    const Tensor factor = question.input(n, 1);
    if ((factor.dim(0) != x.dim(1) && factor.dim(0) != shape.groups) || factor.dims() != scale ||
        factor.dtype() != x.dtype()) {
      throw Invalid(text("input ", n == kScale ? "scale" : "bias", ": expected [", x.dim(1), "] or [", shape.groups,
                         "] of ", dtype_name(x.dtype()), ", found ", to_text(factor.dims()), " of ",
                         dtype_name(factor.dtype())));
    }
  }
  question.output(0, x.dtype(), x.dims());
}

void group_norm_reference(const Reference& call) {
  const cpu::GroupNormShape shape = shape_of(call.attrs(), call.input(kX).dims(), call.input(kScale).dims());
  const int64_t length = shape.channels * shape.pixels;
  const double epsilon = call.attrs().f64("epsilon");
  visit_floating(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto at = [&](int input, int64_t n) { return static_cast<double>(call.input(input).data<T>()[n]); };
    // Neighbours in the box mostly share their group, so its statistics are kept until another one is asked for.
    int64_t group = -1;
    double mean = 0, deviation = 0;
    call.fill<T>(0, [&](const int64_t* index, int64_t linear) {
      if (const int64_t own = linear / length; own != group) {
        group = own;
        mean = deviation = 0;
        for (int64_t i = group * length; i < (group + 1) * length; ++i) mean += at(kX, i);
        mean /= static_cast<double>(length);
        for (int64_t i = group * length; i < (group + 1) * length; ++i) {
          deviation += (at(kX, i) - mean) * (at(kX, i) - mean);
        }
        deviation = std::sqrt(deviation / static_cast<double>(length) + epsilon);
      }
      const int64_t own = shape.scale_of_group ? index[1] / shape.channels : index[1];
      return static_cast<T>((at(kX, linear) - mean) / deviation * at(kScale, own) + at(kBias, own));
    });
  });
}

class GroupNormKernel final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Site site = config.site();
    shape_ = shape_of(site.attrs(), site.dims(kX), site.dims(kScale));
    epsilon_ = static_cast<float>(site.attrs().f64("epsilon"));
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims dims = inputs[kX].dims;
    cpu::GroupNormShape shape = shape_;
    shape.n = dims[0];
    shape.pixels = dims.product(2, dims.rank);
    const auto data = [&](int n) { return static_cast<const float*>(inputs[n].data); };
    cpu::normalize_groups(shape, epsilon_, data(kX), data(kScale), data(kBias), static_cast<float*>(outputs[0].data),
                          to_parallel(exec), cpu::detect_isa());
  }

 private:
  cpu::GroupNormShape shape_{};
  float epsilon_ = 0;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.group_norm", "1", "Apache-2.0",
             tenon::op("tenon.group_norm/1")
                 .doc("Group normalisation (Wu, He 2018). y = (x - mean) / sqrt(variance + epsilon) * scale + bias, "
                      "mean and variance over a group of neighbouring channels of one image. With as many groups as "
                      "channels: instance normalisation (Ulyanov, Vedaldi, Lempitsky 2016)")
                 .attr_i64("groups", "a divisor of the number of channels")
                 .required()
                 .range("[1,)")
                 .attr_f64("epsilon", "keeps the divisor away from 0")
                 .default_value("1e-05")
                 .input("x", "[N,C,...], floating")
                 .input("scale", "[C], or [groups] for one of each group")
                 .input("bias", "as scale")
                 .output("y", "as x")
                 .infer(tenon::plugins::group_norm_infer)
                 .reference(tenon::plugins::group_norm_reference)
                 .tolerance([](const tenon::Attrs&, int32_t dtype) { return tenon::plugins::sum_tolerance(dtype); }),
             tenon::kernel<tenon::plugins::GroupNormKernel>("tenon.group_norm/1", "tenon.group_norm.vector.f32")
                 .combo({tenon::f32_row(), tenon::f32_row(), tenon::f32_row()}, {tenon::f32_row()})
                 .may_alias(0, 0)
                 .deterministic())
