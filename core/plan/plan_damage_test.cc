// Damaged engine files: every one is a typed error, found quickly and without touching memory that is not there.
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <random>

#include "core/plan/file_header.h"
#include "core/plan/plan_example.h"
#include "core/plan/plan_file.h"

namespace {

// What lives on the heap now, and the most since it was set to 0: a length in a file must not become an allocation.
std::atomic<std::int64_t> live{0}, most{0};

void* counted(std::size_t bytes) {
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  live += static_cast<std::int64_t>(malloc_usable_size(memory));
  if (live > most) most = live.load();
  return memory;
}

void uncounted(void* memory) {
  if (memory != nullptr) live -= static_cast<std::int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes); }
void* operator new[](std::size_t bytes) { return counted(bytes); }
void operator delete(void* memory) noexcept { uncounted(memory); }
void operator delete[](void* memory) noexcept { uncounted(memory); }
void operator delete(void* memory, std::size_t) noexcept { uncounted(memory); }
void operator delete[](void* memory, std::size_t) noexcept { uncounted(memory); }

namespace tenon {
namespace {

using testing::reseal;
using testing::with_header_value;

using Bytes = std::vector<std::uint8_t>;

const Bytes& good() {
  static const Bytes bytes = write_plan(testing::example_plan()).value();
  return bytes;
}

// Bytes at the end of an allocation of exactly their size, so that AddressSanitizer sees a read beyond them.
Status read_status(const Bytes& bytes) {
  const auto start = std::chrono::steady_clock::now();
  void* exact = ::operator new (bytes.size(), std::align_val_t{4096});
  std::shared_ptr<const void> keep_alive(exact, [](void* held) { ::operator delete (held, std::align_val_t{4096}); });
  if (!bytes.empty()) std::memcpy(exact, bytes.data(), bytes.size());
  const std::int64_t before = live;
  most = before;
  Status status = read_plan(exact, bytes.size(), keep_alive).status();
  EXPECT_LE(most - before, static_cast<std::int64_t>(bytes.size()) + 65536);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_LT(seconds.count(), 1.0);
  EXPECT_NE(status.ok(), status.message().find("again") != std::string::npos ||
                             status.message().find("give a file") != std::string::npos)
      << status.message();
  return status;
}

void expect_damaged(const Bytes& bytes, const std::string& what) {
  const Status status = read_status(bytes);
  EXPECT_EQ(status.code(), Code::kInvalid) << what << ": " << status.message();
}

TEST(PlanDamage, TheGoodFileIsGood) {
  const Status status = read_status(good());
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_GT(most, live) << "reading it allocates, and that is counted";
}

TEST(PlanDamage, Truncated) {
  const Bytes file = good();
  for (std::size_t size = 0; size <= kHeaderBytes; ++size) {
    expect_damaged(Bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)),
                   "cut at " + std::to_string(size));
  }
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    const std::size_t size = kHeaderBytes + random() % (file.size() - kHeaderBytes);
    expect_damaged(Bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)),
                   "cut at " + std::to_string(size));
  }
}

TEST(PlanDamage, LineEndsConverted) {
  Bytes converted;
  for (const std::uint8_t byte : good()) {
    if (byte == '\n') converted.push_back('\r');
    converted.push_back(byte);
  }
  const Status status = read_status(converted);
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find("line ends"), std::string::npos) << status.message();
}

TEST(PlanDamage, EveryFlippedBitIsFound) {
  const Bytes file = good();
  std::mt19937 random(2);
  for (int i = 0; i < 500; ++i) {
    Bytes flipped = file;
    const std::size_t bit = random() % (file.size() * 8);
    flipped[bit / 8] = static_cast<std::uint8_t>(flipped[bit / 8] ^ (1u << bit % 8));
    expect_damaged(flipped, "bit " + std::to_string(bit));
  }
}

