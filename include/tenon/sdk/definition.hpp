/// Definition: anything that a plugin registers. Definitions: a list of them.
#ifndef TENON_SDK_DEFINITION_HPP
#define TENON_SDK_DEFINITION_HPP

#include <deque>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "error.hpp"

namespace tenon {
inline namespace sdk {

/// One op, kernel, rule or importer; it owns what the registered C struct points to and never moves.
class Definition {
 public:
  Definition() = default;
  Definition(const Definition&) = delete;
  Definition& operator=(const Definition&) = delete;
  virtual ~Definition() = default;
  virtual TnStatus add_to(const TnHost* host) const = 0;

  /// A copy of `value` that lives as long as this.
  const char* keep(const std::string& value) { return texts_.emplace_back(value).c_str(); }

 private:
  std::deque<std::string> texts_;
};

/// What the builders convert to; a function may return one to hand over several definitions.
class Definitions {
 public:
  template <class... Parts>
  Definitions(const Parts&... parts) {
    (add(parts), ...);
  }
  /// A builder (anything with definition()) or more Definitions.
  template <class Part>
  void add(const Part& part) {
    if constexpr (std::is_same_v<Part, Definitions>) {
      all_.insert(all_.end(), part.all_.begin(), part.all_.end());
    } else {
      all_.push_back(part.definition());
    }
  }
  TnStatus add_to(const TnHost* host) const {
    for (const auto& definition : all_) {
      const TnStatus status = definition->add_to(host);
      if (status != TN_OK) return status;
    }
    return TN_OK;
  }

 private:
  std::vector<std::shared_ptr<const Definition>> all_;
};

/// The definitions of a library: built by the first host that loads it, destroyed when the last one unloads it. Not by
/// exit, which destroys the library's static objects while engines that are static objects themselves still use them.
class SharedDefinitions {
 public:
  template <class Make>
  TnStatus load(const TnHost* host, Make&& make) {
    TnStatus status = TN_OK;
    const TnStatus built = guard(host, [&] {
      if (definitions_ == nullptr) definitions_ = new Definitions(make());
      status = definitions_->add_to(host);
    });
    if (built != TN_OK) status = built;
    if (status == TN_OK) {
      ++loads_;
    } else if (loads_ == 0) {
      destroy();
    }
    return status;
  }
  void unload() {
    if (--loads_ == 0) destroy();
  }

 private:
  void destroy() {
    delete definitions_;
    definitions_ = nullptr;
  }
  Definitions* definitions_ = nullptr;
  int loads_ = 0;
};

/// Attribute schema of an op or options of an importer, under construction.
class Schema {
 public:
  template <class Keep>
  void add(int32_t type, const std::string& name, const std::string& doc, Keep&& keep) {
    params_.push_back(TnParam{TN_HEADER(TnParam), type, keep(name), 0, nullptr, nullptr, keep(doc)});
    pointers_.clear();
    for (const TnParam& param : params_) pointers_.push_back(&param);
  }
  TnParam& last() {
    if (params_.empty()) throw Invalid("default_value, range and required follow the attribute that they belong to");
    return params_.back();
  }
  const TnParam* const* data() const { return pointers_.data(); }
  uint32_t size() const { return static_cast<uint32_t>(params_.size()); }

 private:
  std::deque<TnParam> params_;
  std::vector<const TnParam*> pointers_;
};

}  // namespace sdk
}  // namespace tenon

#endif  // TENON_SDK_DEFINITION_HPP
