// What the sources of reduce_cuda share.
#ifndef TENON_PLUGINS_REDUCE_REDUCE_CUDA_H_
#define TENON_PLUGINS_REDUCE_REDUCE_CUDA_H_

#include <tenon/sdk/definition.hpp>

#include "plugins/common/cuda.h"

namespace tenon::plugins {

// REQUIRES: f32, f16, i32 or i64.
inline cuda::ElementType to_reduced_type(int32_t dtype) {
  return dtype == TN_I32 ? cuda::ElementType::kI32 : dtype == TN_I64 ? cuda::ElementType::kI64 : to_cuda_float(dtype);
}

Definitions along_axis_cuda();

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_REDUCE_REDUCE_CUDA_H_
