// Networks built with some rules and without, run on the same input, and compared.
#ifndef TENON_TESTS_FUSION_ENGINES_H
#define TENON_TESTS_FUSION_ENGINES_H

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

namespace tenon::fusion {

/// Outputs by name.
using Outputs = std::map<std::string, std::vector<float>>;

struct Difference {
  double l2 = 0;       ///< relative to the length of the expected output, of the output where it is largest
  double largest = 0;  ///< of one element, relative to the largest expected one
  std::string output;  ///< where
};

/// By output; infinite where only one side is NaN, or an output is missing.
using Differences = std::map<std::string, Difference>;
Differences differences(const Outputs& found, const Outputs& expected);

/// The worst of all outputs. Ten times `rounding`, what rounding alone does to each output, does not count.
Difference worst(const Differences& all, const Differences& rounding = {});

/// `tolerance` of l2, ten times as much of one element.
inline bool too_large(const Difference& d, double tolerance) {
  return !(d.l2 <= tolerance && d.largest <= 10 * tolerance);
}

struct Built {
  std::string bytes;
  std::map<std::string, int> fired;  ///< rules of the report with their counts
};

/// A rule that chooses formats, and rewrites nothing.
inline constexpr char kFewestLaunches[] = "tenon.core.fewest_launches/1";

/// Builds and runs with all plugins that are found, on one device. Every warning of a build is an error here: rules
/// that had to be taken back, kernels that were wrong. Mistakes throw.
class Engines {
 public:
  explicit Engines(std::string device);

  /// Sums run in another order, activations by other approximations: about 80 roundings of f32. GPUs have instructions
  /// that approximate more coarsely.
  double tolerance() const { return device_ == "cpu" ? 1e-5 : 1e-4; }
  const Library& library() const { return *library_; }
  /// Ids of everything that may rewrite a network, the core's own included, but for kFewestLaunches.
  const std::vector<std::string>& rules() const { return rules_; }
  /// Every rule but these.
  std::set<std::string> all_but(const std::set<std::string>& kept) const;

  /// Rules that are not disabled apply wherever they match, also those that a build else takes only where they are
  /// faster. Measures as little as a build can: the first kernel that works is taken. `kind` (from 0 to below kKinds)
  /// chooses which kernels take part. No timing cache: sites seldom recur, and a seed should not depend on those before
  /// it.
  Built build(const Network& network, const std::set<std::string>& disabled, int kind = 0);
  static constexpr int kKinds = 3;
  /// Runs on random input, which the seed decides; axis 0 of inputs with a profile is `batch`, if not 0.
  Outputs run(const Built& built, std::uint64_t seed, std::int64_t batch = 0);
  /// The same by the ops' plain references, node by node as the network is, whose inputs are all f32 or all f64.
  Outputs reference(const Network& network, std::uint64_t seed);

 private:
  std::string device_;
  std::string warnings_;
  std::optional<Library> library_;
  std::vector<std::string> rules_;
  std::set<std::string> candidates_;  ///< those of rules_ that a build takes only where they are faster
};

}  // namespace tenon::fusion

#endif  // TENON_TESTS_FUSION_ENGINES_H
