// Streams: which layers run beside each other, and whether that pays.
//
// Thread rule: as build.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include <tenon/status.hpp>

#include "core/builder/builder.h"
#include "core/builder/selection.h"

namespace tenon {

struct StreamProblem {
  std::vector<double> ms;                       ///< of each layer
  std::vector<std::vector<std::size_t>> needs;  ///< layers before it whose results it reads
};

struct StreamAssignment {
  std::vector<int> streams;  ///< of each layer; the first one that is used is 0
  int count = 1;
  double ms = 0;  ///< until the last layer ends, if layers of several streams did not slow each other down
};

/// Gives every layer, in order, the stream on which it can begin first. A chain stays on its stream; where branches
/// begin, the one on the longest way to the end keeps the stream, and a short one stays if moving takes longer than it
/// does; where they end, the result continues on the stream of the one that ends last.
StreamAssignment assign_streams(const StreamProblem& problem, int most);

/// Sets the plan of *output to what the graph's line of the timing cache says about streams or, where this build
/// decides anew, to the number of streams (BuildOptions::max_streams at most) with which whole runs are fastest, more
/// than one only if that is faster beyond noise. It decides anew if it has `measured` something, may, can (time_plan)
/// and has the time; else there is one stream. Plans whose dims vary have one. Errors: kInvalid for a line that does
/// not fit or asks for more streams than the options allow, cancelled. REQUIRES: output holds the selection's plan.
Status choose_streams(const Graph& graph, const BuildOptions& options, std::chrono::duration<double> so_far,
                      bool measured, const Selection& selection, BuildOutput* output);

}  // namespace tenon
