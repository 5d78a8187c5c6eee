// Needs a GPU for all but the first test. Expected values by hand.
#include "core/device/cuda/cuda_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace tenon {
namespace {

TEST(CudaDevices, AnOrdinalThatIsNotThereIsAnErrorWithTheReason) {
  std::string why;
  const int count = cuda_device_count(&why);
  EXPECT_EQ(count == 0, !why.empty());
  const auto device = make_cuda_device(count);
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.status().code(), Code::kDevice);
  EXPECT_FALSE(device.status().message().empty());
}

class CudaDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    if (cuda_device_count(&why) == 0) GTEST_SKIP() << why;
    device_ = *make_cuda_device(0);
    stream_ = *device_->create_stream();
  }
  DeviceBuffer upload(const std::vector<float>& values) {
    DeviceBuffer buffer = *DeviceBuffer::allocate(device_, values.size() * sizeof(float));
    EXPECT_TRUE(device_->copy_to_device(buffer.data(), values.data(), buffer.size(), *stream_).ok());
    return buffer;
  }
  std::vector<float> download(const DeviceBuffer& buffer) {
    std::vector<float> values(buffer.size() / sizeof(float));
    EXPECT_TRUE(device_->copy_to_host(values.data(), buffer.data(), buffer.size(), *stream_).ok());
    EXPECT_TRUE(stream_->synchronize().ok());
    return values;
  }

  std::shared_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
};

TEST_F(CudaDeviceTest, MemoryGoesThereAndBack) {
  const std::vector<float> values = {1, -2, 3.5f};
  const DeviceBuffer buffer = upload(values);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 256, 0u);
  EXPECT_EQ(download(buffer), values);
  EXPECT_TRUE(device_->reaches(buffer.data()));
  EXPECT_FALSE(device_->reaches(values.data()));
  EXPECT_TRUE(device_->fill(buffer.data(), 0, buffer.size(), *stream_).ok());
  EXPECT_EQ(download(buffer), std::vector<float>(3));
}

TEST_F(CudaDeviceTest, TooMuchMemoryIsAnErrorThatNamesTheSizeAndHarmsNothing) {
  const auto buffer = DeviceBuffer::allocate(device_, std::size_t{1} << 50);
  ASSERT_FALSE(buffer.ok());
  EXPECT_EQ(buffer.status().code(), Code::kNoMemory);
  EXPECT_NE(buffer.status().message().find("1125899906842624"), std::string::npos) << buffer.status().message();
  EXPECT_TRUE(DeviceBuffer::allocate(device_, 1024).ok());
}

TEST_F(CudaDeviceTest, TheCallersAllocatorGivesAllMemory) {
  class Counting final : public CudaAllocator {
   public:
    explicit Counting(std::shared_ptr<Device> source) : source_(std::move(source)) {}
    void* allocate(int, std::size_t bytes) override {
      ++live;
      return *source_->allocate(bytes);
    }
    void free(int, void* memory) override {
      --live;
      source_->free(memory);
    }
    int live = 0;

   private:
    std::shared_ptr<Device> source_;
  } allocator(device_);
  const auto device = *make_cuda_device(0, &allocator);
  {
    const DeviceBuffer buffer = *DeviceBuffer::allocate(device, 100);
    EXPECT_EQ(allocator.live, 1);
  }
  EXPECT_EQ(allocator.live, 0);
}

TEST_F(CudaDeviceTest, StridedCopies) {
  // A 2x3 matrix transposed: to[j][i] = from[i][j].
  const DeviceBuffer from = upload({0, 1, 2, 3, 4, 5}), to = upload(std::vector<float>(6, -1));
  TnDims dims{};
  dims.rank = 2;
  dims.d[0] = 2;
  dims.d[1] = 3;
  const std::int64_t to_strides[] = {1, 2}, from_strides[] = {3, 1};
  ASSERT_TRUE(device_->copy_strided(to.data(), to_strides, from.data(), from_strides, dims, 4, *stream_).ok());
  EXPECT_EQ(download(to), (std::vector<float>{0, 3, 1, 4, 2, 5}));
}

