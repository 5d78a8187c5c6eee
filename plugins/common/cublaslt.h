// Kernels on cuBLASLt: products of f32 or f16, summed in float32, with bias, residual and relu; one tactic for each of
// the library's algorithms.
//
// A tactic is the library's description of an algorithm as text, "algo=21;tile=20;stages=4", with the numbers of
// cublasLt.h; what has its default value is left out. Its blob is the cublasLtMatmulAlgo_t. "compute=tf32" at the end:
// the products are computed in tf32, offered only where the site allows that.
//
// The algorithm is chosen for the site's dims and for data aligned to 16 bytes. Where it does not apply (other dims of
// a site with ranges, memory of the caller's that is aligned less) kernels/cuda's gemm computes the product.
#ifndef TENON_PLUGINS_COMMON_CUBLASLT_H_
#define TENON_PLUGINS_COMMON_CUBLASLT_H_

#include <functional>
#include <string>
#include <tenon/sdk/kernel.hpp>

#include "kernels/cuda/gemm.h"

namespace tenon::plugins {

// How the inputs of an op are a product: inputs 0 and 1 its operands, input 2, if the site has it, one bias per column.
struct CublasltOp {
  std::function<cuda::GemmShape(const Dims& a, const Dims& b)> shape;
};

// `op_of` is asked for each site; it and `shape`, which gives the type too, may throw Declined. The combos are left to
// the caller: all tensors of one float type.
Kernel cublaslt_kernel(const std::string& op_id, const std::string& name, CublasltOp (*op_of)(const Site& site));

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_CUBLASLT_H_
