// tenon.equal/1, less, less_equal and is_nan on kernels/cuda.
#include <memory>
#include <string>
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/compare_cuda.h"

namespace tenon::plugins {
namespace {

Definitions compare_cuda() {
  constexpr std::pair<const char*, cuda::CompareKind> kOps[] = {{"equal", cuda::CompareKind::kEqual},
                                                                {"less", cuda::CompareKind::kLess},
                                                                {"less_equal", cuda::CompareKind::kLessEqual},
                                                                {"is_nan", cuda::CompareKind::kUnordered}};
  Definitions all;
  for (const auto& [name, kind] : kOps) {
    Kernel definition = compare_cuda_kernel(name, kind);
    for (const CudaType& type : kCudaTypes) {
      const bool bools = type.dtype == TN_BOOL && kind != cuda::CompareKind::kEqual;
      if (type.dtype == TN_BF16 || bools) continue;
      if (kind != cuda::CompareKind::kUnordered) {
        definition.combo({row(type.dtype), row(type.dtype)}, {row(TN_BOOL)});
      } else if (is_floating(type.dtype)) {
        definition.combo({row(type.dtype)}, {row(TN_BOOL)});
      }
    }
    all.add(definition);
  }
  return all;
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.compare.cuda", "1", "Apache-2.0", tenon::plugins::compare_cuda())
