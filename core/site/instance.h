// Instance: one kernel configured for one site, through its whole lifecycle. Used by the tuner, by the builder and by
// engines, so that all three run kernels in exactly the same way.
//
// Thread rule: enqueue and set_shapes are const and may run at once with different exec memory; the rest is
// single-threaded.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tenon/plugin/kernel.h>
#include <tenon/status.hpp>

#include "core/site/candidate.h"
#include "core/site/site.h"

namespace tenon {

class Instance {
 public:
  /// configure. kDeclined if the kernel no longer offers the tactic.
  static Result<std::unique_ptr<Instance>> configure(std::shared_ptr<const Site> site, const Candidate& candidate);
  /// From serialize's bytes; falls back to configure if the kernel has no deserialize. `revision` as recorded.
  static Result<std::unique_ptr<Instance>> deserialize(std::shared_ptr<const Site> site, const Candidate& candidate,
                                                       std::uint32_t revision, const std::vector<std::uint8_t>& bytes);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  const Candidate& candidate() const { return candidate_; }
  const Site& site() const { return *site_; }
  const TnSizes& sizes() const { return sizes_; }

  /// `device` outlives the instance. Packs constants into `persistent` (sizes().persistent bytes, 256-aligned) unless
  /// `filled`. Constants are those of the site; `device_constants` are the same in device memory, one per input (null
  /// if not constant).
  Status initialize(Device& device, Stream& stream, void* persistent, bool filled,
                    const std::vector<void*>& device_constants);
  Status set_shapes(const TnExec& exec, const TnTensor* inputs, const TnTensor* outputs) const;
  /// Launches the kernel, then the epilogue if the kernel does not apply it itself.
  Status enqueue(const TnExec& exec, const TnTensor* inputs, const TnTensor* outputs) const;
  Result<std::vector<std::uint8_t>> serialize() const;

 private:
  Instance(std::shared_ptr<const Site> site, const Candidate& candidate);
  Status apply_epilogue(const Expression& epilogue, const TnTensor* inputs, const TnTensor& tensor,
                        const TnExec& exec) const;
  std::string where(const char* call) const;
  Status read_sizes();

  std::shared_ptr<const Site> site_;
  Candidate candidate_;
  TnInst* inst_ = nullptr;
  bool configured_ = false;
  bool initialized_ = false;
  TnSizes sizes_{};
  Device* device_ = nullptr;  ///< that it was initialized on
};

}  // namespace tenon
