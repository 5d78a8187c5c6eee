// Reading and writing timing cache files: damage, many writers, and what the crash journal left.
#include <algorithm>

#include "core/tuner/cache_line.h"
#include "core/tuner/crash_journal.h"
#include "core/tuner/locked_file.h"
#include "core/tuner/timing_cache_impl.h"

namespace tenon {
namespace {

std::string_view trimmed(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t first = line.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(kBlank) - first + 1);
}

constexpr std::string_view kStart = "- {";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// A file in which nothing looks like a timing cache is somebody's other file: saving would destroy it. A damaged cache
/// still begins like one, or has entries further on.
Status refuse_other_file(std::string_view bytes, const std::string& source) {
  for (const char* entry : {"- {choice: ", "- {measured: ", "- {rejected: ", "- {quarantined: ", "- {graph: "}) {
    if (bytes.find(entry) != std::string_view::npos) return {};
  }
  std::string_view rest = bytes;
  if (rest.substr(0, kByteOrderMark.size()) == kByteOrderMark) rest.remove_prefix(kByteOrderMark.size());
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = trimmed(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (line.empty() || line[0] == '#') continue;
    const std::size_t common = std::min(line.size(), kStart.size());
    if (line.substr(0, common) == kStart.substr(0, common)) return {};
    return {Code::kInvalid, source + " is not a timing cache, so it is left as it is: its first line is not \"" +
                                header_line() + "\"; name another file, or delete this one"};
  }
  return {};
}

/// Reads the lines of a file into entries, and says which are damaged.
class TextReader {
 public:
  TextReader(std::string source, Logger& logger) : source_(std::move(source)), logger_(logger) {}

  Status read(std::string_view bytes, bool strict) {
    std::string_view rest = bytes;
    if (rest.substr(0, kByteOrderMark.size()) == kByteOrderMark) rest.remove_prefix(kByteOrderMark.size());
    while (!rest.empty()) {
      ++number_;
      offset_ = bytes.size() - rest.size();
      const std::size_t end = rest.find('\n');
      const std::string_view line = trimmed(rest.substr(0, end));
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
      if (line.empty() || line[0] == '#') continue;
      const Status status = take(line);
      if (status.ok()) continue;
      if (status.code() == Code::kVersion) return status;
      TENON_RETURN_IF_ERROR(damage(status.message(), strict));
      TENON_RETURN_IF_ERROR(recover(line));
    }
    if (number_ != 0 && !has_header_ && damaged.empty()) {
      number_ = 1;
      offset_ = 0;
      TENON_RETURN_IF_ERROR(damage("the header \"" + header_line() + "\" is missing", strict));
    }
    return {};
  }

  CacheEntries entries;
  std::vector<std::string> damaged;

 private:
  std::string where() const {
    return source_ + ", line " + std::to_string(number_) + " (byte " + std::to_string(offset_) + ")";
  }

  Status damage(const std::string& reason, bool strict) {
    const std::string text = where() + " is damaged: " + reason;
    if (strict) return {Code::kInvalid, text + "; repair or delete the line, or build without the frozen cache"};
    damaged.push_back(text);
    logger_.warning(text + "; it is skipped");
    return {};
  }

  /// kVersion for a header of another version; kInvalid for what is no entry.
  Status take(std::string_view line) {
    std::vector<std::string> unknown;
    TENON_ASSIGN(const CacheLine parsed, parse_cache_line(line, &unknown));
    for (const std::string& field : unknown) logger_.warning(where() + ": unknown field " + field + " ignored");
    if (const auto* header = std::get_if<CacheHeader>(&parsed)) {
      if (header->version != kCacheFormatVersion) {
        return {Code::kVersion, where() + ": timing cache of format version " + std::to_string(header->version) +
                                    ", expected " + std::to_string(kCacheFormatVersion) +
                                    "; use another file or the version of Tenon that wrote it"};
      }
      has_header_ = true;
    } else if (const auto* choice = std::get_if<CacheChoice>(&parsed)) {
      entries.choices[choice->key] = {*choice};
    } else if (const auto* measurement = std::get_if<CacheMeasurement>(&parsed)) {
      entries.measurements[id_of(*measurement)] = {*measurement};
    } else if (const auto* graph = std::get_if<CacheGraph>(&parsed)) {
      entries.graphs[graph->key] = {*graph};
    } else {
      entries.add_other(std::get<OtherLine>(parsed).text);
    }
    return {};
  }

  /// A damaged line may hold good entries: a file appended to one without newline, or after a torn line.
  Status recover(std::string_view line) {
    std::size_t begin = line.find(kStart);
    while (begin != std::string_view::npos) {
      const std::size_t end = line.find(kStart, begin + 1);
      const std::string_view piece = trimmed(line.substr(begin, end == std::string_view::npos ? end : end - begin));
      if (piece.size() != line.size()) {
        const Status status = take(piece);
        if (status.code() == Code::kVersion) return status;
      }
      begin = end;
    }
    return {};
  }

