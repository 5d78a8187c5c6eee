// tenon.arg_max/1, tenon.arg_min/1, tenon.cum_sum/1 and tenon.cum_prod/1 on kernels/cuda, in the library of the
// reductions, since each carries the CUDA runtime.
#include <memory>

#include "kernels/cuda/cumulate.h"
#include "kernels/cuda/reduce.h"
#include "plugins/reduce/reduce_cuda.h"

namespace tenon::plugins {
namespace {

class ArgCuda final : public IPlugin {
 public:
  explicit ArgCuda(bool smallest) : smallest_(smallest) {}
  void configure(const Config& config) override {
    const Site site = config.site();
    type_ = to_reduced_type(config.combo().input(0).dtype);
    axis_ = normalize_axis(site.attrs().i64("axis"), site.dims(0).rank);
    last_ = site.attrs().flag("select_last_index");
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims x = inputs[0].dims;
    check_cuda(cuda::arg_extreme(type_, smallest_, last_, x.product(0, axis_), x[axis_], x.product(axis_ + 1, x.rank),
                                 inputs[0].data, static_cast<int64_t*>(outputs[0].data), cuda_stream(exec)));
  }

 private:
  bool smallest_;
  cuda::ElementType type_ = cuda::ElementType::kF32;
  int axis_ = 0;
  bool last_ = false;
};

class CumulateCuda final : public IPlugin {
 public:
  explicit CumulateCuda(bool product) { shape_.product = product; }
  void configure(const Config& config) override {
    const Site site = config.site();
    if (!site.is_constant(1)) throw Declined("the axis is computed at run time");
    type_ = to_reduced_type(config.combo().input(0).dtype);
    axis_ = normalize_axis(site.constant(1).integer(0), site.dims(0).rank);
    shape_.exclusive = site.attrs().flag("exclusive");
    shape_.reverse = site.attrs().flag("reverse");
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims x = inputs[0].dims;
    cuda::CumulateShape shape = shape_;
    shape.outer = x.product(0, axis_), shape.size = x[axis_], shape.inner = x.product(axis_ + 1, x.rank);
    check_cuda(cuda::cumulate(type_, shape, inputs[0].data, outputs[0].data, cuda_stream(exec)));
  }

 private:
  cuda::ElementType type_ = cuda::ElementType::kF32;
  cuda::CumulateShape shape_;
  int axis_ = 0;
};

}  // namespace

Definitions along_axis_cuda() {
  Definitions all;
  for (const int32_t dtype : {TN_F32, TN_F16, TN_I32, TN_I64}) {
    for (const bool second : {false, true}) {
      const std::string arg = second ? "tenon.arg_min" : "tenon.arg_max";
      all.add(cuda_kernel(arg + "/1", cuda_name(arg + ".teams", dtype), [second] {
                return std::make_unique<ArgCuda>(second);
              }).combo({row(dtype)}, {row(TN_I64)}));
      const std::string cumulate = second ? "tenon.cum_prod" : "tenon.cum_sum";
      all.add(cuda_kernel(cumulate + "/1", cuda_name(cumulate + ".scan", dtype),
                          [second] { return std::make_unique<CumulateCuda>(second); })
                  .combo({row(dtype), any_constant()}, {row(dtype)})
                  .supports([](const Site& site) {
                    if (!site.is_constant(1)) throw Declined("the axis is computed at run time");
                  }));
    }
  }
  return all;
}

}  // namespace tenon::plugins
