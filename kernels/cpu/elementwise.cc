#include "kernels/cpu/elementwise.h"

#include "kernels/cpu/internal/elementwise_isa.h"

namespace tenon::cpu {
namespace {

const ElementwiseTable& elementwise_table(Isa isa) {
  return isa == Isa::kAvx512 ? avx512::kElementwiseTable
         : isa == Isa::kAvx2 ? avx2::kElementwiseTable
                             : baseline::kElementwiseTable;
}

}  // namespace

bool comparable(ElementType type) noexcept { return type != ElementType::kF16 && type != ElementType::kBf16; }

void compare(CompareKind kind, ElementType type, const BroadcastShape& shape, const void* a, const void* b, uint8_t* y,
             const Parallel& parallel, Isa isa) noexcept {
  const ElementwiseTable& table = elementwise_table(isa);
  const int64_t size = element_type_size(type);
  for_each_row(shape, parallel, [&](int64_t count, const auto& offsets, const auto& strides, int64_t out) {
    table.compare(kind, type, count, static_cast<const char*>(a) + offsets[0] * size, strides[0],
                  static_cast<const char*>(b) + offsets[1] * size, strides[1], y + out);
  });
}

void where(int element_bytes, const Broadcast<3>& shape, const uint8_t* condition, const void* a, const void* b,
           void* y, const Parallel& parallel, Isa isa) noexcept {
  const ElementwiseTable& table = elementwise_table(isa);
  const int64_t size = element_bytes;
  for_each_row(shape, parallel, [&](int64_t count, const auto& offsets, const auto& strides, int64_t out) {
    table.where(element_bytes, count, condition + offsets[0], strides[0],
                static_cast<const char*>(a) + offsets[1] * size, strides[1],
                static_cast<const char*>(b) + offsets[2] * size, strides[2], static_cast<char*>(y) + out * size);
  });
}

void integer_binary(BinaryKind kind, ElementType type, const BroadcastShape& shape, const void* a, const void* b,
                    void* y, const Parallel& parallel, Isa isa) noexcept {
  const ElementwiseTable& table = elementwise_table(isa);
  const int64_t size = element_type_size(type);
  for_each_row(shape, parallel, [&](int64_t count, const auto& offsets, const auto& strides, int64_t out) {
    table.integer_binary(kind, type, count, static_cast<const char*>(a) + offsets[0] * size, strides[0],
                         static_cast<const char*>(b) + offsets[1] * size, strides[1],
                         static_cast<char*>(y) + out * size);
  });
}

}  // namespace tenon::cpu
