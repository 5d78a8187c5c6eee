#include "registry/registry.h"

#include <gtest/gtest.h>

#include "registry/testing/support.h"

namespace tenon {
namespace {

using testing::contains;
using testing::RecordingLogger;
using testing::TemporaryFolder;
using testing::test_plugin;
using testing::write_file;

namespace fs = std::filesystem;

#define EXPECT_OK(expression)                             \
  do {                                                    \
    const Status ok_status_ = (expression);               \
    EXPECT_TRUE(ok_status_.ok()) << ok_status_.message(); \
  } while (false)

class RegistryTest : public ::testing::Test {
 protected:
  RecordingLogger logger;
  std::shared_ptr<Registry> registry = Registry::create(logger);
};

TEST_F(RegistryTest, FindsWhatAPluginRegistered) {
  EXPECT_OK(registry->load(test_plugin("sample_one")));
  EXPECT_OK(registry->load(test_plugin("sample_two")));
  EXPECT_EQ(registry->op_ids(), (std::vector<std::string>{"test.one/1", "test.two/1"}));

  const OpRef op = registry->find_op("test.one/1");
  ASSERT_TRUE(op);
  EXPECT_STREQ(op.op->doc, "y = x");
  EXPECT_STREQ(op.host->name, "tenon");
  EXPECT_FALSE(registry->find_op("test.one/2"));

  const KernelRef kernel = registry->find_kernel("test.two.plain.f32");
  ASSERT_TRUE(kernel);
  EXPECT_EQ(kernel.plugin_id, "test.two");
  EXPECT_EQ(kernel.build_id.substr(0, 2), "0x");
  EXPECT_EQ(registry->find_kernels("test.two/1", TN_CPU).size(), 1u);
  EXPECT_EQ(registry->find_kernels("test.two/1", TN_CUDA).size(), 0u);
  EXPECT_EQ(registry->find_kernels("test.three/1", TN_CPU).size(), 0u);
  EXPECT_FALSE(registry->find_kernel("test.two"));

  const std::vector<FusionRef> rules = registry->fusions();
  ASSERT_EQ(rules.size(), 2u);
  EXPECT_STREQ(rules[0].fusion->id, "test.one.twice/1");
  EXPECT_STREQ(rules[1].fusion->id, "test.two.twice/1");

  EXPECT_EQ(registry->importers().size(), 2u);
  EXPECT_TRUE(registry->find_importer("test.one"));
  EXPECT_FALSE(registry->find_importer("test.none"));
  EXPECT_TRUE(registry->find_op_importer("test.foreign", "test.one"));
  EXPECT_FALSE(registry->find_op_importer("test.foreign", "test.none"));

  const std::vector<PluginInfo> plugins = registry->plugins();
  ASSERT_EQ(plugins.size(), 2u);
  EXPECT_EQ(plugins[0].id, "test.one");
  EXPECT_EQ(plugins[0].license, "Apache-2.0");
  EXPECT_EQ(plugins[0].path, test_plugin("sample_one").string());
  EXPECT_EQ(plugins[1].ops, std::vector<std::string>{"test.two/1"});
  EXPECT_EQ(plugins[1].op_importers, std::vector<std::string>{"test.foreign:test.two"});

  const PluginNeed owner = registry->owner_of_kernel("test.one.plain.f32");
  EXPECT_EQ(owner, (PluginNeed{"test.one", "1.0", "sample_one.tnp.so", plugins[0].build_id}));
  EXPECT_EQ(registry->owner_of_op("test.one/1"), owner);
  EXPECT_EQ(registry->owner_of_op("test.none/1").id, "");
}

TEST_F(RegistryTest, BadLibrariesLeaveTheRegistryUnchanged) {
  EXPECT_OK(registry->load(test_plugin("sample_one")));
  struct Case {
    const char* name;
    Code code;
    const char* text;
  };
  const Case cases[] = {
      {"no_entry", Code::kInvalid, "no entry point"},
      {"refuses", Code::kInvalid, "refuses this host"},
      {"undefined_symbol", Code::kInvalid, "sample_function_that_nobody_defines"},
      {"sample_other_major", Code::kVersion, "major 77"},
      {"sample_needs_newer", Code::kVersion, "1.98"},
      {"sample_fails", Code::kInternal, "the sample wants a device that is not there"},
      {"sample_silent", Code::kInternal, "gave no reason"},
      {"sample_bad_kernel", Code::kInvalid, "kernel test.bad.plain.f32: enqueue is NULL"},
      {"throws", Code::kInternal, "disk on fire"},
      {"sample_one_again", Code::kConflict, "plugin id test.one is taken"},
      {"sample_thief", Code::kConflict, "op test.one/1 is taken"},
  };
  for (const Case& bad : cases) {
    const Status status = registry->load(test_plugin(bad.name));
    EXPECT_EQ(status.code(), bad.code) << bad.name << ": " << status.message();
    EXPECT_TRUE(contains(status.message(), bad.text)) << status.message();
    EXPECT_TRUE(contains(status.message(), test_plugin(bad.name).string())) << status.message();
    EXPECT_EQ(registry->plugins().size(), 1u) << bad.name;
    EXPECT_EQ(registry->op_ids(), std::vector<std::string>{"test.one/1"}) << bad.name;
    EXPECT_EQ(registry->fusions().size(), 1u) << bad.name;
  }
  EXPECT_OK(registry->load(test_plugin("sample_built_newer")));
}

TEST_F(RegistryTest, TheOthersOfAFolderStillLoad) {
  const TemporaryFolder folder;
  for (const char* name : {"sample_one", "no_entry", "refuses", "sample_built_newer", "sample_needs_newer",
                           "undefined_symbol", "sample_two"}) {
    fs::copy_file(test_plugin(name), folder.path() / (std::string(name) + ".tnp.so"));
  }
  write_file(folder.path() / "empty.tnp.so", "");
  write_file(folder.path() / "text.tnp.so", "text");
  write_file(folder.path() / "readme.txt", "is ignored");
  fs::create_directory(folder.path() / "folder.tnp.so");
  fs::create_symlink("nowhere", folder.path() / "dangling.tnp.so");
  std::vector<LoadProblem> problems;
  registry->load_folder(folder.path(), &problems);
  EXPECT_EQ(registry->plugins().size(), 3u);
  ASSERT_EQ(problems.size(), 8u);
  EXPECT_EQ(problems[0].path, (folder.path() / "dangling.tnp.so").string());
  for (const LoadProblem& problem : problems) EXPECT_TRUE(contains(problem.status.message(), problem.path));

  problems.clear();
  registry->load_folder(folder.path() / "missing", &problems);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].status.code(), Code::kNotFound);
}

