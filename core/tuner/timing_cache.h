// TimingCache: recorded choices and measurements per site, in memory and in its line-per-entry text file.
//
// Thread rule: thread-safe; one cache may be shared by several builders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tenon/status.hpp>
#include <utility>
#include <vector>

#include "core/base/hash.h"
#include "core/base/logger.h"

namespace tenon {

/// A decision. Obeyed whatever time stands beside it; only key, combo, kernel and tactic are read.
struct CacheChoice {
  Hash128 key;
  std::string layer;  ///< name of the (first) layer it was made for
  std::string op;
  std::string device;  ///< signature; empty in entries that a person inserted
  std::string combo;
  std::string kernel;
  std::uint64_t tactic = 0;
  std::string params;
  double ms = 0;
  bool pinned = false;
  bool partial = false;  ///< time ran out, or rules of the build left candidates out, before each was tried
};

/// A fact about one candidate of one site.
struct CacheMeasurement {
  enum class Kind {
    kMeasured,     ///< it ran, passed verification and took `ms`
    kRejected,     ///< it ran and gave wrong results, or failed; `reason` says how
    kQuarantined,  ///< a process died while trying it
  };
  Hash128 key;
  Kind kind = Kind::kMeasured;
  std::string combo;
  std::string kernel;
  std::uint32_t revision = 0;
  std::string build;  ///< content hash of the plugin library
  std::uint64_t tactic = 0;
  std::string params;
  std::vector<std::uint8_t> blob;  ///< with `workspace` what the kernel listed beside params
  std::uint64_t workspace = 0;
  double ms = 0;
  int launches = 1;  ///< kernels, copies and fills of one run
  std::string reason;
};

/// What was decided about a whole graph. `regions` and `streams` decide; the rest is a record for people and tools, so
/// that a line that does not fit the choices any more changes nothing that is built.
struct CacheGraph {
  struct Format {
    std::string value;   ///< name in the (first) network
    std::string format;  ///< as in a combo, not "row"
  };
  /// Two candidates of one site that were compared by the time of whole runs.
  struct Rerank {
    Hash128 key;        ///< of the site
    std::string layer;  ///< name of the (first) layer
    std::uint64_t tactic = 0, rival = 0;
    double ms = 0, rival_ms = 0;  ///< whole graph, with the tactic that was kept and with the other one
  };
  /// A place where the graph has two forms, one by a rule.
  struct Region {
    std::string rule;
    std::string layer;            ///< name of the layer that the rule makes, in the (first) network
    bool taken = false;           ///< the rule's form is kept
    double ms = 0, rival_ms = 0;  ///< all layers together, in the form that is kept and in the other one
  };
  /// A layer of the plan, conversions included, that is not on stream 0.
  struct Stream {
    std::string layer;       ///< name in the (first) network
    std::int64_t step = -1;  ///< its number in the plan, which tells where the name does not; -1: not given
    std::int64_t stream = 0;
  };
  /// Of the rewritten graph: its sites, which name the device, and how they are connected. Lines with regions: of the
  /// graph before they were decided.
  Hash128 key;
  std::string device;
  std::vector<Region> regions;
  std::vector<Format> layout;  ///< values that are not row-major where they are produced
  std::vector<Stream> streams;
  std::vector<Rerank> rerank;
};

/// What query gives and update takes: a tactic hash and a time. hash 2^64-1, or a negative or NaN time, is invalid.
struct CacheValue {
  std::uint64_t tactic = ~0ull;
  float ms = -1;
  bool valid() const { return tactic != ~0ull && ms >= 0; }
};

class CodeStore;

class TimingCache {
 public:
  /// An empty cache for a device signature.
  explicit TimingCache(std::string device_signature);

