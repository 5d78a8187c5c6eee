// tenon.lp_norm/1 on kernels/cuda.
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/norm_cuda.h"

TENON_PLUGIN("tenon.lp_norm.cuda", "1", "Apache-2.0", tenon::plugins::for_cuda_floats([](int32_t dtype) {
               return tenon::plugins::norm_cuda("tenon.lp_norm", dtype, 1);
             }))
