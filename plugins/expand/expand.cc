// tenon.expand/1: repeats along axes of size 1, and Tenon's kernel for it.
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/checked.h"
#include "plugins/common/integers.h"
#include "plugins/common/move.h"

namespace tenon::plugins {
namespace {

void expand_infer(const Infer& question) {
  Dims shape;
  for (const int64_t size : shape_integers(question, 1, "shape")) {
    if (size < 0) throw Invalid(text("input 'shape': expected sizes of at least 0, found ", size));
    shape.push_back(size);
  }
  const Dims dims = broadcast_dims(question.input(0).dims(), shape);
  int64_t elements = 1;
  for (const int64_t size : dims) elements = checked_product(elements, size, "elements of the output");
  question.output(0, question.input(0).dtype(), dims);
}

class ExpandKernel final : public IPlugin {
 public:
  void configure(const Config& config) override { bytes_ = move_bytes(config.site().dtype(0)); }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const TnDims& dims = outputs[0].dims;
    int64_t from[TN_MAX_RANK], to[TN_MAX_RANK];
    broadcast_strides(inputs[0].dims, dims, from);
    row_strides(dims, to);
    cpu::copy_strided(dims.rank, dims.d, from, to, bytes_, inputs[0].data, outputs[0].data, to_parallel(exec));
  }

 private:
  int bytes_ = 0;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN(
    "tenon.expand", "1", "Apache-2.0",
    tenon::op("tenon.expand/1")
        .doc("x broadcast with a tensor of the given shape (ONNX Expand-13): an axis of size 1 is repeated, and "
             "a 1 in `shape` keeps the axis of x")
        .input("x", "any dtype of 1, 2, 4 or 8 bytes")
        .input("shape", "i64 or i32, rank 1")
        .host_value()
        .output("y")
        .infer(tenon::plugins::expand_infer)
        .reference([](const tenon::Reference& call) {
          int64_t strides[TN_MAX_RANK];
          const tenon::Dims dims = call.output(0).dims();
          tenon::broadcast_strides(call.input(0).dims(), dims, strides);
          tenon::plugins::copy_reference(
              call, 0, [&](const int64_t* index, int64_t) { return tenon::offset_of(index, strides, dims.rank); });
        })
        .tolerance(0, 0),
    tenon::kernel<tenon::plugins::ExpandKernel>("tenon.expand/1", "tenon.expand.copy")
        .deterministic()
        .more_combos([](const tenon::Site& site, tenon::Combos& combos) {
          tenon::plugins::move_bytes(site.dtype(0));
          const tenon::Port port = tenon::row(site.dtype(0));
          combos.add(tenon::ComboSpec({port, tenon::any_constant()}, {port}));
        }))
