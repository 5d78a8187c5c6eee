// Attributes of a node: named values of the nine ABI types, with canonical text and the C table that plugins use.
#pragma once

#include <tenon/plugin/attributes.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tenon/status.hpp>
#include <variant>
#include <vector>

#include "core/graph/tensor.h"

namespace tenon {

class Graph;

struct DTypeAttr {
  std::int32_t dtype = TN_DTYPE_NONE;
  bool operator==(const DTypeAttr&) const = default;
};

using AttrValue =
    std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>,
                 std::vector<std::string>, std::shared_ptr<const HostTensor>, DTypeAttr, std::shared_ptr<const Graph>>;

/// TN_ATTR_* of a value.
std::int32_t attr_type(const AttrValue& value);
/// "i64", "f64s", "string"... for messages.
const char* attr_type_name(std::int32_t type);
/// Canonical text: 1, 0.1 (shortest that reads back), "text", [1,2]; tensors and graphs by hash.
std::string attr_text(const AttrValue& value);
/// `text` in double quotes, with `"`, `\` and control characters escaped as in JSON.
std::string quoted(std::string_view text);
/// Reads the text form of TnParam.default_text and of `--import-option`; attr_text's form of all but tensors and graphs
/// reads back too. Lists are separated by commas, brackets and quotes may be left out.
Result<AttrValue> parse_attr(std::int32_t type, std::string_view text);

/// What get_strs hands out: arrays of pointers into the values. They belong to one TnAttrs, so copies begin empty.
struct StringPointers {
  StringPointers() = default;
  StringPointers(const StringPointers&) {}
  StringPointers& operator=(const StringPointers&) {
    arrays.clear();
    return *this;
  }
  std::map<std::string, std::vector<const char*>> arrays;
};

}  // namespace tenon

/// The opaque TnAttrs of the ABI. A plain value: copy it freely.
struct TnAttrs {
  std::map<std::string, tenon::AttrValue> values;
  /// "alpha=0.1;axis=1" in name order: part of keys, dumps and plans.
  std::string text() const;
  mutable tenon::StringPointers string_pointers{};  ///< written by attr_api().get_strs only, under its lock
};

namespace tenon {

using Attrs = ::TnAttrs;

/// Checks `attrs` against a schema and adds the defaults. Errors name attribute, expected and found, and for an unknown
/// name the nearest known one. `owner` begins the message ("op tenon.conv2d/1"). On failure `attrs` is as before.
Status apply_schema(const std::string& owner, const TnParam* const* params, std::uint32_t num_params, Attrs* attrs);

/// The table behind TnHost.attrs.
const TnAttrApi& attr_api();

}  // namespace tenon
