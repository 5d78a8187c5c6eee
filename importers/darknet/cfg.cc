#include "importers/darknet/cfg.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <tenon/sdk/error.hpp>
#include <utility>

namespace tenon::darknet {
namespace {

// Darknet knows some sections by two names.
constexpr std::pair<std::string_view, std::string_view> kSpellings[] = {
    {"network", "net"}, {"conv", "convolutional"}, {"conn", "connected"},
    {"max", "maxpool"}, {"avg", "avgpool"},        {"soft", "softmax"},
};

std::string long_spelling(const std::string& written) {
  for (const auto& [brief, full] : kSpellings) {
    if (written == brief) return std::string(full);
  }
  return written;
}

std::string stripped(std::string_view line) {
  std::string result;
  for (const char c : line) {
    if (c != ' ' && c != '\t' && c != '\r') result += c;
  }
  return result;
}

bool is_comment(std::string_view rest) { return rest.empty() || rest[0] == '#' || rest[0] == ';'; }

// The whole of `value` up to a comment as a number. False if anything else is there.
template <class Number>
bool parse_number(std::string_view value, Number* out) {
  if (value.size() > 1 && value[0] == '+' && value[1] != '-') value.remove_prefix(1);
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), *out);
  return error == std::errc() && is_comment(value.substr(static_cast<size_t>(end - value.data())));
}

// Calls add(item) for the items of a list up to a comment.
template <class Add>
void split(std::string_view list, Add&& add) {
  list = list.substr(0, list.find('#'));
  while (true) {
    const size_t comma = list.find(',');
    add(list.substr(0, comma));
    if (comma == std::string_view::npos) return;
    list.remove_prefix(comma + 1);
  }
}

template <class Number>
std::vector<Number> parse_list(const Section& section, std::string_view key, const char* kind) {
  std::vector<Number> result;
  const Entry* entry = section.find(key);
  if (entry == nullptr) return result;
  split(entry->value, [&](std::string_view item) {
    Number number{};
    if (!parse_number(item, &number)) {
      section.fail_at(key, text(key, ": expected ", kind, " separated by commas, found '", item, "' as item ",
                                result.size() + 1, " of '", entry->value, "'"));
    }
    result.push_back(number);
  });
  return result;
}

void add_entry(Section& section, const std::string& line, int number, const Warn& warn) {
  const size_t equals = line.find('=');
  if (equals == std::string::npos || equals + 1 == line.size()) {
    warn(section.place(number) + "'" + line + "' is ignored: " +
         (equals == std::string::npos ? "expected key=value" : "there is no value, the default is used"));
    return;
  }
  Entry entry{line.substr(0, equals), line.substr(equals + 1), number};
  if (const Entry* first = section.find(entry.key)) {
    warn(section.place(number) + entry.key + " was given in line " + std::to_string(first->line) + " already: '" +
         first->value + "' counts, '" + entry.value + "' is ignored");
    return;
  }
  section.entries.push_back(std::move(entry));
}

}  // namespace

const Entry* Section::find(std::string_view key) const {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) { return entry.key == key; });
  return found == entries.end() ? nullptr : &*found;
}

std::string Section::place(int at_line) const {
  const std::string layer = index < 0 ? "" : text(" (layer ", index, ")");
  return text(file, ":", at_line, ": [", written, "]", layer, ": ");
}

void Section::fail(const std::string& message) const { throw Invalid(place(line) + message); }

void Section::fail_at(std::string_view key, const std::string& message) const {
  const Entry* entry = find(key);
  throw Invalid(place(entry == nullptr ? line : entry->line) + message);
}

int64_t Section::integer(std::string_view key, int64_t fallback, int64_t least, int64_t most) const {
  const Entry* entry = find(key);
  if (entry == nullptr) return fallback;
  int64_t value = 0;
  if (!parse_number(entry->value, &value)) {
    fail_at(key, text(key, ": expected an integer, found '", entry->value, "'"));
  }
  if (value < least || value > most) {
    fail_at(key, text(key, ": expected ", least, " to ", most, ", found ", value));
  }
  return value;
}

double Section::number(std::string_view key, double fallback) const {
  const Entry* entry = find(key);
  if (entry == nullptr) return fallback;
  double value = 0;
  if (!parse_number(entry->value, &value) || !std::isfinite(value)) {
    fail_at(key, text(key, ": expected a number, found '", entry->value, "'"));
  }
  return value;
}

std::string Section::word(std::string_view key, const std::string& fallback) const {
  const Entry* entry = find(key);
  return entry == nullptr ? fallback : entry->value;
}

std::vector<int64_t> Section::integers(std::string_view key) const {
  return parse_list<int64_t>(*this, key, "integers");
}

std::vector<double> Section::numbers(std::string_view key) const {
  std::vector<double> values = parse_list<double>(*this, key, "numbers");
  for (const double value : values) {
    if (!std::isfinite(value)) fail_at(key, text(key, ": expected finite numbers, found ", value));
  }
  return values;
}

void Section::must_be(std::string_view key, int64_t neutral) const {
  const int64_t value = integer(key, neutral, INT32_MIN, INT32_MAX);
  if (value != neutral) fail_at(key, text(key, "=", value, " is not supported; only ", key, "=", neutral, " is"));
}

Cfg parse_cfg(std::string_view text_of_file, const std::string& file, const Warn& warn) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  std::string_view rest = text_of_file;
  if (rest.substr(0, kByteOrderMark.size()) == kByteOrderMark) rest.remove_prefix(kByteOrderMark.size());
  Cfg cfg;
  Section* section = nullptr;
  for (int number = 1; !rest.empty(); ++number) {
    const size_t end = rest.find('\n');
    const std::string line = stripped(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (is_comment(line)) continue;
    if (line[0] != '[') {
      if (section == nullptr) {
        throw Invalid(
            text(file, ":", number, ": expected [net] as the first section, found '", line.substr(0, 40), "'"));
      }
      add_entry(*section, line, number, warn);
      continue;
    }
    const size_t bracket = line.find(']');
    if (bracket == std::string::npos || !is_comment(std::string_view(line).substr(bracket + 1))) {
      throw Invalid(text(file, ":", number, ": expected a section such as [convolutional], found '", line, "'"));
    }
    Section next;
    next.written = line.substr(1, bracket - 1);
    next.type = long_spelling(next.written);
    next.file = file;
    next.line = number;
    if (section == nullptr) {
      if (next.type != "net") {
        throw Invalid(text(file, ":", number, ": expected [net] as the first section, found [", next.written, "]"));
      }
      cfg.net = std::move(next);
      section = &cfg.net;
      continue;
    }
    next.index = static_cast<int>(cfg.layers.size());
    if (next.type == "net") next.fail("expected [net] once, at the top of the file");
    cfg.layers.push_back(std::move(next));
    section = &cfg.layers.back();
  }
  if (section == nullptr) throw Invalid(file + ": expected [net] as the first section, found no section at all");
  return cfg;
}

}  // namespace tenon::darknet
