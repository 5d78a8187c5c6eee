// The C table behind TnHost.attrs. No exception leaves it: each function is noexcept or catches.

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "core/base/failure.h"
#include "core/graph/attributes.h"
#include "core/graph/graph.h"

namespace tenon {
namespace {

TnStatus fail(TnStatus code, const std::string& message) {
  record_failure(code, nullptr, message.c_str());
  return code;
}

/// Runs `body`; an exception becomes a status.
template <class F>
TnStatus guarded(F body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    record_failure(TN_NOMEM, nullptr, "attributes: out of memory");
    return TN_NOMEM;
  } catch (...) {
    record_failure(TN_INTERNAL, nullptr, "attributes: unexpected exception");
    return TN_INTERNAL;
  }
}

template <class T>
TnStatus find(const TnAttrs* attrs, const char* name, std::int32_t type, const T** value) {
  if (attrs == nullptr || name == nullptr) return fail(TN_INVALID, "attributes: attrs or name is NULL");
  const auto found = attrs->values.find(name);
  if (found == attrs->values.end()) return fail(TN_NOTFOUND, fmt::format("attribute \"{}\" is absent", name));
  *value = std::get_if<T>(&found->second);
  if (*value == nullptr) {
    return fail(TN_INVALID, fmt::format("attribute \"{}\": asked for {}, but it is {}", name, attr_type_name(type),
                                        attr_type_name(attr_type(found->second))));
  }
  return TN_OK;
}

template <class T, std::int32_t kType>
TnStatus TN_CALL get_scalar(const TnAttrs* attrs, const char* name, T* out) {
  return guarded([&] {
    const T* value = nullptr;
    const TnStatus status = find(attrs, name, kType, &value);
    if (status == TN_OK) *out = *value;
    return status;
  });
}

template <class T, std::int32_t kType>
TnStatus TN_CALL get_list(const TnAttrs* attrs, const char* name, const T** out, std::uint32_t* count) {
  return guarded([&] {
    const std::vector<T>* values = nullptr;
    const TnStatus status = find(attrs, name, kType, &values);
    if (status != TN_OK) return status;
    *out = values->data();
    *count = static_cast<std::uint32_t>(values->size());
    return status;
  });
}

TnStatus TN_CALL get_str(const TnAttrs* attrs, const char* name, const char** out) {
  return guarded([&] {
    const std::string* value = nullptr;
    const TnStatus status = find(attrs, name, TN_ATTR_STR, &value);
    if (status == TN_OK) *out = value->c_str();
    return status;
  });
}

TnStatus TN_CALL get_strs(const TnAttrs* attrs, const char* name, const char* const** out, std::uint32_t* count) {
  return guarded([&] {
    const std::vector<std::string>* values = nullptr;
    const TnStatus status = find(attrs, name, TN_ATTR_STRS, &values);
    if (status != TN_OK) return status;
    // Const attributes are read by several threads at once, and the array of pointers is made on first use.
    static std::mutex mutex;
    const std::lock_guard<std::mutex> lock(mutex);
    std::vector<const char*>& pointers = attrs->string_pointers.arrays[name];
    const bool current =
        pointers.size() == values->size() &&
        std::equal(pointers.begin(), pointers.end(), values->begin(),
                   [](const char* pointer, const std::string& text) { return pointer == text.c_str(); });
    if (!current) {
      pointers.clear();
      for (const std::string& text : *values) pointers.push_back(text.c_str());
    }
    *out = pointers.data();
    *count = static_cast<std::uint32_t>(pointers.size());
    return status;
  });
}

TnStatus TN_CALL get_tensor(const TnAttrs* attrs, const char* name, TnTensor* out) {
  return guarded([&] {
    const std::shared_ptr<const HostTensor>* value = nullptr;
    const TnStatus status = find(attrs, name, TN_ATTR_TENSOR, &value);
    if (status != TN_OK) return status;
    if (*value == nullptr) return fail(TN_NOTFOUND, fmt::format("attribute \"{}\" holds no tensor", name));
    *out = (*value)->view();
    return status;
  });
}

TnStatus TN_CALL get_dtype(const TnAttrs* attrs, const char* name, std::int32_t* out) {
  return guarded([&] {
    const DTypeAttr* value = nullptr;
    const TnStatus status = find(attrs, name, TN_ATTR_DTYPE, &value);
    if (status == TN_OK) *out = value->dtype;
    return status;
  });
}

TnStatus TN_CALL get_graph(const TnAttrs* attrs, const char* name, const TnGraph** out) {
  return guarded([&] {
    const std::shared_ptr<const Graph>* value = nullptr;
    const TnStatus status = find(attrs, name, TN_ATTR_GRAPH, &value);
    if (status != TN_OK) return status;
    if (*value == nullptr) return fail(TN_NOTFOUND, fmt::format("attribute \"{}\" holds no graph", name));
    *out = (*value)->handle();
    return status;
  });
}

TnAttrs* TN_CALL create(const TnAttrs* from) {
  try {
    return from != nullptr ? new TnAttrs(*from) : new TnAttrs();
  } catch (...) {
    record_failure(TN_NOMEM, nullptr, "attributes: out of memory");
    return nullptr;
  }
}

void TN_CALL destroy(TnAttrs* attrs) { delete attrs; }

bool good_name(const char* name) {
  if (name == nullptr || *name < 'a' || *name > 'z') return false;
  return std::all_of(name, name + std::char_traits<char>::length(name),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

template <class F>
TnStatus set(TnAttrs* attrs, const char* name, F make) {
  return guarded([&] {
    if (attrs == nullptr) return fail(TN_INVALID, "attributes: attrs is NULL");
    if (!good_name(name)) {
      return fail(TN_INVALID, fmt::format("attribute name {} is not of the form [a-z][a-z0-9_]*",
                                          name != nullptr ? quoted(name) : "NULL"));
    }
    Result<AttrValue> value = make();
    if (!value.ok()) {
      return fail(static_cast<TnStatus>(value.status().code()),
                  fmt::format("attribute \"{}\": {}", name, value.status().message()));
    }
    attrs->string_pointers.arrays.erase(name);
    attrs->values[name] = std::move(*value);
    return static_cast<TnStatus>(TN_OK);
  });
}

Status null_argument() { return {Code::kInvalid, "the value is NULL"}; }

template <class T>
TnStatus TN_CALL set_scalar(TnAttrs* attrs, const char* name, T value) {
  return set(attrs, name, [&]() -> Result<AttrValue> { return AttrValue(value); });
}

template <class T>
TnStatus TN_CALL set_list(TnAttrs* attrs, const char* name, const T* values, std::uint32_t count) {
  return set(attrs, name, [&]() -> Result<AttrValue> {
    if (values == nullptr && count > 0) return null_argument();
    return count > 0 ? AttrValue(std::vector<T>(values, values + count)) : AttrValue(std::vector<T>());
  });
}

TnStatus TN_CALL set_str(TnAttrs* attrs, const char* name, const char* value) {
  return set(attrs, name, [&]() -> Result<AttrValue> {
    if (value == nullptr) return null_argument();
    return AttrValue(std::string(value));
  });
}

TnStatus TN_CALL set_strs(TnAttrs* attrs, const char* name, const char* const* values, std::uint32_t count) {
  return set(attrs, name, [&]() -> Result<AttrValue> {
    std::vector<std::string> texts;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (values == nullptr || values[i] == nullptr) return null_argument();
      texts.emplace_back(values[i]);
    }
    return AttrValue(std::move(texts));
  });
}

TnStatus TN_CALL set_tensor(TnAttrs* attrs, const char* name, const TnTensor* value) {
  return set(attrs, name, [&]() -> Result<AttrValue> {
    if (value == nullptr) return null_argument();
    TENON_ASSIGN(std::shared_ptr<const HostTensor> tensor, HostTensor::copy_of(*value));
    return AttrValue(std::move(tensor));
  });
}

TnStatus TN_CALL set_dtype(TnAttrs* attrs, const char* name, std::int32_t dtype) {
  return set(attrs, name, [&]() -> Result<AttrValue> {
    if (dtype_bits(dtype) == 0 && dtype != TN_STRING) {
      return Status(Code::kInvalid, fmt::format("{} is no dtype number", dtype));
    }
    return AttrValue(DTypeAttr{dtype});
  });
}

}  // namespace

const TnAttrApi& attr_api() {
  static const TnAttrApi api = {TN_HEADER(TnAttrApi),
                                0,
                                get_scalar<std::int64_t, TN_ATTR_I64>,
                                get_scalar<double, TN_ATTR_F64>,
                                get_str,
                                get_list<std::int64_t, TN_ATTR_I64S>,
                                get_list<double, TN_ATTR_F64S>,
                                get_strs,
                                get_tensor,
                                get_dtype,
                                get_graph,
                                create,
                                destroy,
                                set_scalar<std::int64_t>,
                                set_scalar<double>,
                                set_str,
                                set_list<std::int64_t>,
                                set_list<double>,
                                set_strs,
                                set_tensor,
                                set_dtype};
  return api;
}

}  // namespace tenon
