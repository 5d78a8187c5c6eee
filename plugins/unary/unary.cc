// Mathematical functions of one operand: tenon.abs/1, tenon.exp/1, tenon.floor/1, ...
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/unary.h"

namespace tenon::plugins {
namespace {

using cpu::UnaryKind;
using Params = UnaryParams;
using E = ExprBuilder;

// std::nearbyint rounds ties to the even integer as long as nobody changed the rounding mode.
double round_even(double x) { return std::nearbyint(x); }
double sign(double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : x; }

const UnaryOp kUnaryOps[] = {
    {"abs", "Magnitude. y = |x|; the least integer of a signed dtype stays itself",
     [](double x, Params) { return std::fabs(x); }, [](E& e, int32_t x, Params) { return e.unary(TN_EX_ABS, x); },
     UnaryKind::kAbs, nullptr, [](uint64_t x, bool negative) { return negative ? uint64_t{0} - x : x; }},
    {"neg", "Negative. y = -x; integers wrap", [](double x, Params) { return -x; },
     [](E& e, int32_t x, Params) { return e.neg(x); }, UnaryKind::kNeg, nullptr,
     [](uint64_t x, bool) { return uint64_t{0} - x; }},
    {"sign", "Sign. y = 1 above 0, -1 below, x itself for 0 and NaN", [](double x, Params) { return sign(x); },
     [](E& e, int32_t x, Params) { return e.unary(TN_EX_SIGN, x); }, UnaryKind::kSign, nullptr,
     [](uint64_t x, bool negative) { return negative ? ~uint64_t{0} : uint64_t{x != 0}; }},
    {"floor", "Largest integer that is not above x", [](double x, Params) { return std::floor(x); },
     [](E& e, int32_t x, Params) { return e.unary(TN_EX_FLOOR, x); }, UnaryKind::kFloor},
    {"ceil", "Smallest integer that is not below x", [](double x, Params) { return std::ceil(x); },
     [](E& e, int32_t x, Params) { return e.unary(TN_EX_CEIL, x); }, UnaryKind::kCeil},
    {"round_even", "Nearest integer, the even one of two", [](double x, Params) { return round_even(x); },
     [](E& e, int32_t x, Params) { return e.unary(TN_EX_ROUND_EVEN, x); }, UnaryKind::kRoundEven},
    {"reciprocal", "y = 1 / x", [](double x, Params) { return 1 / x; },
     [](E& e, int32_t x, Params) { return e.div(e.constant(1.0), x); }, UnaryKind::kReciprocal},
    {"sqrt", "Square root; NaN below 0", [](double x, Params) { return std::sqrt(x); },
     [](E& e, int32_t x, Params) { return e.unary(TN_EX_SQRT, x); }, UnaryKind::kSqrt},
    {"exp", "y = e^x", [](double x, Params) { return std::exp(x); }, [](E& e, int32_t x, Params) { return e.exp(x); },
     UnaryKind::kExp},
    {"log", "Natural logarithm; -inf at 0, NaN below", [](double x, Params) { return std::log(x); },
     [](E& e, int32_t x, Params) { return e.log(x); }, UnaryKind::kLog},
    {"erf", "Error function. y = 2 / sqrt(pi) * integral of exp(-t^2) from 0 to x",
     [](double x, Params) { return std::erf(x); }, [](E& e, int32_t x, Params) { return e.unary(TN_EX_ERF, x); },
     UnaryKind::kErf},
    {"sin", "Sine of an angle in radians", [](double x, Params) { return std::sin(x); },
     [](E& e, int32_t x, Params) { return e.unary(TN_EX_SIN, x); }, UnaryKind::kSin},
    {"cos", "Cosine of an angle in radians", [](double x, Params) { return std::cos(x); },
     [](E& e, int32_t x, Params) { return e.unary(TN_EX_COS, x); }, UnaryKind::kCos},
    {"tan",
     "Tangent of an angle in radians",
     [](double x, Params) { return std::tan(x); },
     nullptr,
     {},
     [](float x) { return std::tan(x); }},
    {"asin",
     "Inverse sine in radians; NaN outside [-1, 1]",
     [](double x, Params) { return std::asin(x); },
     nullptr,
     {},
     [](float x) { return std::asin(x); }},
    {"acos",
     "Inverse cosine in radians; NaN outside [-1, 1]",
     [](double x, Params) { return std::acos(x); },
     nullptr,
     {},
     [](float x) { return std::acos(x); }},
    {"atan",
     "Inverse tangent in radians",
     [](double x, Params) { return std::atan(x); },
     nullptr,
     {},
     [](float x) { return std::atan(x); }},
    {"sinh",
     "Hyperbolic sine. y = (e^x - e^-x) / 2",
     [](double x, Params) { return std::sinh(x); },
     nullptr,
     {},
     [](float x) { return std::sinh(x); }},
    {"cosh",
     "Hyperbolic cosine. y = (e^x + e^-x) / 2",
     [](double x, Params) { return std::cosh(x); },
     nullptr,
     {},
     [](float x) { return std::cosh(x); }},
    {"asinh",
     "Inverse hyperbolic sine",
     [](double x, Params) { return std::asinh(x); },
     nullptr,
     {},
     [](float x) { return std::asinh(x); }},
    {"acosh",
     "Inverse hyperbolic cosine; NaN below 1",
     [](double x, Params) { return std::acosh(x); },
     nullptr,
     {},
     [](float x) { return std::acosh(x); }},
    {"atanh",
     "Inverse hyperbolic tangent; NaN outside [-1, 1]",
     [](double x, Params) { return std::atanh(x); },
     nullptr,
     {},
     [](float x) { return std::atanh(x); }},
};

Definitions all_definitions() {
  Definitions all;
  for (const UnaryOp& op : kUnaryOps) all.add(unary_definitions(op));
  return all;
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.unary", "1", "Apache-2.0", tenon::plugins::all_definitions())
