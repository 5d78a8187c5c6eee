// tenon.reshape/1: the same elements in another shape, and Tenon's kernel for it.
#include <optional>
#include <tenon/sdk/plugin.hpp>
#include <vector>

#include "plugins/common/checked.h"
#include "plugins/common/integers.h"
#include "plugins/common/move.h"
#include "plugins/reshape/reshape.h"

namespace tenon::plugins {
namespace {

// Elements of dims that were asked for: 0 where any of them is, however large the others are.
int64_t elements_of(const Dims& dims) {
  int64_t product = 1;
  for (int axis = 0; axis < dims.rank; ++axis) {
    if (dims[axis] == 0) return 0;
  }
  for (int axis = 0; axis < dims.rank; ++axis) product = checked_product(product, dims[axis], "shape");
  return product;
}

// The dim of x that axis `axis` of the output copies; nothing if its size is given.
std::optional<int64_t> copied(const Attrs& attrs, int axis, int64_t size, const Dims& input) {
  int64_t from = size == 0 && !attrs.flag("allow_zero") ? axis : -1;
  if (attrs.has_i64s("copies")) from = attrs.i64s("copies")[axis];
  if (from == -1) return std::nullopt;
  if (from < 0 || from >= input.rank) {
    throw Invalid(text("shape: axis ", axis, " copies axis ", from, " that ", to_text(input), " lacks"));
  }
  return input[static_cast<int>(from)];
}

Dims reshaped(const Attrs& attrs, const std::vector<int64_t>& shape, const Dims& input) {
  if (shape.size() > TN_MAX_RANK) throw Invalid(text("shape: expected at most 8 dims, found ", shape.size()));
  if (attrs.has_i64s("copies") && static_cast<size_t>(attrs.i64s("copies").size()) != shape.size()) {
    throw Invalid(text("attribute 'copies': expected ", shape.size(), " axes, one for each dim, found ",
                       attrs.i64s("copies").size()));
  }
  Dims dims;
  int open = -1;
  bool zero = false;
  for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
    int64_t size = shape[static_cast<size_t>(axis)];
    const std::optional<int64_t> copy = copied(attrs, axis, size, input);
    zero = zero || (size == 0 && !copy);
    if (copy) size = *copy;
    if (size == -1) {
      if (open >= 0) throw Invalid(text("shape: expected at most one -1, found them at ", open, " and ", axis));
      open = axis;
      size = 1;
    }
    if (size < 0) throw Invalid(text("shape: expected sizes of at least -1, found ", size));
    dims.push_back(size);
  }
  if (open >= 0 && zero) throw Invalid("shape: 0 with allow_zero and -1 cannot stand together");
  if (open >= 0) {
    const int64_t rest = elements_of(dims);
    if (rest == 0 || input.elements() % rest != 0) {
      throw Invalid(text("shape: -1 cannot be worked out: ", input.elements(), " elements of ", to_text(input),
                         " do not divide into ", rest));
    }
    dims[open] = input.elements() / rest;
  }
  const int64_t found = elements_of(dims);
  if (found != input.elements()) {
    throw Invalid(text("shape: expected ", input.elements(), " elements as in ", to_text(input), ", found ", found,
                       " in ", to_text(dims)));
  }
  return dims;
}

void reshape_infer(const Infer& question) {
  const Tensor x = question.input(0);
  std::vector<int64_t> shape;
  if (question.has_input(1)) {
    if (question.attrs().has_i64s("shape")) throw Invalid("expected the shape as input or as attribute, found both");
    shape = shape_integers(question, 1, "shape");
  } else {
    const List<int64_t> attribute = question.attrs().i64s("shape");
    shape.assign(attribute.begin(), attribute.end());
  }
  question.output(0, x.dtype(), reshaped(question.attrs(), shape, x.dims()));
}

class ReshapeKernel final : public IPlugin {
 public:
  void configure(const Config& config) override { bytes_ = move_bytes(config.combo().input(0).dtype); }
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
                 .attr_i64s("shape", "the new dims, unless they are an input")
                 .attr_i64s("copies", "for each new dim the axis of x that it copies, or -1: its size is given")
                 .attr_i64("allow_zero", "1: a 0 means an empty dim")
                 .default_value("0")
                 .range("0|1")
                 .input("x", "any dtype of 1, 2, 4 or 8 bytes")
                 .input("shape", "i64 or i32: the new dims")
                 .optional()
                 .host_value()
                 .output("y")
                 .infer(tenon::plugins::reshape_infer)
                 .reference([](const tenon::Reference& call) {
                   tenon::plugins::copy_reference(call, 0, [](const int64_t*, int64_t linear) { return linear; });
                 })
                 .placement([](const tenon::Infer&, tenon::Placements placements) { placements.same_elements(); })
                 .tolerance(0, 0),
             tenon::kernel<tenon::plugins::ReshapeKernel>("tenon.reshape/1", "tenon.reshape.copy")
                 .deterministic()
                 .more_combos([](const tenon::Site& site, tenon::Combos& combos) {
                   for (const int32_t dtype : tenon::plugins::moved_dtypes(site)) {
                     const tenon::Port port = tenon::row(dtype);
                     combos.add(tenon::ComboSpec({port, tenon::any_constant()}, {port}).may_alias(0, 0));
                   }
                 }),
             tenon::plugins::reshape_rules())
