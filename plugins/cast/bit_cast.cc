// tenon.bit_cast/1: the same bits under another dtype.
#include <cstring>

#include "plugins/cast/cast.h"
#include "plugins/common/parallel.h"
#include "plugins/common/small_float.h"

namespace tenon::plugins {
namespace {

int bits_of(int32_t dtype) {
  switch (dtype) {
    case TN_U2:
    case TN_I2:
      return 2;
    case TN_U4:
    case TN_I4:
    case TN_F4E2M1:
      return 4;
    case TN_STRING:
    case TN_DTYPE_NONE:
      throw Invalid(text("expected numbers or bool, found ", dtype_name(dtype)));
    default:
      return 8 * dtype_size(dtype);
  }
}

bool arrives_as_f32(int32_t dtype) { return small_float(dtype).bits != 0 || dtype == TN_F8E8M0; }

void bit_cast_infer(const Infer& question) {
  const Tensor x = question.input(0);
  const int32_t from = question.attrs().dtype("from");
  const int32_t to = question.attrs().dtype("to");
  if (x.dtype() != from) throw Invalid(text("input x: expected ", dtype_name(from), ", found ", dtype_name(x.dtype())));
  if (bits_of(from) != bits_of(to)) {
    throw Invalid(text("attribute 'to': expected a dtype of ", bits_of(from), " bits as ", dtype_name(from), ", found ",
                       dtype_name(to), " of ", bits_of(to)));
  }
  question.output(0, to, x.dims());
}

void bit_cast_reference(const Reference& call) {
  const int32_t from = call.attrs().dtype("from");
  const int32_t to = call.attrs().dtype("to");
  const auto* x = static_cast<const char*>(call.input(0).data());
  const auto x_size = static_cast<size_t>(dtype_size(call.input(0).dtype()));
  auto* y = static_cast<char*>(call.output(0).data());
  const auto y_size = static_cast<size_t>(dtype_size(call.output(0).dtype()));
  const int bits = bits_of(from);
  for_each_in_box(call.output(0).dims(), call.box(0), [&](const int64_t*, int64_t linear, int64_t packed) {
    uint64_t pattern = 0;
    std::memcpy(&pattern, x + static_cast<size_t>(linear) * x_size, x_size);
    if (arrives_as_f32(from)) {
      float value;
      std::memcpy(&value, &pattern, sizeof value);
      pattern = small_float_bits(from, value);
    }
    if (bits < 64) pattern &= (uint64_t{1} << bits) - 1;
    if (arrives_as_f32(to)) {
      const float value = small_float_value(to, static_cast<uint32_t>(pattern));
      std::memcpy(&pattern, &value, sizeof value);
    }
    std::memcpy(y + static_cast<size_t>(packed) * y_size, &pattern, y_size);
  });
}

class BitCastKernel final : public IPlugin {
 public:
  void configure(const Config& config) override { bits_ = bits_of(config.combo().input(0).dtype); }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    if (inputs[0].data == outputs[0].data) return;
    const int64_t bytes = (Tensor(inputs[0]).elements() * bits_ + 7) / 8;
    cpu::parallel_ranges(to_parallel(exec), bytes, 256 * 1024, [&](int64_t begin, int64_t end) {
      std::memcpy(static_cast<char*>(outputs[0].data) + begin, static_cast<const char*>(inputs[0].data) + begin,
                  static_cast<size_t>(end - begin));
    });
  }

 private:
  int bits_ = 0;
};

}  // namespace

Definitions bit_cast_definitions() {
  return {op("tenon.bit_cast/1")
              .doc("The same bits under another dtype of as many bits, as ONNX's BitCast")
              .attr_dtype("from", "x's dtype, which the reference of the op does not see")
              .required()
              .attr_dtype("to", "dtype of the result")
              .required()
              .input("x", "any shape")
              .output("y", "x's shape, dtype `to`")
              .elementwise()
              .infer(bit_cast_infer)
              .reference(bit_cast_reference)
              .tolerance(0, 0),
          kernel<BitCastKernel>("tenon.bit_cast/1", "tenon.bit_cast.copy")
              .more_combos([](const Site& site, Combos& combos) {
                combos.add(ComboSpec({row(site.dtype(0))}, {row(site.output_dtype(0))}).may_alias(0, 0));
              })
              .deterministic()};
}

}  // namespace tenon::plugins
