// Headers of every version, and files that are too short or too long.
#include "importers/darknet/weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "importers/darknet/testing/failure_of.h"

namespace tenon::darknet {
namespace {

// A file in memory, `shift` bytes off an address that is aligned for anything.
class MemoryFile {
 public:
  explicit MemoryFile(std::string bytes, size_t shift = 0)
      : size_(bytes.size()), shift_(shift), memory_(size_ / 8 + 2) {
    std::memcpy(reinterpret_cast<char*>(memory_.data()) + shift_, bytes.data(), size_);
    source_ = {TN_HEADER(TnSource), 0, this, "x.weights", size_, map, nullptr};
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  Source source() const { return Source(&source_); }

 private:
  static TnStatus TN_CALL map(const TnSource* self, uint64_t offset, uint64_t size, const void** out) {
    const auto& file = *static_cast<const MemoryFile*>(self->context);
    if (offset > file.size_ || size > file.size_ - offset) return TN_INVALID;
    *out = reinterpret_cast<const char*>(file.memory_.data()) + file.shift_ + offset;
    return TN_OK;
  }

  size_t size_, shift_;
  std::vector<uint64_t> memory_;
  TnSource source_{};
};

template <class T>
std::string bytes_of(std::initializer_list<T> values) {
  std::string bytes;
  for (const T& value : values) bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  return bytes;
}

std::string header(int32_t major, int32_t minor, int counter_bytes, uint64_t seen = 77) {
  return bytes_of<int32_t>({major, minor, 0}) +
         bytes_of<uint64_t>({seen}).substr(0, static_cast<size_t>(counter_bytes));
}

const std::string kFloats = bytes_of<float>({1, 2, 3, 4, 5});

Section section(int index, int line) {
  Section result;
  result.type = result.written = "convolutional";
  result.file = "x.cfg";
  result.line = line;
  result.index = index;
  return result;
}

const Section kFirst = section(0, 5);
const Section kSecond = section(1, 9);

// Reads two sections of 2 and 3 floats as the importer does, and gives their sum; throws what a reader throws.
float read(const MemoryFile& file, SeenBits seen_bits = SeenBits::kAuto) {
  const WeightsHeader found = read_header(file.source(), seen_bits);
  check_length(file.source(), found, {{&kFirst, 2}, {&kSecond, 3}});
  const auto weights = file_weights(file.source(), found);
  const float* a = weights->take(Part::kBias, 2, 0, kFirst);
  const float* b = weights->take(Part::kWeights, 3, 0, kSecond);
  weights->finish();
  return a[0] + 10 * a[1] + 100 * b[0] + 1000 * b[1] + 10000 * b[2];
}

std::string failure(const std::string& bytes, SeenBits seen_bits = SeenBits::kAuto) {
  const MemoryFile file(bytes);
  return failure_of([&] { read(file, seen_bits); });
}

TEST(DarknetWeights, TheFourGoodHeaders) {
  EXPECT_EQ(read(MemoryFile(header(0, 1, 4) + kFloats)), 54321);
  EXPECT_EQ(read(MemoryFile(header(0, 2, 8) + kFloats)), 54321);
  EXPECT_EQ(read(MemoryFile(header(1, 0, 8) + kFloats)), 54321);  // 1 * 10 + 0 >= 2
  const MemoryFile revised(bytes_of<int32_t>({0, 2, 5}) + header(0, 0, 8).substr(12) + kFloats);
  EXPECT_EQ(read(revised), 54321);
  EXPECT_EQ(read_header(revised.source(), SeenBits::kAuto).revision, 5);
}

TEST(DarknetWeights, HeaderFields) {
  const MemoryFile old(header(0, 1, 4, 204800000) + kFloats);
  EXPECT_EQ(read_header(old.source(), SeenBits::kAuto).counter_bits, 32);
  EXPECT_EQ(read_header(old.source(), SeenBits::kAuto).seen, 204800000u);
  EXPECT_EQ(read_header(old.source(), SeenBits::kAuto).bytes(), 16u);
  const MemoryFile young(header(0, 2, 8, uint64_t{1} << 40) + kFloats);
  EXPECT_EQ(read_header(young.source(), SeenBits::kAuto).counter_bits, 64);
  EXPECT_EQ(read_header(young.source(), SeenBits::kAuto).seen, uint64_t{1} << 40);
  EXPECT_EQ(read_header(young.source(), SeenBits::kAuto).bytes(), 20u);
}

TEST(DarknetWeights, WrongCounterIsNamedAndCanBeOverridden) {
  const std::string bytes = header(0, 1, 8) + kFloats;
  EXPECT_EQ(
      failure(bytes),
      "x.weights: expected 36 bytes (a header of 16 bytes, version 0.1.0, 32-bit counter, and 5 floats), found 40: "
      "4 bytes too long; all layers were reached, the last is x.cfg:9: [convolutional] (layer 1). A 64-bit counter "
      "would fit exactly: set the option seen_bits=64 if the header is wrong");
  EXPECT_EQ(read(MemoryFile(bytes), SeenBits::k64), 54321);
  const std::string other = failure(header(0, 2, 4) + kFloats);
  EXPECT_NE(other.find("4 bytes too short; the file ends in x.cfg:9"), std::string::npos) << other;
  EXPECT_NE(other.find("A 32-bit counter would fit exactly: set the option seen_bits=32"), std::string::npos) << other;
  EXPECT_EQ(read(MemoryFile(header(0, 2, 4) + kFloats), SeenBits::k32), 54321);
}

TEST(DarknetWeights, WrongLength) {
  const std::string good = header(0, 2, 8) + kFloats;
  EXPECT_EQ(
      failure(good + std::string(4, '\0')),
      "x.weights: expected 40 bytes (a header of 20 bytes, version 0.2.0, 64-bit counter, and 5 floats), found 44: "
      "4 bytes too long; all layers were reached, the last is x.cfg:9: [convolutional] (layer 1). Is the file "
      "complete, and are these the weights of this cfg?");
  EXPECT_NE(failure(good + "x").find("found 41: 1 bytes too long"), std::string::npos);
  EXPECT_NE(failure(good.substr(0, 36)).find("found 36: 4 bytes too short; the file ends in x.cfg:9"),
            std::string::npos);
  EXPECT_NE(failure(good.substr(0, 35))
                .find("5 bytes too short; the file ends in x.cfg:9: [convolutional] (layer 1), "
                      "whose 3 floats are bytes 28 to 40"),
            std::string::npos);
  EXPECT_NE(failure(good.substr(0, 27)).find("the file ends in x.cfg:5: [convolutional] (layer 0)"), std::string::npos);
  EXPECT_NE(failure(good.substr(0, 20)).find("20 bytes too short; the file ends in x.cfg:5"), std::string::npos);
}

TEST(DarknetWeights, EveryTruncationIsAnError) {
  for (const std::string& good : {header(0, 2, 8) + kFloats, header(0, 1, 4) + kFloats}) {
    for (size_t size = 1; size < good.size(); ++size) EXPECT_NE(failure(good.substr(0, size)), "no failure") << size;
  }
}

TEST(DarknetWeights, WhatIsNoHeader) {
  EXPECT_NE(failure("short").find("not a Darknet weights file: expected at least the 16 bytes of a header, found 5"),
            std::string::npos);
  EXPECT_NE(failure(header(0, 2, 4)).find("expected at least the 20 bytes of a header, found 16"), std::string::npos);
  for (const auto& [major, minor] : {std::pair(1000, 2), std::pair(0, 1000), std::pair(-1, 2), std::pair(0, -7)}) {
    EXPECT_NE(failure(header(major, minor, 8) + kFloats).find("not a Darknet header"), std::string::npos) << major;
  }
  EXPECT_EQ(read(MemoryFile(header(999, 999, 8) + kFloats)), 54321);
}

TEST(DarknetWeights, SequentialReadingNamesTheSectionReached) {
  const MemoryFile file(header(0, 2, 8) + kFloats);
  const auto weights = file_weights(file.source(), read_header(file.source(), SeenBits::kAuto));
  weights->take(Part::kBias, 4, 0, kFirst);
  EXPECT_NE(failure_of([&] { weights->finish(); }).find("4 of 40 bytes are left over after the last layer"),
            std::string::npos);
  EXPECT_EQ(
      failure_of([&] { weights->take(Part::kBias, 2, 0, kSecond); }),
      "x.weights: the file ends inside x.cfg:9: [convolutional] (layer 1): it needs 2 more floats (8 bytes) at byte "
      "36, found 4 of 40 bytes left; are these the weights of this cfg, and complete?");
  EXPECT_NE(failure_of([&] { weights->take(Part::kBias, UINT64_MAX, 0, kSecond); }).find("the file ends"),
            std::string::npos);
}

TEST(DarknetWeights, OddAddresses) { EXPECT_EQ(read(MemoryFile(header(0, 2, 8) + kFloats, 1)), 54321); }

TEST(DarknetWeights, MadeUpNumbers) {
  constexpr uint64_t kCount = 100000;
  const auto weights = random_weights(1);
  const float* values = weights->take(Part::kWeights, kCount, 0.5, kFirst);
  double sum = 0, squares = 0;
  for (uint64_t n = 0; n < kCount; ++n) {
    sum += values[n];
    squares += double{values[n]} * double{values[n]};
  }
  // Four standard errors of the mean and of the mean square of that many uniform numbers.
  EXPECT_NEAR(sum / kCount, 0, 4 * 0.5 / std::sqrt(kCount));
  EXPECT_NEAR(squares / kCount, 0.25, 4 * 0.25 * std::sqrt(0.8 / kCount));
  const float first = values[0];
  const float* variances = weights->take(Part::kVariance, kCount, 0, kFirst);
  for (uint64_t n = 0; n < kCount; ++n) ASSERT_GT(variances[n], 0.5f);
  EXPECT_EQ(random_weights(1)->take(Part::kWeights, 1, 0.5, kFirst)[0], first);
  EXPECT_NE(random_weights(2)->take(Part::kWeights, 1, 0.5, kFirst)[0], first);
}

}  // namespace
}  // namespace tenon::darknet
