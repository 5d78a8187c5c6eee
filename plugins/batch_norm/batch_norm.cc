// tenon.batch_norm/1: batch normalisation with fixed statistics.
#include "plugins/batch_norm/batch_norm.h"

#include <tenon/sdk/plugin.hpp>

#include "plugins/common/tolerance.h"

namespace tenon::plugins {
namespace {

const char* const kNames[] = {"x", "scale", "bias", "mean", "variance"};

void batch_norm_infer(const Infer& question) {
  const Tensor x = question.input(kNormX);
  if (x.rank() < 2) throw Invalid(text("input x: expected rank of at least 2 [N,C,...], found ", to_text(x.dims())));
  if (!is_floating(x.dtype())) throw Invalid(text("input x: expected a floating dtype, found ", dtype_name(x.dtype())));
  for (int n = kNormScale; n <= kNormVariance; ++n) {
    if (question.input(n).dims() != Dims{x.dim(1)} || question.input(n).dtype() != x.dtype()) {
      throw Invalid(text("input ", kNames[n], ": expected [", x.dim(1), "] of ", dtype_name(x.dtype()), ", found ",
                         to_text(question.input(n).dims()), " of ", dtype_name(question.input(n).dtype())));
    }
  }
  question.output(0, x.dtype(), x.dims());
}

void batch_norm_reference(const Reference& call) {
  const NormForm form(call.attrs());
  visit_floating(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto at = [&](int input, int64_t element) {
      return static_cast<double>(call.input(input).data<T>()[element]);
    };
    call.fill<T>(0, [&](const int64_t* index, int64_t linear) {
      const int64_t c = index[1];
      const Affine affine = form.affine(at(kNormScale, c), at(kNormBias, c), at(kNormMean, c), at(kNormVariance, c));
      return static_cast<T>(affine.factor * at(kNormX, linear) + affine.offset);
    });
  });
}

// Variances must not be negative.
void batch_norm_inputs(const Generate& call) {
  uint64_t state = call.seed | 1;
  for (uint32_t n = 0; n < call.num_inputs; ++n) {
    if (call.inputs[n].data == nullptr || call.inputs[n].dtype != TN_F32) continue;
    float* values = static_cast<float*>(call.inputs[n].data);
    for (int64_t i = 0; i < Dims(call.inputs[n].dims).elements(); ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;  // Knuth's MMIX generator
      const float unit = static_cast<float>(state >> 40) / 16777216.0f;
      values[i] = n == kNormVariance ? 0.1f + unit : 2.0f * unit - 1.0f;
    }
  }
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.batch_norm", "1", "Apache-2.0",
             tenon::op("tenon.batch_norm/1")
                 .doc("Batch normalisation with fixed statistics (Ioffe, Szegedy 2015). y = scale * (x - mean) / d + "
                      "bias for each channel; d = sqrt(variance + epsilon), or sqrt(variance) + epsilon")
                 .attr_f64("epsilon", "keeps d away from 0")
                 .default_value("1e-05")
                 .attr_str("epsilon_place", "inside: under the root; outside: added to it, as Darknet's CPU code does")
                 .default_value("inside")
                 .range("inside|outside")
                 .input("x", "[N,C,...], floating")
                 .input("scale", "[C]")
                 .input("bias", "[C]")
                 .input("mean", "[C]")
                 .input("variance", "[C]")
                 .output("y", "as x")
                 .elementwise()
                 .infer(tenon::plugins::batch_norm_infer)
                 .reference(tenon::plugins::batch_norm_reference)
                 .generate(tenon::plugins::batch_norm_inputs)
                 .tolerance([](const tenon::Attrs&, int32_t dtype) {
                   return tenon::plugins::pointwise_tolerance(dtype);
                 }),
             tenon::plugins::batch_norm_kernels(), tenon::plugins::batch_norm_rules())
