// Bench: one candidate outside an engine, run, compared with the reference and timed; for tuner and tests.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tenon/status.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "core/site/instance.h"
#include "core/site/run_once.h"

namespace tenon {

/// What the benches of one site share: a stream with the library handles on it, and the inputs.
class BenchSetting {
 public:
  /// `inputs`: on the host, row-major, one for each input of the site; empty where it is absent.
  static Result<std::shared_ptr<BenchSetting>> create(std::shared_ptr<const Site> site, std::shared_ptr<Device> device,
                                                      std::vector<std::shared_ptr<const HostTensor>> inputs);

 private:
  friend class Bench;
  /// Bytes of an input as they lie in memory in a format; converted once.
  const std::vector<char>& bytes(std::size_t input, std::int32_t dtype, const TnFormat& format);
  /// Makes the device's cache hold what it would in a network: nothing of the site, or its inputs but not its weights.
  Status chill(const std::vector<DeviceBuffer>& inputs);

  std::shared_ptr<const Site> site_;
  std::shared_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::vector<std::shared_ptr<const HostTensor>> inputs_;
  std::map<std::tuple<std::size_t, std::int32_t, std::string>, std::vector<char>> bytes_;
  bool cold_ = false;         ///< the site is large against the device's cache: it is timed with a cold one
  bool warm_inputs_ = false;  ///< but for the inputs, which the layer before has just written
  DeviceBuffer flush_;        ///< twice the cache; empty if not cold
};

/// A candidate with memory to run it: packed, initialized, inputs in the combo's formats, outputs poisoned.
class Bench {
 public:
  static Result<std::unique_ptr<Bench>> create(const Candidate& candidate, std::shared_ptr<BenchSetting> setting);
  ~Bench();
  /// Enqueues once on the bench's stream and waits.
  Status run();
  /// Milliseconds per run of `repeats` runs in a row: on the host by the clock, on a GPU by events around launches that
  /// were recorded as a whole, so that the time to launch does not count. Large sites run with a cold cache instead,
  /// each run between its own events.
  Result<double> ms_per_run(int repeats);
  /// The same of very few runs that are not recorded: on a GPU short ones seem to take as long as their launch.
  Result<double> quick_ms();
  /// Kernels, copies and fills of one run, as counted where it was recorded; 1 where it cannot be.
  Result<int> launches();
  /// Fills the outputs with NaN bytes (0xFF).
  Status poison();
  /// Compares the outputs with the samples; kInternal names the first element that is out of tolerance, with index,
  /// expected and found.
  Status compare(const std::vector<ReferenceSample>& samples, const TnTolerance& tolerance);
  /// An output on the host, row-major.
  Result<std::shared_ptr<const HostTensor>> output(std::uint32_t index);
  const Instance& instance() const;
  Stream& stream();

 private:
  Bench();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon
