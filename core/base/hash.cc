#include "core/base/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <charconv>

namespace tenon {
namespace {

std::optional<std::uint64_t> parse_hex(std::string_view digits) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

}  // namespace

Hash128 hash128(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

std::uint64_t hash64(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string to_text(Hash128 key) { return fmt::format("0x{:016x}{:016x}", key.high, key.low); }

std::string to_text(std::uint64_t hash) { return fmt::format("0x{:x}", hash); }

std::optional<Hash128> parse_hash128(std::string_view text) {
  if (text.size() != 34 || text.substr(0, 2) != "0x") return std::nullopt;
  const auto high = parse_hex(text.substr(2, 16));
  const auto low = parse_hex(text.substr(18));
  if (!high || !low) return std::nullopt;
  return Hash128{*high, *low};
}

std::optional<std::uint64_t> parse_hash64(std::string_view text) {
  if (text.size() < 3 || text.size() > 18 || text.substr(0, 2) != "0x") return std::nullopt;
  return parse_hex(text.substr(2));
}

}  // namespace tenon
