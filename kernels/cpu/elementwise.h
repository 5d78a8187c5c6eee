// elementwise: comparison, logic, selection and integer arithmetic with broadcasting, for several element types.
// Nothing is allocated or thrown. bool is one byte, read as "not 0" and written as 0 or 1. The result must not overlap
// an operand. REQUIRES everywhere: isa <= detect_isa().
#ifndef TENON_KERNELS_CPU_ELEMENTWISE_H_
#define TENON_KERNELS_CPU_ELEMENTWISE_H_

#include <cstdint>

#include "kernels/cpu/cast.h"
#include "kernels/cpu/pointwise.h"

namespace tenon::cpu {

enum class CompareKind {
  kEqual,      // a == b
  kLess,       // a < b
  kLessEqual,  // a <= b
  kUnordered,  // a or b is NaN
  kAnd,        // bool only
  kOr,         // bool only
  kXor,        // bool only
};

// Whether compare takes the type: all of ElementType but the 16-bit floats.
bool comparable(ElementType type) noexcept;

// y = a op b. REQUIRES: comparable(type).
void compare(CompareKind kind, ElementType type, const BroadcastShape& shape, const void* a, const void* b, uint8_t* y,
             const Parallel& parallel, Isa isa) noexcept;

// y = condition ? a : b, elements of 1, 2, 4 or 8 bytes. The operands of the shape are condition, a and b.
void where(int element_bytes, const Broadcast<3>& shape, const uint8_t* condition, const void* a, const void* b,
           void* y, const Parallel& parallel, Isa isa) noexcept;

// y = a op b for kI32 and kI64; sums, differences and products wrap. REQUIRES: kind is not kDiv.
void integer_binary(BinaryKind kind, ElementType type, const BroadcastShape& shape, const void* a, const void* b,
                    void* y, const Parallel& parallel, Isa isa) noexcept;

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_ELEMENTWISE_H_
