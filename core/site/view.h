// Views: ops that only move tensors (tenon.op.placement/1), as a kernel that has nothing to do where memory is shared.
//
// Thread rule: pure functions; the kernel is as thread-safe as any.
#pragma once

#include <tenon/plugin/ext/placement.h>

#include <cstdint>
#include <tenon/status.hpp>
#include <vector>

#include "core/site/candidate.h"

namespace tenon {

/// One tensor of a node that is, byte for byte, a part of another.
struct Share {
  std::uint32_t input = 0;
  std::uint32_t output = 0;
  bool output_inside = false;  ///< the output lies inside the input; otherwise the input inside the output
  std::uint64_t offset = 0;    ///< bytes from the start of the larger to that of the smaller
};

/// What the op says about a node: which tensor lies where in which. kDeclined if it does not tell.
Result<std::vector<TnPlacement>> placements_of(const OpRef& op, const SiteDesc& desc);

/// What the tensors of a node share in the formats of a combo. kDeclined if the op does not tell, or if a part is not
/// contiguous there.
Result<std::vector<Share>> shares_of(const OpRef& op, const SiteDesc& desc, const Combo& combo);

/// Adds the view kernel for every combo of the enumeration's candidates in which it works.
void add_views(const Site& site, const OpRef& op, Enumeration* enumeration);

/// The kernel "<op>.view": it copies what does not share memory yet. `device` outlives it.
KernelRef view_kernel(const OpRef& op, Device& device);
bool is_view_kernel(const KernelRef& ref);
/// REQUIRES: is_view_kernel(ref).
const OpRef& op_of_view(const KernelRef& ref);

/// What layout assignment takes a view to cost, in ms: nothing, but for a number that divides.
inline constexpr double kViewMs = 1e-6;

}  // namespace tenon
