// Plugins linked into the test programs, plans made of their ops by hand, and helpers to load those.
#pragma once

#include <tenon/plugin/plugin.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/runtime/engine.h"

namespace tenon::testing {

/// test.affine/1: y = x * w, w constant, with the kernels
///   test.affine.packed   keeps 2 w in persistent memory; uses workspace and both context memories, serializes itself
///   test.affine.strided  takes any strides
///   test.affine.failing  fails in enqueue: "the moon is full"
///   test.affine.waiting  waits in enqueue until `release_waiting` is set
const TnPlugin* affine_plugin();
/// test.add/1: y = a + b, with the kernel test.add.plain.
const TnPlugin* add_plugin();
/// test.neg/1: y = -x, with a reference only.
const TnPlugin* neg_plugin();

/// What the kernels were asked for since reset_counters().
struct Counters {
  std::atomic<int> packed{0}, filled{0}, deserialized{0}, created{0}, destroyed{0}, terminated{0};
};
Counters& counters();
void reset_counters();
extern std::atomic<bool> waiting_entered;
extern std::atomic<bool> release_waiting;

std::shared_ptr<Registry> registry_with(const std::vector<const TnPlugin*>& plugins);
std::vector<const TnPlugin*> all_plugins();

/// A plan for a device, node by node; tensors are f32, row-major.
class PlanBuilder {
 public:
  explicit PlanBuilder(const Device& device);
  std::uint32_t input(const std::string& name, const std::vector<std::int64_t>& dims);
  std::uint32_t constant(const std::string& name, const std::vector<std::int64_t>& dims,
                         const std::vector<float>& values);
  /// Activation memory that nobody shares.
  std::uint32_t inner(const std::string& name, const std::vector<std::int64_t>& dims);
  std::uint32_t output(const std::string& name, const std::vector<std::int64_t>& dims);
  PlanNode& node(const std::string& name, const std::string& op_id, const std::string& kernel,
                 const std::vector<std::uint32_t>& inputs, std::uint32_t output);
  Plan plan;

 private:
  std::uint32_t tensor(const std::string& name, const std::vector<std::int64_t>& dims, Storage storage,
                       std::size_t index);
};

/// x[2,3] -> scale1 (times 2) -> scale2 (times `second`) -> sum of both -> y: y = 2 x (1 + second). `kernel` is that of
/// both scale layers.
Plan residual_plan(const Device& device, const std::string& kernel = "test.affine.packed", float second = 3);
/// x[2,3] -> one layer (times 2) -> y.
Plan single_plan(const Device& device, const std::string& kernel);

Result<std::shared_ptr<Engine>> load(const Plan& plan, EngineOptions options);

class RecordingLogger final : public Logger {
 public:
  void log(Severity severity, const std::string& message) override {
    const std::lock_guard lock(mutex_);
    if (severity == Severity::kError) errors_.push_back(message);
  }
  std::vector<std::string> errors() const {
    const std::lock_guard lock(mutex_);
    return errors_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> errors_;
};

class ListRecorder final : public ErrorRecorder {
 public:
  void record(const Status& status) override {
    const std::lock_guard lock(mutex_);
    list_.push_back(status);
  }
  std::vector<Status> list() const {
    const std::lock_guard lock(mutex_);
    return list_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Status> list_;
};

}  // namespace tenon::testing
