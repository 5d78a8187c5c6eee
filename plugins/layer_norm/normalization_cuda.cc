// The normalisations by own statistics on kernels/cuda: tenon.layer_norm/1, tenon.rms_norm/1, tenon.group_norm/1,
// tenon.lp_norm/1, tenon.lrn/1. One library, since each carries the CUDA runtime.
#include <memory>
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/normalize.h"
#include "plugins/common/cuda.h"

namespace tenon::plugins {
namespace {

using cuda::NormKind;
using cuda::NormShape;

constexpr int kX = 0, kScale = 1, kBias = 2;  // input numbers

// How a node normalises: what does not depend on the dims, and how they make a shape.
struct Norm {
  NormKind kind = NormKind::kLayer;
  float epsilon = 0;
  int axis = 0;
  int64_t groups = 0;  // of tenon.group_norm
  bool scale_of_group = false;

  explicit Norm(const Site& site) {
    const std::string op = site.op_id();
    const Attrs attrs = site.attrs();
    const Dims x = site.dims(kX);
    if (op == "tenon.lp_norm/1") {
      kind = attrs.i64("p") == 1 ? NormKind::kL1 : NormKind::kL2;
    } else {
      if (op == "tenon.rms_norm/1") kind = NormKind::kRms;
      epsilon = static_cast<float>(attrs.f64("epsilon"));
    }
    if (op == "tenon.group_norm/1") {
      groups = attrs.i64("groups");
      scale_of_group = site.dims(kScale)[0] != x[1];
    } else {
      axis = normalize_axis(attrs.i64("axis"), x.rank);
    }
  }

  NormShape shape(const Dims& x) const {
    if (groups > 0) return NormShape::channel_groups(x[0], groups, x[1] / groups, x.product(2, x.rank), scale_of_group);
    if (kind == NormKind::kL1 || kind == NormKind::kL2) {
      return {x.product(0, axis), x[axis], x.product(axis + 1, x.rank), 1, 0, 1};
    }
    return NormShape::rows(x.product(0, axis), x.product(axis, x.rank));
  }
};

class NormCuda final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Site site = config.site();
    norm_ = std::make_unique<Norm>(site);
    type_ = to_cuda_float(config.combo().input(kX).dtype);
    activation_ = cuda_activation_epilogue(site);
    has_scale_ = site.has_input(kScale);
    has_bias_ = site.has_input(kBias);
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    check_cuda(cuda::normalize(type_, norm_->kind, norm_->shape(inputs[kX].dims), norm_->epsilon, inputs[kX].data,
                               has_scale_ ? inputs[kScale].data : nullptr, has_bias_ ? inputs[kBias].data : nullptr,
                               activation_, outputs[0].data, cuda_stream(exec)));
  }

 private:
  std::unique_ptr<Norm> norm_;
  cuda::ElementType type_ = cuda::ElementType::kF32;
  cuda::Epilogue activation_;
  bool has_scale_ = false, has_bias_ = false;
};

// Scale and bias of rows: as the normalised axes, without broadcasting among them.
void whole_factors(const Site& site) {
  const Dims x = site.dims(kX);
  const int axis = normalize_axis(site.attrs().i64("axis"), x.rank);
  for (const int n : {kScale, kBias}) {
    if (!site.has_input(n)) continue;
    const Dims factor = site.dims(n), least = site.min_dims(n), most = site.max_dims(n);
    bool whole = least == most && factor.elements() == x.product(axis, x.rank);
    for (int back = 1; back <= factor.rank && whole; ++back) {
      whole = factor[factor.rank - back] == (x.rank - back >= axis ? x[x.rank - back] : 1);
    }
    for (int n_axis = axis; n_axis < x.rank; ++n_axis) {
      whole = whole && site.min_dims(kX)[n_axis] == site.max_dims(kX)[n_axis];
    }
    if (!whole) throw Declined("scale and bias must have the shape of the normalised axes, which must be fixed");
  }
}

Kernel norm_kernel(const std::string& name, int32_t dtype, int num_inputs) {
  Kernel kernel = cuda_kernel<NormCuda>(name + "/1", cuda_name(name + ".teams", dtype));
  if (num_inputs == 1) {
    kernel.combo({row(dtype)}, {row(dtype)});
  } else if (num_inputs == 2) {
    kernel.combo({row(dtype), row(dtype)}, {row(dtype)});
  } else {
    kernel.combo({row(dtype), row(dtype), row(dtype)}, {row(dtype)});
  }
  return kernel.may_alias(0, kX).epilogue([](const Site& site) { cuda_activation_epilogue(site); });
}

class LrnCuda final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Attrs attrs = config.site().attrs();
    type_ = to_cuda_float(config.combo().input(0).dtype);
    params_ = {attrs.i64("size"), static_cast<float>(attrs.f64("alpha")), static_cast<float>(attrs.f64("beta")),
               static_cast<float>(attrs.f64("bias"))};
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims x = inputs[0].dims;
    check_cuda(cuda::local_response_norm(type_, params_, x[0], x[1], x.product(2, x.rank), inputs[0].data,
                                         outputs[0].data, cuda_stream(exec)));
  }

 private:
  cuda::ElementType type_ = cuda::ElementType::kF32;
  cuda::LrnParams params_{};
};

Definitions normalization_cuda() {
  Definitions all;
  for (const int32_t dtype : {TN_F32, TN_F16}) {
    all.add(norm_kernel("tenon.layer_norm", dtype, 3).supports(whole_factors));
    all.add(norm_kernel("tenon.rms_norm", dtype, 2).supports(whole_factors));
    all.add(norm_kernel("tenon.group_norm", dtype, 3));
    all.add(norm_kernel("tenon.lp_norm", dtype, 1));
    all.add(
        cuda_kernel<LrnCuda>("tenon.lrn/1", cuda_name("tenon.lrn.direct", dtype)).combo({row(dtype)}, {row(dtype)}));
  }
  return all;
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.normalization.cuda", "1", "Apache-2.0", tenon::plugins::normalization_cuda())
