// tenon.transpose/1 on kernels/cuda.
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/copy_strided.h"
#include "plugins/common/cuda.h"
#include "plugins/common/move.h"
#include "plugins/common/permutation.h"

namespace tenon::plugins {
namespace {

class TransposeCuda final : public IPlugin {
 public:
  void configure(const Config& config) override {
    perm_ = permutation(config.site().attrs(), config.site().dims(0).rank);
    bytes_ = move_bytes(config.site().dtype(0));
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    check_cuda(cuda::transpose(inputs[0].dims.rank, inputs[0].dims.d, perm_.data(), bytes_, inputs[0].data,
                               outputs[0].data, cuda_stream(exec)));
  }

 private:
  std::vector<int> perm_;
  int bytes_ = 0;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.transpose.cuda", "1", "Apache-2.0",
             tenon::plugins::cuda_kernel<tenon::plugins::TransposeCuda>("tenon.transpose/1",
                                                                        "tenon.transpose.tiled.cuda")
                 .more_combos([](const tenon::Site& site, tenon::Combos& combos) {
                   const tenon::Port port = tenon::row(site.dtype(0));
                   combos.add(tenon::ComboSpec({port}, {port}));
                 }))
