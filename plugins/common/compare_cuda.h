// Kernels on cuda::compare: operands in one row-major type each, results are bool.
#ifndef TENON_PLUGINS_COMMON_COMPARE_CUDA_H_
#define TENON_PLUGINS_COMMON_COMPARE_CUDA_H_

#include <memory>
#include <string>

#include "kernels/cuda/elementwise.h"
#include "plugins/common/cuda.h"

namespace tenon::plugins {

class CompareCuda final : public IPlugin {
 public:
  explicit CompareCuda(cuda::CompareKind kind) : kind_(kind) {}
  void configure(const Config& config) override { type_ = to_cuda_type(config.combo().input(0).dtype); }
  // is_nan compares its operand with itself.
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const TnTensor& a = inputs[0];
    const TnTensor& b = inputs[kind_ == cuda::CompareKind::kUnordered ? 0 : 1];
    cuda::BroadcastShape shape;
    if (!cuda::broadcast_shape(a.dims.rank, a.dims.d, b.dims.rank, b.dims.d, &shape)) {
      throw Invalid(text("shapes ", to_text(a.dims), " and ", to_text(b.dims), " do not broadcast"));
    }
    check_cuda(cuda::compare(kind_, type_, shape, a.data, b.data, outputs[0].data, cuda_stream(exec)));
  }

 private:
  cuda::CompareKind kind_;
  cuda::ElementType type_ = cuda::ElementType::kF32;
};

// tenon.<name>.vector.cuda, to which the caller adds combos.
inline Kernel compare_cuda_kernel(const char* name, cuda::CompareKind kind) {
  const std::string base = std::string("tenon.") + name;
  return cuda_kernel(base + "/1", base + ".vector.cuda", [kind] { return std::make_unique<CompareCuda>(kind); });
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_COMPARE_CUDA_H_
