// tenon.avg_pool/1 on kernels/cuda.
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/pool_cuda.h"

TENON_PLUGIN("tenon.avg_pool.cuda", "1", "Apache-2.0",
             tenon::plugins::pool_cuda("tenon.avg_pool", [](const tenon::Attrs& attrs) {
               return attrs.flag("count_include_pad") ? tenon::cuda::PoolKind::kAverageIncludePad
                                                      : tenon::cuda::PoolKind::kAverage;
             }))
