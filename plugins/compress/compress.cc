// tenon.compress/1: the slices along an axis whose condition holds.
#include <algorithm>
#include <tenon/sdk/plugin.hpp>
#include <vector>

#include "plugins/common/booleans.h"
#include "plugins/common/integers.h"
#include "plugins/common/move.h"

namespace tenon::plugins {
namespace {

constexpr int kX = 0, kCondition = 1;

int compress_axis(const Attrs& attrs, const Dims& x) { return normalize_axis(attrs.i64("axis"), x.rank); }

// The positions whose condition holds.
std::vector<int64_t> picked(const Tensor& condition) {
  std::vector<int64_t> places;
  const uint8_t* holds = bool_data(condition);
  for (int64_t n = 0; n < condition.elements(); ++n) {
    if (holds[n] != 0) places.push_back(n);
  }
  return places;
}

// For `count` slices.
void give_output(const Infer& question, int64_t count) {
  Dims dims = question.input(kX).dims();
  dims[compress_axis(question.attrs(), dims)] = count;
  question.output(0, question.input(kX).dtype(), dims);
}

// The size of x's axis.
int64_t check_inputs(const Infer& question) {
  const Tensor condition = question.input(kCondition);
  if (condition.dtype() != TN_BOOL || condition.rank() != 1) {
    throw Invalid(text("input 'condition': expected a list of bool, found ", dtype_name(condition.dtype()),
                       to_text(condition.dims())));
  }
  const Dims x = question.input(kX).dims();
  return x[compress_axis(question.attrs(), x)];
}

void compress_infer(const Infer& question) {
  const int64_t size = check_inputs(question);
  const Tensor condition = question.input(kCondition);
  check_contents(condition, "condition");
  const std::vector<int64_t> places = picked(condition);
  if (!places.empty() && places.back() >= size) {
    throw Invalid(text("input 'condition': it picks position ", places.back(), " of an axis of ", size));
  }
  give_output(question, static_cast<int64_t>(places.size()));
}

void compress_bound(const Infer& question) {
  give_output(question, std::min(check_inputs(question), question.input(kCondition).dim(0)));
}

void compress_reference(const Reference& call) {
  const Dims x = call.input(kX).dims();
  const int axis = compress_axis(call.attrs(), x);
  const std::vector<int64_t> places = picked(call.input(kCondition));
  int64_t strides[TN_MAX_RANK];
  row_strides(x, strides);
  copy_reference(call, kX, [&](const int64_t* index, int64_t) {
    const auto n = static_cast<size_t>(index[axis]);
    // What is beyond the axis can only be random contents, as a builder gives them.
    if (n >= places.size() || places[n] >= x[axis]) return int64_t{-1};
    return offset_of(index, strides, x.rank) + (places[n] - index[axis]) * strides[axis];
  });
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.compress", "1", "Apache-2.0",
             tenon::op("tenon.compress/1")
                 .doc("The slices of x along an axis whose condition holds, in order (ONNX Compress-11, numpy's "
                      "compress)")
                 .attr_i64("axis", "negative: counted from the end")
                 .default_value("0")
                 .input("x", "any dtype of 1, 2, 4 or 8 bytes")
                 .input("condition",
                        "bool [n]: of slice 0, 1 and so on; none beyond n is picked. A longer one than the axis must "
                        "not hold beyond it")
                 .host_value()
                 .output("y", "x's dims with the number of conditions that hold in place of the axis")
                 .infer(tenon::plugins::compress_infer)
                 .infer_bound(tenon::plugins::compress_bound)
                 .reference(tenon::plugins::compress_reference)
                 .tolerance(0, 0))
