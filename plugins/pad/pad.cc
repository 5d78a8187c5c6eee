// tenon.pad/1: more or fewer positions at the ends of axes, and Tenon's kernel for it.
#include "kernels/cpu/pad.h"

#include <memory>
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/checked.h"
#include "plugins/common/integers.h"
#include "plugins/common/move.h"
#include "plugins/pad/pad.h"

namespace tenon::plugins {
namespace {

// Of each axis of the output: which position of the input stands at each position, -1 for the fill value.
struct PadMaps {
  Dims output;
  std::vector<int64_t> maps[TN_MAX_RANK];
  int64_t begin[TN_MAX_RANK] = {};  // where the input begins and ends in the output
  int64_t end[TN_MAX_RANK] = {};
};

// Negative pads cut first; what is left is repeated as the mode says.
int64_t source(const std::string& mode, int64_t at, int64_t first, int64_t last) {
  if (at >= first && at < last) return at;
  if (mode == "constant") return -1;
  if (mode == "edge") return at < first ? first : last - 1;
  const int64_t size = last - first;
  const int64_t period = mode == "wrap" ? size : std::max<int64_t>(2 * (size - 1), 1);
  const int64_t phase = ((at - first) % period + period) % period;
  return first + (phase < size ? phase : period - phase);
}

Dims pad_dims(const Dims& x, const std::vector<PadAxis>& pads, const std::string& mode) {
  Dims dims;
  int64_t elements = 1;
  for (int axis = 0; axis < x.rank; ++axis) {
    const PadAxis pad = pads[static_cast<size_t>(axis)];
    const int64_t size = checked_sum(x[axis], pad.begin + pad.end, "size of the output");
    if (size < 0) {
      throw Invalid(text("input 'pads': expected no more than ", x[axis], " cut from axis ", axis, " of ", to_text(x),
                         ", found ", pad.begin, " and ", pad.end));
    }
    const int64_t left = x[axis] + std::min<int64_t>(pad.begin, 0) + std::min<int64_t>(pad.end, 0);
    if (mode != "constant" && left <= 0 && size > 0) {
      throw Invalid(text("input 'pads': in mode ", mode, " axis ", axis, " of ", to_text(x),
                         " needs something to repeat, but pads ", pad.begin, " and ", pad.end, " leave nothing"));
    }
    dims.push_back(size);
    elements = size == 0 ? 0 : checked_product(elements, size, "elements of the output");
  }
  return dims;
}

void pad_infer(const Infer& question) {
  const Tensor x = question.input(0);
  const std::vector<int64_t> pads = shape_integers(question, 1, "pads");
  if (question.has_input(2)) {
    const Tensor value = question.input(2);
    if (value.dtype() != x.dtype() || value.elements() != 1) {
      throw Invalid(text("input 'value': expected one ", dtype_name(x.dtype()), ", found ", dtype_name(value.dtype()),
                         to_text(value.dims())));
    }
  }
  std::vector<int64_t> axes;
  if (question.has_input(3)) axes = shape_integers(question, 3, "axes");
  question.output(0, x.dtype(),
                  pad_dims(x.dims(), pads_of(pads, question.has_input(3) ? &axes : nullptr, x.rank()),
                           question.attrs().str("mode")));
}

PadMaps make_maps(const Attrs& attrs, const Dims& x, const Tensor& pads, const Tensor* axes) {
  const std::vector<PadAxis> list = pads_from(pads, axes, x.rank);
  const std::string mode = attrs.str("mode");
  PadMaps result;
  result.output = pad_dims(x, list, mode);
  for (int axis = 0; axis < x.rank; ++axis) {
    const PadAxis pad = list[static_cast<size_t>(axis)];
    const int64_t first = std::max<int64_t>(-pad.begin, 0);
    const int64_t last = x[axis] + std::min<int64_t>(pad.end, 0);
    std::vector<int64_t>& map = result.maps[axis];
    map.resize(static_cast<size_t>(result.output[axis]));
    for (int64_t i = 0; i < result.output[axis]; ++i)
      map[static_cast<size_t>(i)] = source(mode, i - pad.begin, first, last);
    result.begin[axis] = std::clamp<int64_t>(pad.begin, 0, result.output[axis]);
    result.end[axis] = std::clamp<int64_t>(last + pad.begin, result.begin[axis], result.output[axis]);
  }
  return result;
}

void pad_reference(const Reference& call) {
  const Dims x = call.input(0).dims();
  const Tensor axes = call.input(call.has_input(3) ? 3 : 0);
  const PadMaps maps = make_maps(call.attrs(), x, call.input(1), call.has_input(3) ? &axes : nullptr);
  int64_t strides[TN_MAX_RANK];
  row_strides(x, strides);
  const auto bytes = static_cast<size_t>(move_bytes(call.output(0).dtype()));
  const uint64_t zero = 0;
  const char* fill =
      call.has_input(2) ? static_cast<const char*>(call.input(2).data()) : reinterpret_cast<const char*>(&zero);
  const char* from = static_cast<const char*>(call.input(0).data());
  char* to = static_cast<char*>(call.output(0).data());
  for_each_in_box(call.output(0).dims(), call.box(0), [&](const int64_t* index, int64_t, int64_t packed) {
    int64_t offset = 0;
    bool outside = false;
    for (int axis = 0; axis < x.rank; ++axis) {
      const int64_t at = maps.maps[axis][static_cast<size_t>(index[axis])];
      outside = outside || at < 0;
      offset += at * strides[axis];
    }
    std::memcpy(to + static_cast<size_t>(packed) * bytes, outside ? fill : from + static_cast<size_t>(offset) * bytes,
                bytes);
  });
}

class PadKernel final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Site site = config.site();
    const Dims x = site.dims(0);
    bytes_ = move_bytes(site.dtype(0));
    has_value_ = site.has_input(2);
    const Tensor pads = site.constant(1);
    const bool some_axes = site.has_input(3);
    const Tensor axes = site.constant(some_axes ? 3 : 1);
    if (!pads.has_data() && pads.elements() > 0) throw Declined("the pads are computed at run time");
    maps_ = make_maps(site.attrs(), x, pads, some_axes ? &axes : nullptr);
    // Axes behind the last one that changes move as one.
    int last = x.rank - 1;
    while (last > 0 && maps_.begin[last] == 0 && maps_.end[last] == x[last] && maps_.output[last] == x[last]) --last;
    if (x.rank == 0) {
      maps_.maps[0] = {0};
      shape_.dims[0] = shape_.end = 1;
    } else {
      shape_.rank = last + 1;
      std::copy(maps_.output.d, maps_.output.d + shape_.rank, shape_.dims);
      shape_.begin = maps_.begin[last];
      shape_.end = maps_.end[last];
      shape_.inner = x.product(last + 1, x.rank);
      row_strides(x, shape_.strides);
    }
    for (int axis = 0; axis < shape_.rank; ++axis) shape_.maps[axis] = maps_.maps[axis].data();
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const uint64_t zero = 0;
    cpu::pad(shape_, bytes_, inputs[0].data, has_value_ ? inputs[2].data : &zero, outputs[0].data, to_parallel(exec));
  }

