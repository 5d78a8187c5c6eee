// tenon.concat/1: tensors one after the other along an axis, and Tenon's kernel for it.
#include <algorithm>
#include <vector>

#include <tenon/sdk/plugin.hpp>

#include "plugins/common/checked.h"
#include "plugins/common/move.h"

namespace tenon::plugins {
namespace {

void concat_infer(const Infer& question) {
  const Tensor first = question.input(0);
  const int axis = normalize_axis(question.attrs().i64("axis"), first.rank());
  Dims dims = first.dims();
  for (int n = 1; n < question.num_inputs(); ++n) {
    const Tensor x = question.input(n);
    Dims expected = x.dims();
    if (x.rank() == first.rank()) expected = first.dims(), expected[axis] = x.dim(axis);
    if (x.rank() != first.rank() || x.dims() != expected || x.dtype() != first.dtype()) {
      throw Invalid(text("input ", n, ": expected ", dtype_name(first.dtype()), " of ", to_text(first.dims()),
                         " but for axis ", axis, ", found ", dtype_name(x.dtype()), " of ", to_text(x.dims())));
    }
    dims[axis] = checked_sum(dims[axis], x.dim(axis), "size of the output along the axis");
  }
  question.output(0, first.dtype(), dims);
}

void concat_reference(const Reference& call) {
  const Dims dims = call.output(0).dims();
  const int axis = normalize_axis(call.attrs().i64("axis"), dims.rank);
  const int64_t inner = dims.product(axis + 1, dims.rank);
  const int bytes = move_bytes(call.output(0).dtype());
  char* y = static_cast<char*>(call.output(0).data());
  for_each_in_box(dims, call.box(0), [&](const int64_t* index, int64_t linear, int64_t packed) {
    int64_t place = index[axis];
    int n = 0;
    while (place >= call.input(n).dim(axis)) place -= call.input(n++).dim(axis);
    const int64_t outer = linear / (dims[axis] * inner);
    const int64_t from = (outer * call.input(n).dim(axis) + place) * inner + linear % inner;
    std::memcpy(y + packed * bytes, static_cast<const char*>(call.input(n).data()) + from * bytes,
                static_cast<size_t>(bytes));
  });
}

void concat_placement(const Infer& inferred, Placements placements) {
  Dims start = inferred.output(0).dims();
  const int axis = normalize_axis(inferred.attrs().i64("axis"), start.rank);
  std::fill(start.d, start.d + start.rank, 0);
  for (int n = 0; n < inferred.num_inputs(); ++n) {
    placements.input_in_output(n, start);
    start[axis] += inferred.input(n).dim(axis);
  }
}

class ConcatKernel final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Site site = config.site();
    format_ = config.combo().output(0).format;
    num_inputs_ = site.num_inputs();
    const int axis = normalize_axis(site.attrs().i64("axis"), site.dims(0).rank);
    axis_ = physical_axis(format_, axis);
    bytes_ = move_bytes(config.combo().output(0).dtype);
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims to = physical_dims(format_, outputs[0].dims);
    const int64_t inner = to.product(axis_ + 1, to.rank);
    int64_t place = 0;
    for (int n = 0; n < num_inputs_; ++n) {
      const Dims from = physical_dims(format_, inputs[n].dims);
      const int64_t dims[] = {from.product(0, axis_), from[axis_] * inner};
      const int64_t input_strides[] = {from[axis_] * inner, 1};
      const int64_t output_strides[] = {to[axis_] * inner, 1};
      cpu::copy_strided(2, dims, input_strides, output_strides, bytes_, inputs[n].data,
                        static_cast<char*>(outputs[0].data) + place * inner * bytes_, to_parallel(exec));
      place += from[axis_];
    }
  }

 private:
  TnFormat format_{};
  int num_inputs_ = 0, axis_ = 0, bytes_ = 0;
};

// In a blocked format, channels can be joined only where every input but the last ends with a full block.
bool fits_blocks(const Site& site, int axis, int block) {
  if (axis != 1) return true;
  for (int n = 0; n + 1 < site.num_inputs(); ++n) {
    if (site.dims(n)[1] % block != 0) return false;
  }
  return true;
}

void concat_combos(const Site& site, Combos& combos) {
  const int axis = normalize_axis(site.attrs().i64("axis"), site.dims(0).rank);
  for (const int32_t dtype : moved_dtypes(site)) {
    for (const auto make : image_ports(dtype)) {
      const Port port = make(dtype);
      if (!is_row(port.format) && (site.dims(0).rank != 4 || site.dtype(0) != TN_F32)) continue;
      const int block = channel_block(port.format);
      if (block != 0 && !fits_blocks(site, axis, block)) continue;
      combos.add(ComboSpec(std::vector<Port>(static_cast<size_t>(site.num_inputs()), port), std::vector<Port>{port}));
    }
  }
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.concat", "1", "Apache-2.0",
             tenon::op("tenon.concat/1")
                 .doc("Tensors one after the other along an axis")
                 .attr_i64("axis", "the axis that grows; negative: counted from the end")
                 .required()
                 .input("x", "equal but for the axis")
                 .variadic()
                 .output("y")
                 .infer(tenon::plugins::concat_infer)
                 .reference(tenon::plugins::concat_reference)
                 .placement(tenon::plugins::concat_placement)
                 .tolerance(0, 0),
             tenon::kernel<tenon::plugins::ConcatKernel>("tenon.concat/1", "tenon.concat.copy")
                 .deterministic()
                 .more_combos(tenon::plugins::concat_combos))
