#include "core/tuner/flow_line.h"

#include <gtest/gtest.h>

#include <random>

namespace tenon {
namespace {

std::string problem(const std::string& line) {
  const auto fields = parse_flow_line(line);
  return fields.ok() ? "" : fields.status().message();
}

TEST(FlowLine, ReadsFieldsInTheirOrder) {
  const auto fields = parse_flow_line("- {choice: 0x1, name: \"a, \\\"b\\\"\", list: [1, [2], {c: d}], none: ~, e: }");
  ASSERT_TRUE(fields.ok()) << fields.status().message();
  ASSERT_EQ(fields->size(), 5u);
  EXPECT_EQ((*fields)[0].name, "choice");
  EXPECT_EQ((*fields)[0].value, "0x1");
  EXPECT_EQ((*fields)[1].value, "a, \"b\"");
  EXPECT_FALSE((*fields)[2].value.has_value());
  EXPECT_FALSE((*fields)[3].value.has_value());
  EXPECT_FALSE((*fields)[4].value.has_value());
  EXPECT_FALSE((*fields)[2].items.has_value());
}

TEST(FlowLine, ReadsListsOfMapsOfScalars) {
  const auto fields = parse_flow_line("- {none: [], two: [{a: 1, b: }, {c: \"}, {\"}], deep: [{a: [1]}], map: {a: 1}}");
  ASSERT_TRUE(fields.ok()) << fields.status().message();
  ASSERT_EQ(fields->size(), 4u);
  ASSERT_TRUE((*fields)[0].items.has_value());
  EXPECT_TRUE((*fields)[0].items->empty());
  ASSERT_TRUE((*fields)[1].items.has_value());
  const auto& two = *(*fields)[1].items;
  ASSERT_EQ(two.size(), 2u);
  ASSERT_EQ(two[0].size(), 2u);
  EXPECT_EQ(two[0][0].name, "a");
  EXPECT_EQ(two[0][0].value, "1");
  EXPECT_EQ(two[0][1].name, "b");
  EXPECT_FALSE(two[0][1].value.has_value());
  ASSERT_EQ(two[1].size(), 1u);
  EXPECT_EQ(two[1][0].value, "}, {");
  EXPECT_FALSE((*fields)[2].items.has_value());
  EXPECT_FALSE((*fields)[3].items.has_value());
}

TEST(FlowLine, RefusesEveryOtherShape) {
  for (const char* line : {"",
                           "x",
                           "-",
                           "- ",
                           "- x",
                           "- {}",
                           "- []",
                           "- [a]",
                           "[{a: 1}, {b: 2}]",
                           "{a: 1}",
                           "a: 1",
                           "- {a: 1",
                           "- {a: 1}}",
                           "- {a: 1}, {b: 2}",
                           "- {a: 1}- {b: 2}",
                           "- {a: 1} - {b: 2}",
                           "- {a: \"1}",
                           "- {a: 1, a: 2}",
                           "- {[a]: 1}",
                           "- {{a: 1}: 1}",
                           "- {~: 1}",
                           "- a: 1",
                           "--- {a: 1}",
                           "%YAML 1.2"}) {
    EXPECT_NE(problem(line), "") << line;
  }
}

TEST(FlowLine, RefusesAnchorsAliasesAndTags) {
  EXPECT_NE(problem("- {a: &x 1}").find("anchor"), std::string::npos);
  EXPECT_NE(problem("- {a: &x [1], b: *x}").find("anchor"), std::string::npos);
  EXPECT_NE(problem("- {a: *x}"), "");
  EXPECT_NE(problem("- {a: !!binary x}").find("tag"), std::string::npos);
  EXPECT_NE(problem("- &x {a: 1}"), "");
}

TEST(FlowLine, RefusesBytesThatTextDoesNotHave) {
  EXPECT_EQ(problem("- {a: \xff}"), "byte 7 of the line is not UTF-8");
  EXPECT_NE(problem("- {a: \xc0\x80}"), "");
  EXPECT_NE(problem("- {a: \xed\xa0\x80}"), "");
  EXPECT_NE(problem("- {a: \xe2\x80}"), "");
  EXPECT_NE(problem(std::string("- {a: \0}", 8)).find("control character"), std::string::npos);
  EXPECT_EQ(problem("- {a: \xf0\x9f\x98\x80}"), "");
}

TEST(FlowLine, LongAndDeepLinesEndSoon) {
  EXPECT_NE(problem("- {a: \"" + std::string(kMaxFlowLine, 'x') + "\"}").find("more than the limit"),
            std::string::npos);
  EXPECT_EQ(problem("- {a: \"" + std::string(kMaxFlowLine / 2, 'x') + "\"}"), "");
  for (const char* piece : {"[", "{", "{a: ", "- ", "? ", "&a ", "!", "\"", "'", "{?", "a: ", ",", "|", "#"}) {
    std::string line = "- {a: ";
    while (line.size() < 100000) line += piece;
    EXPECT_NE(problem(line), "") << piece;
  }
}

TEST(FlowLine, NoBytesCrashIt) {
  std::mt19937 random(1);
  const std::string good =
      "- {choice: 0x1814870c44ff0f8574df6e3dda04cbd7, layer: \"a\\x41b\", list: [1, {b: c}], ms: 0.1}";
  const std::string special = "{}[],:#&*!|>'\"%@`?-\\ \n\t~";
  for (int round = 0; round < 20000; ++round) {
    std::string line = good;
    for (unsigned change = 0, count = 1 + random() % 4; change < count; ++change) {
      const std::size_t at = random() % line.size();
      switch (random() % 3) {
        case 0:
          line[at] = special[random() % special.size()];
          break;
        case 1:
          line.erase(at, 1 + random() % 5);
          break;
        default:
          line.insert(at, 1, static_cast<char>(random() % 256));
      }
    }
    static_cast<void>(parse_flow_line(line));
  }
}

TEST(FlowLine, TheQuickWayAgreesWithYamlCpp) {
  std::mt19937 random(2);
  const char* pieces[] = {"a", "null", "true",     "0x1f",        "0.5",     "-",         "_",  "/",
                          ".", "+",    "\"a, b\"", "\"\"",        "\" x \"", "\"a: {}\"", ": ", ": ",
                          ":", ", ",   ",",        "}",           "{",       "[",         " ",  "~",
                          "#", "\"",   "'",        "caf\xc3\xa9", "- {",     "&a",        "\\"};
  int accepted = 0;
  for (int round = 0; round < 30000; ++round) {
    std::string line = "- {";
    for (unsigned field = 0, count = 1 + random() % 3; field < count; ++field) {
      if (field > 0) line += ", ";
      line += std::string(1, static_cast<char>('a' + random() % 4)) + ": ";
      line += pieces[random() % std::size(pieces)];
      if (random() % 4 == 0) line += pieces[random() % std::size(pieces)];
    }
    line += "}";
    if (random() % 4 == 0) line.insert(random() % line.size(), pieces[random() % std::size(pieces)]);
    if (utf8_prefix(line) != line.size()) continue;
    const auto quick = parse_flow_line(line);
    const auto reference = parse_with_yaml_cpp(line);
    ASSERT_EQ(quick.ok(), reference.ok()) << line;
    if (!quick.ok()) continue;
    ++accepted;
    ASSERT_EQ(quick->size(), reference->size()) << line;
    for (std::size_t i = 0; i < quick->size(); ++i) {
      ASSERT_EQ((*quick)[i].name, (*reference)[i].name) << line;
      ASSERT_EQ((*quick)[i].value, (*reference)[i].value) << line;
    }
  }
  EXPECT_GT(accepted, 5000);
}

TEST(FlowReader, NamesTheFirstProblem) {
  const auto fields = parse_flow_line("- {key: 0x12, time: fast, flag: maybe, count: 1.5, extra: 1}");
  ASSERT_TRUE(fields.ok());
  Hash128 key;
  std::uint64_t hash = 0;
  std::int64_t count = 0;
  double time = 0;
  bool flag = false;
  {
    FlowReader reader(*fields);
    reader.take("key", &key);
    EXPECT_EQ(reader.finish().message(), "'key' is 0x12, expected 0x and 32 hex digits");
  }
  {
    FlowReader reader(*fields);
    reader.take("absent", &hash);
    EXPECT_EQ(reader.finish().message(), "the field 'absent' is missing");
  }
  {
    FlowReader reader(*fields);
    reader.take("key", &hash);
    EXPECT_EQ(hash, 0x12u);
    reader.take("time", &time);
    EXPECT_EQ(reader.finish().message(), "'time' is fast, expected a number");
  }
  {
    FlowReader reader(*fields);
    reader.take("flag", &flag);
    EXPECT_EQ(reader.finish().message(), "'flag' is maybe, expected true or false");
  }
  {
    FlowReader reader(*fields);
    reader.take_number("count", &count);
    EXPECT_EQ(reader.finish().message(), "'count' is 1.5, expected a whole number");
  }
}

TEST(FlowWriter, QuotesWhatIsNoPlainWord) {
  EXPECT_EQ(FlowWriter().add_name("a", "conv1+bn1").add_name("b", "yes").add_name("c", "1x").line(),
            "- {a: conv1+bn1, b: \"yes\", c: \"1x\"}");
  EXPECT_EQ(FlowWriter().add_quoted("a", "q\"\\\n\x02").line(), "- {a: \"q\\\"\\\\\\n\\x02\"}");
}

TEST(FlowWriter, TimesHaveNoExponent) {
  EXPECT_EQ(FlowWriter().add("a", 1e-7).add("b", 9e9).add("c", 0.011264).line(),
            "- {a: 0.0000001, b: 9000000000, c: 0.011264}");
}

TEST(Utf8, ReplacesWhatIsNone) {
  EXPECT_EQ(utf8_prefix("ab\xff"), 2u);
  EXPECT_EQ(valid_utf8("a\xff\xfe"
                       "b"),
            "a\uFFFD\uFFFD"
            "b");
  EXPECT_EQ(valid_utf8("caf\xc3\xa9"), "caf\xc3\xa9");
}

}  // namespace
}  // namespace tenon
