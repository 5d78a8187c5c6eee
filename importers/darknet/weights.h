// Darknet weights: the file, or numbers made up for a cfg that has none.
//
// A file is three 32-bit numbers major, minor, revision; a counter of images seen, of 64 bits if major * 10 + minor >=
// 2 and of 32 bits otherwise; then float32 numbers without gaps, in the order of the cfg. All little-endian.
//
// Thread rule: a Weights is used by one thread at a time.
#ifndef TENON_IMPORTERS_DARKNET_WEIGHTS_H_
#define TENON_IMPORTERS_DARKNET_WEIGHTS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tenon/sdk/importer.hpp>
#include <vector>

#include "importers/darknet/cfg.h"

namespace tenon::darknet {

enum class SeenBits { kAuto, k32, k64 };

struct WeightsHeader {
  int32_t major = 0, minor = 0, revision = 0;
  uint64_t seen = 0;
  int counter_bits = 32;

  uint64_t bytes() const { return 12 + static_cast<uint64_t>(counter_bits) / 8; }
};

// The header of a file. Invalid if the file is shorter than one, or if major or minor lies outside [0, 1000): no
// Darknet ever wrote such a version. (The original takes those for files with transposed connected layers.)
WeightsHeader read_header(const Source& file, SeenBits seen_bits);

// What one section takes from the file.
struct Share {
  const Section* section;
  uint64_t floats;
};

// Checks that `file` holds exactly the header and the shares of all sections. Invalid with the byte counts and the
// section reached; if a counter of the other width would fit exactly, that is said with the option to set.
void check_length(const Source& file, const WeightsHeader& header, const std::vector<Share>& shares);

enum class Part { kBias, kScale, kMean, kVariance, kWeights };

// The numbers, in order.
class Weights {
 public:
  virtual ~Weights() = default;
  // The next `count` floats. `spread` is the standard deviation that suits made-up kWeights. Valid until the Weights is
  // destroyed or (made up) until the next call. Invalid at the end of the file, naming `reached` and byte counts.
  virtual const float* take(Part part, uint64_t count, double spread, const Section& reached) = 0;
  // Invalid if numbers are left over.
  virtual void finish() const = 0;
};

std::unique_ptr<Weights> file_weights(const Source& file, const WeightsHeader& header);

// The same numbers for the same seed and cfg on every machine: weights uniform around 0 with the wanted spread, scales,
// variances and biases such that values neither vanish nor grow through a deep network.
std::unique_ptr<Weights> random_weights(int64_t seed);

}  // namespace tenon::darknet

#endif  // TENON_IMPORTERS_DARKNET_WEIGHTS_H_
