// What the opaque handles of c/tenon.h hold, and the barrier that every exported function runs behind.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <tenon/c/tenon.h>
#include <tenon/status.hpp>

#include "core/base/logger.h"
#include "core/builder/builder.h"
#include "core/device/cuda/cuda_device.h"
#include "core/device/device.h"
#include "core/graph/graph.h"
#include "core/runtime/engine.h"
#include "core/tuner/timing_cache.h"
#include "registry/registry.h"

namespace tenon::api {

class CallbackLogger final : public Logger {
 public:
  CallbackLogger(TnLogFn call, void* context, Severity threshold)
      : call_(call), context_(context), threshold_(call == nullptr ? Severity::kError : threshold) {}
  void log(Severity severity, const std::string& message) override {
    if (call_ != nullptr && severity <= threshold_) call_(context_, static_cast<int>(severity), message.c_str());
  }
  Severity threshold() const override { return threshold_; }

 private:
  TnLogFn call_;
  void* context_;
  Severity threshold_;
};

class CallbackRecorder final : public ErrorRecorder {
 public:
  CallbackRecorder(TnErrorFn call, void* context) : call_(call), context_(context) {}
  void record(const Status& status) override {
    call_(context_, static_cast<TnStatus>(status.code()), status.message().c_str());
  }

 private:
  TnErrorFn call_;
  void* context_;
};

class CallbackAllocator final : public Allocator {
 public:
  explicit CallbackAllocator(const TnLibraryOptions& options) : options_(options) {}
  void* allocate(std::size_t bytes, std::size_t alignment) override {
    return options_.allocate(options_.allocator_context, bytes, alignment);
  }
  void free(void* memory) override { options_.free(options_.allocator_context, memory); }

 private:
  TnLibraryOptions options_;
};

class CallbackCudaAllocator final : public CudaAllocator {
 public:
  explicit CallbackCudaAllocator(const TnLibraryOptions& options) : options_(options) {}
  void* allocate(int ordinal, std::size_t bytes) override {
    return options_.allocate_cuda(options_.allocator_context, ordinal, bytes);
  }
  void free(int ordinal, void* memory) override { options_.free_cuda(options_.allocator_context, ordinal, memory); }

 private:
  TnLibraryOptions options_;
};

/// What every object of one library shares. Members are destroyed in reverse: the logger outlives the registry.
struct LibraryState {
  explicit LibraryState(const TnLibraryOptions& options);

  /// "auto", "cpu", "cuda", "cuda:N"; threads 0: all that this process may use. One CPU device per number of threads,
  /// one per GPU. "auto" takes the first GPU if there is one and says so.
  Result<std::shared_ptr<Device>> device(const std::string& name, int threads);
  /// Tells recorder or logger about a failure.
  Status report(Status status);

  CallbackLogger logger;
  std::unique_ptr<CallbackRecorder> recorder;
  std::unique_ptr<CallbackAllocator> allocator;
  std::unique_ptr<CallbackCudaAllocator> cuda_allocator;
  std::shared_ptr<Registry> registry;
  std::vector<LoadProblem> problems;               ///< of the last discovery
  std::mutex mutex;                                ///< guards problems and devices
  std::map<int, std::shared_ptr<Device>> devices;  ///< CPU, by number of threads
  std::map<int, std::shared_ptr<Device>> gpus;     ///< by ordinal
  bool told_choice = false;                        ///< what "auto" took was logged

 private:
  Result<std::shared_ptr<Device>> gpu(int ordinal);
};

/// Stores the text for tn_last_error and gives the code.
TnStatus answer(const Status& status);

/// Runs a function that gives Status, and turns anything thrown (out of memory, a fault of ours) into one too.
template <class Function>
TnStatus guarded(Function&& function) {
  try {
    return answer(function());
  } catch (const std::bad_alloc&) {
    return answer(Status(Code::kNoMemory, "out of memory"));
  } catch (const std::exception& error) {
    return answer(Status(Code::kInternal, std::string("unexpected: ") + error.what()));
  }
}

Status need(const void* pointer, const char* what);

/// Reads a model file into an empty graph: importer by name, or the one whose probe is surest. `files` by role.
Status import_model(LibraryState& library, const std::string& path, const std::string& importer,
                    const std::map<std::string, std::string>& options, const std::map<std::string, std::string>& files,
                    Graph* graph);

}  // namespace tenon::api

struct TnText {
  std::string text;
};
struct TnLibrary {
  std::shared_ptr<tenon::api::LibraryState> state;
};
struct TnNetwork {
  std::shared_ptr<tenon::api::LibraryState> library;
  tenon::Graph graph;
};
struct TnTimingCache {
  std::shared_ptr<tenon::api::LibraryState> library;
  std::shared_ptr<tenon::TimingCache> cache;
};
struct TnBuilderConfig {
  std::string device = "auto";
  int threads = 0;
  tenon::BuildOptions options;
  TnProgressFn progress = nullptr;
  void* progress_context = nullptr;
};
struct TnBuildResult {
  std::vector<std::uint8_t> engine;
  std::string report;
};
struct TnEngine {
  std::shared_ptr<tenon::api::LibraryState> library;
  std::shared_ptr<tenon::Engine> engine;
  std::string device_text;
};
struct TnContext {
  std::shared_ptr<tenon::api::LibraryState> library;
  std::unique_ptr<tenon::api::CallbackRecorder> recorder;
  std::shared_ptr<tenon::ExecutionContext> context;
};
