#include "core/tuner/crash_journal.h"

#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <string_view>

#include "core/tuner/cache_line.h"

namespace tenon {
namespace {

struct JournalEntry {
  CacheMeasurement tactic;
  ProcessIdentity process;
};

std::optional<JournalEntry> parse_journal_line(std::string_view line) {
  const auto fields = parse_flow_line(line);
  if (!fields.ok()) return std::nullopt;
  FlowReader reader(*fields);
  JournalEntry entry;
  reader.take("trying", &entry.tactic.key);
  read_candidate(&reader, &entry.tactic);
  reader.require("pid");
  reader.take_number("pid", &entry.process.pid);
  reader.take_number("started", &entry.process.started);
  reader.take("host", &entry.process.host);
  reader.take("boot", &entry.process.boot);
  reader.take("pid_space", &entry.process.pid_space);
  reader.take_number("time", &entry.process.time);
  if (!reader.finish().ok()) return std::nullopt;
  entry.tactic.kind = CacheMeasurement::Kind::kQuarantined;
  entry.tactic.reason =
      "process " + std::to_string(entry.process.pid) + " on " + entry.process.host + " died while trying it";
  return entry;
}

template <class Visit>
void for_each_line(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    visit(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

/// Leaves `lines` in an open journal. Journals are a few lines, and a torn one costs a line, so they are rewritten in
/// place: renaming would pull the file away under others that wait for its lock.
Status rewrite(LockedFile* journal, const std::string& lines, const std::filesystem::path& path) {
  if (::lseek(journal->descriptor(), 0, SEEK_SET) != 0) return {Code::kIo, "cannot rewrite " + path.string()};
  TENON_RETURN_IF_ERROR(write_all(journal->descriptor(), lines, path));
  if (::ftruncate(journal->descriptor(), static_cast<off_t>(lines.size())) != 0) {
    return {Code::kIo, "cannot shorten " + path.string()};
  }
  return {};
}

}  // namespace

std::string journal_line(const CacheMeasurement& about_to_try, const ProcessIdentity& process) {
  FlowWriter writer;
  writer.add("trying", about_to_try.key);
  write_candidate(about_to_try, &writer);
  writer.add_number("pid", process.pid).add_number("started", process.started).add_quoted("host", process.host);
  writer.add_quoted("boot", process.boot).add_quoted("pid_space", process.pid_space);
  return writer.add_number("time", process.time).line();
}

std::vector<CacheMeasurement> dead_tactics(const std::string& journal_text) {
  std::vector<CacheMeasurement> dead;
  for_each_line(journal_text, [&](std::string_view line) {
    const auto entry = parse_journal_line(line);
    if (entry && is_gone(entry->process)) dead.push_back(entry->tactic);
  });
  return dead;
}

Status clean_journal(LockedFile* journal, const std::filesystem::path& path) {
  TENON_ASSIGN(const std::string text, read_all(journal->descriptor(), path));
  std::string kept;
  for_each_line(text, [&](std::string_view line) {
    const auto entry = parse_journal_line(line);
    if (entry && !is_gone(entry->process)) kept += std::string(line) + "\n";
  });
  if (kept.empty()) {
    journal->remove();
    return {};
  }
  return rewrite(journal, kept, path);
}

Status CrashJournal::begin(const CacheMeasurement& about_to_try) {
  if (path_.empty()) return {};
  end();
  const std::string line = journal_line(about_to_try, this_process());
  TENON_ASSIGN(LockedFile journal, LockedFile::open(path_, kLockPatience));
  if (::lseek(journal.descriptor(), 0, SEEK_END) < 0) return {Code::kIo, "cannot write " + path_.string()};
  TENON_RETURN_IF_ERROR(write_all(journal.descriptor(), line + "\n", path_));
  line_ = line;
  if (::fdatasync(journal.descriptor()) != 0) return {Code::kIo, "cannot sync " + path_.string()};
  if (!created_) sync_folder_of(path_);
  created_ = true;
  return {};
}

CrashJournal::~CrashJournal() {
  end();
  if (!created_) return;
  auto journal = LockedFile::open(path_, kLockPatience);
  if (!journal.ok()) return;
  const auto text = read_all(journal->descriptor(), path_);
  if (text.ok() && text->empty()) journal->remove();
}

void CrashJournal::end() {
  if (line_.empty()) return;
  const std::string own = std::exchange(line_, std::string());
  auto journal = LockedFile::open(path_, kLockPatience);
  if (!journal.ok()) return;  // no harm: the line is this living process's; the next load after its end removes it
  const auto text = read_all(journal->descriptor(), path_);
  if (!text.ok()) return;
  std::string kept;
  for_each_line(*text, [&](std::string_view line) {
    if (line != own) kept += std::string(line) + "\n";
  });
  static_cast<void>(rewrite(&*journal, kept, path_));
}

}  // namespace tenon
