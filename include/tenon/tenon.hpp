// Tenon's public C++ API: header-only, over the C API of c/tenon.h. Nothing throws; functions give Result<T> or Status.
//
// Objects are cheap handles that share what they refer to; any order of destruction is safe. Threads: Network,
// BuilderConfig and ExecutionContext are used by one thread at a time, each; everything else is thread-safe.
#ifndef TENON_TENON_HPP
#define TENON_TENON_HPP

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tenon/c/tenon.h>
#include <tenon/status.hpp>

namespace tenon {

namespace detail {

inline Status check(TnStatus code) {
  return code == TN_OK ? Status() : Status(static_cast<Code>(code), tn_last_error());
}

/// A shared handle of the C API; the deleter is the type's release function.
template <class T, void (*Release)(T*)>
class Handle {
 public:
  explicit Handle(T* raw = nullptr) : raw_(raw, Release) {}
  T* get() const { return raw_.get(); }
  explicit operator bool() const { return raw_ != nullptr; }

 private:
  std::shared_ptr<T> raw_;
};

inline std::string take(TnText* text) {
  std::string copy(tn_text_data(text), tn_text_size(text));
  tn_text_release(text);
  return copy;
}

inline TnDims dims(const std::vector<std::int64_t>& extents) {
  TnDims result{};
  result.rank = static_cast<std::int32_t>(extents.size());
  for (std::size_t i = 0; i < extents.size() && i < TN_MAX_RANK; ++i) result.d[i] = extents[i];
  return result;
}

}  // namespace detail

/// Where messages go. `log` may be called from any thread; it outlives everything made from the library.
struct LibraryOptions {
  std::function<void(int severity, const std::string& message)> log;  ///< severity: TN_LOG_*
  int log_threshold = TN_LOG_INFO;
  std::function<void(const Status&)> record_error;  ///< empty: failures go to log
};

/// A registry of plugins with its logger: what everything else starts from.
class Library {
 public:
  static Result<Library> create(LibraryOptions options = {}) {
    auto shared = std::make_shared<LibraryOptions>(std::move(options));
    TnLibraryOptions raw{};
    raw.struct_size = sizeof(raw);
    raw.log_threshold = shared->log_threshold;
    if (shared->log) {
      raw.log = [](void* context, std::int32_t severity, const char* message) {
        static_cast<LibraryOptions*>(context)->log(severity, message);
      };
      raw.log_context = shared.get();
    }
    if (shared->record_error) {
      raw.record_error = [](void* context, TnStatus code, const char* message) {
        static_cast<LibraryOptions*>(context)->record_error(Status(static_cast<Code>(code), message));
      };
      raw.error_context = shared.get();
    }
    TnLibrary* handle = nullptr;
    TENON_RETURN_IF_ERROR(detail::check(tn_library_create(&raw, &handle)));
    Library library;
    library.options_ = std::move(shared);
    library.handle_ = detail::Handle<TnLibrary, tn_library_release>(handle);
    return library;
  }
  Status load_plugin(const std::string& path) { return detail::check(tn_library_load_plugin(get(), path.c_str())); }
  Status add_plugin(const TnPlugin* plugin) { return detail::check(tn_library_add_plugin(get(), plugin)); }
  /// Loads all plugins that can be found; returns how many libraries could not be loaded (each is a logged warning).
  Result<std::uint32_t> discover() {
    std::uint32_t failed = 0;
    TENON_RETURN_IF_ERROR(detail::check(tn_library_discover(get(), &failed)));
    return failed;
  }
  Status unload_plugin(const std::string& id) { return detail::check(tn_library_unload_plugin(get(), id.c_str())); }
  /// JSON: plugins[], failed[].
  Result<std::string> describe() const {
    TnText* text = nullptr;
    TENON_RETURN_IF_ERROR(detail::check(tn_library_describe(get(), &text)));
    return detail::take(text);
  }
  TnLibrary* get() const { return handle_.get(); }

