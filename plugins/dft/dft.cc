// tenon.dft/1 and tenon.stft/1: discrete Fourier transforms. Complex numbers are a last axis of two: real, imaginary.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <tenon/sdk/plugin.hpp>
#include <vector>

#include "plugins/common/tolerance.h"

namespace tenon::plugins {
namespace {

using Complex = std::complex<double>;

// The only element of input n, which infer must know.
int64_t scalar(const Tensor& input, const char* name) {
  if (input.dtype() != TN_I32 && input.dtype() != TN_I64) {
    throw Invalid(text("input ", name, ": expected i32 or i64, found ", dtype_name(input.dtype())));
  }
  if (input.elements() != 1) {
    throw Invalid(text("input ", name, ": expected one element, found shape ", to_text(input.dims())));
  }
  if (!input.has_data()) {
    throw Invalid(text("input ", name, ": its contents must be known when the network is built"));
  }
  return input.integer(0);
}

// As scalar(), for a number of elements that an output will have.
int64_t length_of(const Tensor& input, const char* name) {
  const int64_t length = scalar(input, name);
  if (length < 1 || length > INT32_MAX) {
    throw Invalid(text("input ", name, ": expected 1 to ", INT32_MAX, ", found ", length));
  }
  return length;
}

// 1 or 2: the numbers of an element.
int64_t parts_of(const Tensor& x, int least_rank) {
  if (!is_floating(x.dtype())) throw Invalid(text("input 0: expected a floating dtype, found ", dtype_name(x.dtype())));
  const int64_t parts = x.rank() < least_rank ? 0 : x.dim(x.rank() - 1);
  if (parts != 1 && parts != 2) {
    throw Invalid(text("input 0: expected rank of at least ", least_rank,
                       " and a last axis of 1 (real) or 2 "
                       "(complex), found ",
                       to_text(x.dims())));
  }
  return parts;
}

// exp(sign * 2 pi i n / length) for n from 0 to length - 1.
std::vector<Complex> unit_roots(int64_t length, double sign) {
  constexpr double kTwoPi = 6.283185307179586476925;
  std::vector<Complex> roots(static_cast<size_t>(length));
  for (int64_t n = 0; n < length; ++n) {
    roots[static_cast<size_t>(n)] =
        std::polar(1.0, sign * kTwoPi * static_cast<double>(n) / static_cast<double>(length));
  }
  return roots;
}

// sum x(n) * roots[n * k] for n from 0 to count - 1, k of any size.
template <class X>
Complex transform(const std::vector<Complex>& roots, int64_t k, int64_t count, X&& x) {
  const auto length = static_cast<int64_t>(roots.size());
  Complex sum = 0;
  int64_t turn = 0;
  for (int64_t n = 0; n < count; ++n) {
    sum += x(n) * roots[static_cast<size_t>(turn)];
    turn = (turn + k) % length;
  }
  return sum;
}

constexpr int kX = 0, kLength = 1, kAxis = 2;  // input numbers of dft

struct DftGeometry {
  int axis;
  int64_t length;
  int64_t parts;
  bool inverse, onesided;
  Dims output;

  template <class Question>
  explicit DftGeometry(const Question& question)
      : parts(parts_of(question.input(kX), 2)),
        inverse(question.attrs().flag("inverse")),
        onesided(question.attrs().flag("onesided")),
        output(question.input(kX).dims()) {
    const int rank = output.rank;
    const int64_t given = question.has_input(kAxis) ? scalar(question.input(kAxis), "axis") : -2;
    axis = normalize_axis(given, rank);
    if (axis == rank - 1) throw Invalid(text("input axis: expected an axis before the last, found ", given));
    const int64_t size = output[axis];
    if (onesided && parts != (inverse ? 2 : 1)) {
      throw Invalid(text("input x: expected a last axis of ", inverse ? 2 : 1, " for a one-sided transform, found ",
                         to_text(output)));
    }
    length = question.has_input(kLength) ? length_of(question.input(kLength), "dft_length")
             : inverse && onesided       ? 2 * (size - 1)
                                         : size;
    if (length < 1) throw Invalid(text("a transform needs at least 1 element, found ", to_text(output)));
    output[axis] = onesided && !inverse ? length / 2 + 1 : length;
    output[rank - 1] = onesided && inverse ? 1 : 2;
  }
};

void dft_infer(const Infer& question) {
  const DftGeometry g(question);
  question.output(0, question.input(kX).dtype(), g.output);
}

void dft_reference(const Reference& call) {
  const DftGeometry g(call);
  const Dims dims = call.input(kX).dims();
  int64_t strides[TN_MAX_RANK] = {};
  row_strides(dims, strides);
  strides[dims.rank - 1] = 0;  // both parts come from one element
  const std::vector<Complex> roots = unit_roots(g.length, g.inverse ? 1 : -1);
  visit_floating(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = call.input(kX).data<T>();
    int64_t known = -1;  // the element that `value` belongs to
    Complex value;
    call.fill<T>(0, [&](const int64_t* index, int64_t linear) {
      if (const int64_t own = linear / g.output[dims.rank - 1]; own != known) {
        known = own;
        const int64_t first = offset_of(index, strides, dims.rank) - index[g.axis] * strides[g.axis];
        const auto at = [&](int64_t n) {
          const T* element = x + first + n * strides[g.axis];
          return Complex(static_cast<double>(element[0]), g.parts == 2 ? static_cast<double>(element[1]) : 0.0);
        };
        const int64_t count = std::min(dims[g.axis], g.inverse && g.onesided ? g.length / 2 + 1 : g.length);
        if (g.inverse && g.onesided) {
          // The other half is conjugate: each element but the first, and the middle one, counts twice.
          value = transform(roots, index[g.axis], count, [&](int64_t n) {
            return n == 0 || 2 * n == g.length ? Complex(at(n).real()) : 2.0 * at(n);
          });
        } else {
          value = transform(roots, index[g.axis], count, at);
        }
        if (g.inverse) value /= static_cast<double>(g.length);
      }
      return static_cast<T>(index[dims.rank - 1] == 0 ? value.real() : value.imag());
    });
  });
}

constexpr int kStep = 1, kWindow = 2, kFrame = 3;  // input numbers of stft

struct StftGeometry {
  int64_t parts, step, length;
  Dims output;

