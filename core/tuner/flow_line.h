// One line of a timing cache or crash journal: a one-item YAML list of a flow map, `- {name: value, ...}`. Each line is
// parsed alone by yaml-cpp, so that a damaged line costs one line.
//
// Thread rule: plain values and functions without state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tenon/status.hpp>
#include <vector>

#include "core/base/hash.h"

namespace tenon {

struct FlowField {
  std::string name;
  std::optional<std::string> value;                          ///< nothing for null, a list or a map
  std::optional<std::vector<std::vector<FlowField>>> items;  ///< of a list of maps of scalars; else nothing
};

/// The fields of a line in their order, at least one. kInvalid says what is wrong: not UTF-8, a control character,
/// longer than kMaxFlowLine, not a one-item list of a flow map (a torn line), a name twice, an anchor, alias or tag.
Result<std::vector<FlowField>> parse_flow_line(std::string_view line);
inline constexpr std::size_t kMaxFlowLine = 1u << 20;
/// The same without the quick way that parse_flow_line takes for lines in FlowWriter's form. REQUIRES: UTF-8 without
/// control characters but tabs.
Result<std::vector<FlowField>> parse_with_yaml_cpp(std::string_view line);

/// Takes fields by name and keeps the first problem.
class FlowReader {
 public:
  /// `fields` outlives the reader.
  explicit FlowReader(const std::vector<FlowField>& fields) : fields_(fields), taken_(fields.size(), false) {}

  void take(const char* name, Hash128* out);              ///< required, all 32 digits
  void take(const char* name, std::uint64_t* out);        ///< required, in "0x" form
  void take(const char* name, std::string* out);          ///< absent: left alone
  void take(const char* name, double* out);               ///< absent: left alone
  void take(const char* name, bool* out);                 ///< absent: left alone
  void take_number(const char* name, std::int64_t* out);  ///< absent: left alone
  /// One reader per map of a list, for as long as the fields. Anything but a list of maps counts as not taken: none.
  std::vector<FlowReader> list(const char* name);
  /// Makes absence of a field a problem.
  void require(const char* name);
  void fail(const std::string& problem);
  /// The first problem, if any. Fields that nobody took are no problem; each is appended to `unknown`, if given.
  Status finish(std::vector<std::string>* unknown = nullptr) const;

 private:
  const std::string* find(const char* name);

  const std::vector<FlowField>& fields_;
  std::vector<bool> taken_;
  std::vector<std::string> known_;
  std::string problem_;
};

/// Writes a line field by field. REQUIRES: texts are UTF-8 (see valid_utf8).
class FlowWriter {
 public:
  FlowWriter& add(const char* name, Hash128 value) { return raw(name, to_text(value)); }
  FlowWriter& add(const char* name, std::uint64_t value) { return raw(name, to_text(value)); }
  /// As few decimal digits as read back exactly, never with an exponent.
  FlowWriter& add(const char* name, double value);
  FlowWriter& add_number(const char* name, std::int64_t value) { return raw(name, std::to_string(value)); }
  FlowWriter& add_bool(const char* name, bool value) { return raw(name, value ? "true" : "false"); }
  /// Plain where every YAML reader takes the word for a text (letters, digits, "_./+-", a letter first), else quoted.
  FlowWriter& add_name(const char* name, const std::string& value);
  FlowWriter& add_quoted(const char* name, const std::string& value);
  FlowWriter& add_list(const char* name, const std::vector<FlowWriter>& maps);
  /// The line without a newline.
  std::string line() const { return "- {" + text_ + "}"; }

 private:
  FlowWriter& raw(const char* name, const std::string& value);
  std::string text_;
};

/// Length of the longest prefix that is UTF-8.
std::size_t utf8_prefix(std::string_view text);
/// `text` with every byte that is no UTF-8 replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

}  // namespace tenon