 private:
  Library() = default;
  std::shared_ptr<LibraryOptions> options_;  // outlives the handle
  detail::Handle<TnLibrary, tn_library_release> handle_;
};

using TensorId = TnTensorId;

/// A network built layer by layer or read from a file. Building never changes it.
class Network {
 public:
  static Result<Network> create(const Library& library) {
    TnNetwork* handle = nullptr;
    TENON_RETURN_IF_ERROR(detail::check(tn_network_create(library.get(), &handle)));
    return Network(library, handle);
  }
  /// See tn_network_import. Empty strings stand for NULL.
  Status import(const std::string& path, const std::string& importer = "", const std::string& options_json = "",
                const std::string& files_json = "") {
    const auto text = [](const std::string& s) { return s.empty() ? nullptr : s.c_str(); };
    return detail::check(tn_network_import(get(), path.c_str(), text(importer), text(options_json), text(files_json)));
  }
  Result<TensorId> add_input(const std::string& name, const std::vector<std::int64_t>& dims,
                             std::int32_t dtype = TN_F32) {
    const TnDims raw = detail::dims(dims);
    TensorId id = TN_NO_TENSOR;
    TENON_RETURN_IF_ERROR(detail::check(tn_network_add_input(get(), name.c_str(), dtype, &raw, &id)));
    return id;
  }
  Result<TensorId> add_constant(const std::string& name, const std::vector<std::int64_t>& dims,
                                const std::vector<float>& values) {
    const TnDims raw = detail::dims(dims);
    TensorId id = TN_NO_TENSOR;
    TENON_RETURN_IF_ERROR(detail::check(
        tn_network_add_constant(get(), name.c_str(), TN_F32, &raw, values.data(), values.size() * sizeof(float), &id)));
    return id;
  }
  /// A layer of any registered op with several outputs.
  Result<std::vector<TensorId>> add_layers(const std::string& op_id, const std::string& name,
                                           const std::vector<TensorId>& inputs, std::uint32_t num_outputs,
                                           const std::string& attrs_json = "") {
    std::vector<TensorId> outputs(num_outputs, TN_NO_TENSOR);
    TENON_RETURN_IF_ERROR(detail::check(
        tn_network_add_layer(get(), op_id.c_str(), name.c_str(), attrs_json.empty() ? nullptr : attrs_json.c_str(),
                             inputs.data(), static_cast<std::uint32_t>(inputs.size()), outputs.data(), num_outputs)));
    return outputs;
  }
  /// A layer with one output.
  Result<TensorId> add_layer(const std::string& op_id, const std::string& name, const std::vector<TensorId>& inputs,
                             const std::string& attrs_json = "") {
    TENON_ASSIGN(const std::vector<TensorId> outputs, add_layers(op_id, name, inputs, 1, attrs_json));
    return outputs[0];
  }
  Status mark_output(TensorId tensor) { return detail::check(tn_network_mark_output(get(), tensor)); }
  Status mark_output(const std::string& name) {
    return detail::check(tn_network_mark_output_by_name(get(), name.c_str()));
  }
  Status set_input_dims(const std::string& name, const std::vector<std::int64_t>& dims) {
    const TnDims raw = detail::dims(dims);
    return detail::check(tn_network_set_input_dims(get(), name.c_str(), &raw));
  }
  Status rename(TensorId tensor, const std::string& name) {
    return detail::check(tn_network_rename(get(), tensor, name.c_str()));
  }
  Status set_metadata(const std::string& key, const std::string& text) {
    return detail::check(tn_network_set_metadata(get(), key.c_str(), text.c_str()));
  }
  Result<std::string> metadata(const std::string& key) const {
    const char* text = nullptr;
    TENON_RETURN_IF_ERROR(detail::check(tn_network_get_metadata(get(), key.c_str(), &text)));
    return std::string(text);
  }
  Result<std::string> dump() const {
    TnText* text = nullptr;
    TENON_RETURN_IF_ERROR(detail::check(tn_network_dump(get(), &text)));
    return detail::take(text);
  }
  Result<std::string> describe() const {
    TnText* text = nullptr;
    TENON_RETURN_IF_ERROR(detail::check(tn_network_describe(get(), &text)));
    return detail::take(text);
  }
  TnNetwork* get() const { return handle_.get(); }
  const Library& library() const { return library_; }

 private:
  Network(Library library, TnNetwork* handle) : library_(std::move(library)), handle_(handle) {}
  Library library_;
  detail::Handle<TnNetwork, tn_network_release> handle_;
};

/// Recorded choices and measurements; see docs/how_it_works.md.
class TimingCache {
 public:
  using Key = TnCacheKey;
  using Value = TnCacheValue;

  /// From serialize's bytes, or empty.
  static Result<TimingCache> create(const Library& library, const std::string& bytes = "", int threads = 0) {
    TnTimingCache* handle = nullptr;
    TENON_RETURN_IF_ERROR(
        detail::check(tn_cache_create(library.get(), "cpu", threads, bytes.data(), bytes.size(), &handle)));
    return TimingCache(library, handle);
  }
  /// From a file; a missing one gives an empty cache. `strict`: damage is an error.
  static Result<TimingCache> load(const Library& library, const std::string& path, bool strict = false,
                                  int threads = 0) {
    TnTimingCache* handle = nullptr;
    TENON_RETURN_IF_ERROR(
        detail::check(tn_cache_load(library.get(), "cpu", threads, path.c_str(), strict ? 1 : 0, &handle)));
    return TimingCache(library, handle);
  }
  Status save(const std::string& path) const { return detail::check(tn_cache_save(get(), path.c_str())); }
  Result<std::string> serialize() const {
    TnText* text = nullptr;
    TENON_RETURN_IF_ERROR(detail::check(tn_cache_serialize(get(), &text)));
    return detail::take(text);
  }
  Value query(const Key& key) const { return tn_cache_query(get(), &key); }
  std::size_t query_keys(Key* out, std::size_t capacity) const { return tn_cache_query_keys(get(), out, capacity); }
  bool update(const Key& key, const Value& value) { return tn_cache_update(get(), &key, &value) != 0; }
  bool combine(const TimingCache& other, bool ignore_mismatch) {
    return tn_cache_combine(get(), other.get(), ignore_mismatch ? 1 : 0) != 0;
  }
  void reset() { tn_cache_reset(get()); }
  Status insert(const std::string& choice_json) { return detail::check(tn_cache_insert(get(), choice_json.c_str())); }
  bool pin(const Key& key, bool pinned) { return tn_cache_pin(get(), &key, pinned ? 1 : 0) != 0; }
  bool erase(const Key& key) { return tn_cache_erase(get(), &key) != 0; }
  /// JSON: choices[], measured[]; of one layer unless `layer` is empty.
  Result<std::string> describe(const std::string& layer = "") const {
    TnText* text = nullptr;
    TENON_RETURN_IF_ERROR(detail::check(tn_cache_describe(get(), layer.empty() ? nullptr : layer.c_str(), &text)));
    return detail::take(text);
  }
  TnTimingCache* get() const { return handle_.get(); }

