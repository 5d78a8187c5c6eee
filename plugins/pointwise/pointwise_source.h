// The CUDA source of an expression, and what its kernels are launched with.
#ifndef TENON_PLUGINS_POINTWISE_POINTWISE_SOURCE_H_
#define TENON_PLUGINS_POINTWISE_POINTWISE_SOURCE_H_

#include <tenon/plugin/ext/expression.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::plugins {

constexpr int kSourceOperands = 8;  // at most
constexpr int kSourceAxes = 7;      // beside the innermost one

// The only parameter of the kernels, as the source has it too. The output is dense: rows of `columns` elements, whose
// number is the product of `sizes`. Strides are in elements.
struct PointwiseLaunch {
  const void* operands[kSourceOperands];
  void* output;
  uint32_t axes;     // of the rows; 0: one row
  uint32_t columns;  // in a row
  uint32_t chunks;   // in a row, each one thread's
  uint32_t total;    // chunks of all rows
  uint32_t sizes[kSourceAxes];
  uint32_t strides[kSourceOperands][kSourceAxes];
  uint32_t steps[kSourceOperands];  // along the row: 0 or 1
};

// Elements that a thread of pointwise_vector computes: 128 bits of each operand.
constexpr int vector_elements(int32_t dtype) { return dtype == TN_F32 ? 4 : 8; }

// Kernels pointwise_vector, which wants pointers aligned to 16 bytes and, of several rows, whole chunks, and
// pointwise_single, an element a thread. Same text for same arguments. Declined for what it has no code for.
std::string pointwise_source(const std::vector<TnExprInstr>& steps, int num_operands, int32_t dtype);

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_POINTWISE_POINTWISE_SOURCE_H_
