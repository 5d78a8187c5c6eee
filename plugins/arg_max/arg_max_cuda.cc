// tenon.arg_max/1 and tenon.arg_min/1 on kernels/cuda.
#include <memory>
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/arg_extreme.h"
#include "plugins/common/cuda.h"

namespace tenon::plugins {
namespace {

class ArgCuda final : public IPlugin {
 public:
  explicit ArgCuda(bool smallest) : smallest_(smallest) {}
  void configure(const Config& config) override {
    const Site site = config.site();
    type_ = to_cuda_number(config.combo().input(0).dtype);
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

Definitions arg_max_cuda() {
  Definitions all;
  for (const int32_t dtype : {TN_F32, TN_F16, TN_I32, TN_I64}) {
    for (const bool second : {false, true}) {
      const std::string name = second ? "tenon.arg_min" : "tenon.arg_max";
      all.add(cuda_kernel(name + "/1", cuda_name(name + ".teams", dtype), [second] {
                return std::make_unique<ArgCuda>(second);
              }).combo({row(dtype)}, {row(TN_I64)}));
    }
  }
  return all;
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.arg_max.cuda", "1", "Apache-2.0", tenon::plugins::arg_max_cuda())
