// Library: a registry of plugins with its logger, what everything else of the C++ API starts from.
// Thread rule: see tenon.hpp.
#ifndef TENON_LIBRARY_HPP
#define TENON_LIBRARY_HPP

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

inline std::vector<std::int64_t> list(const TnDims& dims) { return {dims.d, dims.d + dims.rank}; }

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
  /// JSON: plugins[], importers[], rules[], failed[]; see tn_library_describe.
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

}  // namespace tenon

#endif  // TENON_LIBRARY_HPP
