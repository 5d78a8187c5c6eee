#include "pipeline/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>

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

TEST(Files, SaysBeforeTheWorkThatAFileCannotBeWritten) {
  const TempDir dir;
  EXPECT_TRUE(check_writable(dir.path() / "new.bin").ok());
  EXPECT_TRUE(check_writable(dir.write("old.bin", "old")).ok());
  EXPECT_TRUE(check_writable("in_the_current_folder.bin").ok());
  const Status no_folder = check_writable(dir.path() / "no" / "file.bin");
  EXPECT_EQ(no_folder.code(), Code::kIo);
  EXPECT_NE(no_folder.message().find("no/file.bin"), std::string::npos) << no_folder.message();
  EXPECT_EQ(check_writable(dir.path()).code(), Code::kInvalid);
  EXPECT_EQ(check_writable("").code(), Code::kInvalid);
  EXPECT_EQ(dir.entries(), 1u);
}

// `--report /dev/null`, by root, once replaced the device by a file.
TEST(Files, DevicesAndPipesAreWrittenToAndNotReplaced) {
  const TempDir dir;
  const auto path = dir.path() / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] {
    std::ifstream pipe(path);
    std::getline(pipe, got);
  });
  const std::vector<std::uint8_t> bytes{'h', 'i'};
  EXPECT_TRUE(write_file_atomically(path, bytes).ok());
  reader.join();
  EXPECT_EQ(got, "hi");
  EXPECT_TRUE(std::filesystem::is_fifo(path));
  EXPECT_EQ(dir.entries(), 1u);
}

}  // namespace
}  // namespace tenon::pipeline