// --- identity ---

TnStatus load_nothing(const TnHost*) { return TN_OK; }

TnPlugin linked_plugin(const char* id, const char* version) {
  return {TN_HEADER(TnPlugin), TN_ABI_MAJOR, 0, 0, id, version, "MIT", "", "", load_nothing, nullptr};
}

TEST_F(RegistryTest, LongForeignNamesKeepTheirBytes) {
  std::string id = "x.";
  for (int i = 0; i < 500; ++i)
    id +=
        "Stra\xC3\x9F"
        "e\xE2\x82\xAC\xF0\x9F\x98\x80";
  const TnPlugin plugin = linked_plugin(id.c_str(), "1");
  for (int i = 0; i < 100; ++i) {
    EXPECT_OK(registry->add_linked(&plugin));
    ASSERT_EQ(registry->plugins().size(), 1u);
    EXPECT_EQ(registry->plugins()[0].id, id);
    EXPECT_TRUE(registry->missing({{id, "1", "", ""}}).empty());
    EXPECT_OK(registry->unload(id));
  }
}

TEST_F(RegistryTest, OneFileThroughTwoPathsAndALinkIsOnePlugin) {
  const TemporaryFolder folder;
  fs::copy_file(test_plugin("sample_one"), folder.path() / "copy.so");
  fs::create_symlink(test_plugin("sample_one"), folder.path() / "link.so");
  EXPECT_OK(registry->load(test_plugin("sample_one")));
  const std::size_t messages = logger.size();
  EXPECT_OK(registry->load(folder.path() / "copy.so"));
  EXPECT_OK(registry->load(folder.path() / "link.so"));
  EXPECT_OK(registry->load(test_plugin("sample_one").parent_path() / ".." / "plugins" / "sample_one.tnp.so"));
  EXPECT_EQ(registry->plugins().size(), 1u);
  EXPECT_EQ(logger.size(), messages);
  EXPECT_EQ(logger.count("[test.one] load"), 1u);
}

