#include "core/graph/attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/base/hash.h"
#include "core/graph/graph.h"

namespace tenon {
namespace {

std::string number_text(double value) {
  char buffer[32];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return error == std::errc() ? std::string(buffer, end) : "nan";
}

template <class T, class F>
std::string list_text(const std::vector<T>& items, F text_of) {
  std::string text = "[";
  for (const T& item : items) {
    if (text.size() > 1) text += ',';
    text += text_of(item);
  }
  return text + "]";
}

struct TextOf {
  std::string operator()(std::int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return number_text(value); }
  std::string operator()(const std::string& value) const { return quoted(value); }
  std::string operator()(const std::vector<std::int64_t>& values) const { return list_text(values, *this); }
  std::string operator()(const std::vector<double>& values) const { return list_text(values, *this); }
  std::string operator()(const std::vector<std::string>& values) const { return list_text(values, *this); }
  std::string operator()(const DTypeAttr& value) const { return dtype_name(value.dtype); }
  std::string operator()(const std::shared_ptr<const HostTensor>& tensor) const {
    if (tensor == nullptr) return "tensor()";
    const Hash128 hash = hash128({static_cast<const char*>(tensor->data()), tensor->bytes()});
    return fmt::format("tensor({}{},{})", dtype_name(tensor->dtype()), dims_text(tensor->dims()), to_text(hash));
  }
  std::string operator()(const std::shared_ptr<const Graph>& graph) const {
    return graph == nullptr ? "graph()" : fmt::format("graph({})", to_text(hash128(graph->dump())));
  }
};

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

Status bad_text(std::int32_t type, std::string_view text) {
  return {Code::kInvalid, fmt::format("{} is no {}", quoted(text), attr_type_name(type))};
}

template <class T>
bool read_number(std::string_view text, T* out) {
  text = trimmed(text);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

/// Reads a quoted string from the start of `text` and removes it there; false if it is malformed.
bool read_quoted(std::string_view* text, std::string* out) {
  std::size_t at = 1;
  for (; at < text->size() && (*text)[at] != '"'; ++at) {
    char c = (*text)[at];
    if (c == '\\') {
      if (++at == text->size()) return false;
      c = (*text)[at];
      if (c == 'n') c = '\n';
      if (c == 't') c = '\t';
      if (c == 'u') {
        unsigned code = 0;
        if (at + 4 >= text->size()) return false;
        const char* digits = text->data() + at + 1;
        const auto [end, error] = std::from_chars(digits, digits + 4, code, 16);
        if (error != std::errc() || end != digits + 4 || code > 0x7F) return false;
        c = static_cast<char>(code);
        at += 4;
      }
    }
    *out += c;
  }
  if (at >= text->size()) return false;
  text->remove_prefix(at + 1);
  return true;
}

/// Splits "[a,b]" or "a,b" at its commas; quoted items may contain any.
bool split_list(std::string_view text, std::vector<std::string>* items) {
  text = trimmed(text);
  if (!text.empty() && text.front() == '[') {
    if (text.size() < 2 || text.back() != ']') return false;
    text = trimmed(text.substr(1, text.size() - 2));
  }
  if (text.empty()) return true;
  while (true) {
    text = trimmed(text);
    std::string item;
    if (!text.empty() && text.front() == '"') {
      if (!read_quoted(&text, &item)) return false;
      text = trimmed(text);
      if (!text.empty() && text.front() != ',') return false;
    } else {
      const std::size_t comma = std::min(text.find(','), text.size());
      item = trimmed(text.substr(0, comma));
      text.remove_prefix(comma);
    }
    items->push_back(std::move(item));
    if (text.empty()) return true;
    text.remove_prefix(1);
  }
}

template <class T>
Result<AttrValue> parse_numbers(std::int32_t type, std::string_view text) {
  std::vector<std::string> items;
  if (!split_list(text, &items)) return bad_text(type, text);
  std::vector<T> values(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!read_number(items[i], &values[i])) return bad_text(type, text);
  }
  return AttrValue(std::move(values));
}

}  // namespace

std::int32_t attr_type(const AttrValue& value) {
  static_assert(TN_ATTR_I64 == 1 && TN_ATTR_TENSOR == 7 && TN_ATTR_GRAPH == 9,
                "AttrValue is in the order of TN_ATTR_*");
  return static_cast<std::int32_t>(value.index()) + 1;
}

const char* attr_type_name(std::int32_t type) {
  switch (type) {
    case TN_ATTR_I64:
      return "i64";
    case TN_ATTR_F64:
      return "f64";
    case TN_ATTR_STR:
      return "string";
    case TN_ATTR_I64S:
      return "i64s";
    case TN_ATTR_F64S:
      return "f64s";
    case TN_ATTR_STRS:
      return "strings";
    case TN_ATTR_TENSOR:
      return "tensor";
    case TN_ATTR_DTYPE:
      return "dtype";
    case TN_ATTR_GRAPH:
      return "graph";
    default:
      return "unknown type";
  }
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string attr_text(const AttrValue& value) { return std::visit(TextOf(), value); }

Result<AttrValue> parse_attr(std::int32_t type, std::string_view text) {
  switch (type) {
    case TN_ATTR_I64: {
      std::int64_t value = 0;
      if (!read_number(text, &value)) return bad_text(type, text);
      return AttrValue(value);
    }
    case TN_ATTR_F64: {
      double value = 0;
      if (!read_number(text, &value)) return bad_text(type, text);
      return AttrValue(value);
    }
    case TN_ATTR_STR: {
      if (text.empty() || text.front() != '"') return AttrValue(std::string(text));
      std::string value;
      std::string_view rest = text;
      if (!read_quoted(&rest, &value) || !rest.empty()) return bad_text(type, text);
      return AttrValue(std::move(value));
    }
    case TN_ATTR_I64S:
      return parse_numbers<std::int64_t>(type, text);
    case TN_ATTR_F64S:
      return parse_numbers<double>(type, text);
    case TN_ATTR_STRS: {
      std::vector<std::string> items;
      if (!split_list(text, &items)) return bad_text(type, text);
      return AttrValue(std::move(items));
    }
    case TN_ATTR_DTYPE: {
      TENON_ASSIGN(const std::int32_t dtype, parse_dtype(trimmed(text)));
      return AttrValue(DTypeAttr{dtype});
    }
    default:
      return Status(Code::kInvalid, fmt::format("an attribute of type {} has no text form", attr_type_name(type)));
  }
}

}  // namespace tenon

std::string TnAttrs::text() const {
  std::string out;
  for (const auto& [name, value] : values) {
    if (!out.empty()) out += ';';
    out += name + "=" + tenon::attr_text(value);
  }
  return out;
}
