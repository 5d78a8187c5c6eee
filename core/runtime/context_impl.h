// What ExecutionContext holds; shared by the sources of this folder only.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "core/runtime/engine_impl.h"
#include "core/runtime/side_streams.h"

namespace tenon {

/// One place where a tensor of the plan is handed to a kernel.
struct TensorUse {
  std::size_t layer = 0;
  std::size_t argument = 0;  ///< in ExecutionContext::Impl::arguments
  bool any_strides = false;  ///< the kernel reads or writes through the strides
};

/// The caller's memory for one input or output.
struct Binding {
  void* data = nullptr;  ///< nullptr: not set yet
  std::int64_t strides[TN_MAX_RANK] = {};
  bool copied = false;   ///< through `packed`: a kernel wants packed memory, or the device does not reach the caller's
  bool on_host = false;  ///< copied, and through `staging` too: the device does not reach the caller's memory
  DeviceBuffer packed;
  StagingBuffer staging;
  ExecutionContext::OutputAllocator allocate;  ///< gives `data` anew in each run
  bool ready() const { return data != nullptr || allocate != nullptr; }
};

/// What the caller wants to see of each run.
struct Observation {
  ExecutionContext::Observer call;
  std::vector<bool> wanted;                     ///< by tensor of the plan
  std::map<std::uint32_t, std::string> called;  ///< names that the caller gave
  std::vector<std::uint8_t> stored, row, wide;  ///< a tensor on its way to the caller
};

struct AlignedDelete {
  void operator()(std::uint8_t* memory) const {
    ::operator delete(memory, static_cast<std::align_val_t>(kRuntimeAlignment));
  }
};

struct ExecutionContext::Impl {
  // The engine goes last: everything here may refer to its device.
  std::shared_ptr<const Engine> owner;
  const Engine::Impl* engine = nullptr;
  std::shared_ptr<const Executable> ready;  ///< for the dims that `input_dims` had when it was refreshed
  std::vector<TnDims> input_dims;           ///< that the caller wants
  bool stale = false;                       ///< they have changed since
  std::atomic<bool> busy{false};
  std::atomic<ErrorRecorder*> recorder{nullptr};

  DeviceBuffer own_scratch;
  std::uint8_t* scratch = nullptr;
  std::uint64_t scratch_size = 0;
  bool owns_scratch = false;
  bool has_scratch = false;
  DeviceBuffer context_device;
  std::unique_ptr<std::uint8_t, AlignedDelete> context_host;
  std::uint64_t context_host_size = 0;

  std::unique_ptr<Activity> activity;  ///< from an enqueue until somebody has waited for it; empty on the host
  std::unique_ptr<Stream> own_stream;
  SideStreams side_streams;               ///< of a plan on several streams
  std::unique_ptr<Stream> caller_stream;  ///< over the handle of the latest enqueue that had one
  void* caller_handle = nullptr;

  std::vector<TnTensor> arguments;           ///< of all layers: inputs, then outputs
  std::vector<std::size_t> first_argument;   ///< of each layer
  std::vector<std::vector<TensorUse>> uses;  ///< of each tensor of the plan
  std::vector<Binding> inputs;
  std::vector<Binding> outputs;

  std::unique_ptr<Observation> observation;  ///< null: nobody looks
  std::unique_ptr<Recording> recording;      ///< the launches of all layers, recorded at the first enqueue
  bool recorded = false;                     ///< with the addresses that are bound now
  bool recordable = false;
  bool record_failed = false;  ///< once, since the plan was taken over
  bool wants_recording = true;
  std::unique_ptr<Event> staged;  ///< after the latest copies from staging memory to the device; empty on the host
  std::unique_ptr<Event> done;    ///< after the latest enqueue on the caller's stream; empty on the host

  Device& device() const { return *engine->options.device; }
  const Plan& plan() const { return ready->plan; }
  const TnTensor* layer_inputs(std::size_t layer) const { return arguments.data() + first_argument[layer]; }
  const TnTensor* layer_outputs(std::size_t layer) const {
    return layer_inputs(layer) + plan().nodes[layer].inputs.size();
  }

  // --- context_setup.cc ---
  Status create(bool with_scratch);
  Status refresh();
  /// `first_layer`: those before it have run already, and what they gave stays where it is.
  Status use(std::shared_ptr<const Executable> executable, std::size_t first_layer = 0);
  void make_arguments();
  void decide_recording();
  Status allocate_scratch();
  Status allocate_context_memory();
  Status set_shapes(std::size_t layer);
  void bind(std::uint32_t tensor, void* data, const std::int64_t* strides);
  void bind_arena();
  /// Gives the memory of inputs and outputs to the layers; those whose dims have changed keep it only if `keep`.
  Status bind_again(const Plan& before, bool keep);
  Status set_output_allocator(const std::string& name, ExecutionContext::OutputAllocator allocate);
  Status set_input_dims(const std::string& name, const TnDims& dims);
  Result<TnDims> dims(const std::string& name);
  Status set_tensor(const std::string& name, void* data, const std::int64_t* strides);
  Status bind_end(const std::string& name, std::uint32_t tensor, bool output, void* data, const std::int64_t* strides,
                  Binding* binding);

  // --- context.cc ---
  TnExec exec_for(std::size_t layer, const TnExec& base) const;
  Status check_ready() const;
  Result<Stream*> stream_for(void* handle);
  Status gather(Stream& stream) const;
  Status scatter(Stream& stream) const;
  Status run_layer(std::size_t layer, const TnExec& base) const;
  /// Runs one layer, and whatever belongs to it.
  using RunLayer = std::function<Status(std::size_t layer, const TnExec& base)>;
  /// All layers, on one stream; before each one whose output size depends on data the executable becomes the one for
  /// that size.
  Status run_layers(Stream& stream, const RunLayer& run);
  /// All layers, those of other streams of the plan on these; the stream waits for them at the end.
  Status run_layers(Stream& stream);
  Status learn_sizes(std::size_t layer, Stream& stream, std::vector<TnDims>* sizes);
  Status allocate_outputs(std::size_t begin, std::size_t end);
  Status begin_run();
  Status record();
  Status enqueue(Stream& stream);
  Status wait(Stream& stream) const;
  Result<std::vector<LayerTime>> profile();

  // --- observe.cc ---
  Status set_observer(const std::vector<std::string>& names, ExecutionContext::Observer observer);
  /// All layers one by one, each followed by the observer's look at what it wrote.
  Status run_observed(Stream& stream);
  Status show_tensor(std::uint32_t id, TnTensor tensor, Stream& stream);
  Status show_host_tensor(std::uint32_t id, TnTensor tensor);

  /// To the error recorder or the log; an error of the device with what else may have caused it.
  Status report(Status status) const;
};

/// Holds a context for one call; the second of two threads does not get it.
class InUse {
 public:
  explicit InUse(std::atomic<bool>* busy) : busy_(busy), ok_(!busy->exchange(true, std::memory_order_acquire)) {}
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;
  ~InUse() {
    if (ok_) busy_->store(false, std::memory_order_release);
  }
  Status status() const {
    if (ok_) return {};
    return {Code::kInvalid, "the execution context is used by two threads at once; give each thread its own context"};
  }

 private:
  std::atomic<bool>* busy_;
  bool ok_;
};

}  // namespace tenon
