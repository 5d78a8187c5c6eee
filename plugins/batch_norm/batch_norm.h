// What tenon.batch_norm/1 computes for each channel, shared by its op, its kernel and the folding rule.
#ifndef TENON_PLUGINS_BATCH_NORM_BATCH_NORM_H_
#define TENON_PLUGINS_BATCH_NORM_BATCH_NORM_H_

#include <cmath>

#include <tenon/sdk/attrs.hpp>
#include <tenon/sdk/definition.hpp>
#include <tenon/sdk/site.hpp>

namespace tenon::plugins {

// Input numbers of the op.
inline constexpr int kNormX = 0, kNormScale = 1, kNormBias = 2, kNormMean = 3, kNormVariance = 4;

// y = factor * x + offset for one channel.
struct Affine {
  double factor;
  double offset;
};

// The three forms in use: sqrt(variance + epsilon) (most frameworks, 1e-5) and sqrt(variance) + epsilon (Darknet's CPU
// code, 1e-6).
struct NormForm {
  double epsilon;
  bool outside;

  explicit NormForm(const Attrs& attrs)
      : epsilon(attrs.f64("epsilon")), outside(attrs.str("epsilon_place") == "outside") {}
  Affine affine(double scale, double bias, double mean, double variance) const {
    const double deviation = outside ? std::sqrt(variance) + epsilon : std::sqrt(variance + epsilon);
    const double factor = scale / deviation;
    return {factor, bias - mean * factor};
  }
};

// Declined unless scale, bias, mean and variance are constant.
inline void batch_norm_supports(const Site& site) {
  for (int n = kNormScale; n <= kNormVariance; ++n) {
    if (!site.is_constant(n)) throw Declined("scale, bias, mean and variance must be constant");
  }
}

Definitions batch_norm_kernels();
Definitions batch_norm_rules();

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_BATCH_NORM_BATCH_NORM_H_
