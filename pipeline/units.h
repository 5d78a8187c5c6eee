// Sizes, durations, fractions and near misses: the small words of configuration files and command lines.
//
// Thread rule: free functions; call from any thread.
#ifndef TENON_PIPELINE_UNITS_H
#define TENON_PIPELINE_UNITS_H

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tenon/status.hpp>
#include <vector>

namespace tenon::pipeline {

/// Bytes from "1048576", "256MiB", "1.5 GiB", "2GB": no unit or B for bytes, KiB MiB GiB TiB for powers of 1024, KB MB
/// GB TB for powers of 1000; fractions are rounded down to whole bytes. Fails with kInvalid, listing the units, also
/// when the size does not fit 63 bits.
Result<std::uint64_t> parse_size(std::string_view text);

/// Seconds from "30", "30s", "1.5min", "200ms", "50us", "2h"; no unit is seconds. Fails with kInvalid, listing the
/// units.
Result<double> parse_duration(std::string_view text);

/// A number or a fraction of two: "0.5", "1/255", "1e-3". Fails with kInvalid, also when dividing by zero.
Result<double> parse_fraction(std::string_view text);

/// A finite number with nothing around it but blanks. Fails with kInvalid.
Result<double> parse_number(std::string_view text);

/// A whole number, decimal. Fails with kInvalid, also outside 64 bits.
Result<std::int64_t> parse_integer(std::string_view text);

/// A 64-bit hash in its printed form, "0x" and up to 16 hex digits. Fails with kInvalid.
Result<std::uint64_t> parse_hash(std::string_view text);

/// Bytes as people read them: "256 MiB", "1.5 GiB", "12 B".
std::string size_text(std::uint64_t bytes);

/// Number of letters to insert, delete, replace, or swap with their neighbour, to turn one word into the other
/// (optimal string alignment distance); case counts.
int edit_distance(std::string_view a, std::string_view b);

/// The word of the list with the smallest edit distance, the first of equals; empty for an empty list.
std::string nearest_word(std::string_view word, std::span<const std::string> list);

/// True when two words are near enough to ask "did you mean": at most 2 edits, or a third of the longer word.
bool similar_words(std::string_view a, std::string_view b);

/// True when `name` fits a pattern in which * stands for any characters and ? for one.
bool glob_match(std::string_view pattern, std::string_view name);

}  // namespace tenon::pipeline

#endif  // TENON_PIPELINE_UNITS_H
