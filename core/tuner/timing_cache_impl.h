// What is inside a TimingCache, for the sources that implement it.
#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/tuner/code_store.h"
#include "core/tuner/timing_cache.h"

namespace tenon {

/// What makes two measurements the same one; its order is the order of the file.
struct MeasurementId {
  Hash128 key;
  std::string kernel;
  std::string combo;
  std::uint64_t tactic = 0;
  auto operator<=>(const MeasurementId&) const = default;
};

MeasurementId id_of(const CacheMeasurement& measurement);

/// An entry with the moment of its last change.
template <class Entry>
struct CacheSlot {
  Entry entry;
  std::uint64_t changed = 0;
  bool lifts_quarantine = false;  ///< replaced a quarantine that this cache knew of
};

/// The entries of one cache or file.
struct CacheEntries {
  std::map<Hash128, CacheSlot<CacheChoice>> choices;
  std::map<MeasurementId, CacheSlot<CacheMeasurement>> measurements;
  std::map<Hash128, CacheSlot<CacheGraph>> graphs;
  std::vector<std::string> others;  ///< lines of unknown kinds, each once, in the order of their coming
  std::set<std::string> known_others;

  void add_other(const std::string& line);
  std::string text() const;
};

/// Reads a file's text; `source` begins the messages. See TimingCache::parse.
Result<CacheEntries> parse_cache_text(std::string_view bytes, const std::string& source, Logger& logger, bool strict,
                                      std::vector<std::string>* damaged);

struct TimingCache::Impl {
  mutable std::mutex mutex;
  std::string device;
  CacheEntries entries;
  CodeStore code;
  /// Entries that were taken away, and when: they stay away from files that still have them.
  std::map<Hash128, std::uint64_t> erased_choices;
  std::map<Hash128, std::uint64_t> erased_graphs;
  std::map<MeasurementId, std::uint64_t> erased_measurements;
  std::map<std::string, std::uint64_t> erased_others;
  std::uint64_t clock = 0;

  /// The file that this cache was loaded from or first saved to, and the clock of that moment. What has not changed
  /// since then yields to what others wrote into that file.
  std::filesystem::path origin;
  std::uint64_t origin_clock = 0;

  void put(const CacheChoice& choice);
  void put(const CacheMeasurement& measurement);
  void put(const CacheGraph& graph);
  void erase_choice(Hash128 key);
  /// This cache's entries with those of `disk`, the content of `path`. REQUIRES: mutex held.
  CacheEntries merged_with(const CacheEntries& disk, const std::filesystem::path& path) const;
  /// Everything up to `moment` is in the file now. REQUIRES: mutex held.
  void saved_to(const std::filesystem::path& path, std::uint64_t moment);
};

}  // namespace tenon
