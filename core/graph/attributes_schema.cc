// Attributes against a schema: types, defaults and ranges.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/base/text.h"
#include "core/graph/attributes.h"

namespace tenon {
namespace {

std::vector<std::string> split_alternatives(std::string_view range) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t bar = range.find('|');
    parts.emplace_back(range.substr(0, bar));
    if (bar == std::string_view::npos) return parts;
    range.remove_prefix(bar + 1);
  }
}

struct Interval {
  double low = -INFINITY;
  double high = INFINITY;
  bool low_open = true;
  bool high_open = true;

  bool contains(double value) const {
    if (std::isnan(value)) return false;
    // An absent bound admits infinity too: "[1,)" is "one or more".
    const bool above = std::isinf(low) || (low_open ? value > low : value >= low);
    const bool below = std::isinf(high) || (high_open ? value < high : value <= high);
    return above && below;
  }
};

bool read_bound(std::string_view text, double* bound) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  if (text.empty()) return true;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *bound);
  return error == std::errc() && end == text.data() + text.size();
}

/// "[0,1]", "(0,1]", "[1,)"; false for anything else.
bool read_interval(std::string_view text, Interval* out) {
  if (text.size() < 3 || (text.front() != '[' && text.front() != '(') || (text.back() != ']' && text.back() != ')')) {
    return false;
  }
  out->low_open = text.front() == '(';
  out->high_open = text.back() == ')';
  text = text.substr(1, text.size() - 2);
  const std::size_t comma = text.find(',');
  return comma != std::string_view::npos && read_bound(text.substr(0, comma), &out->low) &&
         read_bound(text.substr(comma + 1), &out->high);
}

/// The texts and numbers that a range speaks about: the value itself, or the items of a list.
struct Items {
  std::vector<std::string> texts;
  std::vector<double> numbers;

  void operator()(std::int64_t value) { add(static_cast<double>(value), AttrValue(value)); }
  void operator()(double value) { add(value, AttrValue(value)); }
  void operator()(const std::string& value) { texts.push_back(value); }
  template <class T>
  void operator()(const std::vector<T>& values) {
    for (const T& value : values) (*this)(value);
  }
  void operator()(const DTypeAttr& value) { texts.push_back(dtype_name(value.dtype)); }
  void operator()(const std::shared_ptr<const HostTensor>&) {}
  void operator()(const std::shared_ptr<const Graph>&) {}

 private:
  void add(double number, const AttrValue& value) {
    numbers.push_back(number);
    texts.push_back(attr_text(value));
  }
};

Status check_range(const std::string& where, std::string_view range, const AttrValue& value) {
  Items items;
  std::visit(items, value);
  Interval interval;
  const std::int32_t type = attr_type(value);
  const bool numeric = type == TN_ATTR_I64 || type == TN_ATTR_F64 || type == TN_ATTR_I64S || type == TN_ATTR_F64S;
  if (numeric && (range.front() == '[' || range.front() == '(')) {
    if (!read_interval(range, &interval)) {
      return {
          Code::kInternal,
          fmt::format("{}: its schema has the unreadable range \"{}\"; that is a fault of the plugin", where, range)};
    }
    for (std::size_t i = 0; i < items.numbers.size(); ++i) {
      if (!interval.contains(items.numbers[i])) {
        return {Code::kInvalid, fmt::format("{}: {} is outside {}", where, items.texts[i], range)};
      }
    }
    return {};
  }
  const std::vector<std::string> allowed = split_alternatives(range);
  for (const std::string& text : items.texts) {
    if (std::find(allowed.begin(), allowed.end(), text) != allowed.end()) continue;
    const std::string near = nearest(text, allowed);
    return {Code::kInvalid, fmt::format("{}: found {}; expected one of {}{}", where, numeric ? text : quoted(text),
                                        join(allowed), near.empty() ? "" : "; did you mean " + near + "?")};
  }
  return {};
}

/// True if the value has the type, or could be turned into it without loss of meaning.
bool convert(std::int32_t type, AttrValue* value) {
  const std::int32_t found = attr_type(*value);
  if (found == type) return true;
  if (found == TN_ATTR_I64 && type == TN_ATTR_F64) {
    *value = static_cast<double>(std::get<std::int64_t>(*value));
    return true;
  }
  if (found == TN_ATTR_I64S && type == TN_ATTR_F64S) {
    const auto& integers = std::get<std::vector<std::int64_t>>(*value);
    *value = std::vector<double>(integers.begin(), integers.end());
    return true;
  }
  return false;
}

}  // namespace

Status apply_schema(const std::string& owner, const TnParam* const* params, std::uint32_t num_params, Attrs* attrs) {
  std::vector<std::string> known;
  for (std::uint32_t i = 0; i < num_params; ++i) known.emplace_back(params[i]->name);
  for (const auto& [name, value] : attrs->values) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string near = nearest(name, known);
    std::string hint = "; it has no attributes";
    if (!known.empty()) hint = near.empty() ? "; known are " + join(known) : "; did you mean \"" + near + "\"?";
    return {Code::kInvalid, fmt::format("{} has no attribute \"{}\"{}", owner, name, hint)};
  }
  std::map<std::string, AttrValue> values = attrs->values;
  for (std::uint32_t i = 0; i < num_params; ++i) {
    const TnParam& param = *params[i];
    const std::string where = fmt::format("{}: attribute \"{}\"", owner, param.name);
    auto found = values.find(param.name);
    if (found == values.end()) {
      if (param.default_text != nullptr) {
        Result<AttrValue> parsed = parse_attr(param.type, param.default_text);
        if (!parsed.ok()) {
          return {Code::kInternal, fmt::format("{}: its schema has a bad default: {}; that is a fault of the plugin",
                                               where, parsed.status().message())};
        }
        found = values.emplace(param.name, std::move(*parsed)).first;
      } else if (param.required != 0) {
        return {Code::kInvalid, fmt::format("{} ({}) is required but absent", where, attr_type_name(param.type))};
      } else {
        continue;
      }
    }
    if (!convert(param.type, &found->second)) {
      return {Code::kInvalid, fmt::format("{}: expected {}, found {} {}", where, attr_type_name(param.type),
                                          attr_type_name(attr_type(found->second)), attr_text(found->second))};
    }
    if (param.range != nullptr && *param.range != 0) {
      TENON_RETURN_IF_ERROR(check_range(where, param.range, found->second));
    }
  }
  attrs->values = std::move(values);
  return {};
}

}  // namespace tenon
