// Random small networks for tests of rules: whatever a rule may look for, next to what only looks like it.
#ifndef TENON_TESTS_FUSION_RANDOM_NETWORK_H
#define TENON_TESTS_FUSION_RANDOM_NETWORK_H

#include <cstdint>
#include <vector>

#include "tests/fusion/network_maker.h"

namespace tenon::fusion {

/// The seed decides everything; same recipe, same network, on every machine.
struct Recipe {
  std::uint64_t seed = 0;
  std::vector<int>
      steps;  ///< numbers of the steps that are made; fewer of them give a smaller network of the same kind
};

/// The recipe with all steps of a seed.
Recipe recipe_of(std::uint64_t seed);

struct RandomNetwork {
  Network network;
  std::int64_t min_batch = 1, max_batch = 1;  ///< differ if the network has a profile: axis 0 of the inputs varies
};

/// Throws if an op refuses what the generator gives it. With dtype f64 the same network on doubles.
RandomNetwork make_random_network(const Library& library, const Recipe& recipe, std::int32_t dtype = TN_F32);

/// Numbers from -1 to 1, the same on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ull + 0x2545F4914F6CDD1Dull) {}
  std::uint64_t bits() {  // splitmix64 (Steele, Lea, Flood 2014)
    state_ += 0x9E3779B97F4A7C15ull;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  /// From 0 to below n.
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(n)); }
  std::int64_t between(std::int64_t low, std::int64_t high) { return low + below(high - low + 1); }
  bool chance(int percent) { return below(100) < percent; }
  double number(double low, double high) {
    return low + (high - low) * static_cast<double>(bits() >> 11) / 9007199254740992.0;  // 2^53
  }
  template <class T>
  const T& one_of(const std::vector<T>& all) {
    return all[static_cast<std::size_t>(below(static_cast<std::int64_t>(all.size())))];
  }
  std::vector<float> numbers(std::int64_t count, double low, double high) {
    std::vector<float> result(static_cast<std::size_t>(count));
    for (float& value : result) value = static_cast<float>(number(low, high));
    return result;
  }

 private:
  std::uint64_t state_;
};

}  // namespace tenon::fusion

#endif  // TENON_TESTS_FUSION_RANDOM_NETWORK_H
