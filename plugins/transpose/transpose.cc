// tenon.transpose/1: axes in another order, and Tenon's kernel for it.
#include <tenon/sdk/plugin.hpp>

#include "kernels/cpu/transpose.h"
#include "plugins/common/move.h"
#include "plugins/common/permutation.h"
#include "plugins/transpose/transpose_rules.h"

namespace tenon::plugins {
namespace {

void transpose_infer(const Infer& question) {
  const Tensor x = question.input(0);
  Dims dims;
  for (const int axis : permutation(question.attrs(), x.rank())) dims.push_back(x.dim(axis));
  question.output(0, x.dtype(), dims);
}

void transpose_reference(const Reference& call) {
  const Dims input = call.input(0).dims();
  const std::vector<int> perm = permutation(call.attrs(), input.rank);
  int64_t strides[TN_MAX_RANK];
  row_strides(input, strides);
  copy_reference(call, 0, [&](const int64_t* index, int64_t) {
    int64_t from = 0;
    for (size_t axis = 0; axis < perm.size(); ++axis) from += index[axis] * strides[perm[axis]];
    return from;
  });
}

// Nothing moves where the axes that are longer than 1 keep their order.
void transpose_placement(const Infer& inferred, Placements placements) {
  const Dims x = inferred.input(0).dims();
  int last = -1;
  for (const int axis : permutation(inferred.attrs(), x.rank)) {
    if (x[axis] == 1) continue;
    if (axis < last) throw Declined("elements move");
    last = axis;
  }
  placements.same_elements();
}

class TransposeKernel final : public IPlugin {
 public:
  void configure(const Config& config) override {
    perm_ = permutation(config.site().attrs(), config.site().dims(0).rank);
    bytes_ = move_bytes(config.combo().input(0).dtype);
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    cpu::transpose(inputs[0].dims.rank, inputs[0].dims.d, perm_.data(), bytes_, inputs[0].data, outputs[0].data,
                   to_parallel(exec));
  }

 private:
  std::vector<int> perm_;
  int bytes_ = 0;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.transpose", "1", "Apache-2.0",
             tenon::op("tenon.transpose/1")
                 .doc("Axes in another order. Axis i of y is axis perm[i] of x")
                 .attr_i64s("perm", "every axis once; default: reversed")
                 .input("x", "any dtype of 1, 2, 4 or 8 bytes")
                 .output("y")
                 .infer(tenon::plugins::transpose_infer)
                 .reference(tenon::plugins::transpose_reference)
                 .placement(tenon::plugins::transpose_placement)
                 .tolerance(0, 0),
             tenon::kernel<tenon::plugins::TransposeKernel>("tenon.transpose/1", "tenon.transpose.tiled")
                 .deterministic()
                 .more_combos([](const tenon::Site& site, tenon::Combos& combos) {
                   for (const int32_t dtype : tenon::plugins::moved_dtypes(site)) {
                     combos.add(tenon::ComboSpec({tenon::row(dtype)}, {tenon::row(dtype)}));
                   }
                 }),
             tenon::plugins::transpose_rules())
