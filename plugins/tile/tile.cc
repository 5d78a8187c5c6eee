// tenon.tile/1: a tensor repeated along its axes, and Tenon's kernel for it.
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/checked.h"
#include "plugins/common/integers.h"
#include "plugins/common/move.h"
#include "plugins/tile/tile.h"

namespace tenon::plugins {
namespace {

void tile_infer(const Infer& question) {
  const Tensor x = question.input(0);
  const std::vector<int64_t> repeats = shape_integers(question, 1, "repeats");
  if (static_cast<int>(repeats.size()) != x.rank()) {
    throw Invalid(text("input 'repeats': expected ", x.rank(), " numbers, one for each axis of ", to_text(x.dims()),
                       ", found ", repeats.size()));
  }
  Dims dims;
  int64_t elements = 1;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const int64_t repeat = repeats[static_cast<size_t>(axis)];
    if (repeat < 0) throw Invalid(text("input 'repeats': expected numbers of at least 0, found ", repeat));
    dims.push_back(checked_product(x.dim(axis), repeat, "size of the output"));
    elements = checked_product(elements, dims[axis], "elements of the output");
  }
  question.output(0, x.dtype(), dims);
}

class TileKernel final : public IPlugin {
 public:
  void configure(const Config& config) override { bytes_ = move_bytes(config.site().dtype(0)); }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims y = outputs[0].dims;
    if (y.elements() == 0) return;
    const TileCopy copy(inputs[0].dims, y);
    static_assert(TileCopy::kMaxRank <= cpu::kCopyMaxRank);
    cpu::copy_strided(copy.rank, copy.dims, copy.from, copy.to, bytes_, inputs[0].data, outputs[0].data,
                      to_parallel(exec));
  }

 private:
  int bytes_ = 0;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.tile", "1", "Apache-2.0",
             tenon::op("tenon.tile/1")
                 .doc("x repeats[axis] times along each axis (ONNX Tile-13, numpy's tile)")
                 .input("x", "any dtype of 1, 2, 4 or 8 bytes")
                 .input("repeats", "i64 or i32, one number of at least 0 for each axis")
                 .host_value()
                 .output("y")
                 .infer(tenon::plugins::tile_infer)
                 .reference([](const tenon::Reference& call) {
                   const tenon::Dims x = call.input(0).dims();
                   int64_t strides[TN_MAX_RANK];
                   tenon::row_strides(x, strides);
                   tenon::plugins::copy_reference(call, 0, [&](const int64_t* index, int64_t) {
                     int64_t from = 0;
                     for (int axis = 0; axis < x.rank; ++axis) from += index[axis] % x[axis] * strides[axis];
                     return from;
                   });
                 })
                 .tolerance(0, 0),
             tenon::kernel<tenon::plugins::TileKernel>("tenon.tile/1", "tenon.tile.copy")
                 .deterministic()
                 .more_combos([](const tenon::Site& site, tenon::Combos& combos) {
                   tenon::plugins::move_bytes(site.dtype(0));
                   const tenon::Port port = tenon::row(site.dtype(0));
                   combos.add(tenon::ComboSpec({port, tenon::any_constant()}, {port}));
                 }))
