// tenon.scatter_nd/1 and tenon.scatter_elements/1 without a reduction on kernels/cuda. Of updates of one place the last
// one wins, as on the CPU.
#include <limits>
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/gather.h"
#include "plugins/common/cuda.h"
#include "plugins/scatter/scatter.h"

namespace tenon::plugins {
namespace {

// Places of x that updates compete for: slices of scatter_nd, elements of scatter_elements.
int64_t places(const Site& site, bool nd) {
  const Dims x = site.max_dims(0), indices = site.max_dims(1);
  return nd ? x.product(0, static_cast<int>(indices[indices.rank - 1])) : x.elements();
}
uint64_t workspace(const Site& site, bool nd) { return static_cast<uint64_t>(places(site, nd)) * sizeof(int32_t); }

class ScatterCuda final : public IPlugin {
 public:
  explicit ScatterCuda(bool nd) : nd_(nd) {}
  void configure(const Config& config) override {
    const Site site = config.site();
    if (!nd_) axis_ = normalize_axis(site.attrs().i64("axis"), site.dims(0).rank);
    bytes_ = move_bytes(site.dtype(0));
    sizes_.workspace = workspace(site, nd_);
  }
  Sizes sizes() const override { return sizes_; }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const TnTensor &x = inputs[0], &indices = inputs[1], &updates = inputs[2], &y = outputs[0];
    const auto size = static_cast<size_t>(Tensor(x).elements() * bytes_);
    if (size == 0) return;
    if (x.data != y.data) {
      check_cuda(cudaMemcpyAsync(y.data, x.data, size, cudaMemcpyDeviceToDevice, cuda_stream(exec)));
    }
    const cuda::Indices places = {indices.data, indices.dtype == TN_I64};
    if (nd_) {
      Dims dims;
      check_cuda(cuda::scatter(nd_shape(x.dims, indices.dims, &dims), places, bytes_, updates.data,
                               exec.workspace<int32_t>(), y.data, cuda_stream(exec)));
    } else {
      check_cuda(cuda::scatter_elements(x.dims.rank, axis_, x.dims.d, indices.dims.d, places, bytes_, updates.data,
                                        exec.workspace<int32_t>(), y.data, cuda_stream(exec)));
    }
  }

 private:
  bool nd_;
  int axis_ = 0, bytes_ = 0;
  Sizes sizes_;
};

Kernel scatter_cuda(const std::string& name, bool nd) {
  return cuda_kernel("tenon." + name + "/1", "tenon." + name + ".last.cuda",
                     [nd] { return std::make_unique<ScatterCuda>(nd); })
      .supports([](const Site& site) {
        if (site.attrs().str("reduction") != "none") throw Declined("it has no reduction");
        move_bytes(site.dtype(0));
        if (site.max_dims(1).elements() > std::numeric_limits<int32_t>::max()) {
          throw Declined("expected fewer than 2^31 indices");
        }
      })
      .more_combos([](const Site& site, Combos& combos) {
        const Port port = row(site.dtype(0));
        combos.add(ComboSpec({port, row(site.dtype(1)), port}, {port}).may_alias(0, 0));
      })
      .tactics([nd](const Site& site, const Combo&, Tactics& tactics) { tactics.add("", workspace(site, nd)); });
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.scatter.cuda", "1", "Apache-2.0", tenon::plugins::scatter_cuda("scatter_nd", true),
             tenon::plugins::scatter_cuda("scatter_elements", false))
