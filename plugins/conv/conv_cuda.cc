// tenon.conv/1, and tenon.conv2d/1 where nothing can be packed, on kernels/cuda.
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/conv_nd_cuda.h"

namespace tenon::plugins {
namespace {

constexpr ConvNdForm kConv = {"tenon.conv", false, conv_shape};
constexpr ConvNdForm kConv2d = {"tenon.conv2d", false, conv_shape};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.conv.cuda", "1", "Apache-2.0", tenon::plugins::conv_nd_cuda(tenon::plugins::kConv),
             tenon::plugins::conv_nd_cuda(tenon::plugins::kConv2d))
