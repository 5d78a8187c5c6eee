// tenon.arg_max/1 and tenon.arg_min/1 on kernels/cuda.
#include <memory>
#include <string>
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/top_k.h"
#include "plugins/common/cuda.h"

namespace tenon::plugins {
namespace {

class ArgCuda final : public IPlugin {
 public:
  explicit ArgCuda(bool smallest) : smallest_(smallest) {}
  void configure(const Config& config) override {
    const Attrs attrs = config.site().attrs();
    axis_ = normalize_axis(attrs.i64("axis"), config.site().dims(0).rank);
    last_ = attrs.flag("select_last_index");
    type_ = to_cuda_float(config.combo().input(0).dtype);
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims x = inputs[0].dims;
    check_cuda(cuda::arg_extreme(type_, smallest_, last_, x.product(0, axis_), x[axis_], x.product(axis_ + 1, x.rank),
                                 inputs[0].data, static_cast<int64_t*>(outputs[0].data), cuda_stream(exec)));
  }

 private:
  bool smallest_, last_ = false;
  int axis_ = 0;
  cuda::ElementType type_ = cuda::ElementType::kF32;
};

Definitions arg_max_cuda() {
  Definitions all;
  for (const bool smallest : {false, true}) {
    const std::string base = smallest ? "tenon.arg_min" : "tenon.arg_max";
    all.add(for_cuda_floats([&](int32_t dtype) {
      return cuda_kernel(base + "/1", cuda_name(base + ".lanes", dtype),
                         [smallest] { return std::make_unique<ArgCuda>(smallest); })
          .combo({row(dtype)}, {row(TN_I64)})
          .supports([](const Site& site) {
            const Dims x = site.max_dims(0);
            if (x[normalize_axis(site.attrs().i64("axis"), x.rank)] >= cuda::kTopKMostSize) {
              throw Declined("expected an axis of less than 2^31 elements");
            }
          });
    }));
  }
  return all;
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.arg_max.cuda", "1", "Apache-2.0", tenon::plugins::arg_max_cuda())
