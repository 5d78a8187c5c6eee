// tenon.layer_norm/1 and tenon.rms_norm/1 on kernels/cuda.
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/norm_cuda.h"

namespace tenon::plugins {
namespace {

Definitions layer_norm_cuda() {
  Definitions all;
  for (const int32_t dtype : {TN_F32, TN_F16}) {
    all.add(norm_cuda("tenon.layer_norm", dtype, 3).supports(whole_factors));
    all.add(norm_cuda("tenon.rms_norm", dtype, 2).supports(whole_factors));
  }
  return all;
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.layer_norm.cuda", "1", "Apache-2.0", tenon::plugins::layer_norm_cuda())
