// A stranger's kernel that writes to an address where there is no memory: after it the GPU is lost to the process.
#include <tenon/sdk/plugin.hpp>

namespace {

__global__ void write_nowhere(float* nowhere) { *nowhere = 1; }

class BreaksGpu final : public tenon::IPlugin {
 public:
  void enqueue(const tenon::Exec& exec, const TnTensor*, const TnTensor*) const override {
    write_nowhere<<<1, 1, 0, static_cast<cudaStream_t>(exec.stream())>>>(nullptr);
  }
};

}  // namespace

TENON_PLUGIN("acme.breaks_gpu", "1.0", "Apache-2.0",
             tenon::kernel<BreaksGpu>("tenon.max_pool/1", "acme.max_pool.broken.f32.cuda")
                 .cuda()
                 .combo({tenon::f32_row()}, {tenon::f32_row()})
                 .deterministic()
                 .graph_capturable())
