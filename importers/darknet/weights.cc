#include "importers/darknet/weights.h"

#include <cmath>
#include <cstring>
#include <deque>
#include <utility>

namespace tenon::darknet {
namespace {

constexpr uint64_t kFloat = sizeof(float);

uint64_t little_endian(const unsigned char* bytes, int count) {
  uint64_t value = 0;
  for (int n = count - 1; n >= 0; --n) value = value << 8 | bytes[n];
  return value;
}

std::string describe(const WeightsHeader& header) {
  return text("version ", header.major, ".", header.minor, ".", header.revision, ", ", header.counter_bits,
              "-bit counter");
}

// "layer 3, x.cfg:12: [convolutional] (layer 3)" without the trailing colon.
std::string place_of(const Section& section) {
  const std::string place = section.place(section.line);
  return place.substr(0, place.size() - 2);
}

class FileWeights final : public Weights {
 public:
  FileWeights(const Source& file, const WeightsHeader& header) : file_(file), at_(header.bytes()) {}

  const float* take(Part, uint64_t count, double, const Section& reached) override {
    const uint64_t left = file_.size() - at_;
    if (count > left / kFloat) {
      throw Invalid(text(file_.name(), ": the file ends inside ", place_of(reached), ": it needs ", count,
                         " more floats (", count * kFloat, " bytes) at byte ", at_, ", found ", left, " of ",
                         file_.size(), " bytes left; are these the weights of this cfg, and complete?"));
    }
    const void* bytes = file_.map(at_, count * kFloat);
    at_ += count * kFloat;
    if (reinterpret_cast<uintptr_t>(bytes) % alignof(float) == 0) return static_cast<const float*>(bytes);
    std::vector<float>& copy = copies_.emplace_back(count);
    std::memcpy(copy.data(), bytes, count * kFloat);
    return copy.data();
  }

  void finish() const override {
    if (at_ != file_.size()) {
      throw Invalid(text(file_.name(), ": ", file_.size() - at_, " of ", file_.size(),
                         " bytes are left over after the last layer; are these the weights of this cfg?"));
    }
  }

 private:
  Source file_;
  uint64_t at_;
  std::deque<std::vector<float>> copies_;  // of what lies at odd addresses
};

class RandomWeights final : public Weights {
 public:
  explicit RandomWeights(int64_t seed) : state_(static_cast<uint64_t>(seed)) {}

  const float* take(Part part, uint64_t count, double spread, const Section&) override {
    // Uniform numbers of standard deviation s span [-s * sqrt(3), s * sqrt(3)].
    switch (part) {
      case Part::kBias:
        return fill(count, -0.1, 0.1);
      case Part::kScale:
        return fill(count, 0.8, 1.2);
      case Part::kMean:
        return fill(count, -0.1, 0.1);
      case Part::kVariance:
        return fill(count, 0.8, 1.2);
      case Part::kWeights:
        break;
    }
    return fill(count, -spread * std::sqrt(3.0), spread * std::sqrt(3.0));
  }
  void finish() const override {}

 private:
  const float* fill(uint64_t count, double least, double most) {
    values_.resize(count);
    for (float& value : values_) {
      // SplitMix64 (Steele, Lea, Flood 2014); the upper 24 bits fill a float.
      uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
      z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
      z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
      z ^= z >> 31;
      value = static_cast<float>(least + (most - least) * static_cast<double>(z >> 40) / 16777216.0);
    }
    return values_.data();
  }

  uint64_t state_;
  std::vector<float> values_;
};

}  // namespace

WeightsHeader read_header(const Source& file, SeenBits seen_bits) {
  constexpr uint64_t kVersionBytes = 12;
  const auto too_short = [&](uint64_t needed) {
    return Invalid(text(file.name(), ": not a Darknet weights file: expected at least the ", needed,
                        " bytes of a header, found ", file.size()));
  };
  if (file.size() < kVersionBytes) throw too_short(kVersionBytes + 4);
  const auto* bytes = static_cast<const unsigned char*>(file.map(0, kVersionBytes));
  WeightsHeader header;
  header.major = static_cast<int32_t>(little_endian(bytes, 4));
  header.minor = static_cast<int32_t>(little_endian(bytes + 4, 4));
  header.revision = static_cast<int32_t>(little_endian(bytes + 8, 4));
  const auto plausible = [](int32_t number) { return number >= 0 && number < 1000; };
  if (!plausible(header.major) || !plausible(header.minor)) {
    throw Invalid(text(file.name(), ": not a Darknet header: expected major and minor version of 0 to 999, found ",
                       header.major, " and ", header.minor));
  }
  header.counter_bits = seen_bits == SeenBits::kAuto ? (header.major * 10 + header.minor >= 2 ? 64 : 32)
                        : seen_bits == SeenBits::k64 ? 64
                                                     : 32;
  if (file.size() < header.bytes()) throw too_short(header.bytes());
  header.seen =
      little_endian(static_cast<const unsigned char*>(file.map(kVersionBytes, header.bytes() - kVersionBytes)),
                    header.counter_bits / 8);
  return header;
}

void check_length(const Source& file, const WeightsHeader& header, const std::vector<Share>& shares) {
  uint64_t floats = 0;
  for (const Share& share : shares) floats += share.floats;
  const uint64_t expected = header.bytes() + floats * kFloat;
  if (file.size() == expected) return;

  const bool longer = file.size() > expected;
  std::string message =
      text(file.name(), ": expected ", expected, " bytes (a header of ", header.bytes(), " bytes, ", describe(header),
           ", and ", floats, " floats), found ", file.size(), ": ",
           longer ? file.size() - expected : expected - file.size(), " bytes too ", longer ? "long" : "short");
  if (longer) {
    message += "; all layers were reached";
    if (!shares.empty()) message += ", the last is " + place_of(*shares.back().section);
  }
  uint64_t end = header.bytes();
  for (const Share& share : shares) {
    const uint64_t begin = end;
    end += share.floats * kFloat;
    if (end <= file.size()) continue;
    message += text("; the file ends in ", place_of(*share.section), ", whose ", share.floats, " floats are bytes ",
                    begin, " to ", end);
    break;
  }
  // A counter of the other width explains exactly 4 bytes too many or too few.
  WeightsHeader other = header;
  other.counter_bits = 96 - header.counter_bits;
  const bool fits = file.size() == other.bytes() + floats * kFloat;
  throw Invalid(message + (fits ? text(". A ", other.counter_bits,
                                       "-bit counter would fit exactly: set the option "
                                       "seen_bits=",
                                       other.counter_bits, " if the header is wrong")
                                : ". Is the file complete, and are these the weights of this cfg?"));
}

std::unique_ptr<Weights> file_weights(const Source& file, const WeightsHeader& header) {
  return std::make_unique<FileWeights>(file, header);
}

std::unique_ptr<Weights> random_weights(int64_t seed) { return std::make_unique<RandomWeights>(seed); }

}  // namespace tenon::darknet
