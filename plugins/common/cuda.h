// What the CUDA kernels of plugins share: errors, streams, formats and epilogues as kernels/cuda wants them.
#ifndef TENON_PLUGINS_COMMON_CUDA_H_
#define TENON_PLUGINS_COMMON_CUDA_H_

#include <cuda_runtime_api.h>

#include <string>
#include <tenon/sdk/expressions.hpp>
#include <tenon/sdk/kernel.hpp>
#include <vector>

#include "kernels/common/layout.h"
#include "kernels/cuda/element_type.h"
#include "kernels/cuda/epilogue.h"
#include "plugins/common/epilogue_steps.h"

namespace tenon::plugins {

inline void check_cuda(cudaError_t error) {
  if (error != cudaSuccess)
    throw Failure(TN_DEVICE, text(cudaGetErrorString(error), " (", cudaGetErrorName(error), ")"));
}

inline cudaStream_t cuda_stream(const Exec& exec) { return static_cast<cudaStream_t>(exec.stream()); }

// A kernel of kernels/cuda: the same bits for the same input, and its launches may be captured.
template <class Instance>
Kernel cuda_kernel(const std::string& op_id, const std::string& name) {
  Kernel definition = kernel<Instance>(op_id, name);
  definition.cuda().deterministic().graph_capturable();
  return definition;
}
inline Kernel cuda_kernel(const std::string& op_id, const std::string& name, KernelDefinition::Factory factory) {
  Kernel definition(op_id, name, std::move(factory));
  definition.cuda().deterministic().graph_capturable();
  return definition;
}

// Kernels of float types (kernels/cuda/element_type.h) are made once for each: make(dtype). Results in f16 are computed
// in f32 and rounded once.
template <class Make>
Definitions for_cuda_floats(Make&& make) {
  return {make(TN_F32), make(TN_F16)};
}
// "tenon.relu.vector.f16.cuda"
inline std::string cuda_name(const std::string& algorithm, int32_t dtype) {
  return text(algorithm, ".", dtype_name(dtype), ".cuda");
}
// REQUIRES: one of the dtypes of for_cuda_floats.
inline cuda::ElementType to_cuda_float(int32_t dtype) {
  return dtype == TN_F16 ? cuda::ElementType::kF16 : cuda::ElementType::kF32;
}

// Every dtype that kernels/cuda has a number for.
struct CudaType {
  int32_t dtype;
  cuda::ElementType element;
};
inline constexpr CudaType kCudaTypes[] = {
    {TN_F32, cuda::ElementType::kF32},   {TN_F64, cuda::ElementType::kF64}, {TN_F16, cuda::ElementType::kF16},
    {TN_BF16, cuda::ElementType::kBf16}, {TN_I32, cuda::ElementType::kI32}, {TN_I64, cuda::ElementType::kI64},
    {TN_I8, cuda::ElementType::kI8},     {TN_U8, cuda::ElementType::kU8},   {TN_BOOL, cuda::ElementType::kBool}};
// Declined for other dtypes.
inline cuda::ElementType to_cuda_type(int32_t dtype) {
  for (const CudaType& type : kCudaTypes) {
    if (type.dtype == dtype) return type.element;
  }
  throw Declined(text("no kernel for ", dtype_name(dtype)));
}

// The formats of images on a GPU, as ports.
inline std::initializer_list<Port (*)(int32_t)> cuda_image_ports() {
  static constexpr std::initializer_list<Port (*)(int32_t)> ports = {row, nhwc};
  return ports;
}

// Declined for a format that is neither row nor nhwc.
inline cuda::Layout to_cuda_layout(const TnFormat& format) {
  if (is_row(format)) return cuda::Layout::kNchw;
  if (is_nhwc(format)) return cuda::Layout::kNhwc;
  throw Declined("expected the format row or nhwc");
}

inline cuda::Epilogue to_cuda(const Activation& activation) {
  const float alpha = static_cast<float>(activation.alpha), beta = static_cast<float>(activation.beta);
  switch (activation.kind) {
    case ActivationKind::kIdentity:
      return cuda::Epilogue::none();
    case ActivationKind::kRelu:
      return cuda::Epilogue::relu();
    case ActivationKind::kClip:
      return cuda::Epilogue::clip(alpha, beta);
    case ActivationKind::kLeaky:
      return cuda::Epilogue::leaky(alpha);
    case ActivationKind::kLogistic:
      return {cuda::UnaryKind::kLogistic, 0, 0};
    case ActivationKind::kTanh:
      return {cuda::UnaryKind::kTanh, 0, 0};
    case ActivationKind::kSwish:
      return {cuda::UnaryKind::kSwish, 0, 0};
    case ActivationKind::kElu:
      return {cuda::UnaryKind::kElu, alpha, 0};
    case ActivationKind::kMish:
      return {cuda::UnaryKind::kMish, 0, 0};
    case ActivationKind::kHardSwish:
      return {cuda::UnaryKind::kHardSwish, 0, 0};
    case ActivationKind::kGelu:
      return {cuda::UnaryKind::kGelu, 0, 0};
    case ActivationKind::kGeluTanh:
      return {cuda::UnaryKind::kGeluTanh, 0, 0};
  }
  throw Declined("an activation that the CUDA kernels do not know");
}

struct CudaEpilogue {
  cuda::Epilogue activation;
  int residual = -1;  // number among the site's extra operands; -1: none
};

// The epilogue of output 0: (+ one operand of the output's shape) (then one activation). Declined if it has another
// form.
inline CudaEpilogue cuda_epilogue(const Site& site) {
  const EpilogueSteps steps = epilogue_steps(site);
  return {to_cuda(steps.activation), steps.residual};
}

// The same, for kernels that add no operand.
inline cuda::Epilogue cuda_activation_epilogue(const Site& site) {
  const CudaEpilogue epilogue = cuda_epilogue(site);
  if (epilogue.residual >= 0) throw Declined("it adds no operand");
  return epilogue.activation;
}

// Combos of kernels that move elements of any size: all tensors in one format; nhwc for images.
inline void add_cuda_move_combos(const Site& site, Combos& combos, int num_inputs) {
  for (const auto make : cuda_image_ports()) {
    const Port port = make(site.dtype(0));
    if (!is_row(port.format) && site.dims(0).rank != 4) continue;
    combos.add(ComboSpec(std::vector<Port>(static_cast<size_t>(num_inputs), port), std::vector<Port>{port}));
  }
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_CUDA_H_
