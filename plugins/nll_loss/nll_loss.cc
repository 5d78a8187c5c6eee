// tenon.nll_loss/1: negative log likelihood of the right classes.
#include <string>
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/tolerance.h"

namespace tenon::plugins {
namespace {

constexpr int kX = 0, kTarget = 1, kWeight = 2;  // input numbers

void nll_loss_infer(const Infer& question) {
  const Tensor x = question.input(kX);
  const Tensor target = question.input(kTarget);
  if (x.rank() < 2) throw Invalid(text("input x: expected rank of at least 2 [N,C,...], found ", to_text(x.dims())));
  if (!is_floating(x.dtype())) throw Invalid(text("input x: expected a floating dtype, found ", dtype_name(x.dtype())));
  Dims samples;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (axis != 1) samples.push_back(x.dim(axis));
  }
  if (target.dims() != samples || (target.dtype() != TN_I32 && target.dtype() != TN_I64)) {
    throw Invalid(text("input target: expected i32 or i64 ", to_text(samples), ", found ", dtype_name(target.dtype()),
                       " ", to_text(target.dims())));
  }
  if (question.has_input(kWeight)) {
    const Tensor weight = question.input(kWeight);
    if (weight.dims() != Dims{x.dim(1)} || weight.dtype() != x.dtype()) {
      throw Invalid(text("input weight: expected [", x.dim(1), "] of ", dtype_name(x.dtype()), ", found ",
                         to_text(weight.dims()), " of ", dtype_name(weight.dtype())));
    }
  }
  if (question.attrs().i64s("ignore_index").size() > 1) {
    throw Invalid("attribute 'ignore_index': expected at most one class");
  }
  question.output(0, x.dtype(), question.attrs().str("reduction") == "none" ? samples : Dims{});
}

void nll_loss_reference(const Reference& call) {
  const Dims dims = call.input(kX).dims();
  const int64_t inner = dims.product(2, dims.rank);
  const List<int64_t> ignored = call.attrs().i64s("ignore_index");
  const std::string reduction = call.attrs().str("reduction");
  visit_floating(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto at = [&](int input, int64_t n) { return static_cast<double>(call.input(input).data<T>()[n]); };
    double weight = 0;  // of the sample before
    const auto loss = [&](int64_t sample) {
      const int64_t c = call.input(kTarget).integer(sample);
      weight = 0;
      if (ignored.size() == 1 && c == ignored[0]) return 0.0;
      if (c < 0 || c >= dims[1]) {
        throw Invalid(
            text("input target: expected classes from 0 to ", dims[1] - 1, ", found ", c, " at element ", sample));
      }
      weight = call.has_input(kWeight) ? at(kWeight, c) : 1.0;
      return -weight * at(kX, (sample / inner * dims[1] + c) * inner + sample % inner);
    };
    if (reduction == "none") {
      return call.fill<T>(0, [&](const int64_t*, int64_t linear) { return static_cast<T>(loss(linear)); });
    }
    double total = 0, weights = 0;
    for (int64_t sample = 0; sample < call.input(kTarget).elements(); ++sample) {
      total += loss(sample);
      weights += weight;
    }
    call.fill<T>(0,
                 [&](const int64_t*, int64_t) { return static_cast<T>(reduction == "sum" ? total : total / weights); });
  });
}

// Classes must exist.
void nll_loss_inputs(const Generate& call) {
  uint64_t state = call.seed | 1;
  const int64_t classes = call.inputs[kX].dims.d[1];
  for (uint32_t n = 0; n < call.num_inputs; ++n) {
    const TnTensor& input = call.inputs[n];
    for (int64_t i = 0; input.data != nullptr && i < Dims(input.dims).elements(); ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;  // Knuth's MMIX generator
      const uint64_t number = state >> 40;                          // 24 bits
      const double unit = static_cast<double>(number) / 16777216.0;
      const int64_t label = classes > 0 ? static_cast<int64_t>(number) % classes : 0;
      if (input.dtype == TN_F32) static_cast<float*>(input.data)[i] = static_cast<float>(unit);
      if (input.dtype == TN_F64) static_cast<double*>(input.data)[i] = unit;
      if (input.dtype == TN_I32) static_cast<int32_t*>(input.data)[i] = static_cast<int32_t>(label);
      if (input.dtype == TN_I64) static_cast<int64_t*>(input.data)[i] = label;
    }
  }
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.nll_loss", "1", "Apache-2.0",
             tenon::op("tenon.nll_loss/1")
                 .doc("Negative log likelihood. loss = -weight[target] * x[target], 0 where target is ignored; mean: "
                      "the sum of losses over the sum of the weights that they have (ONNX "
                      "NegativeLogLikelihoodLoss-13)")
                 .attr_str("reduction", "none: one loss a sample; sum, mean: a scalar")
                 .default_value("mean")
                 .range("none|sum|mean")
                 .attr_i64s("ignore_index", "a class without loss; default: none")
                 .default_value("")
                 .input("x", "[N,C,...], floating: logarithms of probabilities")
                 .input("target", "[N,...], i32 or i64: classes")
                 .input("weight", "[C]; default: 1")
                 .optional()
                 .output("loss")
                 .infer(tenon::plugins::nll_loss_infer)
                 .reference(tenon::plugins::nll_loss_reference)
                 .generate(tenon::plugins::nll_loss_inputs)
                 .tolerance([](const tenon::Attrs&, int32_t dtype) { return tenon::plugins::sum_tolerance(dtype); }))
