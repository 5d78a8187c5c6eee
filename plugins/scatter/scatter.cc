// tenon.scatter_nd/1 and tenon.scatter_elements/1: writes to places that indices name, and Tenon's kernels for them.
#include "kernels/cpu/scatter.h"

#include <memory>
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/integers.h"
#include "plugins/scatter/scatter.h"

namespace tenon::plugins {
namespace {

cpu::Reduction reduction_of(const Attrs& attrs) {
  const std::string name = attrs.str("reduction");
  if (name == "none") return cpu::Reduction::kNone;
  if (name == "add") return cpu::Reduction::kAdd;
  if (name == "mul") return cpu::Reduction::kMul;
  return name == "min" ? cpu::Reduction::kMin : cpu::Reduction::kMax;
}

// What both ops ask of their inputs.
void check_inputs(const Infer& question, const Dims& expected_updates) {
  const Tensor x = question.input(0), updates = question.input(2);
  if (updates.dtype() != x.dtype() || updates.dims() != expected_updates) {
    throw Invalid(text("input 'updates': expected ", dtype_name(x.dtype()), to_text(expected_updates), ", found ",
                       dtype_name(updates.dtype()), to_text(updates.dims())));
  }
  const bool number = x.dtype() != TN_BOOL;
  if (!number && reduction_of(question.attrs()) != cpu::Reduction::kNone) {
    throw Invalid(text("attribute 'reduction': expected none for ", dtype_name(x.dtype()), ", found ",
                       question.attrs().str("reduction")));
  }
  question.output(0, x.dtype(), x.dims());
}

// The type that the elements of a reduction have; without one bits are moved.
template <class Body>
void visit_scattered(int32_t dtype, cpu::Reduction reduction, Body&& body) {
  if (reduction != cpu::Reduction::kNone) return visit_number(dtype, body);
  switch (move_bytes(dtype)) {
    case 1:
      return body(uint8_t());
    case 2:
      return body(uint16_t());
    case 4:
      return body(uint32_t());
    default:
      return body(uint64_t());
  }
}

template <class T>
const T* data_of(const Tensor& tensor) {
  return static_cast<const T*>(tensor.data());
}

// --- scatter_nd ---

void scatter_nd_infer(const Infer& question) {
  Dims updates;
  const cpu::GatherShape shape = nd_shape(question.input(0).dims(), question.input(1).dims(), &updates);
  check_index_tuples(question.input(1), shape.depth, shape.sizes);
  check_inputs(question, updates);
}

void scatter_nd_reference(const Reference& call) {
  const Tensor indices = call.input(1);
  Dims dims;
  const cpu::GatherShape shape = nd_shape(call.input(0).dims(), indices.dims(), &dims);
  const cpu::Reduction reduction = reduction_of(call.attrs());
  visit_scattered(call.output(0).dtype(), reduction, [&](auto zero) {
    using T = decltype(zero);
    const T* x = data_of<T>(call.input(0));
    const T* updates = data_of<T>(call.input(2));
    std::vector<T> y(x, x + call.input(0).elements());
    for (int64_t t = 0; t < shape.tuples; ++t) {
      int64_t at = 0;
      for (int d = 0; d < shape.depth; ++d) {
        at = at * shape.sizes[d] + clamp_index(indices.integer(t * shape.depth + d), shape.sizes[d]);
      }
      for (int64_t i = 0; i < shape.inner; ++i) {
        T& old = y[static_cast<size_t>(at * shape.inner + i)];
        old = cpu::reduce(reduction, old, updates[t * shape.inner + i]);
      }
    }
    copy_box(call, y);
  });
}

class ScatterNdKernel final : public IPlugin {
 public:
  void configure(const Config& config) override {
    Dims updates;
    shape_ = nd_shape(config.site().dims(0), config.site().dims(1), &updates);
    reduction_ = reduction_of(config.site().attrs());
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    copy_whole(exec, inputs[0], outputs[0]);
    visit_scattered(outputs[0].dtype, reduction_, [&](auto zero) {
      using T = decltype(zero);
      cpu::scatter(shape_, reduction_, {inputs[1].data, inputs[1].dtype == TN_I64},
                   static_cast<const T*>(inputs[2].data), static_cast<T*>(outputs[0].data), to_parallel(exec));
    });
  }

