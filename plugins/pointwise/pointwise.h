// What the sources of tenon.pointwise/1 share: its expression, and operands in the formats of images.
#ifndef TENON_PLUGINS_POINTWISE_POINTWISE_H_
#define TENON_PLUGINS_POINTWISE_POINTWISE_H_

#include <initializer_list>
#include <tenon/sdk/definition.hpp>
#include <tenon/sdk/expression_text.hpp>
#include <tenon/sdk/kernel.hpp>
#include <vector>

namespace tenon::plugins {

// The steps of the attribute, equal ones once. Invalid if the text is bad or has more operands than there are.
std::vector<TnExprInstr> expression_of(const Attrs& attrs, int num_inputs);

// What casts to an integer dtype clamp f32 to: the floats that are next to its limits inside.
struct IntegerBounds {
  float low;
  float high;
};
// Invalid unless the dtype is an integer.
IntegerBounds integer_bounds(int32_t dtype);

// Combos of a dtype in those of the formats that can hold the operands: each operand in the format, or row-major where
// that is the same order of elements. The output may be given the memory of an operand of its size.
void add_pointwise_combos(const Site& site, int32_t dtype, std::initializer_list<Port (*)(int32_t)> formats,
                          Combos& combos);

// Dims of an operand in the memory order of the output's format, for such combos.
Dims operand_dims(const TnFormat& output, const Dims& dims);

Definitions pointwise_kernels();

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_POINTWISE_POINTWISE_H_
