// tenon.reorg/1: Darknet's reorganisation layer, and Tenon's kernel for it. Not space-to-depth: Darknet calls its
// routine with the input's dims where the output's are meant, and trained models depend on the order that results.
#include <tenon/sdk/plugin.hpp>

#include "kernels/cpu/reorg.h"
#include "plugins/common/checked.h"
#include "plugins/common/move.h"

namespace tenon::plugins {
namespace {

void reorg_infer(const Infer& question) {
  const Tensor x = question.input(0, 4);
  const int64_t stride = question.attrs().i64("stride");
  const int64_t square = checked_product(stride, stride, "attribute 'stride'");
  if (!cpu::reorg_supports(x.dim(1), x.dim(2), x.dim(3), stride)) {
    throw Invalid(text("attribute 'stride': ", stride, " needs channels divisible by ", square,
                       " and height and width divisible by ", stride, ", found ", to_text(x.dims())));
  }
  const int64_t channels = checked_product(x.dim(1), square, "channels of the output");
  question.output(0, x.dtype(), {x.dim(0), channels, x.dim(2) / stride, x.dim(3) / stride});
}

// Darknet's own loop over a C x H x W image: with C2 = C / stride^2, the element at (k, j, i) of the input's shape is
// taken from row j*stride + offset / stride and column i*stride + offset % stride of channel k % C2 in an image of
// C2 x H*stride x W*stride, offset = k / C2. Its flat position is kept while the shape becomes the output's.
void reorg_reference(const Reference& call) {
  const int64_t stride = call.attrs().i64("stride");
  const Dims d = call.input(0).dims();
  const int64_t narrow = d[1] / (stride * stride);
  const int64_t image = d[1] * d[2] * d[3];
  copy_reference(call, 0, [&](const int64_t*, int64_t linear) {
    const int64_t n = linear / image, flat = linear % image;
    const int64_t i = flat % d[3], j = flat / d[3] % d[2], k = flat / (d[3] * d[2]);
    const int64_t offset = k / narrow;
    const int64_t column = i * stride + offset % stride;
    const int64_t row = j * stride + offset / stride;
    return n * image + column + d[3] * stride * (row + d[2] * stride * (k % narrow));
  });
}

class ReorgKernel final : public IPlugin {
 public:
  void configure(const Config& config) override { stride_ = config.site().attrs().i64("stride"); }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const int64_t* d = inputs[0].dims.d;
    cpu::reorg_darknet(d[0], d[1], d[2], d[3], stride_, static_cast<const float*>(inputs[0].data),
                       static_cast<float*>(outputs[0].data), to_parallel(exec));
  }

 private:
  int64_t stride_ = 1;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.reorg", "1", "Apache-2.0",
             tenon::op("tenon.reorg/1")
                 .doc("Darknet's [reorg]: stride x stride pixels become channels, in Darknet's own order")
                 .attr_i64("stride", "pixels")
                 .default_value("1")
                 .range("[1,)")
                 .input("x", "[N,C,H,W]; C divisible by stride^2, H and W by stride")
                 .output("y", "[N,C*stride^2,H/stride,W/stride]")
                 .infer(tenon::plugins::reorg_infer)
                 .reference(tenon::plugins::reorg_reference)
                 .tolerance(0, 0),
             tenon::kernel<tenon::plugins::ReorgKernel>("tenon.reorg/1", "tenon.reorg.copy.f32")
                 .combo({tenon::f32_row()}, {tenon::f32_row()})
                 .deterministic())
