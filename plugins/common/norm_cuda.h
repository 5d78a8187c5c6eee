// An instance of kernels/cuda's normalize, shared by layer_norm, group_norm and lp_norm.
#ifndef TENON_PLUGINS_COMMON_NORM_CUDA_H_
#define TENON_PLUGINS_COMMON_NORM_CUDA_H_

#include <memory>
#include <string>

#include "kernels/cuda/normalize.h"
#include "plugins/common/cuda.h"

namespace tenon::plugins {

// How a node of tenon.layer_norm/1, tenon.rms_norm/1, tenon.group_norm/1 or tenon.lp_norm/1 normalises: what does not
// depend on the dims, and how they make a shape.
struct Norm {
  static constexpr int kX = 0, kScale = 1, kBias = 2;  // input numbers

  cuda::NormKind kind = cuda::NormKind::kLayer;
  float epsilon = 0;
  int axis = 0;
  int64_t groups = 0;  // of tenon.group_norm
  bool scale_of_group = false;

  explicit Norm(const Site& site) {
    const std::string op = site.op_id();
    const Attrs attrs = site.attrs();
    const Dims x = site.dims(kX);
    if (op == "tenon.lp_norm/1") {
      kind = attrs.i64("p") == 1 ? cuda::NormKind::kL1 : cuda::NormKind::kL2;
    } else {
      if (op == "tenon.rms_norm/1") kind = cuda::NormKind::kRms;
      epsilon = static_cast<float>(attrs.f64("epsilon"));
    }
    if (op == "tenon.group_norm/1") {
      groups = attrs.i64("groups");
      scale_of_group = site.dims(kScale)[0] != x[1];
    } else {
      axis = normalize_axis(attrs.i64("axis"), x.rank);
    }
  }

  cuda::NormShape shape(const Dims& x) const {
    if (groups > 0)
      return cuda::NormShape::channel_groups(x[0], groups, x[1] / groups, x.product(2, x.rank), scale_of_group);
    if (kind == cuda::NormKind::kL1 || kind == cuda::NormKind::kL2) {
      return {x.product(0, axis), x[axis], x.product(axis + 1, x.rank), 1, 0, 1};
    }
    return cuda::NormShape::rows(x.product(0, axis), x.product(axis, x.rank));
  }
};

class NormCuda final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Site site = config.site();
    norm_ = std::make_unique<Norm>(site);
    type_ = to_cuda_float(config.combo().input(Norm::kX).dtype);
    activation_ = cuda_activation_epilogue(site);
    has_scale_ = site.has_input(Norm::kScale);
    has_bias_ = site.has_input(Norm::kBias);
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    check_cuda(cuda::normalize(type_, norm_->kind, norm_->shape(inputs[Norm::kX].dims), norm_->epsilon,
                               inputs[Norm::kX].data, has_scale_ ? inputs[Norm::kScale].data : nullptr,
                               has_bias_ ? inputs[Norm::kBias].data : nullptr, activation_, outputs[0].data,
                               cuda_stream(exec)));
  }

 private:
  std::unique_ptr<Norm> norm_;
  cuda::ElementType type_ = cuda::ElementType::kF32;
  cuda::Epilogue activation_;
  bool has_scale_ = false, has_bias_ = false;
};

// Scale and bias of rows: as the normalised axes, without broadcasting among them.
inline void whole_factors(const Site& site) {
  const Dims x = site.dims(Norm::kX);
  const int axis = normalize_axis(site.attrs().i64("axis"), x.rank);
  for (const int n : {Norm::kScale, Norm::kBias}) {
    if (!site.has_input(n)) continue;
    const Dims factor = site.dims(n), least = site.min_dims(n), most = site.max_dims(n);
    bool whole = least == most && factor.elements() == x.product(axis, x.rank);
    for (int back = 1; back <= factor.rank && whole; ++back) {
      whole = factor[factor.rank - back] == (x.rank - back >= axis ? x[x.rank - back] : 1);
    }
    for (int n_axis = axis; n_axis < x.rank; ++n_axis) {
      whole = whole && site.min_dims(Norm::kX)[n_axis] == site.max_dims(Norm::kX)[n_axis];
    }
    if (!whole) throw Declined("scale and bias must have the shape of the normalised axes, which must be fixed");
  }
}

inline Kernel norm_cuda(const std::string& name, int32_t dtype, int num_inputs) {
  Kernel kernel = cuda_kernel<NormCuda>(name + "/1", cuda_name(name + ".teams", dtype));
  if (num_inputs == 1) {
    kernel.combo({row(dtype)}, {row(dtype)});
  } else if (num_inputs == 2) {
    kernel.combo({row(dtype), row(dtype)}, {row(dtype)});
  } else {
    kernel.combo({row(dtype), row(dtype), row(dtype)}, {row(dtype)});
  }
  return kernel.may_alias(0, Norm::kX).epilogue([](const Site& site) { cuda_activation_epilogue(site); });
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_NORM_CUDA_H_
