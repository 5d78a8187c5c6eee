// tenon.slice/1: a strided box of a tensor, with the rules of ONNX Slice, and Tenon's kernel for it.
#include <algorithm>
#include <optional>
#include <vector>

#include <tenon/sdk/plugin.hpp>

#include "plugins/common/move.h"

namespace tenon::plugins {
namespace {

// Where each axis of the output begins and how far it steps in the input.
struct SliceGeometry {
  Dims output;
  int64_t starts[TN_MAX_RANK] = {};
  int64_t steps[TN_MAX_RANK] = {};

  SliceGeometry(const Attrs& attrs, const Dims& input) : output(input) {
    std::fill(steps, steps + TN_MAX_RANK, 1);
    const List<int64_t> begin = attrs.i64s("starts"), end = attrs.i64s("ends");
    const int count = begin.size();
    std::vector<int64_t> axes(static_cast<size_t>(count)), strides(static_cast<size_t>(count), 1);
    for (int i = 0; i < count; ++i) axes[static_cast<size_t>(i)] = i;
    if (attrs.has_i64s("axes")) axes.assign(attrs.i64s("axes").begin(), attrs.i64s("axes").end());
    if (attrs.has_i64s("steps")) strides.assign(attrs.i64s("steps").begin(), attrs.i64s("steps").end());
    if (end.size() != count || axes.size() != begin_size(count) || strides.size() != begin_size(count)) {
      throw Invalid(text("attributes 'starts', 'ends', 'axes' and 'steps': expected equal lengths, found ", count, ", ",
                         end.size(), ", ", axes.size(), " and ", strides.size()));
    }
    bool seen[TN_MAX_RANK] = {};
    for (int i = 0; i < count; ++i) {
      const int axis = normalize_axis(axes[static_cast<size_t>(i)], input.rank, "axes");
      if (seen[axis]) throw Invalid(text("attribute 'axes': axis ", axis, " is named twice"));
      seen[axis] = true;
      cut(axis, begin[i], end[i], strides[static_cast<size_t>(i)], input[axis]);
    }
  }

 private:
  static size_t begin_size(int count) { return static_cast<size_t>(count); }

  // Negative positions count from the end; then both are clamped to what the direction can reach.
  void cut(int axis, int64_t begin, int64_t end, int64_t step, int64_t size) {
    if (step == 0) throw Invalid("attribute 'steps': expected anything but 0, found 0");
    const auto from_end = [&](int64_t at) { return at < 0 ? (at < -size ? int64_t{-1} - size : at) + size : at; };
    const int64_t least = step > 0 ? 0 : -1;
    const int64_t most = step > 0 ? size : size - 1;
    begin = std::clamp(from_end(begin), step > 0 ? int64_t{0} : least, std::max(most, least));
    end = std::clamp(from_end(end), least, std::max(most, least));
    // The distance fits: both lie in [-1, size].
    const int64_t span = step > 0 ? end - begin : begin - end;
    const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : uint64_t{0} - static_cast<uint64_t>(step);
    output[axis] = span <= 0 ? 0 : static_cast<int64_t>((static_cast<uint64_t>(span) + stride - 1) / stride);
    starts[axis] = output[axis] == 0 ? 0 : begin;
    // Of one element the step is of no account, and a large one times a stride would overflow.
    steps[axis] = output[axis] > 1 ? step : 1;
  }
};

void slice_infer(const Infer& question) {
  const Tensor x = question.input(0);
  question.output(0, x.dtype(), SliceGeometry(question.attrs(), x.dims()).output);
}

void slice_reference(const Reference& call) {
  const Dims input = call.input(0).dims();
  const SliceGeometry g(call.attrs(), input);
  int64_t strides[TN_MAX_RANK];
  row_strides(input, strides);
  copy_reference(call, 0, [&](const int64_t* index, int64_t) {
    int64_t from = 0;
    for (int axis = 0; axis < input.rank; ++axis)
      from += (g.starts[axis] + index[axis] * g.steps[axis]) * strides[axis];
    return from;
  });
}

class SliceKernel final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Site site = config.site();
    format_ = config.combo().input(0).format;
    geometry_.emplace(site.attrs(), site.dims(0));
    bytes_ = move_bytes(site.dtype(0));
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims from = physical_dims(format_, inputs[0].dims);
    const Dims to = physical_dims(format_, outputs[0].dims);
    int64_t input_strides[TN_MAX_RANK], output_strides[TN_MAX_RANK];
    row_strides(from, input_strides);
    row_strides(to, output_strides);
    const int block = channel_block(format_);
    int64_t start = 0;
    for (int axis = 0; axis < inputs[0].dims.rank; ++axis) {
      const int place = physical_axis(format_, axis);
      // Channels of a blocked format move in whole blocks, so their step is 1.
      start += geometry_->starts[axis] / (axis == 1 && block != 0 ? block : 1) * input_strides[place];
      input_strides[place] *= geometry_->steps[axis];
    }
    cpu::copy_strided(to.rank, to.d, input_strides, output_strides, bytes_,
                      static_cast<const char*>(inputs[0].data) + start * bytes_, outputs[0].data, to_parallel(exec));
  }

 private:
  TnFormat format_{};
  std::optional<SliceGeometry> geometry_;
  int bytes_ = 0;
};

void slice_combos(const Site& site, Combos& combos) {
  const SliceGeometry g(site.attrs(), site.dims(0));
  move_bytes(site.dtype(0));
  for (const auto make : image_ports()) {
    const Port port = make(site.dtype(0));
    if (!is_row(port.format) && (site.dims(0).rank != 4 || site.dtype(0) != TN_F32)) continue;
    const int block = channel_block(port.format);
    const bool whole = block == 0 || (g.steps[1] == 1 && g.starts[1] % block == 0 && g.output[1] % block == 0);
    if (whole) combos.add(ComboSpec({port}, {port}));
  }
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN(
    "tenon.slice", "1", "Apache-2.0",
    tenon::op("tenon.slice/1")
        .doc("A strided box. Positions below 0 count from the end, positions beyond it are clamped (ONNX Slice-13)")
        .attr_i64s("starts", "first position on each of the axes")
        .required()
        .attr_i64s("ends", "position after the last")
        .required()
        .attr_i64s("axes", "which axes are cut; default: the first ones")
        .attr_i64s("steps", "step on each axis, not 0; default: 1")
        .input("x", "any dtype of 1, 2, 4 or 8 bytes")
        .output("y")
        .infer(tenon::plugins::slice_infer)
        .reference(tenon::plugins::slice_reference)
        .tolerance(0, 0),
    tenon::kernel<tenon::plugins::SliceKernel>("tenon.slice/1", "tenon.slice.copy")
        .deterministic()
        .more_combos(tenon::plugins::slice_combos))
