// tenon.where/1: elements of one tensor or another.
#include <cstring>
#include <tenon/sdk/plugin.hpp>

#include "kernels/cpu/elementwise.h"
#include "plugins/common/booleans.h"
#include "plugins/common/move.h"

namespace tenon::plugins {
namespace {

void where_infer(const Infer& question) {
  const Tensor condition = question.input(0);
  const Tensor a = question.input(1);
  const Tensor b = question.input(2);
  if (condition.dtype() != TN_BOOL) {
    throw Invalid(text("input condition: expected bool, found ", dtype_name(condition.dtype())));
  }
  if (a.dtype() != b.dtype()) {
    throw Invalid(
        text("input b: expected dtype ", dtype_name(a.dtype()), " as of input a, found ", dtype_name(b.dtype())));
  }
  question.output(0, a.dtype(), broadcast_dims(broadcast_dims(condition.dims(), a.dims()), b.dims()));
}

void where_reference(const Reference& call) {
  const Dims dims = call.output(0).dims();
  int64_t strides[3][TN_MAX_RANK] = {};
  for (int n = 0; n < 3; ++n) broadcast_strides(call.input(n).dims(), dims, strides[n]);
  const uint8_t* condition = bool_data(call.input(0));
  const int bytes = move_bytes(call.output(0).dtype());
  char* y = static_cast<char*>(call.output(0).data());
  for_each_in_box(dims, call.box(0), [&](const int64_t* index, int64_t, int64_t packed) {
    const int from = condition[offset_of(index, strides[0], dims.rank)] != 0 ? 1 : 2;
    const char* x = static_cast<const char*>(call.input(from).data());
    std::memcpy(y + packed * bytes, x + offset_of(index, strides[from], dims.rank) * bytes, static_cast<size_t>(bytes));
  });
}

class WhereKernel final : public IPlugin {
 public:
  void configure(const Config& config) override { bytes_ = move_bytes(config.site().dtype(1)); }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const int ranks[] = {inputs[0].dims.rank, inputs[1].dims.rank, inputs[2].dims.rank};
    const int64_t* const dims[] = {inputs[0].dims.d, inputs[1].dims.d, inputs[2].dims.d};
    cpu::Broadcast<3> shape;
    if (!cpu::broadcast_shape(ranks, dims, &shape)) {
      throw Invalid(text("shapes ", to_text(inputs[0].dims), ", ", to_text(inputs[1].dims), " and ",
                         to_text(inputs[2].dims), " do not broadcast"));
    }
    cpu::where(bytes_, shape, static_cast<const uint8_t*>(inputs[0].data), inputs[1].data, inputs[2].data,
               outputs[0].data, to_parallel(exec), cpu::detect_isa());
  }

 private:
  int bytes_ = 0;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.where", "1", "Apache-2.0",
             tenon::op("tenon.where/1")
                 .doc("y = condition ? a : b with numpy's broadcasting")
                 .input("condition", "any shape, bool")
                 .input("a", "any dtype of 1, 2, 4 or 8 bytes")
                 .input("b", "of a's dtype")
                 .output("y", "the shape that all broadcast to, a's dtype")
                 .elementwise()
                 .infer(tenon::plugins::where_infer)
                 .reference(tenon::plugins::where_reference)
                 .tolerance(0, 0),
             tenon::kernel<tenon::plugins::WhereKernel>("tenon.where/1", "tenon.where.vector")
                 .deterministic()
                 .more_combos([](const tenon::Site& site, tenon::Combos& combos) {
                   const int32_t dtype = site.dtype(1);
                   tenon::plugins::move_bytes(dtype);
                   combos.add({{tenon::row(TN_BOOL), tenon::row(dtype), tenon::row(dtype)}, {tenon::row(dtype)}});
                 }))
