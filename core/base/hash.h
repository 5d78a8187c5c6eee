// 128-bit and 64-bit hashes (xxHash) and their text forms, as timing caches and logs show them.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tenon {

/// A 128-bit key. Printed as "0x" and 32 lower-case hex digits.
struct Hash128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  auto operator<=>(const Hash128&) const = default;
};

Hash128 hash128(std::string_view bytes);
std::uint64_t hash64(std::string_view bytes);

std::string to_text(Hash128 key);
/// "0x" and hex digits without zero padding, the form of tactic hashes.
std::string to_text(std::uint64_t hash);
/// Reads to_text's forms; nothing if `text` is anything else.
std::optional<Hash128> parse_hash128(std::string_view text);
std::optional<std::uint64_t> parse_hash64(std::string_view text);

}  // namespace tenon
