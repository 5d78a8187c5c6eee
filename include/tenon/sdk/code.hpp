/// Compiled code that outlives a build: beside the timing cache, by the text that it was compiled from.
#ifndef TENON_SDK_CODE_HPP
#define TENON_SDK_CODE_HPP

#include <optional>
#include <string>
#include <vector>

#include "../plugin/ext/code.h"
#include "../plugin/ext/ids.h"
#include "error.hpp"

namespace tenon {
inline namespace sdk {

/// Nothing if it is not there, if no engine is being built on this thread, or if the host keeps no code. `key` says
/// everything that the code depends on: compiler with version, architecture, options, source.
inline std::optional<std::vector<char>> find_code(const TnHost* host, const std::string& key) {
  const auto* code = static_cast<const TnCode*>(host->get_interface(host, TN_IFACE_CODE));
  if (code == nullptr) return std::nullopt;
  std::vector<char> found;
  TnWriter writer = {TN_HEADER(TnWriter), &found, [](TnWriter* self, const void* bytes, uint64_t size) {
                       try {
                         const char* begin = static_cast<const char*>(bytes);
                         static_cast<std::vector<char>*>(self->context)->assign(begin, begin + size);
                         return static_cast<int64_t>(size);
                       } catch (const std::bad_alloc&) {
                         return int64_t{-1};
                       }
                     }};
  const TnStatus status = code->find(host, key.c_str(), &writer);
  if (status == TN_NOTFOUND) return std::nullopt;
  check_host(status);
  return found;
}

/// Keeps it for the builds to come, where the host does.
inline void keep_code(const TnHost* host, const std::string& key, const std::vector<char>& bytes) {
  const auto* code = static_cast<const TnCode*>(host->get_interface(host, TN_IFACE_CODE));
  if (code != nullptr) check_host(code->put(host, key.c_str(), bytes.data(), bytes.size()));
}

}  // namespace sdk
}  // namespace tenon

#endif  // TENON_SDK_CODE_HPP
