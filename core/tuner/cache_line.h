// The kinds of lines in a timing cache file, and which entry each one is.
#pragma once

#include <string>
#include <string_view>
#include <tenon/status.hpp>
#include <variant>
#include <vector>

#include "core/tuner/flow_line.h"
#include "core/tuner/timing_cache.h"

namespace tenon {

inline constexpr std::int64_t kCacheFormatVersion = 1;

/// `- {tenon_timing_cache: 1}`
struct CacheHeader {
  std::int64_t version = kCacheFormatVersion;
};

/// A line of a kind that this version does not know: kept as it is.
struct OtherLine {
  std::string text;
};

using CacheLine = std::variant<CacheHeader, CacheChoice, CacheMeasurement, CacheGraph, OtherLine>;

/// Reads one line. kInvalid says why it is no entry. Fields that the kind does not have are ignored and appended to
/// `unknown`.
Result<CacheLine> parse_cache_line(std::string_view line, std::vector<std::string>* unknown);

std::string header_line();
std::string cache_line(const CacheChoice& choice);
std::string cache_line(const CacheMeasurement& measurement);
std::string cache_line(const CacheGraph& graph);

/// The fields of a measurement beside its key, shared with the lines of the crash journal.
void write_candidate(const CacheMeasurement& measurement, FlowWriter* writer);
void read_candidate(FlowReader* reader, CacheMeasurement* measurement);

}  // namespace tenon
