// What the crash journal's lines look like, and finding those that dead processes left. CrashJournal itself, the
// writer, is declared in timing_cache.h.
#pragma once

#include <filesystem>
#include <string>
#include <tenon/status.hpp>
#include <vector>

#include "core/tuner/locked_file.h"
#include "core/tuner/process_identity.h"
#include "core/tuner/timing_cache.h"

namespace tenon {

/// `- {trying: 0xKEY, combo: ..., kernel: ..., tactic: ..., pid: ..., ...}`
std::string journal_line(const CacheMeasurement& about_to_try, const ProcessIdentity& process);

/// The tactics that dead processes were trying, as quarantined measurements. Lines that are no entries are skipped.
std::vector<CacheMeasurement> dead_tactics(const std::string& journal_text);

/// Takes the lines of dead processes and those that are no entries out of an open journal, which is removed if nothing
/// is left.
Status clean_journal(LockedFile* journal, const std::filesystem::path& path);

}  // namespace tenon
