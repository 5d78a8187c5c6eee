// tenon.conv_transpose/1 on kernels/cuda.
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/conv_nd_cuda.h"

namespace tenon::plugins {
namespace {

constexpr ConvNdForm kConvTranspose = {"tenon.conv_transpose", true, conv_transpose_shape};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.conv_transpose.cuda", "1", "Apache-2.0",
             tenon::plugins::conv_nd_cuda(tenon::plugins::kConvTranspose))
