#include "core/tuner/flow_line.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <sstream>
#include <stdexcept>

#include "core/base/text.h"

namespace tenon {
namespace {

Status damage(const std::string& text) { return {Code::kInvalid, text}; }

/// Builds the fields from yaml-cpp's events; refuses every shape but a one-item list of a map by an exception, which is
/// the only way out of yaml-cpp's parser.
class LineHandler final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark&, YAML::anchor_t anchor) override {
    refuse_anchor(anchor);
    leaf(std::nullopt);
  }
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override { throw std::runtime_error("an alias is not allowed here"); }
  void OnScalar(const YAML::Mark&, const std::string& tag, YAML::anchor_t anchor, const std::string& value) override {
    refuse_anchor(anchor);
    if (!tag.empty() && tag != "?" && tag != "!") throw std::runtime_error("the tag " + tag + " is not allowed here");
    leaf(value);
  }
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    refuse_anchor(anchor);
    if (depth_ == 1) throw std::runtime_error("expected a map, found a list");
    if (depth_ == 2 && in_value_) fields.back().items.emplace();
    if (depth_ > 2) forget_items();
    open();
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    refuse_anchor(anchor);
    if (style != YAML::EmitterStyle::Flow) throw std::runtime_error("expected \"- {...}\", found a map without braces");
    if (depth_ == 0) throw std::runtime_error("expected a one-item list, found a map");
    if (depth_ == 1 && ++items_ > 1) throw std::runtime_error("expected one item, found two");
    if (depth_ == 3 && fields.back().items) fields.back().items->emplace_back();
    if (depth_ > 3) forget_items();
    in_item_value_ = false;
    open();
  }
  void OnMapEnd() override { close(); }

  std::vector<FlowField> fields;

 private:
  static void refuse_anchor(YAML::anchor_t anchor) {
    if (anchor != 0) throw std::runtime_error("an anchor is not allowed here");
  }
  void open() {
    if (depth_ == 2 && !in_value_) throw std::runtime_error("a field name must be a word");
    ++depth_;
  }
  void close() {
    if (--depth_ == 2) finish_value(std::nullopt);
  }
  void leaf(std::optional<std::string> value) {
    if (depth_ > 2) return item_leaf(std::move(value));
    if (depth_ < 2) throw std::runtime_error("expected a one-item list of a map");
    if (in_value_) return finish_value(std::move(value));
    if (!value) throw std::runtime_error("a field has no name");
    for (const FlowField& field : fields) {
      if (field.name == *value) throw std::runtime_error("the field '" + *value + "' is there twice");
    }
    fields.push_back({std::move(*value), std::nullopt, std::nullopt});
    in_value_ = true;
  }
  /// A scalar inside a field's value: part of a map in a list, or that list is none of maps of scalars.
  void item_leaf(std::optional<std::string> value) {
    if (depth_ != 4 || !fields.back().items) return forget_items();
    std::vector<FlowField>& item = fields.back().items->back();
    if (in_item_value_) {
      item.back().value = std::move(value);
    } else {
      item.push_back({value.value_or(""), std::nullopt, std::nullopt});
    }
    in_item_value_ = !in_item_value_;
  }
  void forget_items() { fields.back().items.reset(); }
  void finish_value(std::optional<std::string> value) {
    fields.back().value = std::move(value);
    in_value_ = false;
  }

  int depth_ = 0;
  int items_ = 0;
  bool in_value_ = false;
  bool in_item_value_ = false;
};

