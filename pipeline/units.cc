#include "pipeline/units.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

namespace tenon::pipeline {
namespace {

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

Status invalid(std::string_view text, const std::string& expected) {
  return Status(Code::kInvalid, "'" + std::string(text) + "' is not " + expected);
}

/// Splits "1.5 GiB" into a number and a unit. False when it does not begin with a finite number.
bool split_unit(std::string_view text, double& number, std::string_view& unit) {
  text = trim(text);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number)) return false;
  unit = trim(text.substr(static_cast<std::size_t>(end - text.data())));
  return true;
}

}  // namespace

Result<std::uint64_t> parse_size(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, double>, 10> kUnits{{{"", 1.0},
                                                                               {"B", 1.0},
                                                                               {"KiB", 0x1p10},
                                                                               {"MiB", 0x1p20},
                                                                               {"GiB", 0x1p30},
                                                                               {"TiB", 0x1p40},
                                                                               {"KB", 1e3},
                                                                               {"MB", 1e6},
                                                                               {"GB", 1e9},
                                                                               {"TB", 1e12}}};
  const std::string expected =
      "a size; write a number and one of B, KiB, MiB, GiB, TiB, KB, MB, GB, TB, such as 256MiB";
  double number = 0;
  std::string_view unit;
  if (!split_unit(text, number, unit) || number < 0) return invalid(text, expected);
  for (const auto& [name, factor] : kUnits) {
    if (unit != name) continue;
    const double bytes = std::floor(number * factor);
    if (bytes >= 0x1p63) return invalid(text, "a size below 2^63 bytes");
    return static_cast<std::uint64_t>(bytes);
  }
  return invalid(text, expected);
}

Result<double> parse_duration(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, double>, 6> kUnits{
      {{"", 1.0}, {"s", 1.0}, {"ms", 1e-3}, {"us", 1e-6}, {"min", 60.0}, {"h", 3600.0}}};
  const std::string expected = "a duration; write a number and one of us, ms, s, min, h, such as 30s";
  double number = 0;
  std::string_view unit;
  if (!split_unit(text, number, unit) || number < 0) return invalid(text, expected);
  for (const auto& [name, factor] : kUnits) {
    if (unit == name && std::isfinite(number * factor)) return number * factor;
  }
  return invalid(text, expected);
}

Result<double> parse_number(std::string_view text) {
  double number = 0;
  std::string_view rest;
  if (!split_unit(text, number, rest) || !rest.empty()) return invalid(text, "a number");
  return number;
}

Result<double> parse_fraction(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto upper = parse_number(text.substr(0, slash));
  const auto lower = slash == std::string_view::npos ? Result<double>(1.0) : parse_number(text.substr(slash + 1));
  if (!upper.ok() || !lower.ok() || *lower == 0.0 || !std::isfinite(*upper / *lower)) {
    return invalid(text, "a number or a fraction such as 1/255");
  }
  return *upper / *lower;
}

Result<std::int64_t> parse_integer(std::string_view text) {
  const std::string_view digits = trim(text);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return invalid(text, "a whole number");
  return number;
}

Result<std::uint64_t> parse_hash(std::string_view text) {
  std::string_view digits = trim(text);
  const bool has_prefix = digits.starts_with("0x") || digits.starts_with("0X");
  if (has_prefix) digits.remove_prefix(2);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  if (!has_prefix || digits.size() > 16 || error != std::errc() || end != digits.data() + digits.size()) {
    return invalid(text, "a hash; write 0x and up to 16 hex digits, such as 0x665ded9abbf88");
  }
  return number;
}

std::string size_text(std::uint64_t bytes) {
  static constexpr std::array<const char*, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  double number = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (number >= 1024 && unit + 1 < kUnits.size()) {
    number /= 1024;
    ++unit;
  }
  char text[48];
  std::snprintf(text, sizeof text, number == std::floor(number) ? "%.0f %s" : "%.1f %s", number, kUnits[unit]);
  return text;
}

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> before_last;
  std::vector<int> last(b.size() + 1);
  std::vector<int> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    before_last = last;
    last.swap(row);
  }
  return last[b.size()];
}

std::string nearest_word(std::string_view word, std::span<const std::string> list) {
  const auto nearest = std::min_element(list.begin(), list.end(), [&](const std::string& a, const std::string& b) {
    return edit_distance(word, a) < edit_distance(word, b);
  });
  return nearest == list.end() ? std::string() : *nearest;
}

bool similar_words(std::string_view a, std::string_view b) {
  const int length = static_cast<int>(std::max(a.size(), b.size()));
  const int distance = edit_distance(a, b);
  return distance < length && distance <= std::max(2, length / 3);
}

bool glob_match(std::string_view pattern, std::string_view name) {
  // Greedy with one step back to the last star: linear in practice, never exponential.
  std::size_t p = 0;
  std::size_t n = 0;
  std::size_t star = std::string_view::npos;
  std::size_t resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace tenon::pipeline
