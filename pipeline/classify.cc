#include "pipeline/classify.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tenon::pipeline {

std::vector<ClassScore> top_classes(std::span<const float> probabilities, int count) {
  std::vector<int> order(probabilities.size());
  std::iota(order.begin(), order.end(), 0);
  const auto end = order.begin() + std::min<std::ptrdiff_t>(std::max(count, 0), std::ssize(order));
  std::partial_sort(order.begin(), end, order.end(), [&](int a, int b) {
    const bool a_is_number = !std::isnan(probabilities[a]);
    const bool b_is_number = !std::isnan(probabilities[b]);
    if (a_is_number != b_is_number) return a_is_number;
    if (a_is_number && probabilities[a] != probabilities[b]) return probabilities[a] > probabilities[b];
    return a < b;
  });
  std::vector<ClassScore> best;
  for (auto it = order.begin(); it != end; ++it) best.push_back({*it, probabilities[*it]});
  return best;
}

}  // namespace tenon::pipeline