TEST_F(CudaDeviceTest, ExpressionsAreThoseOfTheHost) {
  // max(x, 0) + exp(-|x|)
  const TnExprInstr instrs[] = {{TN_EX_INPUT, TN_F32, -1, -1, -1, 0, 0}, {TN_EX_CONSTANT, TN_F32, -1, -1, -1, 0, 0},
                                {TN_EX_MAX, TN_F32, 0, 1, -1, 0, 0},     {TN_EX_ABS, TN_F32, 0, -1, -1, 0, 0},
                                {TN_EX_NEG, TN_F32, 3, -1, -1, 0, 0},    {TN_EX_EXP, TN_F32, 4, -1, -1, 0, 0},
                                {TN_EX_ADD, TN_F32, 2, 5, -1, 0, 0}};
  const TnExpr expression{TN_HEADER(TnExpr), 7, instrs};
  std::vector<float> values(1000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = (static_cast<float>(i) - 500) / 100;
  const DeviceBuffer buffer = upload(values);
  ASSERT_TRUE(device_->apply_expression(expression, static_cast<float*>(buffer.data()), 1000, stream_->handle()).ok());
  const std::vector<float> found = download(buffer);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = values[i];
    EXPECT_NEAR(found[i], std::max(x, 0.0) + std::exp(-std::abs(x)), 1e-6) << x;
  }
  const TnExprInstr unknown[] = {{999, TN_F32, -1, -1, -1, 0, 0}};
  const TnExpr bad{TN_HEADER(TnExpr), 1, unknown};
  EXPECT_EQ(device_->apply_expression(bad, static_cast<float*>(buffer.data()), 1000, stream_->handle()).code(),
            Code::kDeclined);
}

TEST_F(CudaDeviceTest, RecordingsRunWhenLaunchedAndTakeNewAddresses) {
  const DeviceBuffer one = upload({1, 1}), two = upload({2, 2});
  const auto zero = [&](const DeviceBuffer& buffer) {
    return [&] { return device_->fill(buffer.data(), 0, buffer.size(), *stream_); };
  };
  auto recording = device_->record(*stream_, zero(one));
  ASSERT_TRUE(recording.ok()) << recording.status().message();
  EXPECT_EQ((*recording)->launches(), 1u);
  EXPECT_EQ(download(one), (std::vector<float>{1, 1})) << "recording must not run anything";
  ASSERT_TRUE((*recording)->launch(*stream_).ok());
  EXPECT_EQ(download(one), (std::vector<float>{0, 0}));
  recording = device_->record(*stream_, zero(two), std::move(*recording));
  ASSERT_TRUE(recording.ok()) << recording.status().message();
  ASSERT_TRUE((*recording)->launch(*stream_).ok());
  EXPECT_EQ(download(two), (std::vector<float>{0, 0}));
  const auto both = device_->record(*stream_, [&]() -> Status {
    TENON_RETURN_IF_ERROR(zero(one)());
    return device_->copy_to_device(one.data(), two.data(), two.size(), *stream_);
  });
  ASSERT_TRUE(both.ok()) << both.status().message();
  EXPECT_EQ((*both)->launches(), 2u);
  const auto failed = device_->record(*stream_, [] { return Status(Code::kInternal, "the body's own"); });
  EXPECT_EQ(failed.status().message(), "the body's own");
}

TEST_F(CudaDeviceTest, AStreamWaitsForWhatWasLaunchedOnAnother) {
  constexpr std::size_t kLarge = std::size_t{1} << 28;
  const DeviceBuffer large = *DeviceBuffer::allocate(device_, kLarge);
  const DeviceBuffer small = upload({1, 2});
  ASSERT_TRUE(stream_->synchronize().ok());
  const auto other = *device_->create_stream();
  const auto launched = *device_->create_event();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(device_->fill(large.data(), i, kLarge, *other).ok());  // some milliseconds
  ASSERT_TRUE(device_->fill(small.data(), 0, small.size(), *other).ok());
  ASSERT_TRUE(launched->record(*other).ok());
  ASSERT_TRUE(stream_->wait_for(*launched).ok());
  EXPECT_EQ(download(small), (std::vector<float>{0, 0}));
}

