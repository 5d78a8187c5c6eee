// The geometry of tenon.slice/1, shared by its definition and its kernels.
#ifndef TENON_PLUGINS_SLICE_SLICE_H_
#define TENON_PLUGINS_SLICE_SLICE_H_

#include <algorithm>
#include <optional>
#include <vector>

#include <tenon/sdk/site.hpp>

#include "plugins/common/integers.h"
#include "plugins/common/move.h"

namespace tenon::plugins {

// Positions and steps on axes as a node has them: as attributes or, for those that are computed, as inputs 1 to 4.
struct SliceArguments {
  std::vector<int64_t> starts, ends, axes, steps;

  // `input(n, name)`: the contents of an input; nothing if it is absent.
  template <class Input>
  SliceArguments(const Attrs& attrs, Input&& input) {
    const auto read = [&](const char* name, int n, bool required, int64_t first, int64_t next) {
      std::optional<std::vector<int64_t>> values = input(n, name);
      if (values && attrs.has_i64s(name))
        throw Invalid(text("expected ", name, " once, found an input and an attribute"));
      if (values) return *values;
      if (required || attrs.has_i64s(name)) {
        const List<int64_t> attribute = attrs.i64s(name);
        return std::vector<int64_t>(attribute.begin(), attribute.end());
      }
      std::vector<int64_t> usual(starts.size());
      for (size_t i = 0; i < usual.size(); ++i) usual[i] = first + next * static_cast<int64_t>(i);
      return usual;
    };
    starts = read("starts", 1, true, 0, 0);
    ends = read("ends", 2, true, 0, 0);
    axes = read("axes", 3, false, 0, 1);
    steps = read("steps", 4, false, 1, 0);
    const size_t count = starts.size();
    if (ends.size() != count || axes.size() != count || steps.size() != count) {
      throw Invalid(text("starts, ends, axes and steps: expected equal lengths, found ", count, ", ", ends.size(), ", ",
                         axes.size(), " and ", steps.size()));
    }
  }
};

// Where each axis of the output begins and how far it steps in the input.
struct SliceGeometry {
  Dims output;
  int64_t starts[TN_MAX_RANK] = {};
  int64_t steps[TN_MAX_RANK] = {};

  SliceGeometry(const SliceArguments& arguments, const Dims& input) : output(input) {
    std::fill(steps, steps + TN_MAX_RANK, 1);
    bool seen[TN_MAX_RANK] = {};
    for (size_t i = 0; i < arguments.starts.size(); ++i) {
      const int axis = normalize_axis(arguments.axes[i], input.rank, "axes");
      if (seen[axis]) throw Invalid(text("axes: axis ", axis, " is named twice"));
      seen[axis] = true;
      cut(axis, arguments.starts[i], arguments.ends[i], arguments.steps[i], input[axis]);
    }
  }
  explicit SliceGeometry(const Infer& question)
      : SliceGeometry(SliceArguments(question.attrs(),
                                     [&](int n, const char* name) -> std::optional<std::vector<int64_t>> {
                                       if (!question.has_input(n)) return std::nullopt;
                                       return shape_integers(question, n, name);
                                     }),
                      question.input(0).dims()) {}
  explicit SliceGeometry(const Reference& call)
      : SliceGeometry(SliceArguments(call.attrs(),
                                     [&](int n, const char*) -> std::optional<std::vector<int64_t>> {
                                       if (!call.has_input(n)) return std::nullopt;
                                       return integers(call.input(n));
                                     }),
                      call.input(0).dims()) {}
  // Of a node whose positions are known.
  explicit SliceGeometry(const Site& site)
      : SliceGeometry(SliceArguments(site.attrs(),
                                     [&](int n, const char* name) -> std::optional<std::vector<int64_t>> {
                                       if (!site.has_input(n)) return std::nullopt;
                                       if (!site.is_constant(n) && site.dims(n).elements() > 0) {
                                         throw Declined(text("the ", name, " are computed at run time"));
                                       }
                                       return integers(site.constant(n));
                                     }),
                      site.dims(0)) {}

 private:
  // Negative positions count from the end; then both are clamped to what the direction can reach.
  void cut(int axis, int64_t begin, int64_t end, int64_t step, int64_t size) {
    if (step == 0) throw Invalid("steps: expected anything but 0, found 0");
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