 private:
  PadMaps maps_;
  cpu::PadShape shape_;
  int bytes_ = 0;
  bool has_value_ = false;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN(
    "tenon.pad", "1", "Apache-2.0",
    tenon::op("tenon.pad/1")
        .doc("More positions at the ends of axes, fewer where a pad is negative (ONNX Pad-25, numpy's pad). "
             "Negative pads cut first, then the mode repeats what is left; reflections go on as often as needed")
        .attr_str("mode", "what stands there: a value, the mirrored contents, the last ones, or a torus")
        .default_value("constant")
        .range("constant|reflect|edge|wrap")
        .input("x", "any dtype of 1, 2, 4 or 8 bytes")
        .input("pads", "i64 or i32: positions before each axis, then those behind each")
        .host_value()
        .input("value", "one element of x's dtype for mode constant; default: 0")
        .optional()
        .input("axes", "i64 or i32: which axes `pads` is about; default: all")
        .optional()
        .host_value()
        .output("y")
        .infer(tenon::plugins::pad_infer)
        .reference(tenon::plugins::pad_reference)
        .tolerance(0, 0),
    tenon::kernel<tenon::plugins::PadKernel>("tenon.pad/1", "tenon.pad.copy")
        .deterministic()
        .more_combos([](const tenon::Site& site, tenon::Combos& combos) {
          tenon::plugins::move_bytes(site.dtype(0));
          const tenon::Port port = tenon::row(site.dtype(0)), none = tenon::any_constant();
          std::vector<tenon::Port> inputs = {port, none};
          if (site.num_inputs() > 2) inputs.push_back(site.has_input(2) ? port : none);
          if (site.num_inputs() > 3) inputs.push_back(none);
          combos.add(tenon::ComboSpec(inputs, std::vector<tenon::Port>{port}));
        }),
    tenon::plugins::pad_rules())
