#include "core/device/cuda/cuda_device.h"

namespace tenon {

int cuda_device_count(std::string* why) {
  if (why != nullptr) *why = "this build of Tenon has no CUDA support; build it with the CUDA toolkit installed";
  return 0;
}

Result<std::shared_ptr<Device>> make_cuda_device(int, CudaAllocator*) {
  std::string why;
  cuda_device_count(&why);
  return Status(Code::kDevice, why);
}

const TnCuda* cuda_interface() { return nullptr; }

}  // namespace tenon
