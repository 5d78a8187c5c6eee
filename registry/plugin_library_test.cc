#include "registry/plugin_library.h"

#include <elf.h>
#include <sys/stat.h>

#include <cstring>
#include <set>

#include <gtest/gtest.h>

#include "registry/testing/support.h"

namespace tenon {
namespace {

using testing::contains;
using testing::read_file;
using testing::TemporaryFolder;
using testing::test_plugin;
using testing::write_file;

namespace fs = std::filesystem;

/// Examines and opens; the failure must name the path.
Status open_status(const fs::path& path) {
  const Result<LibraryFile> file = examine_library(path);
  Status status = file.ok() ? PluginLibrary::open(*file).status() : file.status();
  if (!status.ok()) {
    EXPECT_TRUE(contains(status.message(), path.string())) << status.message();
  }
  return status;
}

TEST(PluginLibrary, OpensAGoodOne) {
  const Result<LibraryFile> file = examine_library(test_plugin("sample_one"));
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->path, test_plugin("sample_one"));
  EXPECT_EQ(file->build_id.size(), 34u);
  const Result<PluginLibrary> library = PluginLibrary::open(*file);
  ASSERT_TRUE(library.ok()) << library.status().message();
  EXPECT_STREQ(library->plugin().id, "test.one");
}

TEST(PluginLibrary, EveryBadFileHasItsOwnError) {
  const TemporaryFolder folder;
  write_file(folder.path() / "empty.so", "");
  write_file(folder.path() / "text.so", "hello, I am a text\n");
  std::string object = read_file(test_plugin("sample_one"));
  const std::string whole = object;
  Elf64_Ehdr header;
  std::memcpy(&header, object.data(), sizeof header);
  header.e_type = ET_REL;
  std::memcpy(object.data(), &header, sizeof header);
  write_file(folder.path() / "object.so", object);
  header.e_type = ET_DYN;
  header.e_machine = EM_AARCH64;
  std::memcpy(object.data(), &header, sizeof header);
  write_file(folder.path() / "foreign.so", object);
  write_file(folder.path() / "half.so", whole.substr(0, whole.size() / 3));
  write_file(folder.path() / "head.so", whole.substr(0, 20));
  ASSERT_EQ(mkfifo((folder.path() / "pipe.so").c_str(), 0600), 0);

  struct Case {
    fs::path path;
    Code code;
    const char* text;
  };
  const Case cases[] = {
      {folder.path() / "missing.so", Code::kNotFound, "no such file"},
      {folder.path(), Code::kInvalid, "is a folder"},
      {folder.path() / "pipe.so", Code::kInvalid, "not an ordinary file"},
      {folder.path() / "empty.so", Code::kInvalid, "is empty"},
      {folder.path() / "text.so", Code::kInvalid, "begins with \"hello, I am a te\""},
      {folder.path() / "object.so", Code::kInvalid, "ELF file of type 1"},
      {folder.path() / "foreign.so", Code::kInvalid, "another processor"},
      {folder.path() / "half.so", Code::kInvalid, "is cut off: its headers"},
      {folder.path() / "head.so", Code::kInvalid, "is cut off inside"},
      {test_plugin("no_entry"), Code::kInvalid, "has no entry point tenon_plugin_query"},
      {test_plugin("refuses"), Code::kInvalid, "refuses this host"},
      {test_plugin("undefined_symbol"), Code::kInvalid, "undefined symbol sample_function_that_nobody_defines"},
      {test_plugin("sample_other_major"), Code::kVersion, "plugin ABI major 77, this host has 1.0"},
      {test_plugin("sample_needs_newer"), Code::kVersion, "needs plugin ABI 1.98 (built with minor 99)"},
  };
  std::set<std::string> texts;
  for (const Case& bad : cases) {
    const Status status = open_status(bad.path);
    EXPECT_EQ(status.code(), bad.code) << bad.path << ": " << status.message();
    EXPECT_TRUE(contains(status.message(), bad.text)) << status.message();
    texts.insert(status.message());
  }
  EXPECT_EQ(texts.size(), std::size(cases));
}

TEST(PluginLibrary, BuiltWithANewerHeaderButContentWithThisOne) {
  EXPECT_TRUE(open_status(test_plugin("sample_built_newer")).ok());
}

TEST(PluginLibrary, EveryTruncationIsAnError) {
  const TemporaryFolder folder;
  const std::string whole = read_file(test_plugin("sample_one"));
  const fs::path path = folder.path() / "cut.so";
  for (std::size_t size = 0; size < 4096 && size < whole.size(); size += 37) {
    write_file(path, whole.substr(0, size));
    EXPECT_FALSE(examine_library(path).ok()) << size;
  }
}

TEST(PluginLibrary, AMissingFileNamesTheNearest) {
  const fs::path path = test_plugin("sample_one").parent_path() / "sample_onee.tnp.so";
  EXPECT_TRUE(contains(open_status(path).message(), "did you mean " + test_plugin("sample_one").string() + "?"));
}

TEST(PluginLibrary, BuildIdIsOfTheContent) {
  const TemporaryFolder folder;
  fs::copy_file(test_plugin("sample_one"), folder.path() / "copy.so");
  EXPECT_EQ(examine_library(folder.path() / "copy.so")->build_id, examine_library(test_plugin("sample_one"))->build_id);
  EXPECT_NE(examine_library(test_plugin("sample_two"))->build_id, examine_library(test_plugin("sample_one"))->build_id);
}

TnStatus load_nothing(const TnHost*) { return TN_OK; }

TEST(CheckPlugin, SaysWhatIsMalformed) {
  const TnPlugin good = {TN_HEADER(TnPlugin), TN_ABI_MAJOR, 0, 0, "test.x", "1", "MIT", "", "", load_nothing, nullptr};
  EXPECT_TRUE(check_plugin(&good, "here").ok());
  struct Case {
    void (*damage)(TnPlugin*);
    const char* text;
  };
  const Case cases[] = {
      {[](TnPlugin* p) { p->struct_size = 0; }, "struct_size 0"},
      {[](TnPlugin* p) { p->struct_size -= 1; }, "TnPlugin.struct_size is"},
      {[](TnPlugin* p) { p->id = nullptr; }, "TnPlugin.id is NULL"},
      {[](TnPlugin* p) { p->id = ""; }, "TnPlugin.id is empty"},
      {[](TnPlugin* p) { p->id = "a\nb"; }, "TnPlugin.id is not printable"},
      {[](TnPlugin* p) { p->version = ""; }, "TnPlugin.version is empty"},
      {[](TnPlugin* p) { p->version = nullptr; }, "TnPlugin.version is NULL"},
      {[](TnPlugin* p) { p->license = nullptr; }, "TnPlugin.license is NULL"},
      {[](TnPlugin* p) { p->build = "\xFF"; }, "TnPlugin.build is not printable"},
      {[](TnPlugin* p) { p->load = nullptr; }, "TnPlugin.load is NULL"},
  };
  for (const Case& bad : cases) {
    TnPlugin plugin = good;
    bad.damage(&plugin);
    const Status status = check_plugin(&plugin, "here");
    EXPECT_EQ(status.code(), Code::kInvalid) << bad.text;
    EXPECT_TRUE(contains(status.message(), std::string("here: "))) << status.message();
    EXPECT_TRUE(contains(status.message(), bad.text)) << status.message();
  }
}

}  // namespace
}  // namespace tenon
