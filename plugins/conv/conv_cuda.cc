// tenon.conv/1, tenon.conv_transpose/1, and tenon.conv2d/1 where nothing can be packed, on kernels/cuda's conv_nd. One
// library, since each carries the CUDA runtime.
#include <memory>
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/conv_nd.h"
#include "plugins/common/conv_nd.h"
#include "plugins/common/cuda.h"

namespace tenon::plugins {
namespace {

struct Form {
  const char* op;
  bool transposed;
  ConvShapeOf shape_of;
};
constexpr Form kForms[] = {{"tenon.conv", false, conv_shape},
                           {"tenon.conv_transpose", true, conv_transpose_shape},
                           {"tenon.conv2d", false, conv_shape}};

// For the largest batch.
cuda::ConvNdShape cuda_shape(const Form& form, const Site& site) {
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

void supports(const Form& form, const Site& site) {
  for (const int n : {kConvNdX, kConvNdWeights}) {
    const Dims least = site.min_dims(n), most = site.max_dims(n);
    for (int axis = n == kConvNdX ? 1 : 0; axis < most.rank; ++axis) {
      if (least[axis] != most[axis]) throw Declined("all dims but the batch must be fixed");
    }
  }
  if (std::string(form.op) == "tenon.conv2d" && site.is_static() && site.is_constant(kConvNdWeights)) {
    throw Declined("dims and weights are fixed; others pack them");
  }
  if (!cuda::conv_nd_supports(cuda_shape(form, site))) throw Declined("the images are too large for it");
}

class ConvNdCuda final : public IPlugin {
 public:
  explicit ConvNdCuda(const Form& form) : form_(form) {}

  void configure(const Config& config) override {
    const Site site = config.site();
    supports(form_, site);
    shape_ = cuda_shape(form_, site);
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
  const Form& form_;
  cuda::ConvNdShape shape_;
  cuda::ConvNdAlgorithm algorithm_ = cuda::ConvNdAlgorithm::kDirect;
  cuda::ElementType type_ = cuda::ElementType::kF32;
  CudaEpilogue epilogue_;
  int num_inputs_ = 0;
  bool has_bias_ = false;
};

Definitions conv_cuda() {
  Definitions all;
  for (const Form& each : kForms) {
    const Form* form = &each;
    for (const int32_t dtype : {TN_F32, TN_F16}) {
      all.add(cuda_kernel(std::string(form->op) + "/1", cuda_name(std::string(form->op) + ".unpacked", dtype),
                          [form] { return std::make_unique<ConvNdCuda>(*form); })
                  .combo({row(dtype), row(dtype), row(dtype)}, {row(dtype)})
                  .supports([form](const Site& site) { supports(*form, site); })
                  .tactics([](const Site&, const Combo&, Tactics& tactics) {
                    tactics.add("algorithm=implicit");
                    tactics.add("algorithm=direct");
                  })
                  .epilogue([](const Site& site) { cuda_epilogue(site); }));
    }
  }
  return all;
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.conv.cuda", "1", "Apache-2.0", tenon::plugins::conv_cuda())
