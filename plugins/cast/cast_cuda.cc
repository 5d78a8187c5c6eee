// tenon.cast/1 on kernels/cuda.
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/cast.h"
#include "plugins/common/cuda.h"

namespace tenon::plugins {
namespace {

using cuda::ElementType;

constexpr std::pair<int32_t, ElementType> kTypes[] = {
    {TN_F32, ElementType::kF32},   {TN_F64, ElementType::kF64}, {TN_F16, ElementType::kF16},
    {TN_BF16, ElementType::kBf16}, {TN_I32, ElementType::kI32}, {TN_I64, ElementType::kI64},
    {TN_I8, ElementType::kI8},     {TN_U8, ElementType::kU8},   {TN_BOOL, ElementType::kBool}};

ElementType element_type(int32_t dtype) {
  for (const auto& [number, type] : kTypes) {
    if (number == dtype) return type;
  }
  throw Declined(text("no cast from or to ", dtype_name(dtype)));
}

class CastCuda final : public IPlugin {
 public:
  void configure(const Config& config) override {
    from_ = element_type(config.combo().input(0).dtype);
    to_ = element_type(config.combo().output(0).dtype);
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    check_cuda(
        cuda::cast(from_, to_, Tensor(inputs[0]).elements(), inputs[0].data, outputs[0].data, cuda_stream(exec)));
  }

 private:
  ElementType from_ = ElementType::kF32;
  ElementType to_ = ElementType::kF32;
};

Kernel cast_cuda() {
  Kernel definition = cuda_kernel<CastCuda>("tenon.cast/1", "tenon.cast.vector.cuda");
  for (const auto& [from, from_type] : kTypes) {
    for (const auto& [to, to_type] : kTypes) {
      definition.combo({row(from)}, {row(to)});
      if (element_type_size(from_type) == element_type_size(to_type)) definition.may_alias(0, 0);
    }
  }
  return definition;
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.cast.cuda", "1", "Apache-2.0", tenon::plugins::cast_cuda())
