// Runtime, Engine, EngineInspector and ExecutionContext: from the bytes of an engine to results.
// Thread rule: see tenon.hpp.
#ifndef TENON_RUNTIME_HPP
#define TENON_RUNTIME_HPP

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tenon/library.hpp>

namespace tenon {

struct TensorInfo {
  std::string name;
  std::int32_t dtype = TN_DTYPE_NONE;
  std::vector<std::int64_t> dims;
  std::vector<std::int64_t> min;  ///< the dims that a context may give it (its profile), or the same as `dims`
  std::vector<std::int64_t> max;
};

/// What layers an engine has and what they run.
class Engine;
class EngineInspector {
 public:
  explicit EngineInspector(const Engine& engine);
  /// format: "oneline" or "json".
  Result<std::string> layer(std::uint32_t index, const std::string& format) const {
    return text(static_cast<std::int32_t>(index), format);
  }
  /// Of the whole engine also "tensors" and "ends", as JSON.
  Result<std::string> engine(const std::string& format) const { return text(-1, format); }
  std::uint32_t num_layers() const;

 private:
  Result<std::string> text(std::int32_t layer, const std::string& format) const;
  detail::Handle<TnEngine, tn_engine_release> handle_;
};

class Engine {
 public:
  std::vector<TensorInfo> inputs() const { return list(tn_engine_num_inputs(get()), &tn_engine_describe_input); }
  std::vector<TensorInfo> outputs() const { return list(tn_engine_num_outputs(get()), &tn_engine_describe_output); }
  Result<std::string> metadata(const std::string& key) const {
    const char* text = nullptr;
    TENON_RETURN_IF_ERROR(detail::check(tn_engine_get_metadata(get(), key.c_str(), &text)));
    return std::string(text);
  }
  std::uint64_t scratch_bytes() const { return tn_engine_scratch_bytes(get()); }
  std::string device() const { return tn_engine_device(get()); }
  /// Memory of the engine's device, freed with the last copy of the pointer.
  Result<std::shared_ptr<void>> allocate(std::uint64_t bytes) const {
    void* memory = nullptr;
    TENON_RETURN_IF_ERROR(detail::check(tn_engine_allocate(get(), bytes, &memory)));
    return std::shared_ptr<void>(memory, [owner = *this](void* p) { tn_engine_free(owner.get(), p); });
  }
  Status upload(void* device, const void* host, std::uint64_t bytes) const {
    return detail::check(tn_engine_upload(get(), device, host, bytes));
  }
  Status download(void* host, const void* device, std::uint64_t bytes) const {
    return detail::check(tn_engine_download(get(), host, device, bytes));
  }
  TnEngine* get() const { return handle_.get(); }

 private:
  friend class Runtime;
  friend class EngineInspector;
  Engine(Library library, TnEngine* handle) : library_(std::move(library)), handle_(handle) {}
  std::vector<TensorInfo> list(std::uint32_t count, TnStatus (*describe)(const TnEngine*, std::uint32_t, const char**,
                                                                         std::int32_t*, TnDims*)) const {
    std::vector<TensorInfo> result(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      const char* name = "";
      TnDims dims{};
      if (describe(get(), i, &name, &result[i].dtype, &dims) != TN_OK) continue;
      TnDims min = dims, max = dims;
      (void)tn_engine_describe_profile(get(), name, &min, &max);
      result[i].name = name;
      result[i].dims = detail::list(dims);
      result[i].min = detail::list(min);
      result[i].max = detail::list(max);
    }
    return result;
  }
  Library library_;
  detail::Handle<TnEngine, tn_engine_release> handle_;
};

inline EngineInspector::EngineInspector(const Engine& engine) : handle_(engine.handle_) {}
inline std::uint32_t EngineInspector::num_layers() const { return tn_engine_num_layers(handle_.get()); }
inline Result<std::string> EngineInspector::text(std::int32_t layer, const std::string& format) const {
  TnText* text = nullptr;
  TENON_RETURN_IF_ERROR(detail::check(tn_engine_inspect(handle_.get(), layer, format.c_str(), &text)));
  return detail::take(text);
}

class Runtime {
 public:
  explicit Runtime(Library library, std::string device = "auto", int threads = 0)
      : library_(std::move(library)), device_(std::move(device)), threads_(threads) {}
  Result<Engine> load(const std::string& path) const {
    TnEngine* handle = nullptr;
    TENON_RETURN_IF_ERROR(
        detail::check(tn_engine_load(library_.get(), path.c_str(), device_.c_str(), threads_, &handle)));
    return Engine(library_, handle);
  }
  /// From memory, which is copied.
  Result<Engine> create(const void* bytes, std::size_t size) const {
    TnEngine* handle = nullptr;
    TENON_RETURN_IF_ERROR(
        detail::check(tn_engine_create(library_.get(), bytes, size, device_.c_str(), threads_, &handle)));
    return Engine(library_, handle);
  }

