// The editable timing cache through the command line: one convolution of a real detector gets another tactic.
#include <map>
#include <regex>

#include "tests/e2e/e2e_testing.h"

namespace tenon::e2e {
namespace {

class EditableCacheProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    cfg_ = tenon::testing::models_dir() / "yolo-fastest-1.1-coco/yolo-fastest-1.1.cfg";
    picture_ = tenon::testing::images_dir() / "dog.jpg";
    TENON_NEED_DATA(cfg_);
    TENON_NEED_DATA(picture_);
  }

  Outcome build(const std::string& engine, std::vector<std::string> more = {}) {
    std::vector<std::string> command = {"build",
                                        cfg_,
                                        "-o",
                                        at(engine),
                                        "--timing-cache",
                                        at("cache.yaml"),
                                        "--editable-timing-cache",
                                        "--report",
                                        at(engine + ".json")};
    command.insert(command.end(), more.begin(), more.end());
    return tenon(command);
  }
  json report(const std::string& engine) { return parse_json(read_text(at(engine + ".json"))); }
  std::string at(const std::string& name) const { return dir_.path() / name; }

  TempDir dir_;
  std::string cfg_, picture_;
};

TEST_F(EditableCacheProgram, OneConvolutionOfYoloFastest) {
  const Outcome first = build("first.tenon");
  ASSERT_EQ(first.status, 0) << first.err;
  const json before = report("first.tenon");
  EXPECT_GT(before["cache"]["measured"], 0);
  // The graph line tells the layout that the layers have.
  std::multiset<std::string> formats, recorded;
  for (const char* kind : {"layers", "views"}) {
    for (const json& l : before[kind]) {
      if (l["op"] != "tenon.reformat/1" && l["format"] != "row") formats.insert(l["format"]);
    }
  }
  const json listed = parse_json(tenon({"cache", "list", at("cache.yaml"), "--json", "-"}).out);
  ASSERT_EQ(listed["graphs"].size(), 1u);
  for (const json& entry : listed["graphs"][0]["layout"]) recorded.insert(entry["format"]);
  EXPECT_EQ(recorded, formats);
  const std::string cache = at("cache.yaml");

  // A convolution with another measured tactic in the same combo, so that no conversion between formats is new.
  std::string layer, key, old_tactic, tactic;
  for (const json& l : before["layers"]) {
    if (l["op"].get<std::string>().find("conv") == std::string::npos) continue;
    const Outcome got = tenon({"cache", "get", cache, "--key", l["key"], "--json", "-"});
    ASSERT_EQ(got.status, 0) << got.err;
    const json choice = parse_json(got.out);
    std::map<std::string, int> times_offered;
    for (const json& m : choice["measured"]) times_offered[m["tactic"]] += m["kind"] == "measured" ? 1 : 0;
    for (const json& m : choice["measured"]) {
      if (m["kind"] == "measured" && m["combo"] == choice["combo"] && m["tactic"] != choice["tactic"] &&
          times_offered[m["tactic"]] == 1) {
        layer = l["name"], key = l["key"], old_tactic = choice["tactic"], tactic = m["tactic"];
      }
    }
    if (!layer.empty()) break;
  }
  ASSERT_FALSE(layer.empty()) << "no convolution has a second tactic in its combo";

  const std::string prefix = layer.substr(0, layer.find('+'));
  ASSERT_EQ(tenon({"cache", "set", cache, "--layer", prefix, "--tactic", tactic}).status, 0);
  const auto check = [&](const std::string& engine) {
    const json after = report(engine);
    EXPECT_EQ(after["cache"]["measured"], 0);
    ASSERT_EQ(after["layers"].size(), before["layers"].size());
    for (std::size_t n = 0; n < after["layers"].size(); ++n) {
      const json& b = before["layers"][n];
      const json& a = after["layers"][n];
      EXPECT_EQ(a["name"], b["name"]);
      EXPECT_EQ(a["tactic_hash"], a["name"] == layer ? json(tactic) : b["tactic_hash"]) << a["name"];
    }
    const Outcome inspected = tenon({"inspect", at(engine), "--format", "json"});
    ASSERT_EQ(inspected.status, 0) << inspected.err;
    bool seen = false;
    const json layers = parse_json(inspected.out);
    for (const json& l : layers) {
      if (l["name"] != layer) continue;
      seen = true;
      EXPECT_EQ(l["tactic_hash"], tactic);
    }
    EXPECT_TRUE(seen);
  };

  std::string bytes;
  for (const bool pinned : {false, true}) {
    ASSERT_EQ(tenon({"cache", pinned ? "pin" : "unpin", cache, "--key", key}).status, 0);
    for (int round = 0; round < 5; ++round) {
      const std::string engine = "again" + std::to_string(round) + ".tenon";
      const Outcome again = build(engine, {"--frozen-cache"});
      ASSERT_EQ(again.status, 0) << again.err;
      check(engine);
      if (bytes.empty()) bytes = read_text(at(engine));
      EXPECT_TRUE(read_text(at(engine)) == bytes) << "round " << round << (pinned ? ", pinned" : "");
    }
  }
  // The time beside the choice, edited in the file itself, decides nothing.
  const std::regex choice_ms("(- \\{choice: " + key + ",[^\\n]* ms: )[^,]+");
  for (const char* ms : {"9e9", "0"}) {
    const std::string text = read_text(cache), edited = std::regex_replace(text, choice_ms, std::string("$01") + ms);
    ASSERT_NE(text, edited);
    write_text(cache, edited);
    const Outcome again = build("timed.tenon", {"--frozen-cache"});
    ASSERT_EQ(again.status, 0) << again.err;
    check("timed.tenon");
  }

  // What it finds is what the first engine found.
  json found[2];
  for (int n = 0; n < 2; ++n) {
    const Outcome ran = tenon({"run", at(n == 0 ? "first.tenon" : "again0.tenon"), "--input", picture_, "--json", "-"});
    ASSERT_EQ(ran.status, 0) << ran.err;
    found[n] = parse_json(ran.out)["results"][0]["detections"];
  }
  ASSERT_EQ(found[0].size(), found[1].size());
  EXPECT_GT(found[0].size(), 0u);
  for (std::size_t n = 0; n < found[0].size(); ++n) {
    EXPECT_EQ(found[0][n]["class_id"], found[1][n]["class_id"]);
    EXPECT_NEAR(found[0][n]["score"].get<double>(), found[1][n]["score"].get<double>(), 2e-5);
  }

  // A tactic that no kernel offers here.
  ASSERT_EQ(tenon({"cache", "set", cache, "--key", key, "--tactic", "0xdeadbeef"}).status, 0);
  const Outcome impossible = build("impossible.tenon", {"--frozen-cache"});
  EXPECT_EQ(impossible.status, 1);
  for (const std::string& part : {layer, key, tactic, old_tactic, std::string("0xdeadbeef")}) {
    EXPECT_NE(impossible.err.find(part), std::string::npos) << part << " in " << impossible.err;
  }
  EXPECT_FALSE(fs::exists(at("impossible.tenon")));
  EXPECT_FALSE(fs::exists(at("impossible.tenon.json")));

  // An entry that is gone.
  ASSERT_EQ(tenon({"cache", "erase", cache, "--key", key}).status, 0);
  const std::string erased = read_text(cache);
  const Outcome missing = build("missing.tenon", {"--frozen-cache"});
  EXPECT_EQ(missing.status, 1);
  EXPECT_NE(missing.err.find(layer), std::string::npos) << missing.err;
  EXPECT_NE(missing.err.find(key), std::string::npos) << missing.err;
  EXPECT_FALSE(fs::exists(at("missing.tenon")));
  EXPECT_EQ(read_text(cache), erased) << "a frozen build does not write the cache";
}

}  // namespace
}  // namespace tenon::e2e
