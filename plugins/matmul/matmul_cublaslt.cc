// tenon.matmul/1 through cuBLASLt.
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/cublaslt.h"
#include "plugins/matmul/matmul_cuda.h"

namespace tenon::plugins {
namespace {

CublasltOp matmul_op(const Site& site) {
  const bool transpose_a = site.attrs().flag("transpose_a"), transpose_b = site.attrs().flag("transpose_b");
  return {[=](const Dims& a, const Dims& b) { return matmul_cuda_shape(a, b, transpose_a, transpose_b); }};
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.matmul.cublaslt", "1", "Apache-2.0",
             tenon::plugins::cublaslt_kernel("tenon.matmul/1", "tenon.matmul.cublaslt.f32", tenon::plugins::matmul_op)
                 .combo({tenon::f32_row(), tenon::f32_row()}, {tenon::f32_row()}))
