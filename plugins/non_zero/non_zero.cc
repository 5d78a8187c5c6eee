// tenon.non_zero/1: where the elements are that are not 0.
#include <tenon/sdk/plugin.hpp>
#include <vector>

#include "plugins/common/integers.h"

namespace tenon::plugins {
namespace {

std::vector<int64_t> places(const Tensor& x) {
  std::vector<int64_t> result;
  visit_number(x.dtype() == TN_BOOL ? TN_U8 : x.dtype(), [&](auto zero) {
    const auto* data = static_cast<const decltype(zero)*>(x.data());
    for (int64_t n = 0; n < x.elements(); ++n) {
      if (data[n] != zero) result.push_back(n);
    }
  });
  return result;
}

void non_zero_infer(const Infer& question) {
  const Tensor x = question.input(0);
  check_contents(x, "x");
  question.output(0, TN_I64, Dims{x.rank(), x.has_data() ? static_cast<int64_t>(places(x).size()) : 0});
}

void non_zero_bound(const Infer& question) {
  const Tensor x = question.input(0);
  question.output(0, TN_I64, Dims{x.rank(), x.elements()});
}

void non_zero_reference(const Reference& call) {
  const std::vector<int64_t> found = places(call.input(0));
  int64_t strides[TN_MAX_RANK];
  row_strides(call.input(0).dims(), strides);
  call.fill<int64_t>(0, [&](const int64_t* index, int64_t) {
    const int axis = static_cast<int>(index[0]);
    const auto n = static_cast<size_t>(index[1]);
    if (n >= found.size()) return int64_t{0};
    return found[n] / strides[axis] % call.input(0).dim(axis);
  });
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN(
    "tenon.non_zero", "1", "Apache-2.0",
    tenon::op("tenon.non_zero/1")
        .doc("The indices of the elements that are not 0, in row-major order: row a of y holds those of axis a (ONNX "
             "NonZero-13, numpy's nonzero)")
        .input("x", "numbers or bool")
        .host_value()
        .output("y", "i64 of [rank of x, number of such elements]")
        .infer(tenon::plugins::non_zero_infer)
        .infer_bound(tenon::plugins::non_zero_bound)
        .reference(tenon::plugins::non_zero_reference)
        .tolerance(0, 0))
