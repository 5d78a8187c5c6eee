/// Attrs: reads the attributes of a node. NewAttrs: makes new ones for GraphView::add_node.
#ifndef TENON_SDK_ATTRS_HPP
#define TENON_SDK_ATTRS_HPP

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "tensor.hpp"

namespace tenon {
inline namespace sdk {

/// A list inside attributes; valid as long as they are.
template <class T>
class List {
 public:
  List() = default;
  List(const T* data, uint32_t size) : data_(data), size_(size) {}
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  const T* data() const { return data_; }
  int size() const { return static_cast<int>(size_); }
  const T& operator[](int n) const { return data_[n]; }

 private:
  const T* data_ = nullptr;
  uint32_t size_ = 0;
};

/// Every getter throws Invalid if the attribute is absent or of another type; the schema's defaults count as present.
class Attrs {
 public:
  Attrs(const TnHost* host, const TnAttrs* attrs) : host_(host), attrs_(attrs) {}

  int64_t i64(const char* name) const { return get<int64_t>(name, "an integer", host_->attrs->get_i64); }
  double f64(const char* name) const { return get<double>(name, "a number", host_->attrs->get_f64); }
  bool flag(const char* name) const { return i64(name) != 0; }
  std::string str(const char* name) const { return get<const char*>(name, "a text", host_->attrs->get_str); }
  int32_t dtype(const char* name) const { return get<int32_t>(name, "a dtype", host_->attrs->get_dtype); }
  TnTensor tensor(const char* name) const { return get<TnTensor>(name, "a tensor", host_->attrs->get_tensor); }
  List<int64_t> i64s(const char* name) const {
    return list<int64_t>(name, "a list of integers", host_->attrs->get_i64s);
  }
  List<double> f64s(const char* name) const { return list<double>(name, "a list of numbers", host_->attrs->get_f64s); }
  List<const char*> strs(const char* name) const {
    return list<const char*>(name, "a list of texts", host_->attrs->get_strs);
  }
  /// A list that must hold `size` integers, each at least `least`.
  List<int64_t> i64s(const char* name, int size, int64_t least) const {
    const List<int64_t> values = i64s(name);
    if (values.size() != size) {
      throw Invalid(text("attribute '", name, "': expected ", size, " integers, found ", values.size()));
    }
    for (int64_t value : values) {
      if (value < least) {
        throw Invalid(text("attribute '", name, "': expected values of at least ", least, ", found ", value));
      }
    }
    return values;
  }
  /// True if the attribute is an integer list that is present and not empty.
  bool has_i64s(const char* name) const {
    const int64_t* data = nullptr;
    uint32_t count = 0;
    return host_->attrs->get_i64s(attrs_, name, &data, &count) == TN_OK && count > 0;
  }
  bool has_str(const char* name) const {
    const char* value = nullptr;
    return host_->attrs->get_str(attrs_, name, &value) == TN_OK;
  }

  const TnHost* host() const { return host_; }
  const TnAttrs* raw() const { return attrs_; }

 private:
  [[noreturn]] static void fail(const char* name, const char* kind, TnStatus status) {
    throw Invalid(
        text("attribute '", name, "': expected ", kind, ", found ", status == TN_NOTFOUND ? "none" : "another type"));
  }
  template <class T>
  T get(const char* name, const char* kind, TnStatus(TN_CALL* getter)(const TnAttrs*, const char*, T*)) const {
    T value{};
    const TnStatus status = getter(attrs_, name, &value);
    if (status != TN_OK) fail(name, kind, status);
    return value;
  }
  template <class T>
  List<T> list(const char* name, const char* kind,
               TnStatus(TN_CALL* getter)(const TnAttrs*, const char*, const T**, uint32_t*)) const {
    const T* data = nullptr;
    uint32_t count = 0;
    const TnStatus status = getter(attrs_, name, &data, &count);
    if (status != TN_OK) fail(name, kind, status);
    return {data, count};
  }

  const TnHost* host_;
  const TnAttrs* attrs_;
};

/// Attributes under construction; owns them. Setters chain: NewAttrs(host).i64s("strides", {2, 2}).str("pad", "same").
class NewAttrs {
 public:
  explicit NewAttrs(const TnHost* host, const TnAttrs* from = nullptr)
      : host_(host), attrs_(host->attrs->create(from)) {
    if (!attrs_) throw std::bad_alloc();
  }
  NewAttrs(NewAttrs&& other) noexcept : host_(other.host_), attrs_(other.attrs_) { other.attrs_ = nullptr; }
  NewAttrs(const NewAttrs&) = delete;
  NewAttrs& operator=(const NewAttrs&) = delete;
  ~NewAttrs() {
    if (attrs_) host_->attrs->destroy(attrs_);
  }

  NewAttrs& i64(const char* name, int64_t value) { return set(host_->attrs->set_i64(attrs_, name, value)); }
  NewAttrs& f64(const char* name, double value) { return set(host_->attrs->set_f64(attrs_, name, value)); }
  NewAttrs& str(const char* name, const std::string& value) {
    return set(host_->attrs->set_str(attrs_, name, value.c_str()));
  }
  NewAttrs& dtype(const char* name, int32_t value) { return set(host_->attrs->set_dtype(attrs_, name, value)); }
  NewAttrs& i64s(const char* name, const std::vector<int64_t>& values) {
    return set(host_->attrs->set_i64s(attrs_, name, values.data(), static_cast<uint32_t>(values.size())));
  }
  NewAttrs& f64s(const char* name, const std::vector<double>& values) {
    return set(host_->attrs->set_f64s(attrs_, name, values.data(), static_cast<uint32_t>(values.size())));
  }
  NewAttrs& tensor(const char* name, const TnTensor& value) {
    return set(host_->attrs->set_tensor(attrs_, name, &value));
  }
  const TnAttrs* raw() const { return attrs_; }

 private:
  NewAttrs& set(TnStatus status) {
    check_host(status);
    return *this;
  }
  const TnHost* host_;
  TnAttrs* attrs_;
};

}  // namespace sdk
}  // namespace tenon

#endif  // TENON_SDK_ATTRS_HPP
