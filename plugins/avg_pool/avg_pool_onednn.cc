// tenon.avg_pool/1 through oneDNN.
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/onednn_pool.hpp"

TENON_PLUGIN("tenon.avg_pool.onednn", "1", "Apache-2.0",
             tenon::plugins::onednn_pool_kernels("tenon.avg_pool", [](const tenon::Attrs& attrs) {
               return attrs.flag("count_include_pad") ? dnnl::algorithm::pooling_avg_include_padding
                                                      : dnnl::algorithm::pooling_avg_exclude_padding;
             }))
