// tenon.fully_connected/1 through cuBLASLt.
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/cublaslt.h"
#include "plugins/common/cuda.h"
#include "plugins/fully_connected/fully_connected.h"

namespace tenon::plugins {
namespace {

CublasltOp fully_connected_op(const Site& site) {
  return {[type = to_cuda_float(site.dtype(0)), axis = site.attrs().i64("axis")](const Dims& x, const Dims& weights) {
    const FullyConnectedGeometry g = FullyConnectedGeometry::make(x, weights, nullptr, axis);
    return cuda::GemmShape::dense(g.n, g.outputs, g.features, false, true, 1, type);
  }};
}

Kernel fully_connected_cublaslt(int32_t dtype) {
  return cublaslt_kernel("tenon.fully_connected/1", text("tenon.fully_connected.cublaslt.", dtype_name(dtype)),
                         fully_connected_op)
      .combo({row(dtype), row(dtype), row(dtype)}, {row(dtype)});
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.fully_connected.cublaslt", "1", "Apache-2.0",
             tenon::plugins::for_cuda_floats(tenon::plugins::fully_connected_cublaslt))