TEST_F(RegistryTest, TwoFilesOfOneIdConflictAndBothAreNamed) {
  EXPECT_OK(registry->load(test_plugin("sample_one")));
  const Status status = registry->load(test_plugin("sample_one_again"));
  EXPECT_EQ(status.code(), Code::kConflict);
  EXPECT_TRUE(contains(status.message(), test_plugin("sample_one").string())) << status.message();
  EXPECT_TRUE(contains(status.message(), test_plugin("sample_one_again").string())) << status.message();
}

TEST_F(RegistryTest, AnOpOfTwoPluginsConflictsAndBothAreNamed) {
  EXPECT_OK(registry->load(test_plugin("sample_one")));
  const Status status = registry->load(test_plugin("sample_thief"));
  EXPECT_EQ(status.code(), Code::kConflict);
  for (const char* part :
       {"test.one/1", "plugin test.one 1.0", "plugin test.thief 1.0", "sample_one.tnp.so", "sample_thief.tnp.so"}) {
    EXPECT_TRUE(contains(status.message(), part)) << status.message();
  }
}

TEST_F(RegistryTest, OneNameInTwoNamespacesIsTwoPlugins) {
  EXPECT_OK(registry->load(test_plugin("sample_one")));
  EXPECT_OK(registry->load(test_plugin("sample_one_elsewhere")));
  EXPECT_TRUE(registry->find_op("test.one/1"));
  EXPECT_TRUE(registry->find_op("elsewhere.one/1"));
}

TEST_F(RegistryTest, VersionsAreComparedAsText) {
  static const TnPlugin plugin = linked_plugin("test.versioned", "1");
  EXPECT_OK(registry->add_linked(&plugin));
  EXPECT_TRUE(registry->missing({{"test.versioned", "1", "", ""}}).empty());
  const std::vector<PluginNeed> others = {{"test.versioned", "1.0", "a.so", "0x1"}, {"test.versioned", "01", "", ""}};
  EXPECT_EQ(registry->missing(others), others);
}

TEST_F(RegistryTest, ListsAllMissingPlugins) {
  EXPECT_OK(registry->load(test_plugin("sample_two")));
  const PluginNeed one = {"test.one", "1.0", "sample_one.tnp.so", "0x1"};
  const PluginNeed two = {"test.two", "1.0", "sample_two.tnp.so", "0x2"};
  const PluginNeed three = {"test.three", "1.0", "sample_three.tnp.so", "0x3"};
  EXPECT_EQ(registry->missing({one, two, three}), (std::vector<PluginNeed>{one, three}));
}

// --- plugins inside the program ---

TEST_F(RegistryTest, APluginMayBeLinkedIntoTheProgram) {
  static const TnPlugin plugin = linked_plugin("test.linked", "1");
  static const TnPlugin other = linked_plugin("test.linked", "1");
  EXPECT_OK(registry->add_linked(&plugin));
  EXPECT_OK(registry->add_linked(&plugin));
  ASSERT_EQ(registry->plugins().size(), 1u);
  EXPECT_EQ(registry->plugins()[0].build_id, "linked");
  EXPECT_EQ(registry->plugins()[0].path, "");
  const Status status = registry->add_linked(&other);
  EXPECT_EQ(status.code(), Code::kConflict);
  EXPECT_TRUE(contains(status.message(), "linked into the program")) << status.message();
  EXPECT_EQ(registry->add_linked(nullptr).code(), Code::kInvalid);
}

// --- unloading and sharing ---

TEST_F(RegistryTest, UnloadsWhenTheLastReferenceGoes) {
  EXPECT_OK(registry->load(test_plugin("sample_one")));
  OpRef op = registry->find_op("test.one/1");
  KernelRef kernel = registry->find_kernel("test.one.plain.f32");
  EXPECT_OK(registry->unload("test.one"));
  EXPECT_FALSE(registry->find_op("test.one/1"));
  EXPECT_FALSE(registry->find_kernel("test.one.plain.f32"));
  EXPECT_TRUE(registry->fusions().empty());
  EXPECT_TRUE(registry->importers().empty());
  EXPECT_FALSE(registry->find_op_importer("test.foreign", "test.one"));
  EXPECT_STREQ(op.op->id, "test.one/1");
  op = {};
  EXPECT_EQ(logger.count("[test.one] unload"), 0u);
  EXPECT_STREQ(kernel.kernel->name, "test.one.plain.f32");
  kernel = {};
  EXPECT_EQ(logger.count("[test.one] unload"), 1u);
}

