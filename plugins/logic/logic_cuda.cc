// tenon.and/1, or, xor and not on kernels/cuda.
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/compare_cuda.h"

namespace tenon::plugins {
namespace {

class NotCuda final : public IPlugin {
 public:
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    check_cuda(cuda::logical_not(Tensor(inputs[0]).elements(), inputs[0].data, outputs[0].data, cuda_stream(exec)));
  }
};

Definitions logic_cuda() {
  const Port port = row(TN_BOOL);
  Definitions all;
  all.add(compare_cuda_kernel("and", cuda::CompareKind::kAnd).combo({port, port}, {port}));
  all.add(compare_cuda_kernel("or", cuda::CompareKind::kOr).combo({port, port}, {port}));
  all.add(compare_cuda_kernel("xor", cuda::CompareKind::kXor).combo({port, port}, {port}));
  all.add(cuda_kernel<NotCuda>("tenon.not/1", "tenon.not.vector.cuda").combo({port}, {port}));
  return all;
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.logic.cuda", "1", "Apache-2.0", tenon::plugins::logic_cuda())
