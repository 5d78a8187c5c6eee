// tenon.reverse_sequence/1: sequences of different lengths in reverse, and Tenon's kernel for it.
#include <algorithm>
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/integers.h"
#include "plugins/common/move.h"

namespace tenon::plugins {
namespace {

struct Sequences {
  int batch_axis;
  int time_axis;
};

// One of the axes is 0, the other 1 (ONNX ReverseSequence-10).
Sequences sequences(const Attrs& attrs, const Dims& x) {
  const int64_t batch = attrs.i64("batch_axis"), time = attrs.i64("time_axis");
  if (batch == time)
    throw Invalid(text("attributes 'batch_axis' and 'time_axis': expected 0 and 1, found ", batch, " twice"));
  if (x.rank < 2) throw Invalid(text("input 'x': expected rank 2 or more, found ", to_text(x)));
  return {static_cast<int>(batch), static_cast<int>(time)};
}

// Which position of a sequence stands at `at`.
int64_t mirrored(int64_t at, int64_t length) { return at < length ? length - 1 - at : at; }
int64_t length_of(const Tensor& lengths, int64_t sample, int64_t most) {
  return std::clamp<int64_t>(lengths.integer(sample), 0, most);
}

void reverse_sequence_infer(const Infer& question) {
  const Tensor x = question.input(0), lengths = question.input(1);
  const Sequences axes = sequences(question.attrs(), x.dims());
  check_index_dtype(lengths, "lengths");
  if (lengths.dims() != Dims{x.dim(axes.batch_axis)}) {
    throw Invalid(
        text("input 'lengths': expected dims [", x.dim(axes.batch_axis), "], found ", to_text(lengths.dims())));
  }
  for (int64_t n = 0; lengths.has_data() && n < lengths.elements(); ++n) {
    const int64_t length = lengths.integer(n), most = x.dim(axes.time_axis);
    if (length < 0 || length > most) throw Invalid(text("input 'lengths': expected 0 to ", most, ", found ", length));
  }
  question.output(0, x.dtype(), x.dims());
}

void reverse_sequence_reference(const Reference& call) {
  const Dims x = call.input(0).dims();
  const Sequences axes = sequences(call.attrs(), x);
  int64_t strides[TN_MAX_RANK];
  row_strides(x, strides);
  copy_reference(call, 0, [&](const int64_t* index, int64_t linear) {
    const int64_t at = index[axes.time_axis];
    const int64_t from = mirrored(at, length_of(call.input(1), index[axes.batch_axis], x[axes.time_axis]));
    return linear + (from - at) * strides[axes.time_axis];
  });
}

class ReverseSequenceKernel final : public IPlugin {
 public:
  void configure(const Config& config) override {
    axes_ = sequences(config.site().attrs(), config.site().dims(0));
    bytes_ = move_bytes(config.site().dtype(0));
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims x = inputs[0].dims;
    const Tensor lengths(inputs[1]);
    const int64_t run = x.product(2, x.rank) * bytes_;
    if (run == 0) return;
    cpu::parallel_ranges(to_parallel(exec), x[0] * x[1], std::max<int64_t>(65536 / run, 1),
                         [&](int64_t begin, int64_t end) {
                           for (int64_t n = begin; n < end; ++n) {
                             int64_t index[] = {n / x[1], n % x[1]};
                             int64_t& at = index[axes_.time_axis];
                             at = mirrored(at, length_of(lengths, index[axes_.batch_axis], x[axes_.time_axis]));
                             std::memcpy(static_cast<char*>(outputs[0].data) + n * run,
                                         static_cast<const char*>(inputs[0].data) + (index[0] * x[1] + index[1]) * run,
                                         static_cast<size_t>(run));
                           }
                         });
  }

 private:
  Sequences axes_{};
  int bytes_ = 0;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN(
    "tenon.reverse_sequence", "1", "Apache-2.0",
    tenon::op("tenon.reverse_sequence/1")
        .doc(
            "The first lengths[i] positions of sequence i in reverse, the others as they are (ONNX ReverseSequence-10)")
        .attr_i64("batch_axis", "the axis of sequences")
        .default_value("1")
        .range("0|1")
        .attr_i64("time_axis", "the axis of positions, the other one of 0 and 1")
        .default_value("0")
        .range("0|1")
        .input("x", "any dtype of 1, 2, 4 or 8 bytes")
        .input(
            "lengths",
            "i64 or i32, one for each sequence. More than there are positions: an error where they are known when the "
            "network is built, else all positions")
        .output("y")
        .infer(tenon::plugins::reverse_sequence_infer)
        .reference(tenon::plugins::reverse_sequence_reference)
        .tolerance(0, 0),
    tenon::kernel<tenon::plugins::ReverseSequenceKernel>("tenon.reverse_sequence/1", "tenon.reverse_sequence.copy")
        .deterministic()
        .more_combos([](const tenon::Site& site, tenon::Combos& combos) {
          tenon::plugins::move_bytes(site.dtype(0));
          const tenon::Port port = tenon::row(site.dtype(0));
          combos.add(tenon::ComboSpec({port, tenon::row(site.dtype(1))}, {port}));
        }))
