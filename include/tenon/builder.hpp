// TimingCache, BuilderConfig and Builder: from a network to the bytes of an engine.
// Thread rule: see tenon.hpp.
#ifndef TENON_BUILDER_HPP
#define TENON_BUILDER_HPP

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tenon/network.hpp>

namespace tenon {

/// Recorded choices and measurements; see docs/how_it_works.md.
class TimingCache {
 public:
  using Key = TnCacheKey;
  using Value = TnCacheValue;

  /// From serialize's bytes, or empty.
  static Result<TimingCache> create(const Library& library, const std::string& bytes = "", int threads = 0,
                                    const std::string& device = "auto") {
    TnTimingCache* handle = nullptr;
    TENON_RETURN_IF_ERROR(
        detail::check(tn_cache_create(library.get(), device.c_str(), threads, bytes.data(), bytes.size(), &handle)));
    return TimingCache(library, handle);
  }
  /// From a file; a missing one gives an empty cache. `strict`: damage is an error.
  static Result<TimingCache> load(const Library& library, const std::string& path, bool strict = false, int threads = 0,
                                  const std::string& device = "auto") {
    TnTimingCache* handle = nullptr;
    TENON_RETURN_IF_ERROR(
        detail::check(tn_cache_load(library.get(), device.c_str(), threads, path.c_str(), strict ? 1 : 0, &handle)));
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
  /// JSON: choices[], measured[], code; of one layer unless `layer` is empty.
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

}  // namespace tenon

#endif  // TENON_BUILDER_HPP