template <class Number>
bool read_number(const std::string& text, Number* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

bool read_double(const std::string& text, double* out) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (text == ".nan" || text == ".NaN" || text == ".NAN") {
    *out = std::numeric_limits<double>::quiet_NaN();
  } else if (text == ".inf" || text == "+.inf") {
    *out = kInfinity;
  } else if (text == "-.inf") {
    *out = -kInfinity;
  } else if (text.find_first_not_of("+-.0123456789eE") != std::string::npos) {
    return false;  // from_chars would take "nan" and "infinity", which YAML takes for words
  } else {
    return read_number(text, out);
  }
  return true;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Reads the form that FlowWriter gives most lines: words and quoted texts without escapes, one space after each ','
/// and
/// ':'. Anything else, right or wrong, is yaml-cpp's: false. Files are read under the lock of their writers, and this
/// takes a twentieth of yaml-cpp's 27 us a line.
bool scan_plain_line(std::string_view line, std::vector<FlowField>* fields) {
  const auto skip = [&](std::string_view text) {
    if (line.substr(0, text.size()) != text) return false;
    line.remove_prefix(text.size());
    return true;
  };
  const auto take_word = [&]() -> std::string_view {
    std::size_t length = 0;
    while (length < line.size() &&
           (is_letter(line[length]) || is_digit(line[length]) || line[length] == '_' ||
            (length > 0 && std::string_view("./+-").find(line[length]) != std::string_view::npos))) {
      ++length;
    }
    const std::string_view word = line.substr(0, length);
    line.remove_prefix(length);
    return word;
  };
  if (!skip("- {")) return false;
  while (true) {
    const std::string_view name = take_word();
    if (name.empty() || !is_letter(name[0]) || name == "null" || name == "Null" || name == "NULL" || !skip(": ")) {
      return false;
    }
    for (const FlowField& field : *fields) {
      if (field.name == name) return false;
    }
    std::string_view value;
    if (skip("\"")) {
      const std::size_t end = line.find_first_of("\"\\\t");
      if (end == std::string_view::npos || line[end] != '"') return false;
      value = line.substr(0, end);
      line.remove_prefix(end + 1);
    } else {
      value = take_word();
      if (value.empty() || value == "null" || value == "Null" || value == "NULL") return false;
    }
    fields->push_back({std::string(name), std::string(value), std::nullopt});
    if (line == "}") return true;
    if (!skip(", ")) return false;
  }
}

/// Words that YAML 1.1 or 1.2 readers take for something else than a text.
bool is_reserved_word(const std::string& text) {
  std::string lower;
  for (const char c : text) lower += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  for (const char* word : {"true", "false", "yes", "no", "on", "off", "y", "n", "null"}) {
    if (lower == word) return true;
  }
  return false;
}

bool is_plain_word(const std::string& text) {
  if (text.empty() || !(is_letter(text[0]) || text[0] == '_') || is_reserved_word(text)) return false;
  for (const char c : text) {
    if (!is_letter(c) && !is_digit(c) && std::string_view("_./+-").find(c) == std::string_view::npos) {
      return false;
    }
  }
  return true;
}

/// Bytes of the UTF-8 sequence at the start of `text` (Unicode 15, table 3-7); 0 if there is none.
std::size_t utf8_length(std::string_view text) {
  const auto at = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto continues = [&](std::size_t i) { return (at(i) & 0xC0u) == 0x80u; };
  const unsigned first = at(0);
  if (text.empty()) return 0;
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  if (first < 0xE0) return continues(1) ? 2 : 0;
  const unsigned second = at(1);
  if (first < 0xF0) {
    const bool overlong = first == 0xE0 && second < 0xA0;
    const bool surrogate = first == 0xED && second > 0x9F;
    return continues(1) && continues(2) && !overlong && !surrogate ? 3 : 0;
  }
  const bool overlong = first == 0xF0 && second < 0x90;
  const bool beyond = first == 0xF4 && second > 0x8F;
  return continues(1) && continues(2) && continues(3) && !overlong && !beyond ? 4 : 0;
}

/// Double-quoted YAML. Besides what must be escaped, the line breaks of YAML 1.1 (U+0085, U+2028, U+2029), the other C1
/// controls and the byte order mark are.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(std::string_view(text).substr(i));
    const std::string piece = text.substr(i, length == 0 ? 1 : length);
    const auto byte = [&](std::size_t j) { return static_cast<unsigned char>(piece[j]); };
    std::array<char, 8> escape{};
    if (piece == "\"" || piece == "\\") {
      out += "\\" + piece;
    } else if (piece == "\n") {
      out += "\\n";
    } else if (piece == "\t") {
      out += "\\t";
    } else if (piece.size() == 1 && (byte(0) < 0x20 || byte(0) == 0x7F)) {
      std::snprintf(escape.data(), escape.size(), "\\x%02x", byte(0));
      out += escape.data();
    } else if (piece.size() == 2 && byte(0) == 0xC2 && byte(1) < 0xA0) {
      std::snprintf(escape.data(), escape.size(), "\\x%02x", byte(1));
      out += escape.data();
    } else if (piece == "\u2028") {
      out += "\\u2028";
    } else if (piece == "\u2029") {
      out += "\\u2029";
    } else if (piece == "\uFEFF") {
      out += "\\uFEFF";
    } else {
      out += piece;
    }
    i += piece.size();
  }
  return out + "\"";
}

}  // namespace

std::size_t utf8_prefix(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    const std::size_t length = utf8_length(text.substr(i));
    if (length == 0) break;
    i += length;
  }
  return i;
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t good = utf8_prefix(text);
    out += text.substr(0, good);
    if (good == text.size()) return out;
    out += "\uFFFD";
    text.remove_prefix(good + 1);
  }
}

Result<std::vector<FlowField>> parse_flow_line(std::string_view line) {
  if (line.size() > kMaxFlowLine) {
    return damage("the line has " + std::to_string(line.size()) + " bytes, more than the limit of " +
                  std::to_string(kMaxFlowLine));
  }
  if (const std::size_t good = utf8_prefix(line); good != line.size()) {
    return damage("byte " + std::to_string(good + 1) + " of the line is not UTF-8");
  }
  for (const char c : line) {
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == '\x7F') {
      return damage("the line holds the control character " + std::to_string(static_cast<int>(c)));
    }
  }
  std::vector<FlowField> plain;
  if (scan_plain_line(line, &plain)) return plain;
  return parse_with_yaml_cpp(line);
}

