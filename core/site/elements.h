// Single elements of any dtype as double, and tensors in the dtypes that references compute in.
#pragma once

#include <cstdint>
#include <memory>

#include <tenon/status.hpp>

#include "core/graph/tensor.h"

namespace tenon {

/// Element number `index` of packed data; 0 for dtypes without plain elements. 64-bit integers beyond 2^53 are rounded.
double load_element(const void* data, std::int32_t dtype, std::int64_t index);
/// Stores a value: rounded for floating dtypes, truncated for integers. REQUIRES: it is in the dtype's range.
void store_element(void* data, std::int32_t dtype, std::int64_t index, double value);

/// The tensor as references see it, of reference_dtype().
Result<std::shared_ptr<const HostTensor>> widen_for_reference(const std::shared_ptr<const HostTensor>& tensor);

}  // namespace tenon