  template <class Question>
  explicit StftGeometry(const Question& question) : parts(parts_of(question.input(kX), 3)) {
    const Tensor x = question.input(kX);
    if (x.rank() != 3) throw Invalid(text("input signal: expected rank 3, found ", to_text(x.dims())));
    step = length_of(question.input(kStep), "frame_step");
    length = question.has_input(kFrame)    ? length_of(question.input(kFrame), "frame_length")
             : question.has_input(kWindow) ? question.input(kWindow).elements()
                                           : x.dim(1);
    if (question.has_input(kWindow)) {
      const Tensor window = question.input(kWindow);
      if (window.dims() != Dims{length} || window.dtype() != x.dtype()) {
        throw Invalid(text("input window: expected [", length, "] of ", dtype_name(x.dtype()), ", found ",
                           to_text(window.dims()), " of ", dtype_name(window.dtype())));
      }
    }
    if (length < 1 || length > x.dim(1)) {
      throw Invalid(text("frame_length: expected 1 to ", x.dim(1), " as in ", to_text(x.dims()), ", found ", length));
    }
    const bool onesided = question.attrs().flag("onesided");
    if (onesided && parts != 1) {
      throw Invalid(
          text("input signal: expected a last axis of 1 for a one-sided transform, found ", to_text(x.dims())));
    }
    output = {x.dim(0), (x.dim(1) - length) / step + 1, onesided ? length / 2 + 1 : length, 2};
  }
};

void stft_infer(const Infer& question) {
  const StftGeometry g(question);
  question.output(0, question.input(kX).dtype(), g.output);
}

void stft_reference(const Reference& call) {
  const StftGeometry g(call);
  const int64_t size = call.input(kX).dim(1);
  const std::vector<Complex> roots = unit_roots(g.length, -1);
  visit_floating(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = call.input(kX).data<T>();
    const T* window = call.has_input(kWindow) ? call.input(kWindow).data<T>() : nullptr;
    int64_t known = -1;  // the element that `value` belongs to
    Complex value;
    call.fill<T>(0, [&](const int64_t* index, int64_t linear) {
      if (linear / 2 != known) {
        known = linear / 2;
        const T* frame = x + (index[0] * size + index[1] * g.step) * g.parts;
        value = transform(roots, index[2], g.length, [&](int64_t n) {
          const T* element = frame + n * g.parts;
          const Complex sample(static_cast<double>(element[0]), g.parts == 2 ? static_cast<double>(element[1]) : 0.0);
          return window == nullptr ? sample : sample * static_cast<double>(window[n]);
        });
      }
      return static_cast<T>(index[3] == 0 ? value.real() : value.imag());
    });
  });
}

TnTolerance dft_tolerance(const Attrs&, int32_t dtype) { return sum_tolerance(dtype); }

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.dft", "1", "Apache-2.0",
             tenon::op("tenon.dft/1")
                 .doc("Discrete Fourier transform along an axis. y[k] = sum x[n] exp(-2 pi i k n / N); inverse: y[n] = "
                      "1/N sum x[k] exp(2 pi i k n / N) (ONNX DFT-20)")
                 .attr_i64("inverse")
                 .default_value("0")
                 .range("[0,1]")
                 .attr_i64("onesided",
                           "1: only the first N/2 + 1 elements of the spectrum, which is that of real numbers")
                 .default_value("0")
                 .range("[0,1]")
                 .input("x", "[...,1] real or [...,2] complex, floating")
                 .input("dft_length", "one integer N: x is cut or filled up with zeros; default: the axis's size")
                 .optional()
                 .host_value()
                 .input("axis", "one integer; default: -2")
                 .optional()
                 .host_value()
                 .output("y", "[...,2]; [...,1] of an inverse one-sided transform")
                 .infer(tenon::plugins::dft_infer)
                 .reference(tenon::plugins::dft_reference)
                 .tolerance(tenon::plugins::dft_tolerance),
             tenon::op("tenon.stft/1")
                 .doc("Short-time Fourier transform: windows that slide over a signal, each transformed (ONNX STFT-17)")
                 .attr_i64("onesided", "1: only the first N/2 + 1 elements of each spectrum")
                 .default_value("1")
                 .range("[0,1]")
                 .input("signal", "[B,L,1] real or [B,L,2] complex, floating")
                 .input("frame_step", "one integer: from a frame to the next")
                 .host_value()
                 .input("window", "[N], multiplies each frame")
                 .optional()
                 .input("frame_length", "one integer N; default: the window's size, else L")
                 .optional()
                 .host_value()
                 .output("y", "[B,frames,bins,2]")
                 .infer(tenon::plugins::stft_infer)
                 .reference(tenon::plugins::stft_reference)
                 .tolerance(tenon::plugins::dft_tolerance))
