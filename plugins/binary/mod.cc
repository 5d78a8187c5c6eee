// tenon.mod/1: remainders.
#include <cmath>
#include <tenon/sdk/op.hpp>
#include <type_traits>

#include "plugins/binary/binary.h"
#include "plugins/common/tolerance.h"

namespace tenon::plugins {
namespace {

template <class T>
T remainder(T a, T b, bool sign_of_divisor) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) throw Invalid("remainder of a division of an integer by 0");
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;  // the quotient of the least integer would overflow
    }
    const T rest = static_cast<T>(a % b);
    return sign_of_divisor && rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
  } else {
    const T rest = std::fmod(a, b);
    return sign_of_divisor && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
}

bool sign_of_divisor(const Attrs& attrs) { return attrs.str("sign") == "divisor"; }

void mod_reference(const Reference& call) {
  const bool divisor = sign_of_divisor(call.attrs());
  const Dims dims = call.output(0).dims();
  int64_t a_strides[TN_MAX_RANK] = {};
  int64_t b_strides[TN_MAX_RANK] = {};
  broadcast_strides(call.input(0).dims(), dims, a_strides);
  broadcast_strides(call.input(1).dims(), dims, b_strides);
  visit_number(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* a = call.input(0).data<T>();
    const T* b = call.input(1).data<T>();
    call.fill<T>(0, [&](const int64_t* index, int64_t) {
      return remainder(a[offset_of(index, a_strides, dims.rank)], b[offset_of(index, b_strides, dims.rank)], divisor);
    });
  });
}

}  // namespace

void generate_divisors(const Generate& question) {
  if (question.num_inputs < 2 || question.inputs[1].data == nullptr || is_floating(question.inputs[1].dtype)) return;
  visit_number(question.inputs[1].dtype, [&](auto zero) {
    auto* divisors = static_cast<decltype(zero)*>(question.inputs[1].data);
    const int64_t count = Dims(question.inputs[1].dims).elements();
    for (int64_t n = 0; n < count; ++n) {
      if (divisors[n] == zero) divisors[n] = 1;
    }
  });
}

Definitions mod_definitions() {
  return {op("tenon.mod/1")
              .doc("Remainder of a division with numpy's broadcasting. y = a - n * b, where n is a / b truncated, or "
                   "rounded down for the divisor's sign (Python's %); dividing integers by 0 is an error")
              .attr_str("sign", "of the result")
              .default_value("divisor")
              .range("divisor|dividend")
              .input("a", "any shape")
              .input("b", "of a's dtype")
              .output("y", "the shape that both broadcast to")
              .elementwise()
              .reference(mod_reference)
              .generate(generate_divisors)
              .expression([](ExprBuilder& e, const Attrs& attrs) {
                if (!is_floating(e.dtype())) throw Declined("integers are not computed in expressions");
                if (sign_of_divisor(attrs)) throw Declined("expressions have C's fmod only");
                const int32_t a = e.input(0);
                e.binary(TN_EX_MOD, a, e.input(1));
              })
              .tolerance([](const Attrs&, int32_t dtype) { return pointwise_tolerance(dtype); })};
}

}  // namespace tenon::plugins
