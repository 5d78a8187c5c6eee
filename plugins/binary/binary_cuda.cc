// tenon.add/1, sub, mul, div, min, max, prelu, pow and mod on kernels/cuda: float types in the formats of images, i32
// and i64 row-major.
#include <algorithm>
#include <memory>
#include <string>
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/pointwise.h"
#include "plugins/common/cuda.h"
#include "plugins/common/layout.h"

namespace tenon::plugins {
namespace {

using cuda::BinaryKind;

struct BinaryCudaOp {
  const char* name;
  BinaryKind kind;
};
constexpr BinaryCudaOp kOps[] = {
    {"add", BinaryKind::kAdd},     {"sub", BinaryKind::kSub}, {"mul", BinaryKind::kMul},
    {"div", BinaryKind::kDiv},     {"min", BinaryKind::kMin}, {"max", BinaryKind::kMax},
    {"prelu", BinaryKind::kPRelu}, {"pow", BinaryKind::kPow}, {"mod", BinaryKind::kModDivisor}};

class BinaryCuda final : public IPlugin {
 public:
  BinaryCuda(BinaryKind kind, bool integers) : kind_(kind), integers_(integers) {}

  void configure(const Config& config) override {
    const Combo combo = config.combo();
    type_ = to_cuda_type(combo.output(0).dtype);
    a_ = combo.input(0).format;
    b_ = combo.input(1).format;
    y_ = combo.output(0).format;
    if (!integers_) activation_ = cuda_activation_epilogue(config.site());
    if (kind_ == BinaryKind::kModDivisor && config.site().attrs().str("sign") == "dividend") {
      kind_ = BinaryKind::kModDividend;
    }
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims a = operand_dims(a_, inputs[0].dims), b = operand_dims(b_, inputs[1].dims);
    cuda::BroadcastShape shape;
    if (!cuda::broadcast_shape(a.rank, a.d, b.rank, b.d, &shape)) {
      throw Invalid(text("shapes ", to_text(a), " and ", to_text(b), " do not broadcast"));
    }
    check_cuda(integers_ ? cuda::integer_binary(type_, kind_, shape, inputs[0].data, inputs[1].data, outputs[0].data,
                                                cuda_stream(exec))
                         : cuda::pointwise_binary(type_, kind_, shape, inputs[0].data, inputs[1].data, activation_,
                                                  outputs[0].data, cuda_stream(exec)));
  }

 private:
  // In memory order; beside an image format the other operand is one element.
  Dims operand_dims(const TnFormat& format, const TnDims& dims) const {
    return same_format(format, y_) ? physical_dims(format, dims) : Dims{};
  }

  BinaryKind kind_;
  bool integers_;
  cuda::ElementType type_ = cuda::ElementType::kF32;
  TnFormat a_ = row_format(), b_ = row_format(), y_ = row_format();
  cuda::Epilogue activation_;
};

// In nhwc broadcasting needs equal ranks, or one operand of one element.
void binary_tactics(const Site& site, const Combo& combo, Tactics& tactics) {
  if (!is_row(combo.output(0).format)) {
    for (const int n : {0, 1}) {
      const bool single = is_row(combo.input(n).format);
      if (single ? site.max_dims(n).elements() != 1 : site.dims(n).rank != 4) {
        throw Declined("image formats need two operands of rank 4, or one of them and a single element");
      }
    }
  }
  tactics.add("");
}

Kernel float_kernel(const BinaryCudaOp& op, int32_t dtype) {
  const BinaryKind kind = op.kind;
  const std::string base = std::string("tenon.") + op.name;
  Kernel definition = cuda_kernel(base + "/1", cuda_name(base + ".vector", dtype),
                                  [kind] { return std::make_unique<BinaryCuda>(kind, false); });
  for (auto port : cuda_image_ports()) {
    definition.combo({port(dtype), port(dtype)}, {port(dtype)}).may_alias(0, 0).may_alias(0, 1);
    if (is_row(port(dtype).format)) continue;
    definition.combo({port(dtype), row(dtype)}, {port(dtype)}).may_alias(0, 0);
    definition.combo({row(dtype), port(dtype)}, {port(dtype)}).may_alias(0, 1);
  }
  return definition.tactics(binary_tactics).epilogue([](const Site& site) { cuda_activation_epilogue(site); });
}

// A division of integers by 0 is an error, which a launched kernel cannot report.
void require_divisors(const Site& site) {
  const Tensor divisors = site.constant(1);
  if (!site.is_constant(1)) throw Declined("the divisors are computed at run time, where one may be 0");
  for (int64_t n = 0; n < divisors.elements(); ++n) {
    if (divisors.integer(n) == 0) throw Declined("a divisor is 0");
  }
}

Kernel integer_kernel(const BinaryCudaOp& op) {
  const BinaryKind kind = op.kind;
  const std::string base = std::string("tenon.") + op.name;
  Kernel definition =
      cuda_kernel(base + "/1", base + ".vector.int.cuda", [kind] { return std::make_unique<BinaryCuda>(kind, true); });
  for (const int32_t dtype : {TN_I32, TN_I64}) definition.combo({row(dtype), row(dtype)}, {row(dtype)});
  if (kind == BinaryKind::kDiv || kind == BinaryKind::kModDivisor) {
    definition.supports([](const Site& site) {
      if (!is_floating(site.dtype(1))) require_divisors(site);
    });
  }
  return definition;
}

Definitions binary_cuda() {
  Definitions all;
  for (const BinaryCudaOp& op : kOps) {
    all.add(for_cuda_floats([&](int32_t dtype) { return float_kernel(op, dtype); }));
    if (op.kind != BinaryKind::kPow) all.add(integer_kernel(op));
  }
  return all;
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.binary.cuda", "1", "Apache-2.0", tenon::plugins::binary_cuda())
