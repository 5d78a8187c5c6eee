#include <stdlib.h>

#include <gtest/gtest.h>

#include "registry/registry.h"
#include "registry/testing/support.h"

namespace tenon {
namespace {

using testing::contains;
using testing::RecordingLogger;
using testing::TemporaryFolder;
using testing::test_plugin;

namespace fs = std::filesystem;

class DiscoveryTest : public ::testing::Test {
 protected:
  void TearDown() override { unsetenv("TENON_PLUGIN_PATH"); }
};

TEST_F(DiscoveryTest, TheVariableComesFirstThenTheInstallation) {
  unsetenv("TENON_PLUGIN_PATH");
  const std::vector<fs::path> usual = discovery_folders();
  ASSERT_EQ(usual.size(), 1u);
  EXPECT_TRUE(contains(usual[0].string(), "lib/tenon/plugins")) << usual[0];

  setenv("TENON_PLUGIN_PATH", "", 1);
  EXPECT_EQ(discovery_folders(), usual);

  setenv("TENON_PLUGIN_PATH", "/first::/second:", 1);
  EXPECT_EQ(discovery_folders(), (std::vector<fs::path>{"/first", "/second", usual[0]}));
}

TEST_F(DiscoveryTest, LoadsFromTheFoldersAndNamesWhatIsMissing) {
  const TemporaryFolder folder;
  fs::copy_file(test_plugin("sample_one"), folder.path() / "one.tnp.so");
  fs::copy_file(test_plugin("no_entry"), folder.path() / "bad.tnp.so");
  const std::string missing = (folder.path() / "missing").string();
  setenv("TENON_PLUGIN_PATH", (folder.path().string() + ":" + missing).c_str(), 1);
  RecordingLogger logger;
  const std::shared_ptr<Registry> registry = Registry::create(logger);
  const std::vector<LoadProblem> problems = registry->discover();
  EXPECT_TRUE(registry->find_op("test.one/1"));
  ASSERT_GE(problems.size(), 2u);
  EXPECT_EQ(problems[0].path, (folder.path() / "bad.tnp.so").string());
  EXPECT_EQ(problems[1].path, missing);
}

}  // namespace
}  // namespace tenon
