// Small text helpers shared by messages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// The candidate with the smallest edit distance to `word`, or "" if none is near enough to be meant
/// (distance above a third of the longer word's length, at least 2).
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// "a, b, c"
std::string join(const std::vector<std::string>& parts, std::string_view separator = ", ");

/// Two lower-case digits a byte, nothing else.
std::string to_hex(const std::vector<std::uint8_t>& bytes);
/// Reads to_hex's form; nothing if `text` is anything else.
std::optional<std::vector<std::uint8_t>> parse_hex(std::string_view text);

}  // namespace tenon
