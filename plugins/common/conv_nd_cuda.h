// An instance of kernels/cuda's conv_nd, shared by conv and conv_transpose.
#ifndef TENON_PLUGINS_COMMON_CONV_ND_CUDA_H_
#define TENON_PLUGINS_COMMON_CONV_ND_CUDA_H_

#include <memory>
#include <string>

#include "kernels/cuda/conv_nd.h"
#include "plugins/common/conv_nd.h"
#include "plugins/common/cuda.h"

namespace tenon::plugins {

// An op that the kernels of conv_nd compute.
struct ConvNdForm {
  const char* op;
  bool transposed;
  ConvShapeOf shape_of;
};

// For the largest batch.
inline cuda::ConvNdShape conv_nd_cuda_shape(const ConvNdForm& form, const Site& site) {
  const cpu::ConvShape shape = form.shape_of(site.attrs(), site.max_dims(kConvNdX), site.max_dims(kConvNdWeights));
  const cpu::Windows& windows = shape.windows;
  if (windows.rank > cuda::kConvNdMaxAxes) throw Declined(text("it takes up to ", cuda::kConvNdMaxAxes, " axes"));
  cuda::ConvNdShape result;
  result.transposed = form.transposed;
  result.n = shape.n;
  result.inputs = shape.inputs, result.outputs = shape.outputs, result.groups = shape.groups;
  result.axes = windows.rank;
  for (int axis = 0; axis < windows.rank; ++axis) {
    result.pixels[axis] = windows.image[axis], result.positions[axis] = windows.count[axis];
    result.kernel[axis] = windows.kernel[axis], result.stride[axis] = windows.stride[axis];
    result.dilation[axis] = windows.dilation[axis], result.pad[axis] = windows.pad[axis];
  }
  return result;
}

inline void conv_nd_cuda_supports(const ConvNdForm& form, const Site& site) {
  for (const int n : {kConvNdX, kConvNdWeights}) {
    const Dims least = site.min_dims(n), most = site.max_dims(n);
    for (int axis = n == kConvNdX ? 1 : 0; axis < most.rank; ++axis) {
      if (least[axis] != most[axis]) throw Declined("all dims but the batch must be fixed");
    }
  }
  if (std::string(form.op) == "tenon.conv2d" && site.is_static() && site.is_constant(kConvNdWeights)) {
    throw Declined("dims and weights are fixed; others pack them");
  }
  if (!cuda::conv_nd_supports(conv_nd_cuda_shape(form, site))) throw Declined("the images are too large for it");
}

class ConvNdCuda final : public IPlugin {
 public:
  explicit ConvNdCuda(const ConvNdForm& form) : form_(form) {}

  void configure(const Config& config) override {
    const Site site = config.site();
    conv_nd_cuda_supports(form_, site);
    shape_ = conv_nd_cuda_shape(form_, site);
    const std::string algorithm = config.params().str("algorithm");
    if (algorithm != "implicit" && algorithm != "direct") throw Declined("no such tactic: algorithm=" + algorithm);
    algorithm_ = algorithm == "direct" ? cuda::ConvNdAlgorithm::kDirect : cuda::ConvNdAlgorithm::kImplicitGemm;
    type_ = to_cuda_float(config.combo().input(kConvNdX).dtype);
    epilogue_ = cuda_epilogue(site);
    num_inputs_ = site.num_inputs();
    has_bias_ = site.has_input(kConvNdBias);
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    cuda::ConvNdShape shape = shape_;
    shape.n = inputs[kConvNdX].dims.d[0];
    check_cuda(cuda::conv_nd(type_, algorithm_, shape, inputs[kConvNdX].data, inputs[kConvNdWeights].data,
                             has_bias_ ? inputs[kConvNdBias].data : nullptr,
                             epilogue_.residual >= 0 ? inputs[num_inputs_ + epilogue_.residual].data : nullptr,
                             epilogue_.activation, outputs[0].data, cuda_stream(exec)));
  }

 private:
  const ConvNdForm& form_;
  cuda::ConvNdShape shape_;
  cuda::ConvNdAlgorithm algorithm_ = cuda::ConvNdAlgorithm::kDirect;
  cuda::ElementType type_ = cuda::ElementType::kF32;
  CudaEpilogue epilogue_;
  int num_inputs_ = 0;
  bool has_bias_ = false;
};

// `form` must outlive the kernels.
inline Definitions conv_nd_cuda(const ConvNdForm& form) {
  return for_cuda_floats([&form](int32_t dtype) {
    return cuda_kernel(std::string(form.op) + "/1", cuda_name(std::string(form.op) + ".unpacked", dtype),
                       [&form] { return std::make_unique<ConvNdCuda>(form); })
        .combo({row(dtype), row(dtype), row(dtype)}, {row(dtype)})
        .supports([&form](const Site& site) { conv_nd_cuda_supports(form, site); })
        .tactics([](const Site&, const Combo&, Tactics& tactics) {
          tactics.add("algorithm=implicit");
          tactics.add("algorithm=direct");
        })
        .epilogue([](const Site& site) { cuda_epilogue(site); });
  });
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_CONV_ND_CUDA_H_
