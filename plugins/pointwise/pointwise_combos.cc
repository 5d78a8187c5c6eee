#include <cmath>
#include <cstring>

#include "plugins/common/layout.h"
#include "plugins/pointwise/pointwise.h"

namespace tenon::plugins {
namespace {

// With leading axes of 1.
Dims of_rank_4(const Dims& dims) {
  Dims result = {1, 1, 1, 1};
  for (int axis = 0; axis < dims.rank; ++axis) result[4 - dims.rank + axis] = dims[axis];
  return result;
}

// Row-major memory is that of the format, and whole blocks of it: there is one channel, or one pixel.
bool reads_as_row(const TnFormat& format, const Dims& dims) {
  const Dims d = of_rank_4(dims);
  const int block = channel_block(format);
  return d[1] == 1 || (d[2] * d[3] == 1 && (block == 0 || d[1] % block == 0));
}

// Equal steps become one.
std::vector<TnExprInstr> without_repeats(const std::vector<TnExprInstr>& steps) {
  std::vector<TnExprInstr> kept;
  std::vector<int32_t> places;
  for (TnExprInstr step : steps) {
    for (int32_t* argument : {&step.a, &step.b, &step.c}) {
      if (*argument >= 0) *argument = places[static_cast<size_t>(*argument)];
    }
    size_t at = 0;
    while (at < kept.size() && std::memcmp(&kept[at], &step, sizeof step) != 0) ++at;
    if (at == kept.size()) kept.push_back(step);
    places.push_back(static_cast<int32_t>(at));
  }
  kept.resize(static_cast<size_t>(places.back()) + 1);  // the result is the last one
  return kept;
}

}  // namespace

std::vector<TnExprInstr> expression_of(const Attrs& attrs, int num_inputs) {
  const std::string text = attrs.str("expression");
  const std::vector<TnExprInstr> steps = without_repeats(parse_expression(text));
  for (const TnExprInstr& step : steps) {
    if (step.primitive == TN_EX_INPUT && step.operand >= static_cast<uint32_t>(num_inputs)) {
      throw Invalid(sdk::text("expression: expected operands below x", num_inputs, ", one for each input, found x",
                              step.operand, " in '", text, "'"));
    }
  }
  return steps;
}

IntegerBounds integer_bounds(int32_t dtype) {
  struct Integer {
    int32_t dtype;
    int bits;  // of magnitude
    bool negative;
  };
  constexpr Integer kIntegers[] = {{TN_U2, 2, false},   {TN_I2, 1, true},   {TN_U4, 4, false},   {TN_I4, 3, true},
                                   {TN_U8, 8, false},   {TN_I8, 7, true},   {TN_U16, 16, false}, {TN_I16, 15, true},
                                   {TN_U32, 32, false}, {TN_I32, 31, true}, {TN_U64, 64, false}, {TN_I64, 63, true}};
  for (const Integer& one : kIntegers) {
    if (one.dtype != dtype) continue;
    const float end = std::ldexp(1.0f, one.bits);
    return {one.negative ? -end : 0.0f, one.bits <= 24 ? end - 1.0f : std::nextafter(end, 0.0f)};
  }
  throw Invalid(text("expression: expected a cast to a number that f32 can hold, found cast.", dtype_name(dtype)));
}

void add_pointwise_combos(const Site& site, int32_t dtype, std::initializer_list<Port (*)(int32_t)> formats,
                          Combos& combos) {
  const Dims out = site.output_dims(0);
  for (const auto make : formats) {
    const Port port = make(dtype);
    const bool image = !is_row(port.format);
    if (image && out.rank != 4) continue;
    if (channel_block(port.format) > 0 && out[1] == 1) continue;  // a block would hold one number
    std::vector<Port> inputs;
    bool holds = false;
    bool fits = true;
    for (int n = 0; n < site.num_inputs(); ++n) {
      const Dims dims = site.dims(n);
      const bool in_format =
          !image || (dims.rank == 4 && !site.is_constant(n) && (channel_block(port.format) == 0 || dims[1] == out[1]));
      fits = fits && (in_format || reads_as_row(port.format, dims));
      holds = holds || in_format;
      // Where bf16 is only allowed, operands that are read again and again stay in f32.
      const bool wide = site.dtype(n) == TN_F32 && (site.is_constant(n) || dims != out);
      const int32_t element = wide ? TN_F32 : dtype;
      inputs.push_back(in_format ? make(element) : row(element));
    }
    if (!fits || !holds) continue;
    ComboSpec combo(inputs, std::vector<Port>{port});
    for (int n = 0; n < site.num_inputs(); ++n) {
      const Port& input = inputs[static_cast<size_t>(n)];
      const bool same = same_format(input.format, port.format) && input.dtype == port.dtype;
      if (same && site.dims(n) == out) combo.may_alias(0, static_cast<uint32_t>(n));
    }
    combos.add(combo);
  }
}

Dims operand_dims(const TnFormat& output, const Dims& dims) {
  if (is_row(output)) return dims;
  const Dims d = of_rank_4(dims);
  if (channel_block(output) > 0 && d[1] == 1) return {d[0], 1, d[2], d[3], 1};
  return physical_dims(output, d);
}

}  // namespace tenon::plugins
