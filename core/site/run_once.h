// Inputs and reference results of a site, to which its candidates are compared.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tenon/status.hpp>

#include "core/site/site.h"

namespace tenon {

/// Random inputs of a site on the host, row-major: the op's own generator if it has one, else normal numbers for
/// floating dtypes and small integers for the rest. Constants keep their contents. Same seed, same bytes.
Result<std::vector<std::shared_ptr<const HostTensor>>> make_inputs(const Site& site, const OpRef& op,
                                                                   std::uint64_t seed);

/// Boxes of outputs with the reference's values in them, epilogues applied.
struct ReferenceSample {
  std::uint32_t output = 0;
  TnBox box{};
  std::vector<double> expected;  ///< row-major in the box; integers beyond 2^53 are rounded
};

/// Whole outputs up to 4,096 elements in all, beyond that boxes that cover about 4,096 elements, corners and borders
/// included. Deterministic.
Result<std::vector<ReferenceSample>> sample_reference(const Site& site, const OpRef& op,
                                                      const std::vector<std::shared_ptr<const HostTensor>>& inputs,
                                                      std::uint64_t max_elements = 4096);

/// The op's tolerance for a dtype, or the host's default: f32 1e-5 absolute + 1e-4 relative; f16 1e-3, 1e-2; bf16 1e-2,
/// 5e-2; integers exact.
Result<TnTolerance> tolerance_of(const OpRef& op, const Attrs& attrs, std::int32_t dtype);

}  // namespace tenon
