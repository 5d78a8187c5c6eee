// The words in which the tuner tells what it did; the forms are fixed (docs/use.md), for programs that read logs.
#pragma once

#include <string>
#include <vector>

#include "core/tuner/tuner.h"

namespace tenon {

/// "Autotuning op matMul1(key: 0x...):", the table's title, its header, and a row per evaluated tactic, fastest first.
std::vector<std::string> table_lines(const TuneSite& site, const TuneResult& result);
/// "The selected tactic is (tactic hash, cost(in ms)):0x665ded9abbf88, 0.011264"
std::string selection_line(std::uint64_t tactic, double ms);
/// "Writing the best tactic (0x665ded9abbf88) to cache"
std::string writing_line(std::uint64_t tactic);

/// "0x1f (kernel params combo)"
std::string candidate_text(const Candidate& candidate);
/// "layer matMul1 (key 0x...)"
std::string site_text(const TuneSite& site);

}  // namespace tenon
