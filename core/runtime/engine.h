// Engine: a loaded plan, shared by threads. ExecutionContext: one execution's state.
//
// Thread rule: Engine is thread-safe and immutable. A context is used by one thread at a time; a second thread gets
// kInvalid, not undefined behaviour. Contexts, engines, runtimes and registries may be destroyed in any order.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tenon/status.hpp>

#include "core/base/logger.h"
#include "core/device/device.h"
#include "core/plan/plan.h"
#include "core/plan/plan_file.h"
#include "core/site/instance.h"
#include "registry/registry.h"

namespace tenon {

struct EngineOptions {
  std::shared_ptr<Device> device;
  std::shared_ptr<const Registry> registry;
  Logger* logger = &null_logger();    ///< outlives the engine and its contexts
  ErrorRecorder* recorder = nullptr;  ///< handed on to contexts
};

struct IoInfo {
  std::string name;
  std::int32_t dtype = TN_DTYPE_NONE;
  TnDims dims{};
  TnDims min{};  ///< the dims that it may have: those of the engine's profile, or the same as `dims`
  TnDims max{};
};

struct LayerTime {
  std::string name;
  double ms = 0;
  std::optional<std::size_t> launches;  ///< kernels, copies and fills, where the device can record the layer
};

class ExecutionContext;

class Engine : public std::enable_shared_from_this<Engine> {
 public:
  /// From an engine file's bytes, which `keep_alive` holds. Errors list everything that is wrong: kNotFound names every
  /// missing plugin with id, version, library and hash; kVersion another device, system or version.
  static Result<std::shared_ptr<Engine>> load(const void* bytes, std::size_t size,
                                              std::shared_ptr<const void> keep_alive, EngineOptions options);
  static Result<std::shared_ptr<Engine>> load_file(const std::filesystem::path& path, EngineOptions options);
  ~Engine();

  const Plan& plan() const;
  std::vector<IoInfo> inputs() const;
  std::vector<IoInfo> outputs() const;
  Device& device() const;
  /// Bytes of scratch memory that a context needs: activations and workspace, for the largest dims of the profile.
  std::uint64_t scratch_bytes() const;

  /// A context with its own scratch memory, or, with `own_scratch` false, one that must be given some.
  Result<std::shared_ptr<ExecutionContext>> create_context(bool own_scratch = true) const;

 private:
  friend class ExecutionContext;
  struct Impl;
  Engine();
  /// `name` begins every message; "" : there is no file.
  static Result<std::shared_ptr<Engine>> load_named(const std::string& name, const void* bytes, std::size_t size,
                                                    std::shared_ptr<const void> keep_alive, EngineOptions options);
  std::unique_ptr<Impl> impl_;
};

class ExecutionContext {
 public:
  ~ExecutionContext();

  /// Other dims for an input, inside the engine's profile. Once the dims of all inputs are set, the first call that
  /// needs the shapes infers all others and configures the kernels for them; the engine keeps the last few. An input or
  /// output whose dims have changed needs its memory set again. kInvalid for dims outside the profile.
  Status set_input_dims(const std::string& name, const TnDims& dims);
  /// The dims of an input or output for the present dims of the inputs; of an output whose size depends on data, those
  /// of the latest run, or the largest before it.
  Result<TnDims> dims(const std::string& name);
  /// Memory for an output whose dims are known only while it runs: asked for in each run, just before a layer writes
  /// it. In place of set_tensor; an empty function takes it back.
  using OutputAllocator = std::function<void*(const std::string& name, std::uint64_t bytes, const TnDims& dims)>;
  Status set_output_allocator(const std::string& name, OutputAllocator allocate);

  /// The caller's memory for an input or output (for one whose size depends on data, enough for the largest dims):
  /// packed row-major of the tensor's dtype and dims, or with strides in
  /// elements (then copied through a packed buffer unless the plan's kernel takes strides). Must stay valid until the
  /// enqueue is done. kNotFound lists the names that exist; kInvalid for null.
  Status set_tensor(const std::string& name, void* data, const std::int64_t* strides = nullptr);
  /// Caller-provided scratch of at least scratch_bytes(), 256-aligned; several contexts that never run at once may
  /// share.
  Status set_scratch(void* memory, std::uint64_t bytes);
  /// Whether runs on a GPU are recorded and launched as a whole. True at first, where every kernel allows it.
  Status use_graph(bool use);
  /// A tensor that a run has just computed: row-major, packed, on the host, with the dims of this run; valid during the
  /// call. f32 for small floats but f16 (and so for f32 tensors that are kept in bf16), 8 bits for smaller integers.
  using Observer = std::function<void(const std::string& name, const TnTensor& tensor)>;
  /// From now on every run shows these tensors (none: all but weights): inputs first, then what each layer writes, as
  /// soon as it has run, constants last. Plan, kernels, formats and memory stay what they are, but the layers are
  /// launched one by one, and enqueue waits. An empty observer ends it. kNotFound, with similar names, for what is no
  /// tensor; kDeclined for a tensor of the network that fusion removed; kInvalid if the engine keeps no names.
  Status set_observer(const std::vector<std::string>& names, Observer observer);
  /// This context's own recorder; the engine's is no longer used by it.
  void set_recorder(ErrorRecorder* recorder);

  /// Runs the engine on the caller's stream (the device's handle; nullptr: the context's own), and on the CPU returns
  /// when it is done; waits for the stream before each layer whose output size depends on data. Errors: a tensor
  /// without memory (lists all), misuse by a second thread, a kernel's failure (names layer and kernel).
  Status enqueue(void* stream = nullptr);
  /// enqueue, then waits.
  Status execute();
  /// Runs layer by layer and times each; slower than enqueue.
  Result<std::vector<LayerTime>> profile();

 private:
  friend class Engine;
  struct Impl;
  ExecutionContext();
  std::unique_ptr<Impl> impl_;
};

/// One line per layer (docs/use.md shows the form), or a JSON array; works from a plan alone, without plugins.
std::string inspect_oneline(const Plan& plan);
std::string inspect_json(const Plan& plan);
/// JSON: tensors[] {name, dtype, dims, format, storage}, weights included; removed[] {name, layer}, tensors of the
/// network that fusion left out, with the layer that they became part of, or "". Both are empty, with a note, where the
/// plan keeps no names.
std::string inspect_tensors(const Plan& plan);
/// JSON: inputs[], outputs[] {name, dtype, dims, min, max}; min and max as in IoInfo.
std::string inspect_ends(const Plan& plan);
std::string inspect_layer_oneline(const Plan& plan, std::size_t layer);
std::string inspect_layer_json(const Plan& plan, std::size_t layer);

}  // namespace tenon