Result<std::vector<FlowField>> parse_with_yaml_cpp(std::string_view line) {
  if (line.substr(0, 1) != "-") return damage("expected \"- {...}\"");
  LineHandler handler;
  try {
    std::istringstream stream{std::string(line)};
    YAML::Parser parser(stream);
    parser.HandleNextDocument(handler);
    if (parser.HandleNextDocument(handler)) return damage("expected one YAML document");
  } catch (const YAML::Exception& error) {
    return damage("not a YAML flow map: " + error.msg);
  } catch (const std::exception& error) {
    return damage(error.what());
  }
  if (handler.fields.empty()) return damage("expected \"- {...}\" with at least one field");
  return std::move(handler.fields);
}

const std::string* FlowReader::find(const char* name) {
  known_.emplace_back(name);
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    if (fields_[i].name != name) continue;
    taken_[i] = true;
    if (!fields_[i].value) fail("the field '" + std::string(name) + "' has no value");
    return fields_[i].value ? &*fields_[i].value : nullptr;
  }
  return nullptr;
}

void FlowReader::fail(const std::string& problem) {
  if (problem_.empty()) problem_ = problem;
}

void FlowReader::require(const char* name) {
  for (const FlowField& field : fields_) {
    if (field.name == name) return;
  }
  fail("the field '" + std::string(name) + "' is missing");
}

void FlowReader::take(const char* name, Hash128* out) {
  require(name);
  const std::string* text = find(name);
  if (text == nullptr) return;
  const auto value = parse_hash128(*text);
  if (!value) return fail("'" + std::string(name) + "' is " + *text + ", expected 0x and 32 hex digits");
  *out = *value;
}

void FlowReader::take(const char* name, std::uint64_t* out) {
  require(name);
  const std::string* text = find(name);
  if (text == nullptr) return;
  const auto value = parse_hash64(*text);
  if (!value) return fail("'" + std::string(name) + "' is " + *text + ", expected 0x and up to 16 hex digits");
  *out = *value;
}

void FlowReader::take(const char* name, std::string* out) {
  if (const std::string* text = find(name)) *out = *text;
}

void FlowReader::take(const char* name, double* out) {
  const std::string* text = find(name);
  if (text != nullptr && !read_double(*text, out)) {
    fail("'" + std::string(name) + "' is " + *text + ", expected a number");
  }
}

void FlowReader::take_number(const char* name, std::int64_t* out) {
  const std::string* text = find(name);
  if (text != nullptr && !read_number(*text, out)) {
    fail("'" + std::string(name) + "' is " + *text + ", expected a whole number");
  }
}

void FlowReader::take(const char* name, bool* out) {
  const std::string* text = find(name);
  if (text == nullptr) return;
  if (*text == "true" || *text == "True" || *text == "TRUE") {
    *out = true;
  } else if (*text == "false" || *text == "False" || *text == "FALSE") {
    *out = false;
  } else {
    fail("'" + std::string(name) + "' is " + *text + ", expected true or false");
  }
}

std::vector<FlowReader> FlowReader::list(const char* name) {
  std::vector<FlowReader> readers;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    if (fields_[i].name != name || !fields_[i].items) continue;
    taken_[i] = true;
    for (const std::vector<FlowField>& item : *fields_[i].items) readers.emplace_back(item);
  }
  return readers;
}

Status FlowReader::finish(std::vector<std::string>* unknown) const {
  if (!problem_.empty()) return damage(problem_);
  for (std::size_t i = 0; unknown != nullptr && i < fields_.size(); ++i) {
    if (taken_[i]) continue;
    const std::string meant = nearest(fields_[i].name, known_);
    unknown->push_back("'" + fields_[i].name + "'" + (meant.empty() ? "" : " (did you mean '" + meant + "'?)"));
  }
  return {};
}

FlowWriter& FlowWriter::raw(const char* name, const std::string& value) {
  if (!text_.empty()) text_ += ", ";
  text_ += name;
  text_ += ": ";
  text_ += value;
  return *this;
}

FlowWriter& FlowWriter::add(const char* name, double value) {
  if (std::isnan(value)) return raw(name, ".nan");
  if (std::isinf(value)) return raw(name, value > 0 ? ".inf" : "-.inf");
  std::array<char, 1100> buffer{};  // the smallest denormal has 1,076 characters in this form
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed).ptr;
  return raw(name, std::string(buffer.data(), end));
}

FlowWriter& FlowWriter::add_name(const char* name, const std::string& value) {
  return is_plain_word(value) ? raw(name, value) : add_quoted(name, value);
}

FlowWriter& FlowWriter::add_list(const char* name, const std::vector<FlowWriter>& maps) {
  std::string text;
  for (const FlowWriter& map : maps) text += (text.empty() ? "{" : ", {") + map.text_ + "}";
  return raw(name, "[" + text + "]");
}

FlowWriter& FlowWriter::add_quoted(const char* name, const std::string& value) { return raw(name, quoted(value)); }

}  // namespace tenon
