// tenon.max_pool/1 on kernels/cuda.
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/pool_cuda.h"

TENON_PLUGIN("tenon.max_pool.cuda", "1", "Apache-2.0",
             tenon::plugins::pool_cuda("tenon.max_pool",
                                       [](const tenon::Attrs&) { return tenon::cuda::PoolKind::kMax; }))
