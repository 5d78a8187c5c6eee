// What reader and writer of the plan section agree on beyond the schema.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon {

/// Bulky bytes begin at multiples of this in the constants section: what DeviceBuffer promises kernels, so that a
/// mapped file can take the place of device memory on a CPU.
inline constexpr std::uint64_t kBlobAlignment = 256;

/// FlatBuffers addresses its buffer with signed 32-bit offsets.
inline constexpr std::uint64_t kLargestPlanSection = (std::uint64_t{1} << 31) - 2;

/// Subgraphs of control-flow nodes have no place in format version 1.
inline constexpr const char* kGraphAttribute =
    "attributes that hold a graph (control flow) cannot be stored in an engine";

constexpr std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

}  // namespace tenon