  std::string source_;
  Logger& logger_;
  std::size_t number_ = 0;
  std::size_t offset_ = 0;
  bool has_header_ = false;
};

/// The file's bytes; none if there is no file. Fails for a file that is no timing cache.
Result<std::string> read_cache_file(const std::filesystem::path& path, const std::string& source) {
  auto bytes = read_file(path);
  if (!bytes.ok())
    return bytes.status().code() == Code::kNotFound ? Result<std::string>(std::string()) : bytes.status();
  // Saving would replace it: by root, /dev/null too.
  std::error_code ignored;
  if (std::filesystem::is_other(path, ignored)) {
    return Status(Code::kInvalid, source + " is a device or pipe; give the path of a file");
  }
  TENON_RETURN_IF_ERROR(refuse_other_file(*bytes, source));
  return bytes;
}

/// A file before and after a cache is merged into it.
struct Merge {
  std::string before, after;
  std::uint64_t moment = 0;  // of the cache, as Impl::saved_to takes it
};

Result<Merge> merge_with_file(TimingCache::Impl* impl, const std::filesystem::path& path, Logger& logger) {
  Merge merge;
  TENON_ASSIGN(merge.before, read_cache_file(path, path.string()));
  bool reported = false;  // damage was, when the cache was loaded from this file
  {
    const std::lock_guard guard(impl->mutex);
    reported = impl->origin == path;
  }
  TENON_ASSIGN(const CacheEntries disk,
               parse_cache_text(merge.before, path.string(), reported ? null_logger() : logger, false, nullptr));
  const std::lock_guard guard(impl->mutex);
  merge.after = impl->merged_with(disk, path).text();
  merge.moment = impl->clock;
  return merge;
}

/// Merges the cache into the file and writes it, if that changes anything. REQUIRES: the lock is held.
Status merge_into_file(TimingCache::Impl* impl, const std::filesystem::path& path, Logger& logger) {
  remove_leftovers(path);
  TENON_ASSIGN(const Merge merge, merge_with_file(impl, path, logger));
  if (merge.after != merge.before) TENON_RETURN_IF_ERROR(replace_file(path, merge.after));
  const std::lock_guard guard(impl->mutex);
  impl->saved_to(path, merge.moment);
  return {};
}

Result<LockedFile> lock_for_writing(const std::filesystem::path& path) {
  TENON_ASSIGN(LockedFile lock, LockedFile::open(with_suffix(path, ".lock"), kLockPatience));
  lock.write_holder();
  return lock;
}

/// Turns what dead processes were trying into quarantine lines of the file, then takes it out of the journal; in this
/// order, so that no crash in between loses one.
Status take_in_journal(TimingCache::Impl* impl, const std::filesystem::path& path, Logger& logger) {
  const std::filesystem::path journal_path = with_suffix(path, ".journal");
  const auto glimpse = read_file(journal_path);
  if (!glimpse.ok()) return glimpse.status().code() == Code::kNotFound ? Status() : glimpse.status();
  std::vector<CacheMeasurement> dead = dead_tactics(*glimpse);
  const auto quarantine = [&] {
    const std::lock_guard guard(impl->mutex);
    for (const CacheMeasurement& tactic : dead) impl->put(tactic);
  };
  quarantine();
  for (const CacheMeasurement& tactic : dead) {
    logger.warning("tactic " + to_text(tactic.tactic) + " (" + tactic.kernel + " " + tactic.params + ", " +
                   tactic.combo + ") of key " + to_text(tactic.key) + " is quarantined: " + tactic.reason +
                   "; tune again with --retune to give it another chance");
  }
  if (dead.empty()) return {};
  TENON_ASSIGN(LockedFile lock, lock_for_writing(path));
  TENON_ASSIGN(LockedFile journal, LockedFile::open(journal_path, kLockPatience));
  TENON_ASSIGN(const std::string text, read_all(journal.descriptor(), journal_path));
  dead = dead_tactics(text);
  quarantine();
  TENON_RETURN_IF_ERROR(merge_into_file(impl, path, logger));
  TENON_RETURN_IF_ERROR(clean_journal(&journal, journal_path));
  lock.remove();
  return {};
}

}  // namespace

Result<CacheEntries> parse_cache_text(std::string_view bytes, const std::string& source, Logger& logger, bool strict,
                                      std::vector<std::string>* damaged) {
  TextReader reader(source, logger);
  TENON_RETURN_IF_ERROR(reader.read(bytes, strict));
  if (damaged != nullptr) *damaged = std::move(reader.damaged);
  return std::move(reader.entries);
}

Result<std::shared_ptr<TimingCache>> TimingCache::load(const std::filesystem::path& path, std::string device_signature,
                                                       Logger& logger, bool strict) {
  const std::filesystem::path target = resolve_links(path);
  const auto bytes = read_cache_file(target, path.string());
  if (!bytes.ok()) return bytes.status().with_context("timing cache");
  auto cache = std::make_shared<TimingCache>(std::move(device_signature));
  TENON_ASSIGN(cache->impl_->entries, parse_cache_text(*bytes, path.string(), logger, strict, nullptr));
  cache->impl_->origin = target;
  cache->impl_->code.load(with_suffix(target, ".code"), logger);
  const Status journal = take_in_journal(cache->impl_.get(), target, logger);
  if (!journal.ok()) logger.warning("the crash journal is left as it is: " + journal.message());
  return cache;
}

Status TimingCache::save(const std::filesystem::path& path, Logger& logger) const {
  const std::filesystem::path target = resolve_links(path);
  auto lock = lock_for_writing(target);
  if (!lock.ok()) {
    // In a folder that is read-only, a cache that the file holds already is as good as saved.
    const auto merge = merge_with_file(impl_.get(), target, null_logger());
    if (merge.ok() && merge->after == merge->before && !merge->before.empty()) return {};
    return lock.status().with_context("timing cache");
  }
  const Status merged = merge_into_file(impl_.get(), target, logger);
  if (merged.ok()) {
    const Status kept = impl_->code.save(with_suffix(target, ".code"), logger);
    if (!kept.ok()) logger.warning("compiled code is not kept: " + kept.message());
  }
  lock->remove();
  return merged.with_context("timing cache");
}

}  // namespace tenon