TEST(PlanDamage, TrailingJunk) {
  for (const std::size_t count : {1, 64, 4096}) {
    Bytes longer = good();
    longer.insert(longer.end(), count, 0);
    const Status status = read_status(longer);
    EXPECT_EQ(status.code(), Code::kInvalid);
    EXPECT_NE(status.message().find("follow its end"), std::string::npos) << status.message();
  }
}

TEST(PlanDamage, OtherFiles) {
  Bytes png = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  EXPECT_NE(read_status(png).message().find("PNG"), std::string::npos);
  png.resize(10'000, 0x55);
  expect_damaged(png, "PNG");
  EXPECT_NE(read_status({}).message().find("empty"), std::string::npos);
  expect_damaged(Bytes(10'000, 0), "zeros");
  expect_damaged(Bytes(10'000, '\n'), "newlines");
}

TEST(PlanDamage, LengthsInTheHeader) {
  const std::string huge = "9223372036854775808";
  for (const std::string& value : {huge, std::string("18446744073709551615"), std::string("0"), std::string("-1"),
                                   std::string("99999999999999999999999"), std::string("x"), std::string()}) {
    if (value == huge || value == "0") expect_damaged(with_header_value(good(), "file_bytes", value), value);
    for (const char* section : {"plan", "constants"}) {
      for (const std::string& place : {value + " 100", "4096 " + value, value + " " + value}) {
        // The text is sealed as it stands, so that the number itself is judged.
        std::string text(good().begin(), good().begin() + kHeaderBytes);
        const std::size_t at = text.find(std::string("\n") + section + ": ") + std::strlen(section) + 3;
        const std::size_t end = text.find('\n', at);
        const std::string line = place + " 0x0000000000000000";
        text.replace(at, end - at, line);
        const std::size_t checksum_line = 36;
        std::string body = text.substr(0, text.find("   ", at));
        body.resize(kHeaderBytes - checksum_line - 1, ' ');
        body += '\n';
        std::string digits = to_text(hash64(body)).substr(2);
        digits.insert(0, 16 - digits.size(), '0');
        body += "header_checksum: 0x" + digits + "\n";
        Bytes file = good();
        std::memcpy(file.data(), body.data(), kHeaderBytes);
        expect_damaged(file, std::string(section) + " " + place);
      }
    }
  }
}

// Below the checksums: every aligned word of the plan section is overwritten and the file sealed again. What is read
// must then be refused, or be consistent.
template <class Word>
void overwrite_words(const std::vector<Word>& values) {
  const Bytes file = good();
  const FileHeader header = parse_file_header(file.data(), file.size()).value();
  for (std::uint64_t at = header.plan.offset; at + sizeof(Word) <= header.plan.offset + header.plan.size;
       at += sizeof(Word)) {
    for (const Word value : values) {
      Bytes changed = file;
      std::memcpy(changed.data() + at, &value, sizeof(value));
      const Status status = read_status(reseal(changed));
      EXPECT_TRUE(status.ok() || status.code() == Code::kInvalid) << at << ": " << status.message();
    }
  }
}

TEST(PlanDamage, LengthsInThePlan) {
  overwrite_words<std::uint64_t>({std::uint64_t{1} << 63, ~std::uint64_t{0}, 0});
  overwrite_words<std::uint32_t>({0x80000000u, 0xFFFFFFFFu, 0x7FFFFFFFu, 0x00010000u, 4u, 0u});
}

TEST(PlanDamage, RandomBytesInThePlan) {
  const Bytes file = good();
  const FileHeader header = parse_file_header(file.data(), file.size()).value();
  std::mt19937 random(3);
  for (int i = 0; i < 5000; ++i) {
    Bytes changed = file;
    for (std::uint32_t n = 1 + random() % 8; n > 0; --n) {
      changed[header.plan.offset + random() % header.plan.size] = static_cast<std::uint8_t>(random());
    }
    const Status status = read_status(reseal(changed));
    EXPECT_TRUE(status.ok() || status.code() == Code::kInvalid) << i << ": " << status.message();
  }
}

}  // namespace
}  // namespace tenon