 private:
  cpu::GatherShape shape_;
  cpu::Reduction reduction_ = cpu::Reduction::kNone;
};

// --- scatter_elements ---

void scatter_elements_infer(const Infer& question) {
  const Dims x = question.input(0).dims(), indices = question.input(1).dims();
  const int axis = normalize_axis(question.attrs().i64("axis"), x.rank);
  check_element_indices(x, indices, axis);
  check_indices(question.input(1), x[axis]);
  check_inputs(question, indices);
}

void scatter_elements_reference(const Reference& call) {
  const Dims x = call.input(0).dims();
  const Tensor indices = call.input(1);
  const int axis = normalize_axis(call.attrs().i64("axis"), x.rank);
  const cpu::Reduction reduction = reduction_of(call.attrs());
  int64_t strides[TN_MAX_RANK];
  row_strides(x, strides);
  visit_scattered(call.output(0).dtype(), reduction, [&](auto zero) {
    using T = decltype(zero);
    std::vector<T> y(data_of<T>(call.input(0)), data_of<T>(call.input(0)) + call.input(0).elements());
    TnBox all{};
    std::copy(indices.raw().dims.d, indices.raw().dims.d + x.rank, all.size);
    for_each_in_box(indices.dims(), all, [&](const int64_t* index, int64_t linear, int64_t) {
      const int64_t at = clamp_index(indices.integer(linear), x[axis]);
      T& old = y[static_cast<size_t>(offset_of(index, strides, x.rank) + (at - index[axis]) * strides[axis])];
      old = cpu::reduce(reduction, old, data_of<T>(call.input(2))[linear]);
    });
    copy_box(call, y);
  });
}

class ScatterElementsKernel final : public IPlugin {
 public:
  void configure(const Config& config) override {
    axis_ = normalize_axis(config.site().attrs().i64("axis"), config.site().dims(0).rank);
    reduction_ = reduction_of(config.site().attrs());
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    copy_whole(exec, inputs[0], outputs[0]);
    visit_scattered(outputs[0].dtype, reduction_, [&](auto zero) {
      using T = decltype(zero);
      cpu::scatter_elements(outputs[0].dims.rank, axis_, outputs[0].dims.d, inputs[1].dims.d, reduction_,
                            {inputs[1].data, inputs[1].dtype == TN_I64}, static_cast<const T*>(inputs[2].data),
                            static_cast<T*>(outputs[0].data), to_parallel(exec));
    });
  }

 private:
  int axis_ = 0;
  cpu::Reduction reduction_ = cpu::Reduction::kNone;
};

constexpr char kIndexDoc[] =
    "i64 or i32; negative ones count from the end. Out of range: an error where the contents are known when the "
    "network is built, else the nearest valid position";
constexpr char kReductionDoc[] =
    "what an update does to the value that is there; updates of one place take effect in their order";

void add_combos(const Site& site, Combos& combos) {
  move_bytes(site.dtype(0));
  if (reduction_of(site.attrs()) != cpu::Reduction::kNone) {
    try {
      visit_number(site.dtype(0), [](auto) {});
    } catch (const Invalid& invalid) {
      throw Declined(invalid.what());
    }
  }
  const Port port = row(site.dtype(0));
  combos.add(ComboSpec({port, row(site.dtype(1)), port}, {port}).may_alias(0, 0));
}

Op scatter_nd_op() {
  return op("tenon.scatter_nd/1")
      .doc(
          "x with the slices that tuples of indices name replaced by updates, or combined with them (ONNX "
          "ScatterND-18)")
      .attr_str("reduction", kReductionDoc)
      .default_value("none")
      .range("none|add|mul|min|max")
      .input("x", "any dtype of 1, 2, 4 or 8 bytes; numbers where there is a reduction")
      .input("indices", std::string(kIndexDoc) + ". The last axis is the tuple")
      .input("updates", "one slice for each tuple")
      .output("y")
      .infer(scatter_nd_infer)
      .reference(scatter_nd_reference)
      .tolerance(0, 0);
}

Op scatter_elements_op() {
  return op("tenon.scatter_elements/1")
      .doc("y = x; y[indices[i][j]][j] = updates[i][j] for axis 0 of rank 2, and so on (ONNX ScatterElements-18)")
      .attr_i64("axis", "negative: counted from the end")
      .default_value("0")
      .attr_str("reduction", kReductionDoc)
      .default_value("none")
      .range("none|add|mul|min|max")
      .input("x", "any dtype of 1, 2, 4 or 8 bytes; numbers where there is a reduction")
      .input("indices", kIndexDoc)
      .input("updates", "the dims of `indices`")
      .output("y")
      .infer(scatter_elements_infer)
      .reference(scatter_elements_reference)
      .tolerance(0, 0);
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.scatter", "1", "Apache-2.0", tenon::plugins::scatter_nd_op(), tenon::plugins::scatter_elements_op(),
             tenon::plugins::tensor_scatter_definitions(),
             tenon::kernel<tenon::plugins::ScatterNdKernel>("tenon.scatter_nd/1", "tenon.scatter_nd.ordered")
                 .deterministic()
                 .more_combos(tenon::plugins::add_combos),
             tenon::kernel<tenon::plugins::ScatterElementsKernel>("tenon.scatter_elements/1",
                                                                  "tenon.scatter_elements.ordered")
                 .deterministic()
                 .more_combos(tenon::plugins::add_combos))
