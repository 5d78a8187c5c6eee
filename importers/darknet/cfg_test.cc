// The syntax cases that users of Darknet cfg files meet; expected values are Darknet's own behaviour unless said.
#include "importers/darknet/cfg.h"

#include <gtest/gtest.h>

#include "importers/darknet/layers.h"
#include "importers/darknet/testing/failure_of.h"

namespace tenon::darknet {
namespace {

struct Parsed {
  Cfg cfg;
  std::vector<std::string> warnings;
};

Parsed parse(const std::string& text) {
  Parsed result;
  const Warn warn = [&](const std::string& message) { result.warnings.push_back(message); };
  result.cfg = parse_cfg(text, "x.cfg", warn);
  warn_of_unknown_keys(result.cfg.net, warn);
  for (const Section& section : result.cfg.layers) warn_of_unknown_keys(section, warn);
  return result;
}

std::string failure_of_text(const std::string& text) {
  return failure_of([&] { parse(text); });
}

// The first section behind a valid [net].
Section section(const std::string& text) { return parse("[net]\nwidth=8\n" + text).cfg.layers.at(0); }

int64_t filters(const std::string& line) {
  return section("[convolutional]\n" + line + "\n").integer("filters", 1, 1, 1000);
}

TEST(DarknetCfg, NumbersEndAtAComment) {
  EXPECT_EQ(filters("filters = 30 # note"), 30);
  EXPECT_EQ(filters("filters=30 #testing"), 30);
  EXPECT_EQ(filters("\tfilters\t=\t30\t"), 30);
  EXPECT_EQ(filters("filters=+30"), 30);
  EXPECT_EQ(filters("  f ilters =\t3 0  "), 30);  // every space and tab goes
}

TEST(DarknetCfg, CommentLinesAndBlankLinesCountAsLines) {
  const Section s = section("# one\n; two\n  # three\n\n[convolutional]\n  ; four\n\nfilters=7\n\n\n");
  EXPECT_EQ(s.line, 7);
  ASSERT_EQ(s.entries.size(), 1u);
  EXPECT_EQ(s.entries[0].line, 10);
}

TEST(DarknetCfg, AcceptsCrLfAndByteOrderMark) {
  const Parsed parsed = parse("\xEF\xBB\xBF[net]\r\nwidth=416\r\n\r\n[conv]\r\nfilters=3\r\n");
  EXPECT_EQ(parsed.cfg.net.integer("width", 0, 1, 1000), 416);
  ASSERT_EQ(parsed.cfg.layers.size(), 1u);
  EXPECT_EQ(parsed.cfg.layers[0].type, "convolutional");
  EXPECT_EQ(parsed.cfg.layers[0].integer("filters", 1, 1, 1000), 3);
  EXPECT_TRUE(parsed.warnings.empty());
}

TEST(DarknetCfg, SectionSpellings) {
  EXPECT_EQ(section("[ convolutional ]").type, "convolutional");
  EXPECT_EQ(section("[conv]").type, "convolutional");
  EXPECT_EQ(section("[conv]").written, "conv");
  EXPECT_EQ(section("[max]").type, "maxpool");
  EXPECT_EQ(section("[avg] # global").type, "avgpool");
  EXPECT_EQ(parse("[network]\nwidth=1").cfg.net.type, "net");
  EXPECT_EQ(section("[roialign]").type, "roialign");
}

TEST(DarknetCfg, LinesWithoutEffectAreWarned) {
  const Parsed parsed = parse("[net]\nwidth=8\n[convolutional]\nfilters\nfilters=\nsize=3");
  ASSERT_EQ(parsed.warnings.size(), 2u);
  EXPECT_NE(parsed.warnings[0].find("x.cfg:4: [convolutional] (layer 0): 'filters' is ignored"), std::string::npos);
  EXPECT_NE(parsed.warnings[1].find("x.cfg:5: [convolutional] (layer 0): 'filters=' is ignored"), std::string::npos);
  EXPECT_EQ(parsed.cfg.layers[0].integer("filters", 1, 1, 1000), 1);
  EXPECT_EQ(parsed.cfg.layers[0].integer("size", 1, 1, 1000), 3);  // no newline at the end of the file
}

TEST(DarknetCfg, FirstOfDuplicatesWins) {
  const Parsed parsed = parse("[net]\nbatch=1\nwidth=8\nbatch=64\n");
  EXPECT_EQ(parsed.cfg.net.integer("batch", 0, 0, 1000), 1);
  ASSERT_EQ(parsed.warnings.size(), 1u);
  EXPECT_NE(parsed.warnings[0].find("x.cfg:4: [net]: batch"), std::string::npos) << parsed.warnings[0];
  EXPECT_NE(parsed.warnings[0].find("line 2"), std::string::npos) << parsed.warnings[0];
}

TEST(DarknetCfg, Lists) {
  EXPECT_EQ(section("[route]\nlayers=-9").integers("layers"), (std::vector<int64_t>{-9}));
  EXPECT_EQ(section("[route]\nlayers = -1, -4").integers("layers"), (std::vector<int64_t>{-1, -4}));
  EXPECT_EQ(section("[route]\nlayers = -1, 4 # x, y").integers("layers"), (std::vector<int64_t>{-1, 4}));
  EXPECT_EQ(section("[yolo]\nanchors = 1.5,2,  .25,1e2").numbers("anchors"), (std::vector<double>{1.5, 2, 0.25, 100}));
  EXPECT_TRUE(section("[route]").integers("layers").empty());
  const Section bad = section("[route]\nlayers=1,,2");
  EXPECT_EQ(failure_of([&] { bad.integers("layers"); }),
            "x.cfg:4: [route] (layer 0): layers: expected integers separated by commas, found '' as item 2 of '1,,2'");
  EXPECT_NE(failure_of([] { section("[route]\nlayers=1,").integers("layers"); }).find("item 2"), std::string::npos);
}

TEST(DarknetCfg, UnknownKeyIsWarned) {
  const Parsed parsed = parse("[net]\nwidth=8\nlearning_rate=0.1\n[convolutional]\nfilter=3\n[roialign]\nany=1\n");
  ASSERT_EQ(parsed.warnings.size(), 1u);
  EXPECT_EQ(parsed.warnings[0], "x.cfg:5: [convolutional] (layer 0): unknown key 'filter' is ignored");
}

TEST(DarknetCfg, BadValuesNameTheirLine) {
  EXPECT_EQ(failure_of([] { filters("filters=many"); }),
            "x.cfg:4: [convolutional] (layer 0): filters: expected an integer, found 'many'");
  EXPECT_NE(failure_of([] { filters("filters=0"); }).find("expected 1 to 1000, found 0"), std::string::npos);
  EXPECT_NE(failure_of([] { filters("filters=-3"); }).find("found -3"), std::string::npos);
  EXPECT_NE(failure_of([] { filters("filters=3x"); }).find("found '3x'"), std::string::npos);
  EXPECT_NE(failure_of([] { filters("filters=99999999999999999999"); }).find("expected an integer"), std::string::npos);
  EXPECT_NE(failure_of([] { section("[softmax]\ntemperature=nan").number("temperature", 1); }).find("a number"),
            std::string::npos);
}

TEST(DarknetCfg, WhatIsNoCfg) {
  EXPECT_EQ(failure_of_text(""), "x.cfg: expected [net] as the first section, found no section at all");
  EXPECT_EQ(failure_of_text("# only a comment\n"),
            "x.cfg: expected [net] as the first section, found no section at all");
  EXPECT_EQ(failure_of_text("[convolutional]\n"),
            "x.cfg:1: expected [net] as the first section, found [convolutional]");
  EXPECT_EQ(failure_of_text("\nwidth=3\n[net]\n"), "x.cfg:2: expected [net] as the first section, found 'width=3'");
  EXPECT_NE(failure_of_text("[net]\n[conv\n").find("x.cfg:2: expected a section"), std::string::npos);
  EXPECT_NE(failure_of_text("[net]\n[conv] filters=3\n").find("x.cfg:2: expected a section"), std::string::npos);
  EXPECT_EQ(failure_of_text("[net]\n[conv]\n[net]\n"),
            "x.cfg:3: [net] (layer 1): expected [net] once, at the top of the file");
}

TEST(DarknetCfg, KindsOfSection) {
  EXPECT_TRUE(knows(section("[conv]")));
  EXPECT_TRUE(knows(section("[dropout]")));
  EXPECT_FALSE(knows(section("[roialign]")));
  EXPECT_FALSE(knows(section("[Convolutional]")));  // Darknet's names are lower-case
}

}  // namespace
}  // namespace tenon::darknet
