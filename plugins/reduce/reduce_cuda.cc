// tenon.reduce_*/1 on kernels/cuda.
#include <algorithm>
#include <memory>
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/reduce.h"
#include "plugins/common/cuda.h"
#include "plugins/common/reduction.h"

namespace tenon::plugins {
namespace {

using cuda::ReduceKind;

constexpr std::pair<const char*, ReduceKind> kReduceOps[] = {
    {"sum", ReduceKind::kSum},
    {"mean", ReduceKind::kMean},
    {"max", ReduceKind::kMax},
    {"min", ReduceKind::kMin},
    {"prod", ReduceKind::kProd},
    {"l1", ReduceKind::kL1},
    {"l2", ReduceKind::kL2},
    {"log_sum", ReduceKind::kLogSum},
    {"log_sum_exp", ReduceKind::kLogSumExp},
    {"sum_square", ReduceKind::kSumSquare},
};

class ReduceCuda final : public IPlugin {
 public:
  explicit ReduceCuda(ReduceKind kind) : kind_(kind) {}

  void configure(const Config& config) override {
    const Site site = config.site();
    type_ = to_cuda_type(config.combo().input(0).dtype);
    activation_ = cuda_activation_epilogue(site);
    const bool has_axes = site.has_input(1) && site.dims(1).elements() != 0;
    if (has_axes && !site.is_constant(1)) throw Declined("the axes must be constant");
    const Tensor axes = site.constant(has_axes ? 1 : 0);
    const Reduction reduction(site.attrs(), site.dims(0), has_axes ? &axes : nullptr);
    std::copy_n(reduction.reduced, TN_MAX_RANK, folded_);
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const TnDims& x = inputs[0].dims;
    check_cuda(cuda::reduce(type_, kind_, x.rank, x.d, folded_, inputs[0].data, activation_, outputs[0].data,
                            cuda_stream(exec)));
  }

 private:
  ReduceKind kind_;
  cuda::ElementType type_ = cuda::ElementType::kF32;
  cuda::Epilogue activation_;
  bool folded_[TN_MAX_RANK] = {};
};

Definitions reduce_cuda() {
  static_assert(TN_MAX_RANK <= cuda::kReduceMaxRank);
  Definitions all;
  for (const auto& [name, op_kind] : kReduceOps) {
    const ReduceKind kind = op_kind;
    for (const int32_t dtype : {TN_F32, TN_F16, TN_I32, TN_I64}) {
      if (!cuda::reduce_supports(to_cuda_type(dtype), kind)) continue;
      const std::string op = std::string("tenon.reduce_") + name;
      Kernel kernel = cuda_kernel(op + "/1", cuda_name(op + ".teams", dtype),
                                  [kind] { return std::make_unique<ReduceCuda>(kind); });
      kernel.combo({row(dtype), any_constant()}, {row(dtype)}).supports([](const Site& site) {
        if (site.has_input(1) && site.dims(1).elements() != 0 && !site.is_constant(1)) {
          throw Declined("the axes must be constant");
        }
      });
      if (is_floating(dtype)) kernel.epilogue([](const Site& site) { cuda_activation_epilogue(site); });
      all.add(kernel);
    }
  }
  return all;
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.reduce.cuda", "1", "Apache-2.0", tenon::plugins::reduce_cuda())
