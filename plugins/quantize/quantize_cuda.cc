// tenon.quantize/1 and tenon.dequantize/1 on kernels/cuda, between f32 and integers of whole bytes.
#include <memory>
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/quantize.h"
#include "plugins/common/cuda.h"
#include "plugins/quantize/quantize.h"

namespace tenon::plugins {
namespace {

class QuantizeCuda final : public IPlugin {
 public:
  explicit QuantizeCuda(bool back) : back_(back) {}

  void configure(const Config& config) override {
    const Site site = config.site();
    supports(site);
    type_ = to_cuda_type(back_ ? config.combo().input(kQuantizeX).dtype : config.combo().output(0).dtype);
    axis_ = site.max_dims(kQuantizeScale).elements() == 1
                ? -1
                : normalize_axis(site.attrs().i64("axis"), site.dims(kQuantizeX).rank);
    has_zero_points_ = site.has_input(kQuantizeZeroPoint);
  }
  static void supports(const Site& site) {
    if (site.attrs().i64("block_size") != 0) throw Declined("scales of blocks are left to the reference");
    if (site.min_dims(kQuantizeScale) != site.max_dims(kQuantizeScale)) throw Declined("the number of scales varies");
    if (site.op_id() == "tenon.quantize/1" && site.attrs().dtype("precision") != TN_F32) {
      throw Declined("it divides in f32 only");
    }
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims x = inputs[kQuantizeX].dims;
    cuda::QuantizeShape shape = {1, 1, x.elements()};
    if (axis_ >= 0) shape = {x.product(0, axis_), x[axis_], x.product(axis_ + 1, x.rank)};
    const auto* scales = static_cast<const float*>(inputs[kQuantizeScale].data);
    const void* zeros = has_zero_points_ ? inputs[kQuantizeZeroPoint].data : nullptr;
    check_cuda(back_ ? cuda::dequantize(type_, shape, inputs[kQuantizeX].data, scales, zeros,
                                        static_cast<float*>(outputs[0].data), cuda_stream(exec))
                     : cuda::quantize(type_, shape, static_cast<const float*>(inputs[kQuantizeX].data), scales, zeros,
                                      outputs[0].data, cuda_stream(exec)));
  }

 private:
  bool back_;
  cuda::ElementType type_ = cuda::ElementType::kU8;
  int axis_ = -1;
  bool has_zero_points_ = false;
};

Definitions quantize_cuda() {
  Definitions all;
  for (const int32_t dtype : {TN_U8, TN_I8, TN_I32}) {
    for (const bool back : {false, true}) {
      if (!back && dtype == TN_I32) continue;
      const std::string op = back ? "tenon.dequantize" : "tenon.quantize";
      Kernel kernel = cuda_kernel(op + "/1", cuda_name(op + ".direct", dtype),
                                  [back] { return std::make_unique<QuantizeCuda>(back); });
      const Port integers = row(dtype);
      all.add(kernel.combo({back ? integers : f32_row(), f32_row(), integers}, {back ? f32_row() : integers})
                  .supports(QuantizeCuda::supports));
    }
  }
  return all;
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.quantize.cuda", "1", "Apache-2.0", tenon::plugins::quantize_cuda())
