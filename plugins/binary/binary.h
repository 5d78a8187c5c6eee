// What the sources of the family share.
#ifndef TENON_PLUGINS_BINARY_BINARY_H_
#define TENON_PLUGINS_BINARY_BINARY_H_

#include <tenon/sdk/definition.hpp>
#include <tenon/sdk/kernel.hpp>
#include <tenon/sdk/questions.hpp>
#include <tenon/sdk/site.hpp>
#include <tenon/sdk/tensor.hpp>

#include "kernels/cpu/pointwise.h"

namespace tenon::plugins {

// Combos of f32 in every format of image_ports(): both operands in it, or one of them a single row-major element.
void add_binary_combos(Kernel* kernel);

// One tactic; Declined for formats that cannot hold both operands.
void binary_tactics(const Site& site, const Combo& combo, Tactics& tactics);

// The shapes of the operands in the memory order of their formats.
class BinaryShapes {
 public:
  BinaryShapes() = default;
  explicit BinaryShapes(const Combo& combo)
      : a_(combo.input(0).format), b_(combo.input(1).format), y_(combo.output(0).format) {}
  // Invalid if the operands do not broadcast.
  cpu::BroadcastShape shape(const TnDims& a_dims, const TnDims& b_dims) const;
  const TnFormat& output() const { return y_; }
  // One operand is a single element and the other in an image format: then what fills up blocks is not 0.
  bool single() const { return !same_format(a_, y_) || !same_format(b_, y_); }

 private:
  TnFormat a_ = row_format();
  TnFormat b_ = row_format();
  TnFormat y_ = row_format();
};

// Generated integers that divide are not 0, where the result is an error.
void generate_divisors(const Generate& question);

Definitions pow_definitions();
Definitions mod_definitions();

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_BINARY_BINARY_H_