TEST_F(CudaDeviceTest, ARecordingHoldsWhatOtherStreamsDoBetweenForkAndJoin) {
  const DeviceBuffer one = upload({1, 2}), two = upload({3, 4});
  const auto other = *device_->create_stream();
  const auto fork = *device_->create_event(), join = *device_->create_event();
  const auto both = [&]() -> Status {
    TENON_RETURN_IF_ERROR(fork->record(*stream_));
    TENON_RETURN_IF_ERROR(other->wait_for(*fork));
    TENON_RETURN_IF_ERROR(device_->fill(two.data(), 0, two.size(), *other));
    TENON_RETURN_IF_ERROR(join->record(*other));
    TENON_RETURN_IF_ERROR(device_->fill(one.data(), 0, one.size(), *stream_));
    return stream_->wait_for(*join);
  };
  const auto recording = device_->record(*stream_, both);
  ASSERT_TRUE(recording.ok()) << recording.status().message();
  EXPECT_EQ(download(two), (std::vector<float>{3, 4})) << "recording runs nothing";
  ASSERT_TRUE((*recording)->launch(*stream_).ok());
  EXPECT_EQ(download(one), (std::vector<float>{0, 0}));
  EXPECT_EQ(download(two), (std::vector<float>{0, 0}));
  // Without the join the launches of the other stream would be lost; afterwards both streams work as before.
  const auto open_end = device_->record(*stream_, [&]() -> Status {
    TENON_RETURN_IF_ERROR(fork->record(*stream_));
    TENON_RETURN_IF_ERROR(other->wait_for(*fork));
    return device_->fill(two.data(), 0, two.size(), *other);
  });
  EXPECT_EQ(open_end.status().code(), Code::kDeclined);
  EXPECT_TRUE(device_->fill(two.data(), 0, two.size(), *other).ok());
  EXPECT_TRUE(other->synchronize().ok());
}

TEST_F(CudaDeviceTest, EventsTellTimes) {
  const auto start = *device_->create_event(), end = *device_->create_event();
  ASSERT_TRUE(start->record(*stream_).ok());
  ASSERT_TRUE(end->record(*stream_).ok());
  ASSERT_TRUE(end->wait().ok());
  EXPECT_GE(*end->elapsed_ms(*start), 0);
}

TEST_F(CudaDeviceTest, HandlesAreMadeOnceAStreamAndDestroyedWithIt) {
  static int live = 0, made = 0;
  {
    auto stream = *device_->create_stream();
    TnExec exec{};
    device_->prepare_exec(*stream, &exec);
    EXPECT_EQ(exec.stream, stream->handle());
    const auto* handles = static_cast<const TnCudaHandles*>(exec.handles);
    for (int i = 0; i < 3; ++i) {
      void* object = nullptr;
      ASSERT_EQ(handles->get(
                    handles, "test.counter",
                    [](void*, void** out) -> TnStatus {
                      ++live;
                      ++made;
                      *out = &live;
                      return TN_OK;
                    },
                    [](void*) { --live; }, &object),
                TN_OK);
      EXPECT_EQ(object, &live);
    }
    EXPECT_EQ(made, 1);
  }
  EXPECT_EQ(live, 0);
}

TEST_F(CudaDeviceTest, PropertiesForPlugins) {
  TnCudaProperties properties{};
  ASSERT_EQ(cuda_interface()->properties(0, &properties), TN_OK);
  EXPECT_GE(properties.sm, 50);
  EXPECT_GT(properties.memory, 0u);
  EXPECT_EQ(cuda_interface()->properties(99, &properties), TN_NOTFOUND);
}

}  // namespace
}  // namespace tenon
