// tenon.reshape/1: the same elements in another shape, and Tenon's kernel for it.
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/checked.h"
#include "plugins/common/move.h"

namespace tenon::plugins {
namespace {

// Elements of dims that an attribute gives: 0 where any of them is, however large the others are.
int64_t elements_of(const Dims& dims) {
  int64_t product = 1;
  for (int axis = 0; axis < dims.rank; ++axis) {
    if (dims[axis] == 0) return 0;
  }
  for (int axis = 0; axis < dims.rank; ++axis) product = checked_product(product, dims[axis], "attribute 'shape'");
  return product;
}

Dims reshaped(const Attrs& attrs, const Dims& input) {
  const List<int64_t> shape = attrs.i64s("shape");
  const bool allow_zero = attrs.flag("allow_zero");
  if (shape.size() > TN_MAX_RANK)
    throw Invalid(text("attribute 'shape': expected at most 8 dims, found ", shape.size()));
  Dims dims;
  int open = -1;
  bool zero = false;
  for (int axis = 0; axis < shape.size(); ++axis) {
    int64_t size = shape[axis];
    if (size == 0 && !allow_zero) {
      if (axis >= input.rank) {
        throw Invalid(text("attribute 'shape': the 0 at axis ", axis, " copies a dim that ", to_text(input), " lacks"));
      }
      size = input[axis];
    }
    zero = zero || (shape[axis] == 0 && allow_zero);
    if (size == -1) {
      if (open >= 0)
        throw Invalid(text("attribute 'shape': expected at most one -1, found them at ", open, " and ", axis));
      open = axis;
      size = 1;
    }
    if (size < 0) throw Invalid(text("attribute 'shape': expected sizes of at least -1, found ", size));
    dims.push_back(size);
  }
  if (open >= 0 && zero) throw Invalid("attribute 'shape': 0 with allow_zero and -1 cannot stand together");
  if (open >= 0) {
    const int64_t rest = elements_of(dims);
    if (rest == 0 || input.elements() % rest != 0) {
      throw Invalid(text("attribute 'shape': -1 cannot be worked out: ", input.elements(), " elements of ",
                         to_text(input), " do not divide into ", rest));
    }
    dims[open] = input.elements() / rest;
  }
  const int64_t found = elements_of(dims);
  if (found != input.elements()) {
    throw Invalid(text("attribute 'shape': expected ", input.elements(), " elements as in ", to_text(input), ", found ",
                       found, " in ", to_text(dims)));
  }
  return dims;
}

class ReshapeKernel final : public IPlugin {
 public:
  void configure(const Config& config) override { bytes_ = move_bytes(config.site().dtype(0)); }
  void enqueue(const Exec&, const TnTensor* inputs, const TnTensor* outputs) const override {
    if (inputs[0].data == outputs[0].data) return;
    const size_t size = static_cast<size_t>(Dims(inputs[0].dims).elements() * bytes_);
    if (size != 0) std::memcpy(outputs[0].data, inputs[0].data, size);
  }

 private:
  int bytes_ = 0;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.reshape", "1", "Apache-2.0",
             tenon::op("tenon.reshape/1")
                 .doc("The same elements in another shape (ONNX Reshape-14). 0 copies a dim, -1 is worked out")
                 .attr_i64s("shape", "the new dims")
                 .required()
                 .attr_i64("allow_zero", "1: a 0 means an empty dim")
                 .default_value("0")
                 .range("0|1")
                 .input("x", "any dtype of 1, 2, 4 or 8 bytes")
                 .output("y")
                 .infer([](const tenon::Infer& question) {
                   const tenon::Tensor x = question.input(0);
                   question.output(0, x.dtype(), tenon::plugins::reshaped(question.attrs(), x.dims()));
                 })
                 .reference([](const tenon::Reference& call) {
                   tenon::plugins::copy_reference(call, 0, [](const int64_t*, int64_t linear) { return linear; });
                 })
                 .tolerance(0, 0),
             tenon::kernel<tenon::plugins::ReshapeKernel>("tenon.reshape/1", "tenon.reshape.copy")
                 .deterministic()
                 .more_combos([](const tenon::Site& site, tenon::Combos& combos) {
                   const tenon::Port port = tenon::row(site.dtype(0));
                   combos.add(tenon::ComboSpec({port}, {port}).may_alias(0, 0));
                 }))
