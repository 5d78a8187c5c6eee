#include "core/tuner/tuning_log.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.h"

namespace tenon {

std::vector<std::string> table_lines(const TuneSite& site, const TuneResult& result) {
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < result.times.size(); ++i) {
    const CandidateTime::State state = result.times[i].state;
    if (state == CandidateTime::State::kMeasured || state == CandidateTime::State::kCached) rows.push_back(i);
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [&](std::size_t a, std::size_t b) { return result.times[a].ms < result.times[b].ms; });
  std::vector<std::string> lines = {
      fmt::format("Autotuning op {}(key: {}):", site.layer, to_text(site.key)),
      "Sorted table of all evaluated tactics:",
      "tactic_id, cost(in ms), cost/fastest_cost, prediction_correlation, kernel_name, tactic_hash, tunable_parameter",
  };
  const double fastest = rows.empty() ? 0 : result.times[rows.front()].ms;
  for (const std::size_t row : rows) {
    const CandidateTime& time = result.times[row];
    const Candidate& candidate = site.enumeration.candidates[row];
    lines.push_back(fmt::format("{}, {:.7f}, {:.5f}, {:.5f}, {}, {}, {}", row, time.ms,
                                fastest > 0 ? time.ms / fastest : 1.0, time.correlation, candidate.kernel.kernel->name,
                                to_text(candidate.hash), candidate.tactic.params));
  }
  return lines;
}

std::string selection_line(std::uint64_t tactic, double ms) {
  return fmt::format("The selected tactic is (tactic hash, cost(in ms)):{}, {:.6f}", to_text(tactic), ms);
}

std::string writing_line(std::uint64_t tactic) {
  return fmt::format("Writing the best tactic ({}) to cache", to_text(tactic));
}

std::string candidate_text(const Candidate& candidate) {
  std::string text = to_text(candidate.hash) + " (" + candidate.kernel.kernel->name;
  if (!candidate.tactic.params.empty()) text += " " + candidate.tactic.params;
  return text + " " + candidate.combo_text + ")";
}

std::string site_text(const TuneSite& site) { return fmt::format("layer {} (key {})", site.layer, to_text(site.key)); }

std::string valid_tactics_text(const TuneSite& site, const TuneResult* result) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < site.enumeration.candidates.size(); ++i) {
    if (result != nullptr) {
      const CandidateTime::State state = result->times[i].state;
      if (state == CandidateTime::State::kRejected || state == CandidateTime::State::kQuarantined ||
          state == CandidateTime::State::kDeclined) {
        continue;
      }
    }
    texts.push_back(candidate_text(site.enumeration.candidates[i]));
  }
  return texts.empty() ? "none" : join(texts);
}

}  // namespace tenon
