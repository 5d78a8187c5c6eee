// tenon.grid_sample/1 on kernels/cuda: two spatial axes, or three but for cubic.
#include "plugins/grid_sample/grid_sample.h"

#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/grid_sample.h"
#include "plugins/common/cuda.h"

namespace tenon::plugins {
namespace {

cuda::GridSampleShape shape_of(const Attrs& attrs, const Dims& x, const Dims& grid) {
  const Sampling s = sampling_of(attrs, x, grid);
  cuda::GridSampleShape shape;
  shape.n = x[0];
  shape.c = x[1];
  shape.axes = s.rank;
  for (int axis = 0; axis < s.rank && s.rank <= 3; ++axis) shape.size[3 - s.rank + axis] = s.x[axis];
  shape.points = s.y_pixels;
  shape.mode = s.mode == SampleMode::kNearest  ? cuda::SampleMode::kNearest
               : s.mode == SampleMode::kLinear ? cuda::SampleMode::kLinear
                                               : cuda::SampleMode::kCubic;
  shape.padding = s.padding == SamplePadding::kZeros    ? cuda::SamplePadding::kZeros
                  : s.padding == SamplePadding::kBorder ? cuda::SamplePadding::kBorder
                                                        : cuda::SamplePadding::kReflection;
  shape.align_corners = s.align_corners;
  return shape;
}

class GridSampleCuda final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Site site = config.site();
    type_ = to_cuda_float(config.combo().output(0).dtype);
    shape_ = shape_of(site.attrs(), site.dims(0), site.dims(1));
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    check_cuda(cuda::grid_sample(type_, shape_, inputs[0].data, inputs[1].data, outputs[0].data, cuda_stream(exec)));
  }

 private:
  cuda::ElementType type_ = cuda::ElementType::kF32;
  cuda::GridSampleShape shape_;
};

void grid_sample_supports(const Site& site) {
  if (!site.is_static()) throw Declined("it works on fixed dims");
  const cuda::GridSampleShape shape = shape_of(site.attrs(), site.dims(0), site.dims(1));
  const int most = shape.mode == cuda::SampleMode::kCubic ? 2 : 3;
  if (shape.axes < 2 || shape.axes > most) {
    throw Declined(text("expected 2 to ", most, " spatial axes in this mode, found ", shape.axes));
  }
}

Kernel grid_sample_cuda(int32_t dtype) {
  return cuda_kernel<GridSampleCuda>("tenon.grid_sample/1", cuda_name("tenon.grid_sample.taps", dtype))
      .combo({row(dtype), row(dtype)}, {row(dtype)})
      .supports(grid_sample_supports);
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.grid_sample.cuda", "1", "Apache-2.0",
             tenon::plugins::for_cuda_floats(tenon::plugins::grid_sample_cuda))
