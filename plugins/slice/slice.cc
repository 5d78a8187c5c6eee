// tenon.slice/1: a strided box of a tensor, with the rules of ONNX Slice, and Tenon's kernel for it.
#include <optional>

#include <tenon/sdk/plugin.hpp>

#include "plugins/slice/slice.h"

namespace tenon::plugins {
namespace {

void slice_infer(const Infer& question) {
  const Tensor x = question.input(0);
  question.output(0, x.dtype(), SliceGeometry(question).output);
}

void slice_reference(const Reference& call) {
  const Dims input = call.input(0).dims();
  const SliceGeometry g(call);
  int64_t strides[TN_MAX_RANK];
  row_strides(input, strides);
  copy_reference(call, 0, [&](const int64_t* index, int64_t) {
    int64_t from = 0;
    for (int axis = 0; axis < input.rank; ++axis)
      from += (g.starts[axis] + index[axis] * g.steps[axis]) * strides[axis];
    return from;
  });
}

void slice_placement(const Infer& inferred, Placements placements) {
  const SliceGeometry g(inferred);
  Dims start = g.output;
  for (int axis = 0; axis < start.rank; ++axis) {
    if (g.steps[axis] != 1) throw Declined("a step is not 1");
    start[axis] = g.starts[axis];
  }
  placements.output_in_input(start);
}

class SliceKernel final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Site site = config.site();
    format_ = config.combo().input(0).format;
    geometry_.emplace(site);
    bytes_ = move_bytes(config.combo().input(0).dtype);
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const SliceCopy copy(*geometry_, format_, inputs[0].dims, outputs[0].dims);
    cpu::copy_strided(copy.dims.rank, copy.dims.d, copy.input_strides, copy.output_strides, bytes_,
                      static_cast<const char*>(inputs[0].data) + copy.start * bytes_, outputs[0].data,
                      to_parallel(exec));
  }

 private:
  TnFormat format_{};
  std::optional<SliceGeometry> geometry_;
  int bytes_ = 0;
};

void slice_combos(const Site& site, Combos& combos) {
  const SliceGeometry g(site);
  for (const int32_t dtype : moved_dtypes(site)) {
    for (const auto make : image_ports(dtype)) {
      const Port port = make(dtype);
      if (!is_row(port.format) && (site.dims(0).rank != 4 || site.dtype(0) != TN_F32)) continue;
      const int block = channel_block(port.format);
      const bool whole = block == 0 || (g.steps[1] == 1 && g.starts[1] % block == 0 && g.output[1] % block == 0);
      if (whole) combos.add(ComboSpec({port, any_constant()}, {port}));
    }
  }
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN(
    "tenon.slice", "1", "Apache-2.0",
    tenon::op("tenon.slice/1")
        .doc("A strided box. Positions below 0 count from the end, positions beyond it are clamped (ONNX Slice-13)")
        .attr_i64s("starts", "first position on each of the axes, unless it is an input; so are the others")
        .attr_i64s("ends", "position after the last")
        .attr_i64s("axes", "which axes are cut; default: the first ones")
        .attr_i64s("steps", "step on each axis, not 0; default: 1")
        .input("x", "any dtype of 1, 2, 4 or 8 bytes")
        .input("starts", "i64 or i32, as the attribute")
        .optional()
        .host_value()
        .input("ends", "i64 or i32, as the attribute")
        .optional()
        .host_value()
        .input("axes", "i64 or i32, as the attribute")
        .optional()
        .host_value()
        .input("steps", "i64 or i32, as the attribute")
        .optional()
        .host_value()
        .output("y")
        .infer(tenon::plugins::slice_infer)
        .reference(tenon::plugins::slice_reference)
        .placement(tenon::plugins::slice_placement)
        .tolerance(0, 0),
    tenon::kernel<tenon::plugins::SliceKernel>("tenon.slice/1", "tenon.slice.copy")
        .deterministic()
        .more_combos(tenon::plugins::slice_combos))
