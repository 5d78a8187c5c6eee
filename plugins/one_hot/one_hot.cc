// tenon.one_hot/1: numbers as vectors with one entry that is on, and Tenon's kernel for it.
#include <tenon/sdk/plugin.hpp>

#include "kernels/cpu/internal/move.h"
#include "plugins/common/checked.h"
#include "plugins/common/integers.h"
#include "plugins/common/move.h"

namespace tenon::plugins {
namespace {

int one_hot_axis(const Attrs& attrs, const Dims& indices) {
  return normalize_axis(attrs.i64("axis"), indices.rank + 1);
}

void one_hot_infer(const Infer& question) {
  const Dims indices = question.input(0).dims();
  const Tensor values = question.input(2);
  check_index_dtype(question.input(0));
  const std::vector<int64_t> depth = shape_integers(question, 1, "depth");
  if (depth.size() != 1 || depth[0] < 0) {
    throw Invalid(text("input 'depth': expected one number of at least 0, found ",
                       depth.size() == 1 ? text(depth[0]) : text(depth.size(), " numbers")));
  }
  if (values.dims() != Dims{2}) {
    throw Invalid(text("input 'values': expected the two for off and on, found dims ", to_text(values.dims())));
  }
  const int axis = one_hot_axis(question.attrs(), indices);
  Dims dims;
  for (int n = 0; n < axis; ++n) dims.push_back(indices[n]);
  dims.push_back(depth[0]);
  for (int n = axis; n < indices.rank; ++n) dims.push_back(indices[n]);
  int64_t elements = 1;
  for (const int64_t size : dims) elements = size == 0 ? 0 : checked_product(elements, size, "elements of the output");
  question.output(0, values.dtype(), dims);
}

// Which entry an index turns on; -1 for none.
int64_t hot(int64_t index, int64_t depth) {
  return index < -depth || index >= depth ? -1 : (index < 0 ? index + depth : index);
}

void one_hot_reference(const Reference& call) {
  const Dims dims = call.output(0).dims();
  const Tensor indices = call.input(0);
  const int axis = one_hot_axis(call.attrs(), indices.dims());
  const int64_t inner = dims.product(axis + 1, dims.rank), depth = dims[axis];
  copy_reference(call, 2, [&](const int64_t* index, int64_t linear) {
    const int64_t from = linear / (depth * inner) * inner + linear % inner;
    return int64_t{hot(indices.integer(from), depth) == index[axis] ? 1 : 0};
  });
}

class OneHotKernel final : public IPlugin {
 public:
  void configure(const Config& config) override {
    axis_ = one_hot_axis(config.site().attrs(), config.site().dims(0));
    bytes_ = move_bytes(config.site().output_dtype(0));
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims dims = outputs[0].dims;
    const int64_t inner = dims.product(axis_ + 1, dims.rank), depth = dims[axis_];
    const Tensor indices(inputs[0]);
    cpu::with_element(bytes_, [&](auto element) {
      using T = decltype(element);
      const T* values = static_cast<const T*>(inputs[2].data);
      T* y = static_cast<T*>(outputs[0].data);
      const int64_t block = std::max<int64_t>(depth * inner, 1);
      cpu::parallel_ranges(to_parallel(exec), dims.product(0, axis_), std::max<int64_t>(16384 / block, 1),
                           [&](int64_t begin, int64_t end) {
                             std::fill(y + begin * depth * inner, y + end * depth * inner, values[0]);
                             for (int64_t n = begin * inner; n < end * inner; ++n) {
                               const int64_t at = hot(indices.integer(n), depth);
                               if (at >= 0) y[(n / inner * depth + at) * inner + n % inner] = values[1];
                             }
                           });
    });
  }

 private:
  int axis_ = 0, bytes_ = 0;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.one_hot", "1", "Apache-2.0",
             tenon::op("tenon.one_hot/1")
                 .doc("values[1] where the position on a new axis is the index, else values[0] (ONNX OneHot-11). An "
                      "index outside of -depth to depth - 1 turns nothing on")
                 .attr_i64("axis", "where the new axis stands in the output; negative: counted from the end")
                 .default_value("-1")
                 .input("indices", "i64 or i32; negative ones count from the end")
                 .input("depth", "i64 or i32, one number: the size of the new axis")
                 .host_value()
                 .input("values", "off and on: two elements of any dtype of 1, 2, 4 or 8 bytes")
                 .output("y", "the dtype of `values`")
                 .infer(tenon::plugins::one_hot_infer)
                 .reference(tenon::plugins::one_hot_reference)
                 .tolerance(0, 0),
             tenon::kernel<tenon::plugins::OneHotKernel>("tenon.one_hot/1", "tenon.one_hot.fill")
                 .deterministic()
                 .more_combos([](const tenon::Site& site, tenon::Combos& combos) {
                   tenon::plugins::move_bytes(site.dtype(2));
                   const tenon::Port port = tenon::row(site.dtype(2));
                   combos.add(tenon::ComboSpec({tenon::row(site.dtype(0)), tenon::any_constant(), port}, {port}));
                 }))
