// tenon.add/1, tenon.sub/1, tenon.mul/1 and tenon.div/1 on kernels/cuda.
#include <memory>
#include <string>
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/pointwise.h"
#include "plugins/common/cuda.h"
#include "plugins/common/layout.h"

namespace tenon::plugins {
namespace {

class BinaryCuda final : public IPlugin {
 public:
  explicit BinaryCuda(cuda::BinaryKind kind) : kind_(kind) {}

  void configure(const Config& config) override {
    type_ = to_cuda_float(config.combo().output(0).dtype);
    format_ = config.combo().output(0).format;
    activation_ = cuda_activation_epilogue(config.site());
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims a = physical_dims(format_, inputs[0].dims);
    const Dims b = physical_dims(format_, inputs[1].dims);
    cuda::BroadcastShape shape;
    if (!cuda::broadcast_shape(a.rank, a.d, b.rank, b.d, &shape)) {
      throw Invalid(text("shapes ", to_text(a), " and ", to_text(b), " do not broadcast"));
    }
    check_cuda(cuda::pointwise_binary(type_, kind_, shape, inputs[0].data, inputs[1].data, activation_, outputs[0].data,
                                      cuda_stream(exec)));
  }

 private:
  cuda::BinaryKind kind_;
  cuda::ElementType type_ = cuda::ElementType::kF32;
  TnFormat format_ = row_format();
  cuda::Epilogue activation_;
};

// In nhwc broadcasting needs equal ranks.
void binary_tactics(const Site& site, const Combo& combo, Tactics& tactics) {
  if (!is_row(combo.output(0).format) && (site.dims(0).rank != 4 || site.dims(1).rank != 4)) {
    throw Declined("image formats need two operands of rank 4");
  }
  tactics.add("");
}

Definitions binary_cuda() {
  constexpr std::pair<const char*, cuda::BinaryKind> kOps[] = {{"add", cuda::BinaryKind::kAdd},
                                                               {"sub", cuda::BinaryKind::kSub},
                                                               {"mul", cuda::BinaryKind::kMul},
                                                               {"div", cuda::BinaryKind::kDiv}};
  Definitions all;
  for (const auto& [name, op_kind] : kOps) {
    const cuda::BinaryKind kind = op_kind;
    const std::string base = std::string("tenon.") + name;
    all.add(for_cuda_floats([&](int32_t dtype) {
      Kernel definition = cuda_kernel(base + "/1", cuda_name(base + ".vector", dtype),
                                      [kind] { return std::make_unique<BinaryCuda>(kind); });
      for (auto port : cuda_image_ports()) {
        definition.combo({port(dtype), port(dtype)}, {port(dtype)}).may_alias(0, 0).may_alias(0, 1);
      }
      return definition.tactics(binary_tactics).epilogue([](const Site& site) { cuda_activation_epilogue(site); });
    }));
  }
  return all;
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.binary.cuda", "1", "Apache-2.0", tenon::plugins::binary_cuda())
