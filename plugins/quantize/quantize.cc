// tenon.quantize/1 and tenon.dequantize/1: numbers as small integers or floats with a scale and a zero point.
#include "plugins/quantize/quantize.h"

#include <vector>

#include "plugins/common/small_float.h"
#include "plugins/common/tolerance.h"

namespace tenon::plugins {

ScalePlaces ScalePlaces::make(const Attrs& attrs, const Dims& x, const Dims& scale) {
  ScalePlaces places;
  places.rank = x.rank;
  const int64_t block = attrs.i64("block_size");
  if (block == 0 && scale.elements() == 1) return places;
  places.axis = normalize_axis(attrs.i64("axis"), x.rank);
  const int64_t size = x[places.axis];
  if (block == 0) {
    if (scale != Dims{size}) {
      throw Invalid(text("input scale: expected one element or [", size, "] for axis ", places.axis, " of x ",
                         to_text(x), ", found shape ", to_text(scale)));
    }
    places.strides[places.axis] = 1;
    return places;
  }
  Dims expected = x;
  expected[places.axis] = size / block + (size % block != 0 ? 1 : 0);
  if (scale != expected) {
    throw Invalid(text("input scale: expected ", to_text(expected), " for blocks of ", block, " along axis ",
                       places.axis, " of x ", to_text(x), ", found shape ", to_text(scale)));
  }
  places.block = block;
  row_strides(scale, places.strides);
  return places;
}

namespace {

bool is_quantized(int32_t dtype) {
  return quantized_range(dtype).is_integer() || is_float8(dtype) || dtype == TN_F4E2M1;
}

void check_scale(const Infer& question, int32_t quantized) {
  const Tensor scale = question.input(kQuantizeScale);
  ScalePlaces::make(question.attrs(), question.input(kQuantizeX).dims(), scale.dims());
  if (!is_floating(scale.dtype()) && scale.dtype() != TN_I32 && scale.dtype() != TN_F8E8M0) {
    throw Invalid(text("input scale: expected floats, found ", dtype_name(scale.dtype())));
  }
  if (!question.has_input(kQuantizeZeroPoint)) return;
  const Tensor zero = question.input(kQuantizeZeroPoint);
  if (zero.dtype() != quantized) {
    throw Invalid(text("input zero_point: expected ", dtype_name(quantized), ", found ", dtype_name(zero.dtype())));
  }
  if (zero.dims() != scale.dims() && (zero.elements() != 1 || scale.elements() != 1)) {
    throw Invalid(
        text("input zero_point: expected shape ", to_text(scale.dims()), " of scale, found ", to_text(zero.dims())));
  }
}

void quantize_infer(const Infer& question) {
  const Tensor x = question.input(kQuantizeX);
  const int32_t to = question.attrs().dtype("to");
  const int32_t precision = question.attrs().dtype("precision");
  if (!is_quantized(to)) {
    throw Invalid(text("attribute 'to': expected an integer of at most 16 bits, an 8-bit float or f4e2m1, found ",
                       dtype_name(to)));
  }
  if (!is_floating(precision)) {
    throw Invalid(text("attribute 'precision': expected a float of 16 bits or more, found ", dtype_name(precision)));
  }
  if (!is_floating(x.dtype()) && x.dtype() != TN_I32) {
    throw Invalid(text("input x: expected floats or i32, found ", dtype_name(x.dtype())));
  }
  check_scale(question, to);
  question.output(0, to, x.dims());
}

void dequantize_infer(const Infer& question) {
  const Tensor x = question.input(kQuantizeX);
  const int32_t to = question.attrs().dtype("to");
  if (!is_floating(to)) {
    throw Invalid(text("attribute 'to': expected a float of 16 bits or more, found ", dtype_name(to)));
  }
  if (!is_quantized(x.dtype()) && x.dtype() != TN_I32) {
    throw Invalid(text("input x: expected an integer of at most 16 bits, i32, an 8-bit float or f4e2m1, found ",
                       dtype_name(x.dtype())));
  }
  check_scale(question, x.dtype());
  question.output(0, to, x.dims());
}

// All elements, which f64 holds exactly; `count` zeros if the tensor is absent.
std::vector<double> numbers(const Reference& call, int input, int64_t count) {
  std::vector<double> result(static_cast<size_t>(count));
  if (!call.has_input(input)) return result;
  visit_number(call.input(input).dtype(), [&](auto zero) {
    const auto* data = call.input(input).data<decltype(zero)>();
    for (int64_t n = 0; n < count; ++n) result[static_cast<size_t>(n)] = static_cast<double>(data[n]);
  });
  return result;
}

double quotient(double x, double scale, int32_t precision) {
  if (precision == TN_F64) return x / scale;
  const float result = static_cast<float>(x) / static_cast<float>(scale);
  if (precision == TN_F32) return static_cast<double>(result);
  return static_cast<double>(small_float_value(precision, small_float_bits(precision, result)));
}

void quantize_reference(const Reference& call) {
  const Attrs attrs = call.attrs();
  const int32_t to = attrs.dtype("to");
  const int32_t precision = attrs.dtype("precision");
  const bool saturate = attrs.i64("saturate") != 0;
  const Dims scale_dims = call.input(kQuantizeScale).dims();
  const ScalePlaces places = ScalePlaces::make(attrs, call.input(kQuantizeX).dims(), scale_dims);
  const std::vector<double> scales = numbers(call, kQuantizeScale, scale_dims.elements());
  const std::vector<double> zeros = numbers(call, kQuantizeZeroPoint, scale_dims.elements());
  const IntegerRange range = quantized_range(to);
  visit_number(call.input(kQuantizeX).dtype(), [&](auto from) {
    const auto* x = call.input(kQuantizeX).data<decltype(from)>();
    visit_number(call.output(0).dtype(), [&](auto result) {
      using T = decltype(result);
      call.fill<T>(0, [&](const int64_t* index, int64_t linear) -> T {
        const auto place = static_cast<size_t>(places.of(index));
        const double value = quotient(static_cast<double>(x[linear]), scales[place], precision);
        if constexpr (std::is_integral_v<T>) {
          return static_cast<T>(saturated(value, static_cast<int32_t>(zeros[place]), range));
        } else {
          const float sum = static_cast<float>(value + zeros[place]);
          if (!saturate || !is_float8(to) || std::isnan(sum)) return sum;
          return std::clamp(sum, -largest_of(to), largest_of(to));
        }
      });
    });
  });
}

void dequantize_reference(const Reference& call) {
  const Dims scale_dims = call.input(kQuantizeScale).dims();
  const ScalePlaces places = ScalePlaces::make(call.attrs(), call.input(kQuantizeX).dims(), scale_dims);
  const std::vector<double> scales = numbers(call, kQuantizeScale, scale_dims.elements());
  const std::vector<double> zeros = numbers(call, kQuantizeZeroPoint, scale_dims.elements());
  visit_number(call.input(kQuantizeX).dtype(), [&](auto from) {
    const auto* x = call.input(kQuantizeX).data<decltype(from)>();
    visit_floating(call.output(0).dtype(), [&](auto result) {
      using T = decltype(result);
      call.fill<T>(0, [&](const int64_t* index, int64_t linear) {
        const auto place = static_cast<size_t>(places.of(index));
        return static_cast<T>(static_cast<double>(x[linear]) - zeros[place]) * static_cast<T>(scales[place]);
      });
    });
  });
}

Op with_places(Op op) {
  return op
      .attr_i64("axis",
                "the axis whose positions or blocks have their own scale, if there are several; negative: "
                "counted from the end")
      .default_value("1")
      .attr_i64("block_size", "positions along the axis that share a scale; 0: no blocks")
      .default_value("0")
      .range("[0,)");
}

}  // namespace

Definitions quantize_definitions() {
  Op quantize = with_places(op("tenon.quantize/1"))
                    .doc(
                        "Numbers as small integers or floats, as ONNX's QuantizeLinear. y = saturate(round(x / "
                        "scale) + zero_point), ties to even, for integers; x / scale + zero_point rounded for floats")
                    .attr_dtype("to", "dtype of the result")
                    .required()
                    .attr_dtype("precision", "dtype in which x is divided by the scale")
                    .required()
                    .attr_i64("saturate",
                              "1: what is beyond the largest number of an 8-bit float becomes it; 0: "
                              "infinity or NaN")
                    .default_value("1")
                    .range("[0,1]")
                    .input("x", "any shape, floating or i32")
                    .input("scale",
                           "one element; or one for each position of the axis; or x's shape with the number "
                           "of blocks on the axis")
                    .input("zero_point", "scale's shape, dtype `to`")
                    .optional()
                    .output("y", "x's shape")
                    .infer(quantize_infer)
                    .reference(quantize_reference);
  Op dequantize = with_places(op("tenon.dequantize/1"))
                      .doc("Quantized numbers as floats, as ONNX's DequantizeLinear. y = (x - zero_point) * scale")
                      .attr_dtype("to", "dtype of the result, and of the product")
                      .required()
                      .input("x", "any shape, integers of at most 16 bits, i32, 8-bit floats or f4e2m1")
                      .input("scale", "as tenon.quantize's")
                      .input("zero_point", "scale's shape, x's dtype")
                      .optional()
                      .output("y", "x's shape")
                      .infer(dequantize_infer)
                      .reference(dequantize_reference)
                      .tolerance([](const Attrs&, int32_t dtype) { return pointwise_tolerance(dtype); });
  return {quantize, dequantize};
}

}  // namespace tenon::plugins

TENON_PLUGIN("tenon.quantize", "1", "Apache-2.0", tenon::plugins::quantize_definitions(),
             tenon::plugins::quantize_kernels(), tenon::plugins::quantize_rules(),
             tenon::plugins::requantize_definitions(), tenon::plugins::dynamic_quantize_definitions(),
             tenon::plugins::matmul_integer_definitions(), tenon::plugins::conv_integer_definitions())
