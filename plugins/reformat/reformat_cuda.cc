// tenon.reformat/1 on kernels/cuda, between row and nhwc.
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/reformat.h"
#include "plugins/common/cuda.h"
#include "plugins/common/move.h"

namespace tenon::plugins {
namespace {

// A port of the format that `attribute` names.
Port named_port(const Site& site, const char* attribute) {
  const std::string name = site.attrs().str(attribute);
  if (name == "row") return row(site.dtype(0));
  if (name == "nhwc") return nhwc(site.dtype(0));
  throw Declined(text("attribute '", attribute, "': it knows row and nhwc, found ", name));
}

class ReformatCuda final : public IPlugin {
 public:
  static void combos(const Site& site, Combos& combos) {
    const Port from = named_port(site, "from"), to = named_port(site, "to");
    if ((!is_row(from.format) || !is_row(to.format)) && site.dims(0).rank != 4) {
      throw Declined("image formats need rank 4");
    }
    combos.add(ComboSpec({from}, {to}));
  }
  void configure(const Config& config) override {
    from_ = to_cuda_layout(config.combo().input(0).format);
    to_ = to_cuda_layout(config.combo().output(0).format);
    bytes_ = move_bytes(config.site().dtype(0));
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const int64_t* d = inputs[0].dims.d;
    const int64_t count = Tensor(inputs[0]).elements();
    if (count == 0) return;
    if (from_ == to_) {
      check_cuda(cudaMemcpyAsync(outputs[0].data, inputs[0].data, static_cast<size_t>(count * bytes_),
                                 cudaMemcpyDeviceToDevice, cuda_stream(exec)));
    } else {
      check_cuda(cuda::reformat(from_, to_, d[0], d[1], d[2], d[3], bytes_, inputs[0].data, outputs[0].data,
                                cuda_stream(exec)));
    }
  }

 private:
  cuda::Layout from_ = cuda::Layout::kNchw, to_ = cuda::Layout::kNchw;
  int bytes_ = 0;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.reformat.cuda", "1", "Apache-2.0",
             tenon::plugins::cuda_kernel<tenon::plugins::ReformatCuda>("tenon.reformat/1", "tenon.reformat.copy.cuda")
                 .more_combos(tenon::plugins::ReformatCuda::combos))
