#include "pipeline/units.h"

#include <gtest/gtest.h>

namespace tenon::pipeline {
namespace {

TEST(ParseSize, UnitsOf1024AndOf1000) {
  EXPECT_EQ(*parse_size("0"), 0u);
  EXPECT_EQ(*parse_size("1048576"), 1048576u);
  EXPECT_EQ(*parse_size("256MiB"), 268435456u);
  EXPECT_EQ(*parse_size(" 1.5 GiB "), 1610612736u);
  EXPECT_EQ(*parse_size("2GB"), 2000000000u);
  EXPECT_EQ(*parse_size("7B"), 7u);
  EXPECT_EQ(*parse_size("1KiB"), 1024u);
  EXPECT_EQ(*parse_size("1TiB"), 1099511627776u);
}

TEST(ParseSize, Refuses) {
  for (const char* text :
       {"", "MiB", "-1", "256Mib", "1 MiB x", "nan", "inf", "1e300", "99999999TiB", "0x10", "1,5GiB"}) {
    const auto size = parse_size(text);
    EXPECT_FALSE(size.ok()) << text;
    EXPECT_EQ(size.status().code(), Code::kInvalid);
  }
  EXPECT_NE(parse_size("5 pounds").status().message().find("MiB"), std::string::npos);
}

TEST(ParseDuration, Units) {
  EXPECT_DOUBLE_EQ(*parse_duration("30s"), 30);
  EXPECT_DOUBLE_EQ(*parse_duration("30"), 30);
  EXPECT_DOUBLE_EQ(*parse_duration("250ms"), 0.25);
  EXPECT_DOUBLE_EQ(*parse_duration("1.5 min"), 90);
  EXPECT_DOUBLE_EQ(*parse_duration("2h"), 7200);
  EXPECT_DOUBLE_EQ(*parse_duration("50us"), 5e-5);
  for (const char* text : {"", "s", "-1s", "3 days", "1s1", "nan"}) EXPECT_FALSE(parse_duration(text).ok()) << text;
}

TEST(ParseFraction, NumbersAndQuotients) {
  EXPECT_EQ(*parse_fraction("1/255"), 1.0 / 255.0);
  EXPECT_EQ(*parse_fraction("0.5"), 0.5);
  EXPECT_EQ(*parse_fraction(" 3 / 4 "), 0.75);
  for (const char* text : {"", "/", "1/", "/2", "1/0", "1/2/3", "a/b", "1/nan"}) {
    EXPECT_FALSE(parse_fraction(text).ok()) << text;
  }
}

TEST(ParseInteger, WholeNumbersOnly) {
  EXPECT_EQ(*parse_integer("-42"), -42);
  for (const char* text : {"", "1.5", "1e3", "0x10", "9223372036854775808", "1 2"}) {
    EXPECT_FALSE(parse_integer(text).ok()) << text;
  }
}

TEST(ParseHash, PrintedForm) {
  EXPECT_EQ(*parse_hash("0x665ded9abbf88"), 0x665ded9abbf88u);
  EXPECT_EQ(*parse_hash("0xFFFFFFFFFFFFFFFF"), ~std::uint64_t{0});
  for (const char* text : {"", "0x", "665", "0x-1", "0x1g", "0x10000000000000000"}) {
    EXPECT_FALSE(parse_hash(text).ok()) << text;
  }
}

TEST(SizeText, ReadsWell) {
  EXPECT_EQ(size_text(12), "12 B");
  EXPECT_EQ(size_text(268435456), "256 MiB");
  EXPECT_EQ(size_text(1610612736), "1.5 GiB");
}

TEST(EditDistance, KnownPairs) {
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("same", "same"), 0);
  EXPECT_EQ(edit_distance("treshold", "threshold"), 1);
  EXPECT_EQ(edit_distance("lables", "labels"), 1);  // neighbours swapped
}

TEST(NearestWord, FirstOfTheNearest) {
  const std::vector<std::string> words{"threshold", "nms", "labels"};
  EXPECT_EQ(nearest_word("treshhold", words), "threshold");
  EXPECT_EQ(nearest_word("nsm", words), "nms");
  EXPECT_EQ(nearest_word("x", {}), "");
  EXPECT_TRUE(similar_words("treshhold", "threshold"));
  EXPECT_FALSE(similar_words("colour_space", "nms"));
  EXPECT_FALSE(similar_words("x", "y"));
}

TEST(GlobMatch, StarsAndQuestionMarks) {
  EXPECT_TRUE(glob_match("conv1*", "conv1"));
  EXPECT_TRUE(glob_match("conv1*", "conv12_bn"));
  EXPECT_FALSE(glob_match("conv1*", "xconv1"));
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("l?yer*1", "layer_2_1"));
  EXPECT_FALSE(glob_match("layer", "layer1"));
  EXPECT_FALSE(glob_match("?", ""));
  EXPECT_FALSE(glob_match("*a*a*a*a*a*a*a*a*b", std::string(2000, 'a')));
}

}  // namespace
}  // namespace tenon::pipeline
