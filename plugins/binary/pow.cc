// tenon.pow/1: powers, whose exponent may have another dtype than the base.
#include <cmath>
#include <limits>
#include <memory>
#include <tenon/sdk/kernel.hpp>
#include <tenon/sdk/op.hpp>
#include <type_traits>

#include "plugins/binary/binary.h"
#include "plugins/common/layout.h"
#include "plugins/common/parallel.h"
#include "plugins/common/tolerance.h"

namespace tenon::plugins {
namespace {

void require_number(const char* name, int32_t dtype) {
  if (dtype == TN_BOOL || dtype_size(dtype) == 0) {
    throw Invalid(text("input ", name, ": expected a number dtype, found ", dtype_name(dtype)));
  }
}

void pow_infer(const Infer& question) {
  const Tensor a = question.input(0);
  const Tensor b = question.input(1);
  require_number("a", a.dtype());
  require_number("b", b.dtype());
  question.output(0, a.dtype(), broadcast_dims(a.dims(), b.dims()));
}

// By repeated squaring, modulo 2^64.
uint64_t integer_power(uint64_t base, uint64_t exponent) {
  uint64_t result = 1;
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result *= base;
    base *= base;
  }
  return result;
}

// Truncated; saturates, and NaN gives 0.
template <class T>
T to_integer(double value) {
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  if (value >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

template <class A, class B>
A power(A a, B b) {
  if constexpr (std::is_integral_v<A> && std::is_integral_v<B>) {
    if (b >= 0) return static_cast<A>(integer_power(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
  }
  const double result = std::pow(static_cast<double>(a), static_cast<double>(b));
  if constexpr (std::is_integral_v<A>) {
    return to_integer<A>(result);
  } else {
    return static_cast<A>(result);
  }
}

void pow_reference(const Reference& call) {
  const Dims dims = call.output(0).dims();
  int64_t a_strides[TN_MAX_RANK] = {};
  int64_t b_strides[TN_MAX_RANK] = {};
  broadcast_strides(call.input(0).dims(), dims, a_strides);
  broadcast_strides(call.input(1).dims(), dims, b_strides);
  visit_number(call.input(0).dtype(), [&](auto a_zero) {
    using A = decltype(a_zero);
    const A* a = call.input(0).data<A>();
    visit_number(call.input(1).dtype(), [&](auto b_zero) {
      using B = decltype(b_zero);
      const B* b = call.input(1).data<B>();
      call.fill<A>(0, [&](const int64_t* index, int64_t) {
        return power(a[offset_of(index, a_strides, dims.rank)], b[offset_of(index, b_strides, dims.rank)]);
      });
    });
  });
}

// Positive bases with any exponent have a power.
void pow_generate(const Generate& question) {
  if (question.inputs[0].dtype != TN_F32 || question.inputs[0].data == nullptr) return;
  float* a = static_cast<float*>(question.inputs[0].data);
  for (int64_t n = 0; n < Dims(question.inputs[0].dims).elements(); ++n) a[n] = std::fabs(a[n]) + 0.125f;
}

class PowKernel final : public IPlugin {
 public:
  void configure(const Config& config) override { shapes_ = BinaryShapes(config.combo()); }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    float* y = static_cast<float*>(outputs[0].data);
    cpu::pointwise_pow(shapes_.shape(inputs[0].dims, inputs[1].dims), static_cast<const float*>(inputs[0].data),
                       static_cast<const float*>(inputs[1].data), y, to_parallel(exec), cpu::detect_isa());
    zero_filling(shapes_.output(), outputs[0].dims, y);  // 0 to the power of 0 is 1
  }

 private:
  BinaryShapes shapes_;
};

}  // namespace

Definitions pow_definitions() {
  Kernel definition = kernel<PowKernel>("tenon.pow/1", "tenon.pow.scalar.f32");
  add_binary_combos(&definition);
  return {op("tenon.pow/1")
              .doc("Power with numpy's broadcasting. y = a to the power of b, in a's dtype; integers to integers wrap, "
                   "other integers are truncated and saturate")
              .input("a", "any shape, numbers")
              .input("b", "any shape, numbers of any dtype")
              .output("y", "the shape that both broadcast to, a's dtype")
              .elementwise()
              .infer(pow_infer)
              .reference(pow_reference)
              .generate(pow_generate)
              .expression([](ExprBuilder& e, const Attrs&) {
                if (!is_floating(e.dtype())) throw Declined("integers are not computed in expressions");
                const int32_t a = e.input(0);
                e.binary(TN_EX_POW, a, e.input(1));
              })
              .tolerance([](const Attrs&, int32_t dtype) { return pointwise_tolerance(dtype); }),
          definition.deterministic().tactics(binary_tactics)};
}

}  // namespace tenon::plugins
