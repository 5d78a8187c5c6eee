// tenon.unique/1: the different slices along an axis.
#include <algorithm>
#include <numeric>
#include <tenon/sdk/plugin.hpp>
#include <vector>

#include "plugins/common/integers.h"
#include "plugins/common/move.h"

namespace tenon::plugins {
namespace {

// bool has the elements of u8.
template <class Body>
void visit_elements(const Tensor& x, Body&& body) {
  visit_number(x.dtype() == TN_BOOL ? TN_U8 : x.dtype(),
               [&](auto zero) { body(static_cast<const decltype(zero)*>(x.data())); });
}

// -1, 0 or 1; NaNs are equal and above all numbers.
template <class T>
int compare(T a, T b) {
  if (a < b) return -1;
  if (b < a) return 1;
  return (a != a ? 1 : 0) - (b != b ? 1 : 0);
}

struct Found {
  std::vector<int64_t> first;    // where each different slice stands first
  std::vector<int64_t> inverse;  // which of them each slice is
  std::vector<int64_t> counts;
};

int unique_axis(const Attrs& attrs, const Dims& x) { return normalize_axis(attrs.i64("axis"), x.rank); }

Found find_unique(const Attrs& attrs, const Tensor& x) {
  const Dims dims = x.dims();
  const int axis = unique_axis(attrs, dims);
  const int64_t outer = dims.product(0, axis), size = dims[axis], inner = dims.product(axis + 1, dims.rank);
  Found found;
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  found.inverse.resize(order.size());
  visit_elements(x, [&](const auto* data) {
    const auto slices = [&](int64_t a, int64_t b) {
      for (int64_t o = 0; o < outer; ++o) {
        for (int64_t i = 0; i < inner; ++i) {
          const int64_t at = o * size * inner + i;
          if (const int result = compare(data[at + a * inner], data[at + b * inner])) return result;
        }
      }
      return 0;
    };
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return slices(a, b) < 0; });
    for (size_t n = 0; n < order.size(); ++n) {
      if (n == 0 || slices(order[n - 1], order[n]) != 0) {
        found.first.push_back(order[n]);  // the sort is stable, so this is the first occurrence
        found.counts.push_back(0);
      }
      found.inverse[static_cast<size_t>(order[n])] = static_cast<int64_t>(found.first.size()) - 1;
      ++found.counts.back();
    }
  });
  if (attrs.flag("sorted")) return found;
  // In the order of the first occurrences.
  std::vector<int64_t> by_first(found.first.size()), place(found.first.size());
  std::iota(by_first.begin(), by_first.end(), 0);
  std::sort(by_first.begin(), by_first.end(), [&](int64_t a, int64_t b) {
    return found.first[static_cast<size_t>(a)] < found.first[static_cast<size_t>(b)];
  });
  Found moved = found;
  for (size_t n = 0; n < by_first.size(); ++n) {
    const auto from = static_cast<size_t>(by_first[n]);
    moved.first[n] = found.first[from];
    moved.counts[n] = found.counts[from];
    place[from] = static_cast<int64_t>(n);
  }
  for (int64_t& which : moved.inverse) which = place[static_cast<size_t>(which)];
  return moved;
}

// For `count` different slices.
void give_outputs(const Infer& question, int64_t count) {
  const Tensor x = question.input(0);
  const int axis = unique_axis(question.attrs(), x.dims());
  Dims dims = x.dims();
  dims[axis] = count;
  question.output(0, x.dtype(), dims);
  question.output(1, TN_I64, Dims{count});
  question.output(2, TN_I64, Dims{x.dim(axis)});
  question.output(3, TN_I64, Dims{count});
}

void unique_infer(const Infer& question) {
  const Tensor x = question.input(0);
  unique_axis(question.attrs(), x.dims());
  check_contents(x, "x");
  give_outputs(question, static_cast<int64_t>(find_unique(question.attrs(), x).first.size()));
}

void unique_bound(const Infer& question) {
  const Dims x = question.input(0).dims();
  give_outputs(question, x[unique_axis(question.attrs(), x)]);
}

void unique_reference(const Reference& call) {
  const Tensor x = call.input(0);
  const int axis = unique_axis(call.attrs(), x.dims());
  const Found found = find_unique(call.attrs(), x);
  int64_t strides[TN_MAX_RANK];
  row_strides(x.dims(), strides);
  if (call.wants(0)) {
    copy_reference(call, 0, [&](const int64_t* index, int64_t) {
      const auto n = static_cast<size_t>(index[axis]);
      if (n >= found.first.size()) return int64_t{-1};
      return offset_of(index, strides, x.rank()) + (found.first[n] - index[axis]) * strides[axis];
    });
  }
  const std::vector<int64_t>* lists[] = {&found.first, &found.inverse, &found.counts};
  for (int n = 1; n < 4; ++n) {
    if (!call.wants(n)) continue;
    const std::vector<int64_t>& list = *lists[n - 1];
    call.fill<int64_t>(n, [&](const int64_t*, int64_t linear) {
      return linear < static_cast<int64_t>(list.size()) ? list[static_cast<size_t>(linear)] : 0;
    });
  }
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.unique", "1", "Apache-2.0",
             tenon::op("tenon.unique/1")
                 .doc("The different slices along an axis (ONNX Unique-11, numpy's unique). NaNs are equal and above "
                      "all numbers")
                 .attr_i64("axis", "negative: counted from the end")
                 .default_value("0")
                 .attr_i64("sorted", "1: in ascending order, 0: in the order of their first occurrences")
                 .default_value("1")
                 .range("0|1")
                 .input("x", "numbers or bool")
                 .host_value()
                 .output("y", "each different slice once")
                 .output("indices", "i64: where each stands first in x")
                 .output("inverse", "i64: which of them each slice of x is")
                 .output("counts", "i64: how often each is there")
                 .infer(tenon::plugins::unique_infer)
                 .infer_bound(tenon::plugins::unique_bound)
                 .reference(tenon::plugins::unique_reference)
                 .tolerance(0, 0))
