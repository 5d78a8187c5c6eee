// tenon.abs/1, tenon.exp/1, ... on kernels/cuda, float types.
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/unary_cuda.h"

namespace tenon::plugins {
namespace {

using cuda::UnaryKind;

constexpr UnaryCudaOp kOps[] = {
    {"abs", UnaryKind::kAbs},
    {"neg", UnaryKind::kNeg},
    {"sign", UnaryKind::kSign},
    {"floor", UnaryKind::kFloor},
    {"ceil", UnaryKind::kCeil},
    {"round_even", UnaryKind::kRoundEven},
    {"reciprocal", UnaryKind::kReciprocal},
    {"sqrt", UnaryKind::kSqrt},
    {"exp", UnaryKind::kExp},
    {"log", UnaryKind::kLog},
    {"erf", UnaryKind::kErf},
    {"sin", UnaryKind::kSin},
    {"cos", UnaryKind::kCos},
    {"tan", UnaryKind::kTan},
    {"asin", UnaryKind::kAsin},
    {"acos", UnaryKind::kAcos},
    {"atan", UnaryKind::kAtan},
    {"sinh", UnaryKind::kSinh},
    {"cosh", UnaryKind::kCosh},
    {"asinh", UnaryKind::kAsinh},
    {"acosh", UnaryKind::kAcosh},
    {"atanh", UnaryKind::kAtanh},
};

Definitions unary_cuda() {
  Definitions all;
  for (const UnaryCudaOp& op : kOps) all.add(unary_cuda_definitions(op));
  return all;
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.unary.cuda", "1", "Apache-2.0", tenon::plugins::unary_cuda())
