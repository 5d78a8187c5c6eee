// tenon.cast/1: elements in another dtype.
#include "kernels/cpu/cast.h"

#include <cmath>
#include <limits>
#include <memory>
#include <tenon/sdk/plugin.hpp>
#include <type_traits>
#include <vector>

#include "plugins/common/parallel.h"
#include "plugins/common/tolerance.h"

namespace tenon::plugins {
namespace {

struct CastType {
  int32_t dtype;
  cpu::ElementType element;
};
constexpr CastType kCastTypes[] = {
    {TN_F32, cpu::ElementType::kF32},   {TN_F64, cpu::ElementType::kF64}, {TN_F16, cpu::ElementType::kF16},
    {TN_BF16, cpu::ElementType::kBf16}, {TN_I32, cpu::ElementType::kI32}, {TN_I64, cpu::ElementType::kI64},
    {TN_I8, cpu::ElementType::kI8},     {TN_U8, cpu::ElementType::kU8},   {TN_BOOL, cpu::ElementType::kBool},
};

cpu::ElementType element_type(int32_t dtype) {
  for (const CastType& type : kCastTypes) {
    if (type.dtype == dtype) return type.element;
  }
  throw Declined(text("no cast from or to ", dtype_name(dtype)));
}

// Integers keep the low bits; floats are truncated and saturate, NaN gives 0.
template <class To, class From>
To convert(From value) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (std::isnan(value)) return 0;
    if (value <= static_cast<From>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    if (value >= static_cast<From>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
  }
  return static_cast<To>(value);
}

template <class Body>
void visit_stored(int32_t dtype, Body&& body) {
  if (dtype == TN_BOOL) return body(bool());
  visit_number(dtype, body);
}

void cast_reference(const Reference& call) {
  visit_stored(call.input(0).dtype(), [&](auto from) {
    using From = decltype(from);
    const void* x = call.input(0).data();
    visit_stored(call.output(0).dtype(), [&](auto to) {
      using To = decltype(to);
      call.fill<To>(0, [&](const int64_t*, int64_t linear) -> To {
        if constexpr (std::is_same_v<From, bool>) {
          return static_cast<To>(static_cast<const unsigned char*>(x)[linear] != 0);
        } else if constexpr (std::is_same_v<To, bool>) {
          return !(static_cast<const From*>(x)[linear] == From());
        } else {
          return convert<To>(static_cast<const From*>(x)[linear]);
        }
      });
    });
  });
}

class CastKernel final : public IPlugin {
 public:
  void configure(const Config& config) override {
    from_ = element_type(config.combo().input(0).dtype);
    to_ = element_type(config.combo().output(0).dtype);
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    cpu::cast(from_, to_, Tensor(inputs[0]).elements(), inputs[0].data, outputs[0].data, to_parallel(exec),
              cpu::detect_isa());
  }

 private:
  cpu::ElementType from_ = cpu::ElementType::kF32;
  cpu::ElementType to_ = cpu::ElementType::kF32;
};

Definitions cast_definitions() {
  Kernel definition = kernel<CastKernel>("tenon.cast/1", "tenon.cast.vector");
  for (const CastType& from : kCastTypes) {
    for (const CastType& to : kCastTypes) {
      definition.combo({row(from.dtype)}, {row(to.dtype)});
      if (dtype_size(from.dtype) == dtype_size(to.dtype)) definition.may_alias(0, 0);
    }
  }
  return {op("tenon.cast/1")
              .doc("Elements in another dtype. Floats to integers are truncated toward zero and saturate, NaN gives 0; "
                   "integers to integers keep the low bits; anything but 0 is true")
              .attr_dtype("to", "dtype of the result")
              .required()
              .input("x", "any shape")
              .output("y", "x's shape, dtype `to`")
              .elementwise()
              .infer([](const Infer& question) {
                question.output(0, question.attrs().dtype("to"), question.input(0).dims());
              })
              .reference(cast_reference)
              .tolerance([](const Attrs&, int32_t dtype) { return pointwise_tolerance(dtype); }),
          definition.deterministic()};
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.cast", "1", "Apache-2.0", tenon::plugins::cast_definitions())
