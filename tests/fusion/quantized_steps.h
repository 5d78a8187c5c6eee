// The step of the generator that makes pieces of quantized networks.
#ifndef TENON_TESTS_FUSION_QUANTIZED_STEPS_H
#define TENON_TESTS_FUSION_QUANTIZED_STEPS_H

#include <algorithm>
#include <optional>
#include <vector>

#include "tests/fusion/quantized_pieces.h"
#include "tests/fusion/random_pieces.h"

namespace tenon::fusion {

/// Quantizes only what has the same bits in every engine, inputs and what is moved from them: numbers that differ in
/// the last bit may be half a step above and below, and a step apart afterwards.
class QuantizedSteps : protected RandomPieces {
 protected:
  using RandomPieces::RandomPieces;

  void put_exact(const Value& value) {
    exact_.push_back(value);
    put(value);
  }
  /// An op that moves values or drops some, between two quantizations with the same numbers or, now and then, others.
  void quantized() {
    const Value x = random_.one_of(exact_);
    const Quantization how = quantization(x);
    shares_integers_ = random_.chance(40);
    Value y = random_.chance(80) ? inner(stepped(x, how)) : x;
    for (std::int64_t n = random_.between(0, 3); n > 0; --n) y = inner(moved_exactly(y, how));
    y = stepped(y, random_.chance(75) ? of_rank(how, y) : quantization(y));
    put_exact(y);
    if (random_.chance(30)) put(unary(y));
  }

 private:
  Quantization quantization(const Value& x) {
    static const std::vector<std::string> dtypes = {"u8", "u8", "i8", "i8", "u16", "i16"};
    Quantization how;
    how.dtype = random_.one_of(dtypes);
    how.axis = random_.below(std::max(1, x.rank()));
    const bool several = x.rank() > 0 && !(varying_ && how.axis == 0) && random_.chance(15);
    const std::int64_t count = several ? x.dims[static_cast<std::size_t>(how.axis)] : 1;
    const bool wide = how.dtype.size() == 3, is_signed = how.dtype[0] == 'i';
    const std::int64_t half = wide ? 32768 : 128, low = is_signed ? -half : 0;
    how.scales = random_.numbers(count, wide ? 2e-5 : 4e-3, wide ? 1e-4 : 0.03);
    if (random_.chance(is_signed ? 35 : 15)) return how;
    const bool positive = random_.chance(40);
    for (std::int64_t n = 0; n < count; ++n) {
      how.zeros.push_back(positive ? low : low + random_.between(half / 2, half + half / 2));
    }
    return how;
  }
  /// The same if it fits another tensor, else its first scale for all.
  static Quantization of_rank(Quantization how, const Value& y) {
    const bool fits = how.axis < y.rank() &&
                      y.dims[static_cast<std::size_t>(how.axis)] == static_cast<std::int64_t>(how.scales.size());
    if (how.scales.size() == 1 || fits) return how;
    return {{how.scales[0]}, how.zeros.empty() ? how.zeros : Dims{how.zeros[0]}, how.dtype};
  }
  /// x in steps of the scale. In some steps something else reads the integers too.
  Value stepped(const Value& x, Quantization how) {
    const Value integers = quantize(make_, x, how), y = dequantize(make_, integers, how);
    if (!shares_integers_ || random_.chance(20)) return y;
    for (float& scale : how.scales) scale *= 2;
    put_exact(dequantize(make_, integers, how));
    return y;
  }
  Value moved_exactly(const Value& x, const Quantization& how) {
    const int first = varying_ ? 1 : 0;  // axis that may change
    if (random_.chance(25)) return make_.op("relu", {x});
    if (x.rank() == 4 && random_.chance(20) && x.dims[2] > 0 && x.dims[3] > 0) {
      const std::int64_t pad = random_.below(2);
      return make_.op("max_pool", {x}, {{"kernel", {1 + pad, 1}}, {"strides", {1, 2}}, {"pads", {pad, 0, pad, 0}}});
    }
    if (x.rank() <= first) return x;
    const int axis = static_cast<int>(random_.between(first, x.rank() - 1));
    const std::int64_t size = x.dims[static_cast<std::size_t>(axis)];
    switch (random_.below(7)) {
      case 0: {
        Dims perm;
        for (int n = 0; n < x.rank(); ++n) perm.push_back(n);
        std::swap(perm[static_cast<std::size_t>(axis)], perm.back());
        return make_.op("transpose", {x}, {{"perm", perm}});
      }
      case 1:
        return make_.op("reshape", {x}, {{"shape", x.rank() > 2 ? Dims{0, 0, -1} : Dims{0, 1, -1}}});
      case 2:
        return size < 3 ? x : slice(x, axis, random_.below(2), size - random_.below(2));
      case 3: {
        Dims pads(static_cast<std::size_t>(2 * x.rank()), 0);
        for (const int end : {0, x.rank()}) {
          pads[static_cast<std::size_t>(axis + end)] = random_.between(size > 2 ? -1 : 0, 2);
        }
        std::vector<Value> inputs = {x, make_.integers(pads)};
        if (random_.chance(50)) inputs.push_back(make_.number(random_.number(-4, 4)));
        return elements(x.dims) > 1000 ? x
                                       : make_.op("pad", inputs, {{"mode", random_.chance(75) ? "constant" : "edge"}});
      }
      default: {
        if (elements(x.dims) > 700) return x;
        std::vector<Value> parts = {x, random_.chance(70) ? stepped(make_.op("neg", {x}), of_rank(how, x)) : x};
        if (random_.chance(25) && !varying_) parts.push_back(random_constant(x.dims, -1, 1));
        return make_.op("concat", parts, {{"axis", axis}});
      }
    }
  }

  std::vector<Value> exact_;
  bool shares_integers_ = false;
};

}  // namespace tenon::fusion

#endif  // TENON_TESTS_FUSION_QUANTIZED_STEPS_H