 private:
  Library library_;
  std::string device_;
  int threads_;
};

class ExecutionContext {
 public:
  /// With `own_scratch` false the context must be given scratch memory before it runs.
  static Result<ExecutionContext> create(const Engine& engine, bool own_scratch = true) {
    TnContext* handle = nullptr;
    TENON_RETURN_IF_ERROR(detail::check(tn_context_create(engine.get(), own_scratch ? 1 : 0, &handle)));
    return ExecutionContext(engine, handle);
  }
  /// Other dims for an input, inside its profile; see tn_context_set_input_dims.
  Status set_input_dims(const std::string& name, const std::vector<std::int64_t>& dims) {
    const TnDims raw = detail::dims(dims);
    return detail::check(tn_context_set_input_dims(get(), name.c_str(), &raw));
  }
  /// The dims of an input or output for the present dims of the inputs.
  Result<std::vector<std::int64_t>> dims(const std::string& name) {
    TnDims raw{};
    TENON_RETURN_IF_ERROR(detail::check(tn_context_describe_dims(get(), name.c_str(), &raw)));
    return detail::list(raw);
  }
  /// The caller's memory; strides in elements, or nullptr for packed row-major.
  Status set_tensor(const std::string& name, void* data, const std::int64_t* strides = nullptr) {
    return detail::check(tn_context_set_tensor(get(), name.c_str(), data, strides));
  }
  /// Memory for an output whose size depends on data, asked for in each run; see tn_context_set_output_allocator.
  using OutputAllocator = std::function<void*(const std::string& name, std::uint64_t bytes, const TnDims& dims)>;
  Status set_output_allocator(const std::string& name, OutputAllocator allocate) {
    auto held = std::make_shared<OutputAllocator>(std::move(allocate));
    const bool given = *held != nullptr;
    const auto call = [](void* function, const char* output, uint64_t bytes, const TnDims* dims) {
      return (*static_cast<OutputAllocator*>(function))(output, bytes, *dims);
    };
    TENON_RETURN_IF_ERROR(
        detail::check(tn_context_set_output_allocator(get(), name.c_str(), given ? +call : nullptr, held.get())));
    allocators_[name] = std::move(held);
    return {};
  }
  Status set_scratch(void* memory, std::uint64_t bytes) {
    return detail::check(tn_context_set_scratch(get(), memory, bytes));
  }
  /// Shows tensors of each run (none named: all but weights) without changing what runs; see tn_context_set_observer.
  using Observer = std::function<void(const std::string& name, const TnTensor& tensor)>;
  Status set_observer(const std::vector<std::string>& names, Observer observer) {
    auto held = std::make_shared<Observer>(std::move(observer));
    const bool given = *held != nullptr;
    const auto call = [](void* function, const char* name, const TnTensor* tensor) {
      (*static_cast<Observer*>(function))(name, *tensor);
    };
    std::vector<const char*> list;
    for (const std::string& name : names) list.push_back(name.c_str());
    TENON_RETURN_IF_ERROR(detail::check(tn_context_set_observer(
        get(), list.data(), static_cast<std::uint32_t>(list.size()), given ? +call : nullptr, held.get())));
    observer_ = std::move(held);
    return {};
  }
  /// Whether runs on a GPU are replayed as one CUDA graph; true at first.
  Status use_graph(bool use) { return detail::check(tn_context_use_graph(get(), use ? 1 : 0)); }
  Status enqueue(void* stream = nullptr) { return detail::check(tn_context_enqueue(get(), stream)); }
  Status execute() { return detail::check(tn_context_execute(get())); }
  /// JSON: [{name, ms}].
  Result<std::string> profile() {
    TnText* text = nullptr;
    TENON_RETURN_IF_ERROR(detail::check(tn_context_profile(get(), &text)));
    return detail::take(text);
  }
  TnContext* get() const { return handle_.get(); }

 private:
  ExecutionContext(Engine engine, TnContext* handle) : engine_(std::move(engine)), handle_(handle) {}
  Engine engine_;
  std::map<std::string, std::shared_ptr<OutputAllocator>> allocators_;
  std::shared_ptr<Observer> observer_;
  detail::Handle<TnContext, tn_context_release> handle_;
};

}  // namespace tenon

#endif  // TENON_RUNTIME_HPP
