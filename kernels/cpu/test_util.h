// What the kernel tests share: the instruction sets to try, threads, buffers that notice stray writes, comparison.
#ifndef TENON_KERNELS_CPU_TEST_UTIL_H_
#define TENON_KERNELS_CPU_TEST_UTIL_H_

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"

namespace tenon::cpu {

inline std::vector<Isa> available_isas() {
  std::vector<Isa> isas;
  for (int i = 0; i <= static_cast<int>(detect_isa()); ++i) isas.push_back(static_cast<Isa>(i));
  return isas;
}

// Indices are dealt to the threads as they come, so any order and assignment may occur.
inline Parallel make_parallel(int threads) {
  Parallel parallel;
  parallel.threads = threads;
  if (threads <= 1) return parallel;
  static int counts[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  parallel.context = &counts[threads];
  parallel.run = [](void* context, int64_t count, void (*body)(void*, int64_t), void* arg) {
    std::atomic<int64_t> next{0};
    std::vector<std::thread> team;
    for (int t = 0; t < *static_cast<int*>(context); ++t) {
      team.emplace_back([&] {
        for (int64_t i; (i = next.fetch_add(1)) < count;) body(arg, i);
      });
    }
    for (std::thread& thread : team) thread.join();
  };
  return parallel;
}

// Memory at a 64-byte boundary (plus `shift` bytes) between two canaries, filled with bytes 0xff (NaN as float).
class Buffer {
 public:
  explicit Buffer(size_t bytes, size_t shift = 0) : bytes_(bytes), storage_(bytes + shift + 3 * kCanary + 64) {
    std::fill(storage_.begin(), storage_.end(), kCanaryByte);
    auto address = reinterpret_cast<uintptr_t>(storage_.data()) + kCanary;
    begin_ = storage_.data() + ((address + 63) / 64 * 64 - reinterpret_cast<uintptr_t>(storage_.data())) + shift;
    std::fill_n(begin_, bytes, static_cast<unsigned char>(0xff));
  }
  template <class T = float>
  T* data() {
    return reinterpret_cast<T*>(begin_);
  }
  float& operator[](int64_t i) { return data<float>()[i]; }
  bool intact() const {
    for (const unsigned char* p = storage_.data(); p != begin_; ++p) {
      if (*p != kCanaryByte) return false;
    }
    for (const unsigned char* p = begin_ + bytes_; p != storage_.data() + storage_.size(); ++p) {
      if (*p != kCanaryByte) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kCanary = 256;
  static constexpr unsigned char kCanaryByte = 0xa5;
  size_t bytes_;
  std::vector<unsigned char> storage_;
  unsigned char* begin_;
};

// A read-only copy that ends where an unreadable page begins, so that reading one byte too far crashes the test.
class Guarded {
 public:
  explicit Guarded(const std::vector<float>& values) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t bytes = values.size() * sizeof(float);
    const size_t used = (bytes + page - 1) / page * page;
    mapped_ = used + page;
    void* memory = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    memory_ = static_cast<unsigned char*>(memory);
    data_ = memory_ + used - bytes;
    if (bytes != 0) std::memcpy(data_, values.data(), bytes);
    if (used != 0) mprotect(memory_, used, PROT_READ);
    mprotect(memory_ + used, page, PROT_NONE);
  }
  ~Guarded() { munmap(memory_, mapped_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  const float* data() const { return reinterpret_cast<const float*>(data_); }
  float operator[](int64_t i) const { return data()[i]; }

 private:
  size_t mapped_;
  unsigned char* memory_;
  unsigned char* data_;
};

inline std::vector<float> random_floats(int64_t count, uint32_t seed, float lo = -1.0f, float hi = 1.0f) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> distribution(lo, hi);
  std::vector<float> values(count);
  for (float& value : values) value = distribution(generator);
  return values;
}

// Number of elements that differ by more than tolerance * max(1, |expected|); NaN and infinities must match.
inline int64_t count_mismatches(const float* got, const std::vector<double>& expected, double tolerance) {
  int64_t bad = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double e = expected[i];
    const bool same = std::isnan(e) ? std::isnan(got[i])
                      : std::isinf(e)
                          ? static_cast<double>(got[i]) == e
                          : std::abs(static_cast<double>(got[i]) - e) <= tolerance * std::max(1.0, std::abs(e));
    if (!same && bad++ < 3) {
      ADD_FAILURE() << "element " << i << " is " << got[i] << ", expected " << e;
    }
  }
  return bad;
}

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_TEST_UTIL_H_
