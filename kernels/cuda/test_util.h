// What the tests share: a stream, captured launches, device buffers that notice stray writes, comparison.
#ifndef TENON_KERNELS_CUDA_TEST_UTIL_H_
#define TENON_KERNELS_CUDA_TEST_UTIL_H_

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace tenon::cuda {

inline std::vector<float> random_floats(int64_t count, uint32_t seed, float lo = -1.0f, float hi = 1.0f) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> distribution(lo, hi);
  std::vector<float> values(count);
  for (float& value : values) value = distribution(generator);
  return values;
}

inline std::vector<__half> to_half(const std::vector<float>& values) {
  std::vector<__half> result;
  for (const float value : values) result.push_back(__float2half(value));
  return result;
}

inline std::vector<float> to_floats(const std::vector<__half>& values) {
  std::vector<float> result;
  for (const __half value : values) result.push_back(__half2float(value));
  return result;
}

// Device memory `shift` bytes past a 256-byte boundary that ends with its last byte, so that memcheck notices a read of
// one element too far.
class Input {
 public:
  template <class T>
  explicit Input(const std::vector<T>& values, size_t shift = 0) : shift_(shift) {
    const size_t bytes = values.size() * sizeof(T);
    EXPECT_EQ(cudaMalloc(&memory_, bytes + shift), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(data<char>(), values.data(), bytes, cudaMemcpyHostToDevice), cudaSuccess);
  }
  ~Input() { cudaFree(memory_); }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;
  template <class T = float>
  T* data() const {
    return reinterpret_cast<T*>(static_cast<char*>(memory_) + shift_);
  }

 private:
  size_t shift_;
  void* memory_ = nullptr;
};

// Device memory `shift` bytes past a 256-byte boundary, between two canaries, filled with bytes 0xff (NaN as float).
class Output {
 public:
  explicit Output(size_t bytes, size_t shift = 0) : bytes_(bytes), before_(kCanary + shift) {
    EXPECT_EQ(cudaMalloc(&memory_, before_ + bytes + kCanary), cudaSuccess);
    EXPECT_EQ(cudaMemset(memory_, kCanaryByte, before_ + bytes + kCanary), cudaSuccess);
    EXPECT_EQ(cudaMemset(data<char>(), 0xff, bytes), cudaSuccess);
  }
  ~Output() { cudaFree(memory_); }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  template <class T = float>
  T* data() const {
    return reinterpret_cast<T*>(static_cast<char*>(memory_) + before_);
  }
  // The contents; a test failure if a canary is dead.
  template <class T = float>
  std::vector<T> get() const {
    std::vector<unsigned char> all(before_ + bytes_ + kCanary);
    EXPECT_EQ(cudaMemcpy(all.data(), memory_, all.size(), cudaMemcpyDeviceToHost), cudaSuccess);
    const auto dead = [](unsigned char byte) { return byte != kCanaryByte; };
    EXPECT_EQ(std::count_if(all.begin(), all.begin() + before_, dead), 0) << "written before the buffer";
    EXPECT_EQ(std::count_if(all.end() - kCanary, all.end(), dead), 0) << "written behind the buffer";
    std::vector<T> result(bytes_ / sizeof(T));
    if (bytes_ != 0) std::memcpy(static_cast<void*>(result.data()), all.data() + before_, bytes_);
    return result;
  }

 private:
  static constexpr size_t kCanary = 512;
  static constexpr unsigned char kCanaryByte = 0xa5;
  size_t bytes_;
  size_t before_;
  void* memory_ = nullptr;
};

class CudaTest : public testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no CUDA device";
    ASSERT_EQ(cudaStreamCreate(&stream_), cudaSuccess);
  }
  void TearDown() override {
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  // Captures what `function(stream)` launches into a graph, runs it and waits: so a function that could not be captured
  // fails here.
  template <class Function>
  void launch(const Function& function) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    EXPECT_EQ(function(stream_), cudaSuccess);
    ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    EXPECT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  }

  cudaStream_t stream_ = nullptr;
};

// Number of elements that differ by more than tolerance * max(1, |expected|); NaN and infinities must match.
inline int64_t count_mismatches(const std::vector<float>& got, const std::vector<double>& expected, double tolerance) {
  EXPECT_EQ(got.size(), expected.size());
  int64_t bad = 0;
  for (size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
    const double e = expected[i];
    const bool same = std::isnan(e) ? std::isnan(got[i])
                      : std::isinf(e)
                          ? static_cast<double>(got[i]) == e
                          : std::abs(static_cast<double>(got[i]) - e) <= tolerance * std::max(1.0, std::abs(e));
    if (!same && bad++ < 3) ADD_FAILURE() << "element " << i << " is " << got[i] << ", expected " << e;
  }
  return bad;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_TEST_UTIL_H_
