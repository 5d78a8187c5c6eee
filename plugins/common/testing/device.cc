#include "plugins/common/testing/device.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#ifdef TENON_TESTING_CUDA
#include <cuda_runtime_api.h>
#endif

namespace tenon::testing {

CudaTests& cuda_tests() {
  static CudaTests tests;
  return tests;
}

#ifdef TENON_TESTING_CUDA

namespace {
void check(cudaError_t error) { ASSERT_EQ(error, cudaSuccess) << cudaGetErrorString(error); }
}  // namespace

bool have_gpu() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
}

void* allocate(uint64_t size, bool gpu) {
  void* memory = nullptr;
  if (gpu) {
    check(cudaMallocManaged(&memory, size));
  } else {
    memory = std::aligned_alloc(256, (size + 255) / 256 * 256);
  }
  if (memory == nullptr) std::abort();
  return memory;
}

void release(void* memory, bool gpu) {
  if (gpu) {
    check(cudaFree(memory));
  } else {
    std::free(memory);
  }
}

void run_on_gpu(bool captured, const std::function<void(void* stream)>& launches) {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  check(cudaStreamCreate(&stream));
  if (captured) check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  launches(stream);
  if (captured) {
    check(cudaStreamEndCapture(stream, &graph));
    check(cudaGraphInstantiate(&exec, graph, 0));
    check(cudaGraphLaunch(exec, stream));
  }
  check(cudaStreamSynchronize(stream));
  if (captured) {
    check(cudaGraphExecDestroy(exec));
    check(cudaGraphDestroy(graph));
  }
  check(cudaStreamDestroy(stream));
}

#else

bool have_gpu() { return false; }
void* allocate(uint64_t size, bool) {
  void* memory = std::aligned_alloc(256, (size + 255) / 256 * 256);
  if (memory == nullptr) std::abort();
  return memory;
}
void release(void* memory, bool) { std::free(memory); }
void run_on_gpu(bool, const std::function<void(void* stream)>&) { ADD_FAILURE() << "built without CUDA"; }

#endif

}  // namespace tenon::testing
