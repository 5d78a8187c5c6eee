// tenon.clip/1: values between two bounds.
#include <cmath>
#include <limits>
#include <memory>
#include <tenon/sdk/plugin.hpp>
#include <type_traits>

#include "kernels/cpu/pointwise.h"
#include "plugins/common/layout.h"
#include "plugins/common/parallel.h"
#include "plugins/common/tolerance.h"

namespace tenon::plugins {
namespace {

enum Input { kX, kMin, kMax };

void clip_infer(const Infer& question) {
  const Tensor x = question.input(kX);
  if (x.dtype() == TN_BOOL || dtype_size(x.dtype()) == 0) {
    throw Invalid(text("input x: expected a number dtype, found ", dtype_name(x.dtype())));
  }
  for (const int n : {kMin, kMax}) {
    if (!question.has_input(n)) continue;
    const Tensor bound = question.input(n);
    if (bound.dtype() != x.dtype() || bound.elements() != 1) {
      throw Invalid(text("input ", n == kMin ? "min" : "max", ": expected one element of dtype ", dtype_name(x.dtype()),
                         ", found ", dtype_name(bound.dtype()), to_text(bound.dims())));
    }
  }
  question.output(0, x.dtype(), x.dims());
}

// A bound that is NaN makes everything NaN, as in numpy.clip.
template <class T>
T at_least(T bound, T x) {
  return x < bound || bound != bound ? bound : x;
}
template <class T>
T at_most(T bound, T x) {
  return x > bound || bound != bound ? bound : x;
}

void clip_reference(const Reference& call) {
  visit_number(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = call.input(kX).data<T>();
    const T* least = call.has_input(kMin) ? call.input(kMin).data<T>() : nullptr;
    const T* most = call.has_input(kMax) ? call.input(kMax).data<T>() : nullptr;
    call.fill<T>(0, [&](const int64_t*, int64_t linear) {
      const T raised = least ? at_least(*least, x[linear]) : x[linear];
      return most ? at_most(*most, raised) : raised;
    });
  });
}

// With constant bounds these are the canonical forms of relu and clip.
void clip_expression(ExprBuilder& e, bool has_min, bool has_max) {
  if (!is_floating(e.dtype())) throw Declined("integers are not computed in expressions");
  int32_t y = e.input(kX);
  if (has_min) y = e.max(y, e.input(kMin));
  if (has_max) e.min(y, e.input(kMax));
}

class ClipKernel final : public IPlugin {
 public:
  void configure(const Config& config) override {
    format_ = config.combo().input(kX).format;
    has_min_ = config.site().has_input(kMin);
    has_max_ = config.site().has_input(kMax);
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const float least = has_min_ ? *static_cast<const float*>(inputs[kMin].data) : -kInfinity;
    const float most = has_max_ ? *static_cast<const float*>(inputs[kMax].data) : kInfinity;
    const bool defined = !std::isnan(least) && !std::isnan(most);
    float* y = static_cast<float*>(outputs[0].data);
    // The vector function wants bounds that are numbers; NaN * x + NaN is what the others give.
    cpu::pointwise_unary(defined ? cpu::UnaryKind::kClip : cpu::UnaryKind::kLinear, defined ? least : NAN,
                         defined ? most : NAN, physical_elements(format_, inputs[kX].dims),
                         static_cast<const float*>(inputs[kX].data), y, to_parallel(exec), cpu::detect_isa());
    zero_filling(format_, inputs[kX].dims, y);
  }

 private:
  TnFormat format_ = row_format();
  bool has_min_ = false;
  bool has_max_ = false;
};

Definitions clip_definitions() {
  Kernel definition = kernel<ClipKernel>("tenon.clip/1", "tenon.clip.vector.f32");
  for (auto port : image_ports()) {
    definition.combo({port(TN_F32), f32_row(), f32_row()}, {port(TN_F32)}).may_alias(0, 0);
  }
  return {
      op("tenon.clip/1")
          .doc("Values between two bounds. y = min(max(x, min), max): where min is above max, max")
          .input("x", "any shape, numbers")
          .input("min", "one element of x's dtype; absent: no bound")
          .optional()
          .input("max", "one element of x's dtype; absent: no bound")
          .optional()
          .output("y", "as x")
          .elementwise()
          .infer(clip_infer)
          .reference(clip_reference)
          .expression([](ExprBuilder& e, const Attrs&) { clip_expression(e, e.has_input(kMin), e.has_input(kMax)); })
          .tolerance([](const Attrs&, int32_t dtype) { return pointwise_tolerance(dtype); }),
      definition.deterministic()};
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.clip", "1", "Apache-2.0", tenon::plugins::clip_definitions())
