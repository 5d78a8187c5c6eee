// Layout assignment: which combo every site runs in, so that node times plus reformat times are smallest.
//
// Thread rule: pure functions.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <tenon/status.hpp>

namespace tenon {

/// A site may occur at several nodes; they all take the same option, so that one cache entry describes the choice.
struct LayoutProblem {
  struct Option {
    double ms = 0;
    std::vector<std::string> inputs;   ///< format text of each input; "" if it does not matter (absent, constant)
    std::vector<std::string> outputs;  ///< format text of each output
  };
  struct Node {
    int site = 0;
    std::vector<int> inputs;   ///< values; -1 if it does not matter
    std::vector<int> outputs;  ///< values
  };
  std::vector<std::vector<Option>> sites;  ///< at least one option each
  std::vector<Node> nodes;
  int num_values = 0;           ///< a value that no node produces is row-major
  std::vector<int> row_values;  ///< values that are needed row-major at the end: graph outputs
  /// Milliseconds to convert a value; infinity if nothing can. Called often: remember the answers.
  std::function<double(int value, const std::string& from, const std::string& to)> reformat_ms;
  /// What a conversion costs beyond that: it was timed alone, over and over, with its tensor in the nearest cache and
  /// all threads awake.
  double launch_ms = 0;
};

struct LayoutSolution {
  std::vector<int> options;  ///< one per site
  double ms = 0;             ///< nodes and reformats
};

/// Deterministic: several starts (fastest everywhere; every format preferred everywhere), each improved by changing one
/// site, two neighbours, or many sites to the same formats, until nothing helps; the best wins, ties go to the earlier
/// start. kNotFound if no assignment has a finite time; the message names a node's number.
Result<LayoutSolution> solve_layout(const LayoutProblem& problem);

/// Total time of an assignment; infinity if a needed conversion is impossible.
double layout_ms(const LayoutProblem& problem, const std::vector<int>& options);

}  // namespace tenon
