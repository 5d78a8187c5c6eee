// What a plugin sees of its host: the table's functions, and the rules of registering.
#include <atomic>
#include <cstring>
#include <thread>

#include <gtest/gtest.h>

#include <tenon/plugin/ext/ids.h>
#include <tenon/plugin/ext/op_importers.h>

#include "core/base/failure.h"
#include "registry/registry.h"
#include "registry/testing/support.h"

namespace tenon {
namespace {

using testing::contains;
using testing::RecordingLogger;

TnStatus infer(const TnHost*, const TnOp*, TnInfer*) { return TN_OK; }
TnStatus reference(const TnHost*, const TnOp*, const TnReference*) { return TN_OK; }
TnStatus import_op(const TnHost*, const TnOpImporter*, const TnForeignOp*, TnGraph*, TnValueId*, std::uint32_t*) {
  return TN_OK;
}

const TnPortSpec kPort = {TN_HEADER(TnPortSpec), 0, "x", ""};
const TnPortSpec* const kPorts[] = {&kPort};

TnOp make_op(const char* id) {
  TnOp op = {};
  op.struct_size = TN_HEADER(TnOp);
  op.id = id;
  op.num_inputs = 1;
  op.num_outputs = 1;
  op.inputs = kPorts;
  op.outputs = kPorts;
  op.infer = infer;
  op.reference = reference;
  return op;
}

const TnOp kFirst = make_op("test.first/1");
const TnOp kSecond = make_op("test.second/1");

TnOpImporter make_op_importer(std::uint32_t opset_min, std::uint32_t opset_max) {
  return {TN_HEADER(TnOpImporter), 0, "test.onnx", "RoiAlign", opset_min, opset_max, import_op};
}

const TnHost* seen_host = nullptr;  ///< of the plugin whose load ran last

TnPlugin make_plugin(const char* id, TnStatus (*load)(const TnHost*)) {
  return {TN_HEADER(TnPlugin), TN_ABI_MAJOR, 0, 0, id, "1", "MIT", "", "", load, nullptr};
}

class RegistryHostTest : public ::testing::Test {
 protected:
  RecordingLogger logger;
  std::shared_ptr<Registry> registry = Registry::create(logger);
};

TnStatus load_first(const TnHost* host) {
  seen_host = host;
  return host->register_op(host, &kFirst);
}
TnStatus load_second(const TnHost* host) {
  seen_host = host;
  return host->register_op(host, &kSecond);
}

TEST_F(RegistryHostTest, TableIsComplete) {
  static const TnPlugin plugin = make_plugin("test.plugin", load_first);
  ASSERT_TRUE(registry->add_linked(&plugin).ok());
  const TnHost* host = seen_host;
  EXPECT_EQ(host->struct_size, sizeof(TnHost));
  EXPECT_EQ(host->abi_major, TN_ABI_MAJOR);
  EXPECT_EQ(host->abi_minor, TN_ABI_MINOR_LATEST);
  EXPECT_STREQ(host->name, "tenon");
  EXPECT_STRNE(host->version, "");
  ASSERT_NE(host->attrs, nullptr);
  EXPECT_EQ(host->attrs->struct_size, sizeof(TnAttrApi));
  ASSERT_NE(host->graph, nullptr);
  EXPECT_EQ(host->graph->struct_size, sizeof(TnGraphApi));
  EXPECT_EQ(host->get_interface(host, TN_IFACE_CUDA), nullptr);
  EXPECT_EQ(host->get_interface(host, "unknown"), nullptr);
}

TEST_F(RegistryHostTest, FailKeepsTheReason) {
  static const TnPlugin plugin = make_plugin("test.plugin", load_first);
  ASSERT_TRUE(registry->add_linked(&plugin).ok());
  EXPECT_EQ(TN_FAIL(seen_host, TN_DECLINED, "needs rank 4"), TN_DECLINED);
  const Status status = take_failure(TN_DECLINED, "supports");
  EXPECT_EQ(status.code(), Code::kDeclined);
  EXPECT_EQ(status.message(), "supports: needs rank 4");
}

TEST_F(RegistryHostTest, LogNamesThePluginAndTakesAnyLevel) {
  static const TnPlugin plugin = make_plugin("test.plugin", load_first);
  ASSERT_TRUE(registry->add_linked(&plugin).ok());
  seen_host->log(seen_host, 99, "strange level");
  seen_host->log(seen_host, -1, "strange level");
  seen_host->log(seen_host, TN_LOG_INFO, nullptr);
  EXPECT_EQ(logger.count("[test.plugin] strange level"), 2u);
}

TEST_F(RegistryHostTest, MemoryIsAligned) {
  static const TnPlugin plugin = make_plugin("test.plugin", load_first);
  ASSERT_TRUE(registry->add_linked(&plugin).ok());
  const TnHost* host = seen_host;
  for (const std::uint64_t align : {0u, 1u, 2u, 8u, 64u, 4096u}) {
    void* memory = host->alloc(host, 100, align);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % (align == 0 ? 1 : align), 0u);
    std::memset(memory, 1, 100);
    host->free(host, memory);
  }
  void* nothing = host->alloc(host, 0, 64);
  EXPECT_NE(nothing, nullptr);
  host->free(host, nothing);
  host->free(host, nullptr);
  EXPECT_EQ(host->alloc(host, 100, 48), nullptr);
}

TEST_F(RegistryHostTest, RegistrationAfterLoadIsRefused) {
  static const TnPlugin plugin = make_plugin("test.plugin", load_first);
  ASSERT_TRUE(registry->add_linked(&plugin).ok());
  EXPECT_EQ(seen_host->register_op(seen_host, &kSecond), TN_INVALID);
  const Status status = take_failure(TN_INVALID, "register");
  EXPECT_TRUE(contains(status.message(),
                       "register_op of plugin test.plugin 1 (linked into the program) was called "
                       "outside its load"))
      << status.message();
  EXPECT_FALSE(registry->find_op("test.second/1"));
}

TEST_F(RegistryHostTest, RegistrationFromAnotherThreadIsRefused) {
  static const TnPlugin plugin = make_plugin("test.plugin", [](const TnHost* host) {
    TnStatus answer = TN_OK;
    std::thread([&] { answer = host->register_op(host, &kFirst); }).join();
    return answer == TN_INVALID ? TN_OK : TN_FAIL(host, TN_INTERNAL, "it was accepted");
  });
  EXPECT_TRUE(registry->add_linked(&plugin).ok());
  EXPECT_TRUE(registry->op_ids().empty());
}

TEST_F(RegistryHostTest, TheSameNameTwiceInOnePluginIsAConflict) {
  static const TnPlugin plugin = make_plugin("test.plugin", [](const TnHost* host) {
    const TnStatus status = host->register_op(host, &kFirst);
    return status == TN_OK ? host->register_op(host, &kFirst) : status;
  });
  const Status status = registry->add_linked(&plugin);
  EXPECT_EQ(status.code(), Code::kConflict);
  EXPECT_TRUE(contains(status.message(), "op test.first/1 is registered twice by")) << status.message();
  EXPECT_TRUE(registry->plugins().empty());
}

TEST_F(RegistryHostTest, ARefusedRegistrationUndoesALoadThatGoesOnRegardless) {
  static const TnPlugin first = make_plugin("test.plugin", load_first);
  ASSERT_TRUE(registry->add_linked(&first).ok());
  static int unloads = 0;
  static TnPlugin second = make_plugin("test.careless", [](const TnHost* host) {
    (void)host->register_op(host, &kSecond);
    (void)host->register_op(host, &kFirst);
    return static_cast<TnStatus>(TN_OK);
  });
  second.unload = [](const TnHost*) { ++unloads; };
  const Status status = registry->add_linked(&second);
  EXPECT_EQ(status.code(), Code::kConflict);
  EXPECT_FALSE(registry->find_op("test.second/1"));
  EXPECT_EQ(unloads, 1);  // its load had said TN_OK, so it is told to clean up

  static const TnPlugin third = make_plugin("test.third", load_second);
  EXPECT_TRUE(registry->add_linked(&third).ok());
}

TEST_F(RegistryHostTest, UnloadIsNotCalledAfterALoadThatFailed) {
  static int unloads = 0;
  static TnPlugin plugin =
      make_plugin("test.plugin", [](const TnHost* host) { return TN_FAIL(host, TN_IO, "no disk"); });
  plugin.unload = [](const TnHost*) { ++unloads; };
  const Status status = registry->add_linked(&plugin);
  EXPECT_EQ(status.code(), Code::kInternal);
  EXPECT_TRUE(contains(status.message(), "no disk")) << status.message();
  EXPECT_EQ(unloads, 0);
}

const TnOpImporter kOld = make_op_importer(1, 15);
const TnOpImporter kNew = make_op_importer(16, 0);
const TnOpImporter kOverlapping = make_op_importer(10, 20);

// What an importer sees of the op importers of other plugins, and that they stay loaded while it uses one.
TEST_F(RegistryHostTest, ImportersFindOpImporters) {
  static bool unloaded = false;
  static TnPlugin teacher =
      make_plugin("test.teacher", [](const TnHost* host) { return host->register_op_importer(host, &kNew); });
  teacher.unload = [](const TnHost*) { unloaded = true; };
  static const TnPlugin reader = make_plugin("test.reader", load_first);
  unloaded = false;
  ASSERT_TRUE(registry->add_linked(&teacher).ok());
  ASSERT_TRUE(registry->add_linked(&reader).ok());
  const TnHost* host = seen_host;
  const auto* source = static_cast<const TnOpImporterSource*>(host->get_interface(host, TN_IFACE_OP_IMPORTERS));
  ASSERT_NE(source, nullptr);
  const TnHost* owner = nullptr;
  EXPECT_EQ(source->find(host, "test.onnx", "Other", 0, &owner), nullptr);
  EXPECT_EQ(source->find(host, "test.other", "RoiAlign", 0, &owner), nullptr);
  EXPECT_EQ(source->find(host, "test.onnx", "RoiAlign", 15, &owner), nullptr);  // it is for 16 and later
  EXPECT_EQ(owner, nullptr);
  EXPECT_EQ(source->find(host, "test.onnx", "RoiAlign", 16, &owner), &kNew);
  EXPECT_NE(owner, nullptr);
  EXPECT_NE(owner, host);

  ASSERT_TRUE(registry->unload("test.teacher").ok());
  EXPECT_EQ(source->find(host, "test.onnx", "RoiAlign", 16, &owner), nullptr);
  EXPECT_FALSE(unloaded);
  source->release(host, &kNew);
  EXPECT_TRUE(unloaded);
  source->release(host, &kNew);  // of what nobody holds: nothing
}

TEST_F(RegistryHostTest, OpImportersShareATypeByOpset) {
  static const TnPlugin old_one =
      make_plugin("test.old", [](const TnHost* host) { return host->register_op_importer(host, &kOld); });
  static const TnPlugin new_one =
      make_plugin("test.new", [](const TnHost* host) { return host->register_op_importer(host, &kNew); });
  static const TnPlugin clash =
      make_plugin("test.clash", [](const TnHost* host) { return host->register_op_importer(host, &kOverlapping); });
  ASSERT_TRUE(registry->add_linked(&old_one).ok());
  ASSERT_TRUE(registry->add_linked(&new_one).ok());
  EXPECT_EQ(registry->find_op_importer("test.onnx", "RoiAlign", 15).importer, &kOld);
  EXPECT_EQ(registry->find_op_importer("test.onnx", "RoiAlign", 16).importer, &kNew);
  EXPECT_EQ(registry->find_op_importer("test.onnx", "RoiAlign").importer, &kNew);
  const std::vector<OpImporterRef> all = registry->op_importers();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].importer, &kOld);
  const Status status = registry->add_linked(&clash);
  EXPECT_EQ(status.code(), Code::kConflict);
  EXPECT_TRUE(contains(status.message(), "op importer test.onnx:RoiAlign is taken")) << status.message();
}

}  // namespace
}  // namespace tenon
