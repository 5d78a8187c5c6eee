// Beta's activation: an op that says what it computes, as an expression and as a reference, and brings no kernel.
#include <cmath>
#include <tenon/sdk/plugin.hpp>

namespace {

void describe(tenon::ExprBuilder& e, const tenon::Attrs& attrs) {
  const int32_t x = e.input();
  const int32_t size = e.add(e.constant(1), e.unary(TN_EX_ABS, x));
  e.mul(e.div(x, size), e.constant(attrs.f64("a")));
}

void reference(const tenon::Reference& call) {
  const double a = call.attrs().f64("a");
  tenon::visit_floating(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = call.input(0).data<T>();
    call.fill<T>(0, [&](const int64_t*, int64_t at) {
      const double value = static_cast<double>(x[at]);
      return static_cast<T>(value / (1 + std::fabs(value)) * a);
    });
  });
}

}  // namespace

TENON_PLUGIN("beta.softclip", "1.0", "Apache-2.0",
             tenon::op("beta.softclip/1")
                 .doc("Bends towards -a and a. y = x / (1 + |x|) * a")
                 .attr_f64("a", "what y tends to")
                 .default_value("1")
                 .input("x", "any shape, floating")
                 .output("y", "as x")
                 .elementwise()
                 .expression(describe)
                 .reference(reference))
