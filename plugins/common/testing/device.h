// Memory for the kernels under test. A program that links cuda_environment.cc tests those of GPUs beside those of the
// CPU; the memory of theirs is managed, so that the test reads and writes it too.
#ifndef TENON_PLUGINS_COMMON_TESTING_DEVICE_H_
#define TENON_PLUGINS_COMMON_TESTING_DEVICE_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>

namespace tenon::testing {

// What the program runs on GPUs.
struct CudaTests {
  bool enabled = false;  // plugins bring <name>_cuda along, and OpTester runs its kernels
  std::set<std::string> loaded;
  std::set<std::string> ran;
};
CudaTests& cuda_tests();

// Whether there is a GPU that this build can use.
bool have_gpu();

// Aligned to 256 bytes; `gpu`: for both. Failure ends the program.
void* allocate(uint64_t size, bool gpu);
void release(void* memory, bool gpu);

// Has the GPU do what `launches(stream)` launches, and waits; captured into a graph first if `captured`.
void run_on_gpu(bool captured, const std::function<void(void* stream)>& launches);

}  // namespace tenon::testing

#endif  // TENON_PLUGINS_COMMON_TESTING_DEVICE_H_
