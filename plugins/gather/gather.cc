// tenon.gather/1, tenon.gather_nd/1 and tenon.gather_elements/1: elements from places that indices name, and Tenon's
// kernels for them.
#include "kernels/cpu/gather.h"

#include <tenon/sdk/plugin.hpp>

#include "plugins/common/checked.h"
#include "plugins/common/integers.h"
#include "plugins/common/move.h"
#include "plugins/gather/gather.h"

namespace tenon::plugins {
namespace {

void check_elements(const Dims& dims) {
  int64_t elements = 1;
  for (const int64_t size : dims) elements = size == 0 ? 0 : checked_product(elements, size, "elements of the output");
}

// --- gather ---

void gather_infer(const Infer& question) {
  const Dims x = question.input(0).dims();
  const Tensor indices = question.input(1);
  const int axis = gather_axis(question.attrs(), x);
  check_indices(indices, x[axis]);
  Dims dims;
  for (int n = 0; n < axis; ++n) dims.push_back(x[n]);
  for (const int64_t size : indices.dims()) dims.push_back(size);
  for (int n = axis + 1; n < x.rank; ++n) dims.push_back(x[n]);
  check_elements(dims);
  question.output(0, question.input(0).dtype(), dims);
}

void gather_reference(const Reference& call) {
  const Dims x = call.input(0).dims();
  const int axis = gather_axis(call.attrs(), x);
  const int64_t inner = x.product(axis + 1, x.rank), count = call.input(1).elements();
  copy_reference(call, 0, [&](const int64_t*, int64_t linear) {
    const int64_t at = clamp_index(call.input(1).integer(linear / inner % count), x[axis]);
    return (linear / (inner * count) * x[axis] + at) * inner + linear % inner;
  });
}

class GatherKernel final : public IPlugin {
 public:
  void configure(const Config& config) override {
    axis_ = gather_axis(config.site().attrs(), config.site().dims(0));
    bytes_ = move_bytes(config.site().dtype(0));
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    cpu::gather(gather_shape(axis_, inputs[0].dims, inputs[1].dims), to_indices(inputs[1]), bytes_, inputs[0].data,
                outputs[0].data, to_parallel(exec));
  }

 private:
  int axis_ = 0, bytes_ = 0;
};

// --- gather_nd ---

void gather_nd_infer(const Infer& question) {
  const Tensor x = question.input(0), indices = question.input(1);
  const GatherNd gather(question.attrs(), x.dims(), indices.dims());
  check_elements(gather.output);
  check_index_tuples(indices, gather.shape.depth, gather.shape.sizes);
  question.output(0, x.dtype(), gather.output);
}

void gather_nd_reference(const Reference& call) {
  const Tensor indices = call.input(1);
  const cpu::GatherShape shape = GatherNd(call.attrs(), call.input(0).dims(), indices.dims()).shape;
  copy_reference(call, 0, [&](const int64_t*, int64_t linear) {
    const int64_t tuple = linear / shape.inner;
    int64_t at = tuple / shape.tuples;
    for (int d = 0; d < shape.depth; ++d) {
      at = at * shape.sizes[d] + clamp_index(indices.integer(tuple * shape.depth + d), shape.sizes[d]);
    }
    return at * shape.inner + linear % shape.inner;
  });
}

class GatherNdKernel final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Site site = config.site();
    shape_ = GatherNd(site.attrs(), site.dims(0), site.dims(1)).shape;
    bytes_ = move_bytes(site.dtype(0));
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    cpu::gather(shape_, to_indices(inputs[1]), bytes_, inputs[0].data, outputs[0].data, to_parallel(exec));
  }

 private:
  cpu::GatherShape shape_;
  int bytes_ = 0;
};

// --- gather_elements ---

void gather_elements_infer(const Infer& question) {
  const Dims x = question.input(0).dims(), indices = question.input(1).dims();
  const int axis = gather_axis(question.attrs(), x);
  check_element_indices(x, indices, axis);
  check_indices(question.input(1), x[axis]);
  question.output(0, question.input(0).dtype(), indices);
}

void gather_elements_reference(const Reference& call) {
  const Dims x = call.input(0).dims();
  const int axis = gather_axis(call.attrs(), x);
  int64_t strides[TN_MAX_RANK];
  row_strides(x, strides);
  copy_reference(call, 0, [&](const int64_t* index, int64_t linear) {
    const int64_t at = clamp_index(call.input(1).integer(linear), x[axis]);
    return offset_of(index, strides, x.rank) + (at - index[axis]) * strides[axis];
  });
}

class GatherElementsKernel final : public IPlugin {
 public:
  void configure(const Config& config) override {
    axis_ = gather_axis(config.site().attrs(), config.site().dims(0));
    bytes_ = move_bytes(config.site().dtype(0));
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    cpu::gather_elements(inputs[0].dims.rank, axis_, inputs[0].dims.d, inputs[1].dims.d, to_indices(inputs[1]), bytes_,
                         inputs[0].data, outputs[0].data, to_parallel(exec));
  }

 private:
  int axis_ = 0, bytes_ = 0;
};

constexpr char kIndexDoc[] =
    "i64 or i32; negative ones count from the end. Out of range: an error where the contents are known when the "
    "network is built, else the nearest valid position";

Op gather_op() {
  return op("tenon.gather/1")
      .doc("y = x with the positions `indices` of an axis (ONNX Gather-13, numpy's take)")
      .attr_i64("axis", "negative: counted from the end")
      .default_value("0")
      .input("x", "any dtype of 1, 2, 4 or 8 bytes")
      .input("indices", kIndexDoc)
      .output("y", "x's dims with those of `indices` in place of the axis")
      .infer(gather_infer)
      .reference(gather_reference)
      .tolerance(0, 0);
}

Op gather_nd_op() {
  return op("tenon.gather_nd/1")
      .doc("The slices of x that tuples of indices name (ONNX GatherND-13)")
      .attr_i64("batch_dims", "leading axes that x and `indices` have in common")
      .default_value("0")
      .input("x", "any dtype of 1, 2, 4 or 8 bytes")
      .input("indices", std::string(kIndexDoc) + ". The last axis is the tuple")
      .output("y")
      .infer(gather_nd_infer)
      .reference(gather_nd_reference)
      .tolerance(0, 0);
}

Op gather_elements_op() {
  return op("tenon.gather_elements/1")
      .doc("y[i][j] = x[indices[i][j]][j] for axis 0 of rank 2, and so on (ONNX GatherElements-13)")
      .attr_i64("axis", "negative: counted from the end")
      .default_value("0")
      .input("x", "any dtype of 1, 2, 4 or 8 bytes")
      .input("indices", kIndexDoc)
      .output("y", "the dims of `indices`")
      .infer(gather_elements_infer)
      .reference(gather_elements_reference)
      .tolerance(0, 0);
}

template <class Instance>
Kernel gather_kernel(const std::string& name) {
  return kernel<Instance>("tenon." + name + "/1", "tenon." + name + ".copy")
      .deterministic()
      .more_combos(add_gather_combos);
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.gather", "1", "Apache-2.0", tenon::plugins::gather_op(), tenon::plugins::gather_nd_op(),
             tenon::plugins::gather_elements_op(),
             tenon::plugins::gather_kernel<tenon::plugins::GatherKernel>("gather"),
             tenon::plugins::gather_kernel<tenon::plugins::GatherNdKernel>("gather_nd"),
             tenon::plugins::gather_kernel<tenon::plugins::GatherElementsKernel>("gather_elements"))
