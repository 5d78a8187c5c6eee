// tenon.col2im/1: columns of blocks added up to an image, and Tenon's kernel for it.
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/parallel.h"
#include "plugins/common/tolerance.h"
#include "plugins/common/windows.h"

namespace tenon::plugins {
namespace {

constexpr int kX = 0, kImageShape = 1, kBlockShape = 2;

std::vector<int64_t> contents(const Tensor& list, const char* name) {
  if (list.rank() != 1) throw Invalid(text("input ", name, ": expected rank 1, found ", to_text(list.dims())));
  if (!list.has_data()) throw Invalid(text("the contents of ", name, " must be known when the network is built"));
  std::vector<int64_t> values;
  for (int64_t n = 0; n < list.dim(0); ++n) values.push_back(list.integer(n));
  return values;
}

cpu::Windows col2im_windows(const Attrs& attrs, const Dims& x, const Tensor& image_shape, const Tensor& block_shape) {
  const std::vector<int64_t> image = contents(image_shape, "image_shape"), block = contents(block_shape, "block_shape");
  if (image.size() != block.size()) {
    throw Invalid(text("input block_shape: expected ", image.size(), " sizes as image_shape, found ", block.size()));
  }
  cpu::Windows windows = windows_of(attrs, block.data(), static_cast<int>(block.size()));
  for (const int64_t size : image) {
    if (size < 1 || size > INT32_MAX) throw Invalid(text("input image_shape: expected sizes from 1, found ", size));
  }
  slide_over(attrs, image.data(), &windows);
  int64_t taps = 1, positions = 1;
  for (int axis = 0; axis < windows.rank; ++axis) {
    taps = checked_product(taps, windows.kernel[axis], "block_shape");
    positions = checked_product(positions, windows.count[axis], "blocks");
  }
  if (x.rank != 3 || x[1] % taps != 0 || x[2] != positions) {
    throw Invalid(text("input x: expected [N, a multiple of ", taps, ", ", positions, "], found ", to_text(x)));
  }
  return windows;
}

void col2im_infer(const Infer& question) {
  const Tensor x = question.input(kX);
  visit_number(x.dtype() == TN_F16 || x.dtype() == TN_BF16 ? static_cast<int32_t>(TN_F32) : x.dtype(), [](auto) {});
  const cpu::Windows w =
      col2im_windows(question.attrs(), x.dims(), question.input(kImageShape), question.input(kBlockShape));
  Dims dims = {x.dim(0), x.dim(1) / w.taps()};
  for (int axis = 0; axis < w.rank; ++axis) dims.push_back(w.image[axis]);
  question.output(0, x.dtype(), dims);
}

void col2im_reference(const Reference& call) {
  const cpu::Windows w =
      col2im_windows(call.attrs(), call.input(kX).dims(), call.input(kImageShape), call.input(kBlockShape));
  const int64_t taps = w.taps(), positions = w.positions(), channels = call.output(0).dim(1);
  visit_number(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = call.input(kX).data<T>();
    call.fill<T>(0, [&](const int64_t* index, int64_t) {
      std::conditional_t<std::is_floating_point_v<T>, double, T> sum = 0;
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t position = tap_position(w, index + 2, tap);
        if (position < 0) continue;
        sum =
            static_cast<decltype(sum)>(sum + x[((index[0] * channels + index[1]) * taps + tap) * positions + position]);
      }
      return static_cast<T>(sum);
    });
  });
}

class Col2imKernel final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Site site = config.site();
    if (!site.is_static() || !site.is_constant(kImageShape) || !site.is_constant(kBlockShape)) {
      throw Declined("it works on fixed dims");
    }
    windows_ = col2im_windows(site.attrs(), site.dims(kX), site.constant(kImageShape), site.constant(kBlockShape));
    planes_ = site.output_dims(0).product(0, 2);
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    cpu::col2im(windows_, planes_, static_cast<const float*>(inputs[kX].data), nullptr,
                static_cast<float*>(outputs[0].data), to_parallel(exec));
  }

 private:
  cpu::Windows windows_;
  int64_t planes_ = 0;
};

Definitions col2im_definitions() {
  Op definition = op("tenon.col2im/1");
  definition
      .doc(
          "The sum of overlapping blocks: y[n,c,p*stride - pad + t*dilation] += x[n, c*taps + t, p] for every block "
          "position p and tap t, row-major (torch.nn.Fold, https://onnx.ai/onnx/operators/onnx__Col2Im.html)")
      .input("x", "[N,C*taps,positions]")
      .input("image_shape", "sizes of the image")
      .host_value()
      .input("block_shape", "sizes of a block")
      .host_value()
      .output("y", "[N,C,image...]")
      .infer(col2im_infer)
      .reference(col2im_reference)
      .tolerance([](const Attrs&, int32_t dtype) { return sum_tolerance(dtype); });
  add_window_attributes(definition);
  return {definition, kernel<Col2imKernel>("tenon.col2im/1", "tenon.col2im.planes.f32")
                          .combo({f32_row(), any_constant(), any_constant()}, {f32_row()})
                          .deterministic()};
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.col2im", "1", "Apache-2.0", tenon::plugins::col2im_definitions())
