#include <sys/wait.h>

#include <cstdlib>

#include <gtest/gtest.h>

#include "registry/testing/support.h"
#include "tools/tenon_plugin/describe.h"
#include "tools/tenon_plugin/render.h"

namespace tenon {
namespace {

using Json = nlohmann::ordered_json;
using testing::contains;
using testing::read_file;
using testing::RecordingLogger;
using testing::TemporaryFolder;
using testing::test_plugin;

TEST(Describe, IdentityDoesNotLoad) {
  const Result<Json> description = describe_identity(test_plugin("sample_fails"));
  ASSERT_TRUE(description.ok()) << description.status().message();
  const Json& json = *description;
  EXPECT_EQ(json["plugin"]["id"], "test.fails");
  EXPECT_EQ(json["plugin"]["version"], "1.0");
  EXPECT_EQ(json["plugin"]["license"], "Apache-2.0");
  EXPECT_EQ(json["abi"]["minor_needed"], 0);
  EXPECT_EQ(json["build_id"].get<std::string>().size(), 34u);
  EXPECT_FALSE(json.contains("ops"));

  RecordingLogger logger;
  const Result<Json> contents = describe_contents(test_plugin("sample_fails"), logger);
  ASSERT_FALSE(contents.ok());
  EXPECT_TRUE(contains(contents.status().message(), "device that is not there")) << contents.status().message();
}

TEST(Describe, ContentsListEverything) {
  RecordingLogger logger;
  const Result<Json> description = describe_contents(test_plugin("sample_one"), logger);
  ASSERT_TRUE(description.ok()) << description.status().message();
  const Json& json = *description;
  const Json op = {{"id", "test.one/1"},
                   {"doc", "y = x"},
                   {"flags", {"pure"}},
                   {"attributes",
                    {{{"name", "alpha"},
                      {"type", "f64"},
                      {"required", false},
                      {"default", "0.5"},
                      {"range", "[0,1]"},
                      {"doc", "weight"}}}},
                   {"inputs",
                    {{{"name", "x"}, {"flags", Json::array()}, {"doc", "what is kept"}},
                     {{"name", "extra"}, {"flags", {"optional"}}, {"doc", "ignored"}}}},
                   {"outputs", {{{"name", "y"}, {"flags", Json::array()}, {"doc", "the same"}}}}};
  EXPECT_EQ(json["ops"], Json::array({op}));
  EXPECT_EQ(json["kernels"][0]["name"], "test.one.plain.f32");
  EXPECT_EQ(json["kernels"][0]["combos"], Json::array({"f32:row,none>f32:row"}));
  EXPECT_EQ(json["kernels"][0]["device"], "cpu");
  EXPECT_EQ(json["kernels"][0]["revision"], 3);
  EXPECT_EQ(json["fusions"][0]["pattern"], "test.one/1(test.one/1($x))");
  EXPECT_EQ(json["fusions"][0]["mode"], "always");
  EXPECT_EQ(json["importers"][0]["suffixes"], ".smp,.sample");
  EXPECT_EQ(json["op_importers"][0]["type"], "test.one");
  EXPECT_TRUE(json["op_importers"][0]["opset_max"].is_null());

  const std::string text = render(json);
  for (const char* part :
       {"plugin test.one 1.0\n", "  op test.one/1 (pure): y = x\n", "    input extra (optional): ignored\n",
        "    attribute alpha (f64, default 0.5, range [0,1]): weight\n",
        "  kernel test.one.plain.f32 for test.one/1 on cpu, revision 3 (deterministic)\n",
        "    combo f32:row,none>f32:row\n", "  fusion rule test.one.twice/1 (always, priority 7)",
        "  importer test.one of .smp,.sample: reads nothing\n",
        "  op importer: teaches test.foreign test.one, opset 1 and later\n"}) {
    EXPECT_TRUE(contains(text, part)) << part << "\nin:\n" << text;
  }
}

// --- the program ---

struct Outcome {
  int status;
  std::string out, err;
};

Outcome run(const std::string& arguments) {
  const TemporaryFolder folder;
  const std::string out = (folder.path() / "out").string();
  const std::string err = (folder.path() / "err").string();
  const int raw = std::system(("'" TENON_PLUGIN_PROGRAM "' " + arguments + " >" + out + " 2>" + err).c_str());
  return {WIFEXITED(raw) ? WEXITSTATUS(raw) : -1, read_file(out), read_file(err)};
}

TEST(Program, ExitStatusTellsUsageFromFailure) {
  EXPECT_EQ(run("").status, 2);
  EXPECT_EQ(run("inspect").status, 2);
  EXPECT_EQ(run("inspect a.so b.so").status, 2);
  EXPECT_EQ(run("inspect --unknown a.so").status, 2);
  EXPECT_EQ(run("dissect a.so").status, 2);
  EXPECT_EQ(run("--help").status, 0);
  const Outcome missing = run("inspect /nowhere/a.so");
  EXPECT_EQ(missing.status, 1);
  EXPECT_EQ(missing.out, "");
  EXPECT_TRUE(contains(missing.err, "/nowhere/a.so: no such file")) << missing.err;
  EXPECT_EQ(run("inspect " + test_plugin("no_entry").string()).status, 1);
  EXPECT_EQ(run("inspect " + test_plugin("sample_one").string()).status, 0);
}

TEST(Program, JsonGoesToStdoutAloneOrToAFile) {
  const std::string plugin = test_plugin("sample_one").string();
  const Outcome alone = run("inspect --json - " + plugin);
  EXPECT_EQ(alone.status, 0);
  const Json json = Json::parse(alone.out, nullptr, false);
  ASSERT_FALSE(json.is_discarded()) << alone.out;
  EXPECT_EQ(json["ops"].size(), 1u);

  const TemporaryFolder folder;
  const std::string file = (folder.path() / "x.json").string();
  const Outcome both = run("inspect --identity --json " + file + " " + plugin);
  EXPECT_EQ(both.status, 0) << both.err;
  EXPECT_TRUE(contains(both.out, "plugin test.one 1.0"));
  EXPECT_EQ(Json::parse(read_file(file))["plugin"]["id"], "test.one");

  const std::string none = (folder.path() / "none.json").string();
  EXPECT_EQ(run("inspect --json " + none + " " + test_plugin("no_entry").string()).status, 1);
  EXPECT_FALSE(std::filesystem::exists(none));
  const Outcome unwritable = run("inspect --json /nowhere/x.json " + plugin);
  EXPECT_EQ(unwritable.status, 1);
  EXPECT_TRUE(contains(unwritable.err, "/nowhere/x.json: cannot be written")) << unwritable.err;
  EXPECT_EQ(unwritable.out, "");
}

}  // namespace
}  // namespace tenon
