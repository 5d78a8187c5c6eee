// Loads, look-ups and unloads from many threads at once. Run it with -fsanitize=thread.
#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "registry/registry.h"
#include "registry/testing/support.h"

namespace tenon {
namespace {

using testing::RecordingLogger;
using testing::test_plugin;

constexpr int kThreads = 8;
constexpr int kRounds = 60;

TEST(RegistryThreads, LoadsLookUpsAndUnloadsAtOnce) {
  const char* const names[] = {"one", "two", "three"};
  RecordingLogger logger;
  std::atomic<int> found = 0;
  {
    const std::shared_ptr<Registry> registry = Registry::create(logger);
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        for (int round = 0; round < kRounds; ++round) {
          const std::string name = names[(thread + round) % 3];
          EXPECT_TRUE(registry->load(test_plugin("sample_" + name)).ok());
          const OpRef op = registry->find_op("test." + name + "/1");
          const std::vector<KernelRef> kernels = registry->find_kernels("test." + name + "/1", TN_CPU);
          const std::vector<FusionRef> rules = registry->fusions();
          for (const PluginInfo& plugin : registry->plugins()) EXPECT_EQ(plugin.version, "1.0");
          if (thread % 2 == 0) {
            const Status status = registry->unload("test." + name);
            EXPECT_TRUE(status.ok() || status.code() == Code::kNotFound) << status.message();
          }
          // What was found stays usable, whoever has unloaded it meanwhile.
          if (op) {
            EXPECT_EQ(op.op->id, "test." + name + "/1");
            EXPECT_NE(op.op->get_interface(op.op, "any"), nullptr);
            op.host->log(op.host, TN_LOG_VERBOSE, "used");
            ++found;
          }
          for (const KernelRef& kernel : kernels) {
            TnInst* inst = nullptr;
            EXPECT_EQ(kernel.kernel->configure(kernel.host, kernel.kernel, nullptr, &inst), TN_OK);
          }
          for (const FusionRef& rule : rules) EXPECT_EQ(rule.fusion->priority, 7);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_GT(found, 0);
  for (const char* name : names) {
    const std::string prefix = "[test." + std::string(name) + "] ";
    EXPECT_EQ(logger.count(prefix + "load"), logger.count(prefix + "unload")) << name;
    EXPECT_GT(logger.count(prefix + "load"), 0u) << name;
  }
}

TEST(RegistryThreads, RegistriesOfTheirOwnAtOnce) {
  RecordingLogger logger;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds / 3; ++round) {
        const std::shared_ptr<Registry> registry = Registry::create(logger);
        EXPECT_TRUE(registry->load(test_plugin("sample_one")).ok());
        EXPECT_EQ(registry->load(test_plugin("sample_fails")).code(), Code::kInternal);
        EXPECT_EQ(registry->load(test_plugin("sample_thief")).code(), Code::kConflict);
        EXPECT_TRUE(registry->find_op("test.one/1"));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(logger.count("[test.one] load"), logger.count("[test.one] unload"));
}

}  // namespace
}  // namespace tenon
