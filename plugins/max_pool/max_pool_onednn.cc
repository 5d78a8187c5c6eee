// tenon.max_pool/1 through oneDNN.
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/onednn_pool.hpp"

TENON_PLUGIN("tenon.max_pool.onednn", "1", "Apache-2.0",
             tenon::plugins::onednn_pool_kernels("tenon.max_pool",
                                                 [](const tenon::Attrs&) { return dnnl::algorithm::pooling_max; }))
