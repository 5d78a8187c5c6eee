// tenon.softmax/1, tenon.log_softmax/1 and Tenon's own kernels for them.
#include "kernels/cpu/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/parallel.h"
#include "plugins/common/tolerance.h"
#include "plugins/softmax/softmax.h"

namespace tenon::plugins {
namespace {

void softmax_infer(const Infer& question) {
  const Tensor x = question.input(0);
  if (!is_floating(x.dtype())) throw Invalid(text("input x: expected a floating dtype, found ", dtype_name(x.dtype())));
  normalize_axis(question.attrs().i64("axis"), x.rank());
  question.output(0, x.dtype(), x.dims());
}

void softmax_reference(bool logarithm, const Reference& call) {
  const Dims dims = call.input(0).dims();
  const int axis = normalize_axis(call.attrs().i64("axis"), dims.rank);
  const int64_t inner = dims.product(axis + 1, dims.rank);
  const int64_t length = dims[axis];
  visit_floating(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = call.input(0).data<T>();
    // Neighbours in the box mostly share their row, so its maximum and sum are kept until another row is asked for.
    int64_t row = -1;
    double largest = 0.0;
    double sum = 0.0;
    call.fill<T>(0, [&](const int64_t* index, int64_t linear) {
      const int64_t first = linear - index[axis] * inner;
      if (first != row) {
        row = first;
        largest = -std::numeric_limits<double>::infinity();
        for (int64_t n = 0; n < length; ++n) largest = std::max(largest, static_cast<double>(x[first + n * inner]));
        sum = 0.0;
        for (int64_t n = 0; n < length; ++n) sum += std::exp(static_cast<double>(x[first + n * inner]) - largest);
      }
      const double shifted = static_cast<double>(x[linear]) - largest;
      return static_cast<T>(logarithm ? shifted - std::log(sum) : std::exp(shifted) / sum);
    });
  });
}

class SoftmaxKernel final : public IPlugin {
 public:
  explicit SoftmaxKernel(cpu::SoftmaxKind kind) : kind_(kind) {}
  void configure(const Config& config) override {
    const Site site = config.site();
    axis_ = normalize_axis(site.attrs().i64("axis"), site.dims(0).rank);
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims dims = inputs[0].dims;
    cpu::softmax(kind_, dims.product(0, axis_), dims[axis_], dims.product(axis_ + 1, dims.rank),
                 static_cast<const float*>(inputs[0].data), static_cast<float*>(outputs[0].data), to_parallel(exec),
                 cpu::detect_isa());
  }

 private:
  cpu::SoftmaxKind kind_;
  int axis_ = 0;
};

Definitions softmax_definitions() {
  Definitions all;
  for (const bool logarithm : {false, true}) {
    const std::string name = logarithm ? "tenon.log_softmax" : "tenon.softmax";
    all.add(op(name + "/1")
                .doc(logarithm ? "Logarithm of softmax along one axis. y = x - max(x) - log(sum(exp(x - max(x))))"
                               : "Normalised exponentials along one axis. y = exp(x - max(x)) / sum(exp(x - max(x)))")
                .attr_i64("axis", "the axis that the sum runs along; negative: counted from the end")
                .default_value("-1")
                .input("x", "rank of at least 1, floating")
                .output("y", "as x")
                .infer(softmax_infer)
                .reference([logarithm](const Reference& call) { softmax_reference(logarithm, call); })
                .tolerance([](const Attrs&, int32_t dtype) { return pointwise_tolerance(dtype); }));
    const cpu::SoftmaxKind kind = logarithm ? cpu::SoftmaxKind::kLogSoftmax : cpu::SoftmaxKind::kSoftmax;
    all.add(kernel(name + "/1", name + ".vector.f32", [kind] { return std::make_unique<SoftmaxKernel>(kind); })
                .combo({f32_row()}, {f32_row()})
                .may_alias(0, 0)
                .deterministic());
  }
  return all;
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.softmax", "1", "Apache-2.0", tenon::plugins::softmax_definitions(), tenon::plugins::softmax_rules())
