#include "core/device/device.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <vector>

#include <tenon/plugin/ext/parallel.h>

namespace tenon {
namespace {

class CountingAllocator final : public Allocator {
 public:
  void* allocate(std::size_t bytes, std::size_t alignment) override {
    if (refuse) return nullptr;
    ++live;
    return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  }
  void free(void* memory) override {
    --live;
    std::free(memory);
  }
  std::atomic<int> live = 0;
  bool refuse = false;
};

TEST(CpuDevice, UsesTheCallersAllocatorAndGivesEverythingBack) {
  CountingAllocator allocator;
  auto device = make_cpu_device({.threads = 1, .allocator = &allocator});
  {
    auto buffer = DeviceBuffer::allocate(device, 1000);
    ASSERT_TRUE(buffer.ok());
    EXPECT_EQ(allocator.live, 1);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % 256, 0u);
    DeviceBuffer moved = std::move(*buffer);
    EXPECT_EQ(moved.size(), 1000u);
  }
  EXPECT_EQ(allocator.live, 0);
}

TEST(CpuDevice, OutOfMemoryIsAnErrorThatNamesTheSize) {
  CountingAllocator allocator;
  allocator.refuse = true;
  auto device = make_cpu_device({.threads = 1, .allocator = &allocator});
  const auto buffer = DeviceBuffer::allocate(device, 12345);
  ASSERT_FALSE(buffer.ok());
  EXPECT_EQ(buffer.status().code(), Code::kNoMemory);
  EXPECT_NE(buffer.status().message().find("12345"), std::string::npos);
}

TEST(CpuDevice, ParallelRunsEveryIndexOnce) {
  for (int threads : {1, 2, 3}) {
    auto device = make_cpu_device({.threads = threads});
    auto stream = device->create_stream();
    TnExec exec{};
    device->prepare_exec(**stream, &exec);
    const auto* parallel = static_cast<const TnParallel*>(exec.parallel);
    EXPECT_EQ(parallel->threads, threads);
    std::vector<std::atomic<int>> seen(1000);
    parallel->run(
        parallel->context, 1000,
        [](void* argument, std::int64_t i) { ++(*static_cast<std::vector<std::atomic<int>>*>(argument))[i]; }, &seen);
    for (const auto& count : seen) EXPECT_EQ(count, 1);
  }
}

TEST(CpuDevice, SignatureNamesInstructionSetAndThreads) {
  auto device = make_cpu_device({.threads = 3});
  EXPECT_EQ(device->info().signature.rfind("cpu:", 0), 0u);
  EXPECT_NE(device->info().signature.find(":3:"), std::string::npos);
  EXPECT_STREQ(device->abi().signature, device->info().signature.c_str());
}

TEST(CpuDevice, RefusesAForeignStreamHandle) {
  auto device = make_cpu_device();
  int not_a_stream = 0;
  EXPECT_EQ(device->wrap_stream(&not_a_stream).status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace tenon
