// Small text helpers shared by messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// The candidate with the smallest edit distance to `word`, or "" if none is near enough to be meant
/// (distance above a third of the longer word's length, at least 2).
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// "a, b, c"
std::string join(const std::vector<std::string>& parts, std::string_view separator = ", ");

}  // namespace tenon