 private:
  TimingCache(Library library, TnTimingCache* handle) : library_(std::move(library)), handle_(handle) {}
  Library library_;
  detail::Handle<TnTimingCache, tn_cache_release> handle_;
};

struct BuildProgress {
  int layer, layers, tactic, tactics;
  std::string name;
  double elapsed_s;
  double eta_s;  ///< below 0: unknown
};

class BuilderConfig {
 public:
  static Result<BuilderConfig> create() {
    TnBuilderConfig* handle = nullptr;
    TENON_RETURN_IF_ERROR(detail::check(tn_config_create(&handle)));
    return BuilderConfig(handle);
  }
  /// Keys as in c/tenon.h, tn_config_create.
  Status set(const std::string& key, const std::string& value) {
    return detail::check(tn_config_set(get(), key.c_str(), value.c_str()));
  }
  Status set_cache(const TimingCache& cache) {
    caches_.push_back(cache);
    return detail::check(tn_config_set_cache(get(), cache.get()));
  }
  /// Called between measurements; false cancels the build.
  Status set_progress(std::function<bool(const BuildProgress&)> progress) {
    progress_ = std::make_shared<std::function<bool(const BuildProgress&)>>(std::move(progress));
    return detail::check(tn_config_set_progress(
        get(),
        [](void* context, std::int32_t layer, std::int32_t layers, std::int32_t tactic, std::int32_t tactics,
           const char* name, double elapsed, double eta) -> std::int32_t {
          const auto& call = *static_cast<std::function<bool(const BuildProgress&)>*>(context);
          return call({layer, layers, tactic, tactics, name, elapsed, eta}) ? 0 : 1;
        },
        progress_.get()));
  }
  TnBuilderConfig* get() const { return handle_.get(); }

 private:
  explicit BuilderConfig(TnBuilderConfig* handle) : handle_(handle) {}
  std::vector<TimingCache> caches_;
  std::shared_ptr<std::function<bool(const BuildProgress&)>> progress_;
  detail::Handle<TnBuilderConfig, tn_config_release> handle_;
};

/// Engine bytes with the report of how they came about.
class BuiltEngine {
 public:
  explicit BuiltEngine(TnBuildResult* handle) : handle_(handle) {}
  const void* data() const { return tn_build_engine_data(handle_.get()); }
  std::size_t size() const { return tn_build_engine_size(handle_.get()); }
  std::string bytes() const { return std::string(static_cast<const char*>(data()), size()); }
  std::string report() const { return tn_build_report(handle_.get()); }

 private:
  detail::Handle<TnBuildResult, tn_build_release> handle_;
};

class Builder {
 public:
  explicit Builder(Library library) : library_(std::move(library)) {}
  Result<BuiltEngine> build(const Network& network, const BuilderConfig& config) const {
    TnBuildResult* result = nullptr;
    TENON_RETURN_IF_ERROR(detail::check(tn_build(library_.get(), network.get(), config.get(), &result)));
    return BuiltEngine(result);
  }
  /// JSON: node, candidates[]; see tn_explain.
  Result<std::string> explain(const Network& network, const BuilderConfig& config, const std::string& name) const {
    TnText* text = nullptr;
    TENON_RETURN_IF_ERROR(detail::check(tn_explain(library_.get(), network.get(), config.get(), name.c_str(), &text)));
    return detail::take(text);
  }

 private:
  Library library_;
};

struct TensorInfo {
  std::string name;
  std::int32_t dtype = TN_DTYPE_NONE;
  std::vector<std::int64_t> dims;
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
      result[i].name = name;
      result[i].dims.assign(dims.d, dims.d + dims.rank);
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
  /// The caller's memory; strides in elements, or nullptr for packed row-major.
  Status set_tensor(const std::string& name, void* data, const std::int64_t* strides = nullptr) {
    return detail::check(tn_context_set_tensor(get(), name.c_str(), data, strides));
  }
  Status set_scratch(void* memory, std::uint64_t bytes) {
    return detail::check(tn_context_set_scratch(get(), memory, bytes));
  }
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
  detail::Handle<TnContext, tn_context_release> handle_;
};

}  // namespace tenon

#endif  // TENON_TENON_HPP