TEST_F(RegistryTest, WhatIsHeldOutlivesTheRegistry) {
  EXPECT_OK(registry->load(test_plugin("sample_one")));
  KernelRef kernel = registry->find_kernel("test.one.plain.f32");
  registry.reset();
  EXPECT_EQ(logger.count("[test.one] unload"), 0u);
  TnInst* inst = nullptr;
  EXPECT_EQ(kernel.kernel->configure(kernel.host, kernel.kernel, nullptr, &inst), TN_OK);
  kernel = {};
  EXPECT_EQ(logger.count("[test.one] unload"), 1u);
}

TEST_F(RegistryTest, AReloadWhileHeldIsTheSameInstance) {
  EXPECT_OK(registry->load(test_plugin("sample_one")));
  OpRef op = registry->find_op("test.one/1");
  EXPECT_OK(registry->unload("test.one"));
  EXPECT_OK(registry->load(test_plugin("sample_one")));
  EXPECT_EQ(registry->find_op("test.one/1").host, op.host);
  EXPECT_EQ(logger.count("[test.one] load"), 1u);
  EXPECT_EQ(logger.count("[test.one] unload"), 0u);

  // Another plugin of the id came in between: the old one cannot come back beside it.
  EXPECT_OK(registry->unload("test.one"));
  EXPECT_OK(registry->load(test_plugin("sample_one_again")));
  EXPECT_EQ(registry->load(test_plugin("sample_one")).code(), Code::kConflict);
  EXPECT_OK(registry->unload("test.one"));
  EXPECT_OK(registry->load(test_plugin("sample_one")));
  EXPECT_EQ(registry->find_op("test.one/1").host, op.host);
}

TEST_F(RegistryTest, AReloadAfterTheLastReferenceLoadsAfresh) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_OK(registry->load(test_plugin("sample_one")));
    EXPECT_OK(registry->unload("test.one"));
  }
  EXPECT_EQ(logger.count("[test.one] load"), 3u);
  EXPECT_EQ(logger.count("[test.one] unload"), 3u);
}

TEST_F(RegistryTest, UnloadOfAnUnknownIdNamesTheNearest) {
  EXPECT_EQ(registry->unload("test.one").code(), Code::kNotFound);
  EXPECT_OK(registry->load(test_plugin("sample_one")));
  EXPECT_TRUE(contains(registry->unload("test.onw").message(), "did you mean test.one?"));
}

TEST_F(RegistryTest, RegistriesLiveSideBySide) {
  RecordingLogger other_logger;
  const std::shared_ptr<Registry> other = Registry::create(other_logger);
  EXPECT_OK(registry->load(test_plugin("sample_one")));
  EXPECT_OK(other->load(test_plugin("sample_one")));
  EXPECT_OK(other->load(test_plugin("sample_two")));
  const OpRef here = registry->find_op("test.one/1");
  const OpRef there = other->find_op("test.one/1");
  EXPECT_EQ(here.op, there.op);      // one mapping of the file
  EXPECT_NE(here.host, there.host);  // two host tables
  EXPECT_FALSE(registry->find_op("test.two/1"));
  here.host->log(here.host, TN_LOG_WARNING, "to here");
  EXPECT_EQ(logger.count("[test.one] to here"), 1u);
  EXPECT_EQ(other_logger.count("[test.one] to here"), 0u);
  EXPECT_OK(registry->unload("test.one"));
  EXPECT_TRUE(other->find_op("test.one/1"));
}

TEST_F(RegistryTest, APluginOfAnotherCompilerLoads) {
  const fs::path path = fs::path(TEST_PLUGIN_FOLDER) / "sample_clang.tnp.so";
  if (!fs::exists(path)) GTEST_SKIP() << "no clang on this machine";
  EXPECT_OK(registry->load(path));
  EXPECT_TRUE(registry->find_op("test.clang/1"));
}

}  // namespace
}  // namespace tenon
