// The geometry of tenon.slice/1, shared by its definition and its kernels.
#ifndef TENON_PLUGINS_SLICE_SLICE_H_
#define TENON_PLUGINS_SLICE_SLICE_H_

#include <algorithm>
#include <vector>

#include <tenon/sdk/site.hpp>

#include "plugins/common/move.h"

namespace tenon::plugins {

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

// The box as a strided copy in memory of a format.
struct SliceCopy {
  Dims dims;
  int64_t start = 0;  // in elements of the input
  int64_t input_strides[TN_MAX_RANK] = {};
  int64_t output_strides[TN_MAX_RANK] = {};

  SliceCopy(const SliceGeometry& geometry, const TnFormat& format, const Dims& input, const Dims& output)
      : dims(physical_dims(format, output)) {
    row_strides(physical_dims(format, input), input_strides);
    row_strides(dims, output_strides);
    const int block = channel_block(format);
    for (int axis = 0; axis < input.rank; ++axis) {
      const int place = physical_axis(format, axis);
      // Channels of a blocked format move in whole blocks, so their step is 1.
      start += geometry.starts[axis] / (axis == 1 && block != 0 ? block : 1) * input_strides[place];
      input_strides[place] *= geometry.steps[axis];
    }
  }
};

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_SLICE_SLICE_H_
