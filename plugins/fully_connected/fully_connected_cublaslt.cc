// tenon.fully_connected/1 through cuBLASLt.
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/cublaslt.h"
#include "plugins/fully_connected/fully_connected.h"

namespace tenon::plugins {
namespace {

CublasltOp fully_connected_op(const Site&) {
  return {[](const Dims& x, const Dims& weights) {
    const FullyConnectedGeometry g = FullyConnectedGeometry::make(x, weights, nullptr);
    return cuda::GemmShape::dense(g.n, g.outputs, g.features, false, true);
  }};
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.fully_connected.cublaslt", "1", "Apache-2.0",
             tenon::plugins::cublaslt_kernel("tenon.fully_connected/1", "tenon.fully_connected.cublaslt.f32",
                                             tenon::plugins::fully_connected_op)
                 .combo({tenon::f32_row(), tenon::f32_row(), tenon::f32_row()}, {tenon::f32_row()}))
