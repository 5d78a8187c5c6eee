#include "pipeline/files.h"

#include <gtest/gtest.h>

#include "pipeline/testing/temp_dir.h"

namespace tenon::pipeline {
namespace {

using testing::TempDir;

TEST(Files, ReadsBackWhatWasWritten) {
  const TempDir dir;
  const std::vector<std::uint8_t> bytes{0, 1, 255, 10, 13};
  ASSERT_TRUE(write_file_atomically(dir.path() / "a.bin", bytes).ok());
  const auto read = read_file(dir.path() / "a.bin", 5);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, bytes);
  EXPECT_EQ(dir.entries(), 1u);
}

TEST(Files, ReplacesAnOlderFile) {
  const TempDir dir;
  const auto path = dir.write("a.bin", "older and longer");
  const std::vector<std::uint8_t> bytes{7};
  ASSERT_TRUE(write_file_atomically(path, bytes).ok());
  EXPECT_EQ(*read_file(path, 100), bytes);
}

TEST(Files, SaysWhyAFileCannotBeRead) {
  const TempDir dir;
  EXPECT_EQ(read_file(dir.path() / "absent", 10).status().code(), Code::kNotFound);
  EXPECT_EQ(read_file(dir.path(), 10).status().code(), Code::kInvalid);
  const auto path = dir.write("eleven", "01234567890");
  EXPECT_EQ(read_file(path, 10).status().code(), Code::kInvalid);
}

TEST(Files, LeavesNothingBehindOnFailure) {
  const TempDir dir;
  const std::vector<std::uint8_t> bytes{1};
  EXPECT_EQ(write_file_atomically(dir.path() / "no" / "such" / "folder.png", bytes).code(), Code::kIo);
  EXPECT_EQ(write_file_atomically(dir.path(), bytes).code(), Code::kInvalid);
  EXPECT_EQ(dir.entries(), 0u);
}

}  // namespace
}  // namespace tenon::pipeline
