// Where maxima come from, and back there: tenon.max_pool_indices/1 and tenon.max_unpool/1. On their references alone.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/move.h"
#include "plugins/common/pool_windows.h"

namespace tenon::plugins {
namespace {

void indices_infer(const Infer& question) {
  const Tensor x = question.input(0);
  if (!is_floating(x.dtype()) && x.dtype() != TN_I8 && x.dtype() != TN_U8) {
    throw Invalid(text("input x: expected a floating dtype, i8 or u8, found ", dtype_name(x.dtype())));
  }
  question.output(0, TN_I64, pooled_dims(x.dims(), pool_windows(question.attrs(), x.dims())));
}

// The pixel's number if the first of the spatial axes were the fastest.
int64_t column_major(const cpu::Windows& windows, int64_t pixel) {
  int64_t at[cpu::kMaxWindowAxes], number = 0;
  for (int axis = windows.rank - 1; axis >= 0; --axis) {
    at[axis] = pixel % windows.image[axis];
    pixel /= windows.image[axis];
  }
  for (int axis = windows.rank - 1; axis >= 0; --axis) number = number * windows.image[axis] + at[axis];
  return number;
}

void indices_reference(const Reference& call) {
  const Dims x_dims = call.input(0).dims();
  const cpu::Windows windows = pool_windows(call.attrs(), x_dims);
  const bool columns = call.attrs().flag("storage_order");
  visit_number(call.input(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = call.input(0).data<T>();
    call.fill<int64_t>(0, [&](const int64_t* index, int64_t) {
      const int64_t plane = (index[0] * x_dims[1] + index[1]) * windows.pixels();
      int64_t largest = -1;
      for (int64_t tap = 0; tap < windows.taps(); ++tap) {
        const int64_t pixel = tap_pixel(windows, index + 2, tap);
        if (pixel < 0) continue;
        const T value = x[plane + pixel];
        const bool nan = value != value;
        if (largest < 0 || nan || value > x[plane + largest]) largest = pixel;
      }
      if (largest < 0) return int64_t{-1};
      return plane + (columns ? column_major(windows, largest) : largest);
    });
  });
}

struct UnpoolShape {
  Dims whole;   // what the indices count in
  Dims output;  // at least as large along every axis
};

UnpoolShape unpool_shape(const Attrs& attrs, const Dims& x, const Tensor* shape) {
  const List<int64_t> kernel = pixels(attrs, "kernel", x.rank - 2, 1);
  const std::vector<int64_t> strides = pixels_or(attrs, "strides", x.rank - 2, 1, 1);
  UnpoolShape result;
  result.whole = x;
  for (int axis = 0; axis < x.rank - 2; ++axis) {
    const int64_t size = checked_product(x[axis + 2] - 1, strides[static_cast<size_t>(axis)], "output size") +
                         kernel[axis] - both_pads(attrs, x.rank - 2, axis);
    if (size < 1)
      throw Invalid(text("spatial axis ", axis, " of the output has ", size, " cells, expected at least 1"));
    result.whole[axis + 2] = size;
  }
  result.output = result.whole;
  if (shape == nullptr) return result;
  if (!shape->has_data()) throw Invalid("the contents of output_shape must be known when the network is built");
  if (shape->rank() != 1 || shape->dim(0) != x.rank) {
    throw Invalid(text("input output_shape: expected ", x.rank, " sizes, found ", to_text(shape->dims())));
  }
  for (int axis = 0; axis < x.rank; ++axis) {
    result.output[axis] = shape->integer(axis);
    if (result.output[axis] < result.whole[axis]) {
      throw Invalid(text("input output_shape: expected at least ", to_text(result.whole), ", found ",
                         result.output[axis], " for axis ", axis));
    }
  }
  return result;
}

template <class Question>
UnpoolShape unpool_shape(const Question& question) {
  const Dims x = question.input(0).dims();
  if (x.rank < 3) throw Invalid(text("input x: expected [N,C,d1,...], found ", to_text(x)));
  if (!question.has_input(2)) return unpool_shape(question.attrs(), x, nullptr);
  const Tensor shape = question.input(2);
  return unpool_shape(question.attrs(), x, &shape);
}

void unpool_infer(const Infer& question) {
  const Tensor x = question.input(0), indices = question.input(1);
  if (indices.dims() != x.dims() || indices.dtype() != TN_I64) {
    throw Invalid(text("input indices: expected ", to_text(x.dims()), " of i64, found ", to_text(indices.dims()),
                       " of ", dtype_name(indices.dtype())));
  }
  move_bytes(x.dtype());
  question.output(0, x.dtype(), unpool_shape(question).output);
}

void unpool_reference(const Reference& call) {
  const UnpoolShape shape = unpool_shape(call);
  const TnBox& box = call.box(0);
  const int rank = shape.whole.rank, bytes = move_bytes(call.output(0).dtype());
  if (box_is_empty(call.output(0).dims(), box)) return;
  int64_t cells = 1;
  for (int axis = 0; axis < rank; ++axis) cells *= box.size[axis];
  char* y = static_cast<char*>(call.output(0).data());
  std::memset(y, 0, static_cast<size_t>(cells * bytes));
  const char* x = static_cast<const char*>(call.input(0).data());
  const int64_t* indices = call.input(1).data<int64_t>();
  const int64_t most = shape.whole.elements();
  for (int64_t n = 0; n < call.input(0).elements(); ++n) {
    int64_t rest = indices[n], to = 0, step = 1;
    if (rest < 0 || rest >= most) throw Invalid(text("input indices: expected 0 to ", most - 1, ", found ", rest));
    bool inside = true;
    for (int axis = rank - 1; axis >= 0; --axis) {
      const int64_t at = rest % shape.whole[axis] - box.start[axis];
      inside = inside && at >= 0 && at < box.size[axis];
      rest /= shape.whole[axis];
      to += at * step;
      step *= box.size[axis];
    }
    if (inside) std::memcpy(y + to * bytes, x + n * bytes, static_cast<size_t>(bytes));
  }
}

// Positions of a pooling of a tensor whose windows do not overlap: any of the output's, here in order.
void unpool_generate(const Generate& ask) {
  std::fill_n(static_cast<char*>(ask.inputs[0].data),
              Dims(ask.inputs[0].dims).elements() * dtype_size(ask.inputs[0].dtype), char{0});
  auto* indices = static_cast<int64_t*>(ask.inputs[1].data);
  for (int64_t n = 0; n < Dims(ask.inputs[1].dims).elements(); ++n) indices[n] = n;
}

Definitions max_unpool_definitions() {
  Op indices = op("tenon.max_pool_indices/1");
  indices
      .doc(
          "Row-major number in x of the largest cell of each window, the first of equals; -1 for a window without "
          "cells (second output of https://onnx.ai/onnx/operators/onnx__MaxPool.html)")
      .attr_i64("storage_order", "1: the spatial axes are counted with the first one fastest")
      .default_value("0")
      .range("0|1")
      .input("x", "[N,C,d1,...], floating, i8 or u8")
      .output("indices", "i64 [N,C,o1,...]")
      .infer(indices_infer)
      .reference(indices_reference)
      .tolerance(0, 0);
  add_pool_window_attributes(indices);
  Op unpool = op("tenon.max_unpool/1");
  unpool
      .doc(
          "Zeros, and the cells of x at the places that indices give in a tensor whose spatial axes have (d - "
          "1)*stride "
          "+ kernel - pads cells; the output may be larger (https://onnx.ai/onnx/operators/onnx__MaxUnpool.html)")
      .attr_i64s("kernel", "window sizes, one per spatial axis")
      .required()
      .attr_i64s("strides", "one per spatial axis; none: 1")
      .attr_i64s("pads", "[begins..., ends...]; none: 0")
      .input("x", "[N,C,d1,...]")
      .input("indices", "i64, dims of x")
      .input("output_shape", "dims of the output")
      .optional()
      .host_value()
      .output("y")
      .infer(unpool_infer)
      .reference(unpool_reference)
      .generate(unpool_generate)
      .tolerance(0, 0);
  return {indices, unpool};
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.max_unpool", "1", "Apache-2.0", tenon::plugins::max_unpool_definitions())
