// tenon.matmul/1 through cuBLASLt.
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/cublaslt.h"
#include "plugins/matmul/matmul_cuda.h"

namespace tenon::plugins {
namespace {

CublasltOp matmul_op(const Site& site) {
  const bool transpose_a = site.attrs().flag("transpose_a"), transpose_b = site.attrs().flag("transpose_b");
  const cuda::ElementType type = to_cuda_float(site.dtype(0));
  return {[=](const Dims& a, const Dims& b) { return matmul_cuda_shape(a, b, transpose_a, transpose_b, type); }};
}

Kernel matmul_cublaslt(int32_t dtype) {
  return cublaslt_kernel("tenon.matmul/1", text("tenon.matmul.cublaslt.", dtype_name(dtype)), matmul_op)
      .combo({row(dtype), row(dtype)}, {row(dtype)});
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.matmul.cublaslt", "1", "Apache-2.0",
             tenon::plugins::for_cuda_floats(tenon::plugins::matmul_cublaslt))