  /// From serialize's bytes or a file's contents. Damaged lines are skipped, each with one warning to `logger` that
  /// names line and reason; `damaged`, if given, receives them. Empty bytes give an empty cache. kVersion for another
  /// format version. With `strict` (frozen builds) any damage is kInvalid naming line and byte offset.
  static Result<std::shared_ptr<TimingCache>> parse(std::string_view bytes, std::string device_signature,
                                                    Logger& logger, bool strict = false,
                                                    std::vector<std::string>* damaged = nullptr);
  /// Reads a file; a missing or empty one gives an empty cache. Also takes in the crash journal `path.journal`: tactics
  /// that a dead process was trying are quarantined by name (a warning each). And compiled code, from `path.code`.
  static Result<std::shared_ptr<TimingCache>> load(const std::filesystem::path& path, std::string device_signature,
                                                   Logger& logger, bool strict = false);
  /// Merges with what is on disk and replaces the file: lock file `path.lock`, temporary file, fsync, rename. Entries
  /// of this cache win, but those that it only loaded from `path` yield to later edits of the file, and a quarantine on
  /// disk stays unless this cache knew of it and measured again. Entries that others added meanwhile are kept, entries
  /// that erase or reset took away stay away. The lock dies with its holder, so none is ever stale; a living holder is
  /// waited for at most 30 s, then kIo names it. Temporary files of dead writers are removed. kVersion, and the file
  /// stays, if it is of another format version. Writes `path.code` likewise, if there is compiled code that it does not
  /// have; what goes wrong with that costs a warning only.
  Status save(const std::filesystem::path& path, Logger& logger) const;

  /// The file's text: header, choices by key, measurements by key/kernel/combo/tactic, graphs by key, then lines of
  /// unknown kinds as they were. Equal caches give equal text.
  std::string serialize() const;

  // --- the published interface, over choices ---
  CacheValue query(Hash128 key) const;  ///< an absent key gives an invalid value
  /// Copies at most `capacity` keys, in order; returns how many there are.
  std::size_t query_keys(Hash128* out, std::size_t capacity) const;
  /// Absent key: false. NaN time: deletes the choice, true. Valid value: overwrites tactic and time, true. Else false.
  /// A tactic that a measurement of the key knows also sets kernel, combo and params; another one clears them.
  bool update(Hash128 key, CacheValue value);
  /// Takes over the other's entries and compiled code; own ones win. Entries for foreign devices are taken only with
  /// `ignore_mismatch`; without it a cache that has any is refused with false. (Another format version never gets this
  /// far: parse and load refuse it.)
  bool combine(const TimingCache& other, bool ignore_mismatch);
  /// Choices and graphs that name a device other than `device_signature`; with "" (no device known) there are none.
  std::size_t foreign_entries(std::string_view device_signature) const;
  void reset();
  // --- beyond it ---
  void insert(const CacheChoice& choice);
  bool pin(Hash128 key, bool pinned);
  bool erase(Hash128 key);  ///< a choice or a graph
  std::optional<CacheChoice> choice(Hash128 key) const;
  /// Choices whose layer is `layer`, or begins with it up to a '+' or '.'.
  std::vector<CacheChoice> choices_of_layer(std::string_view layer) const;
  std::vector<CacheChoice> choices() const;
  std::vector<CacheMeasurement> measurements(Hash128 key) const;
  std::vector<CacheMeasurement> all_measurements() const;
  std::vector<CacheMeasurement> quarantines() const;  ///< of all keys
  void record(const CacheMeasurement& measurement);   ///< replaces the one of equal key, combo, kernel and tactic
  std::optional<CacheGraph> graph(Hash128 key) const;
  std::vector<CacheGraph> graphs() const;
  void record(const CacheGraph& graph);  ///< replaces the one of equal key; left out if its line would be too long
  std::string device_signature() const;

  /// What kernels have compiled. Of no site, so erase and reset leave it alone; not in serialize's text. It lives as
  /// long as the cache.
  CodeStore& code() const;

  struct Impl;  ///< core/tuner/timing_cache_impl.h

 private:
  std::shared_ptr<Impl> impl_;
};

/// The crash journal of a cache file: one synced line before each tactic that was never tried, removed after it. Any
/// number of processes share the file; a line names its process, so that load can tell the dead ones.
///
/// Thread rule: one thread; every Tuner has its own.
class CrashJournal {
 public:
  /// `path` empty: does nothing.
  explicit CrashJournal(std::filesystem::path path) : path_(std::move(path)) {}
  ~CrashJournal();  ///< ends, and removes the file if no process has a line in it
  CrashJournal(const CrashJournal&) = delete;
  CrashJournal& operator=(const CrashJournal&) = delete;
  Status begin(const CacheMeasurement& about_to_try);  ///< ends the one before
  void end();

 private:
  std::filesystem::path path_;
  std::string line_;      ///< in the file now; empty: none
  bool created_ = false;  ///< this object has written the file
};

}  // namespace tenon
