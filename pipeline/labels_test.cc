#include "pipeline/labels.h"

#include <gtest/gtest.h>

#include "pipeline/testing/temp_dir.h"
#include "tests/support/data_dirs.h"

namespace tenon::pipeline {
namespace {

using Words = std::vector<std::string>;

TEST(Labels, LineEndingsAndBlankLines) {
  EXPECT_EQ(parse_labels("dog\ncat"), (Words{"dog", "cat"}));
  EXPECT_EQ(parse_labels("dog\ncat\n"), (Words{"dog", "cat"}));
  EXPECT_EQ(parse_labels("dog\r\ntraffic light \r\n\r\n\n \n"), (Words{"dog", "traffic light"}));
  EXPECT_EQ(parse_labels("\xEF\xBB\xBF"
                         "dog\n\ncat\n"),
            (Words{"dog", "", "cat"}));
  EXPECT_TRUE(parse_labels("").empty());
  EXPECT_TRUE(parse_labels("\n\n").empty());
}

TEST(Labels, FilesThatCannotBeRead) {
  const testing::TempDir dir;
  EXPECT_EQ(read_labels(dir.path() / "absent.names").status().code(), Code::kNotFound);
  EXPECT_EQ(read_labels(dir.write("empty.names", "\n")).status().code(), Code::kInvalid);
  EXPECT_EQ(read_labels(dir.write("binary.names", std::string_view("a\0b", 3))).status().code(), Code::kInvalid);
}

TEST(Labels, AClassWithoutANameHasItsNumber) {
  const Words words{"dog", ""};
  EXPECT_EQ(label_of(words, 0), "dog");
  EXPECT_EQ(label_of(words, 1), "class 1");
  EXPECT_EQ(label_of(words, 2), "class 2");
  EXPECT_EQ(label_of(words, -1), "class -1");
}

TEST(Labels, CocoHasEightyNames) {
  const auto path = tenon::testing::models_dir() / "yolo-fastest-1.1-coco" / "coco.names";
  TENON_NEED_DATA(path);
  const auto labels = read_labels(path);
  ASSERT_TRUE(labels.ok());
  ASSERT_EQ(labels->size(), 80u);
  EXPECT_EQ(labels->at(16), "dog");
}

}  // namespace
}  // namespace tenon::pipeline
