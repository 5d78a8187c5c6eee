#include "pipeline/yaml_section.h"

#include <gtest/gtest.h>

#include "pipeline/testing/temp_dir.h"
#include "pipeline/units.h"

namespace tenon::pipeline {
namespace {

class YamlSectionTest : public ::testing::Test {
 protected:
  YamlSection section(const std::string& text) { return YamlSection(reader_, YAML::Load(text), ""); }

  std::string only_problem() const {
    if (reader_.problems.size() != 1) return std::to_string(reader_.problems.size()) + " problems";
    const ConfigProblem& p = reader_.problems[0];
    return std::to_string(p.line) + ":" + std::to_string(p.column) + " " + p.message;
  }

  YamlReader reader_{"/base",
                     [](const std::string& name) -> std::optional<std::string> {
                       if (name == "DIR") return "/models";
                       return {};
                     },
                     {}};
};

TEST_F(YamlSectionTest, GettersReadTheirTypes) {
  YamlSection s = section("t: word\nb: true\ni: -3\nn: 0.5\nc: two\nl: [1, 1/4]\none: 2\nd: 30s\n");
  EXPECT_EQ(s.text("t"), "word");
  EXPECT_EQ(s.boolean("b"), true);
  EXPECT_EQ(s.integer("i", -5, 5), -3);
  EXPECT_EQ(s.number("n", 0, 1), 0.5);
  EXPECT_EQ(s.choice("c", std::vector<std::string>{"one", "two"}), 1u);
  EXPECT_EQ(s.numbers("l"), (std::vector<double>{1, 0.25}));
  EXPECT_EQ(s.numbers("one"), (std::vector<double>{2}));
  EXPECT_EQ(s.parsed("d", parse_duration), 30.0);
  EXPECT_EQ(s.text("absent"), std::nullopt);
  s.finish();
  EXPECT_TRUE(reader_.problems.empty()) << only_problem();
}

TEST_F(YamlSectionTest, WrongTypesAreReportedAtTheirPlace) {
  YamlSection s = section("a: 1\nb:   maybe\n");
  EXPECT_EQ(s.boolean("b"), std::nullopt);
  EXPECT_EQ(only_problem(), "2:6 'b': expected true or false, found 'maybe'");
  reader_.problems.clear();
  EXPECT_EQ(s.integer("a", 2, 9), std::nullopt);
  EXPECT_EQ(only_problem(), "1:4 'a': expected a whole number from 2 to 9, found '1'");
}

TEST_F(YamlSectionTest, ListsAndMappingsAreNoSingleValues) {
  EXPECT_EQ(section("a: [1]").text("a"), std::nullopt);
  EXPECT_EQ(only_problem(), "1:4 'a': expected a single value, found a list");
  reader_.problems.clear();
  section("a: word").section("a");
  EXPECT_EQ(only_problem(), "1:4 'a': expected a mapping (key: value), found a single value");
  reader_.problems.clear();
  section("a: word").sections("a");
  EXPECT_EQ(only_problem(), "1:4 'a': expected a list (lines that begin with '- '), found a single value");
  reader_.problems.clear();
  section("a:").integer("a", 0, 1);
  EXPECT_NE(only_problem().find("found no value"), std::string::npos) << only_problem();
}

TEST_F(YamlSectionTest, UnknownKeysNameTheNearest) {
  YamlSection s = section("lables: x\n");
  (void)s.text("labels");
  (void)s.text("nms");
  s.finish();
  EXPECT_EQ(only_problem(), "1:1 unknown key 'lables'; did you mean 'labels'?");
  EXPECT_EQ(reader_.problems[0].nearest, "labels");
  EXPECT_EQ(reader_.problems[0].key, "lables");
}

TEST_F(YamlSectionTest, KeysGivenTwiceAreReported) {
  (void)section("a: 1\nb: 2\na: 3\n");
  EXPECT_EQ(only_problem(), "3:1 'a' is given twice, first in line 1; keep one");
}

TEST_F(YamlSectionTest, EnvironmentVariables) {
  EXPECT_EQ(section("a: ${DIR}/x-${DIR}").text("a"), "/models/x-/models");
  EXPECT_EQ(section("a: $5 {}").text("a"), "$5 {}");
  EXPECT_TRUE(reader_.problems.empty());
  EXPECT_EQ(section("a: ${NOPE}").text("a"), std::nullopt);
  EXPECT_NE(only_problem().find("'NOPE' is not set"), std::string::npos) << only_problem();
  reader_.problems.clear();
  EXPECT_EQ(section("a: '${DIR'").text("a"), std::nullopt);
  EXPECT_NE(only_problem().find("without '}'"), std::string::npos) << only_problem();
}

TEST_F(YamlSectionTest, PathsStartFromTheBase) {
  EXPECT_EQ(section("a: ../x.cfg").path("a", false), "/x.cfg");
  EXPECT_EQ(section("a: ${DIR}/x.cfg").path("a", false), "/models/x.cfg");
  EXPECT_TRUE(reader_.problems.empty());
  EXPECT_EQ(section("a: no-such-file").path("a", true), std::nullopt);
  EXPECT_NE(only_problem().find("/base/no-such-file does not exist"), std::string::npos) << only_problem();
  const testing::TempDir dir;
  reader_.base = dir.path();
  reader_.problems.clear();
  dir.write("here", "");
  EXPECT_EQ(section("a: here").path("a", true), dir.path() / "here");
  EXPECT_EQ(section("a: .").path("a", true), std::nullopt);
  EXPECT_NE(only_problem().find("is not a file"), std::string::npos) << only_problem();
}

}  // namespace
}  // namespace tenon::pipeline
