// tenon.determinant/1: determinants of square matrices.
#include <cmath>
#include <tenon/sdk/plugin.hpp>
#include <vector>

#include "plugins/common/tolerance.h"

namespace tenon::plugins {
namespace {

void determinant_infer(const Infer& question) {
  const Tensor x = question.input(0);
  const Dims dims = x.dims();
  if (!is_floating(x.dtype())) throw Invalid(text("input x: expected a floating dtype, found ", dtype_name(x.dtype())));
  if (dims.rank < 2 || dims[dims.rank - 1] != dims[dims.rank - 2]) {
    throw Invalid(text("input x: expected square matrices [..., n, n], found ", to_text(dims)));
  }
  Dims result;
  for (int axis = 0; axis < dims.rank - 2; ++axis) result.push_back(dims[axis]);
  question.output(0, x.dtype(), result);
}

// Gaussian elimination with partial pivoting; `m` is overwritten.
double determinant(std::vector<double>& m, int64_t n) {
  double result = 1.0;
  const auto at = [&](int64_t row, int64_t column) -> double& { return m[static_cast<size_t>(row * n + column)]; };
  for (int64_t k = 0; k < n; ++k) {
    int64_t pivot = k;
    for (int64_t row = k + 1; row < n; ++row) {
      if (std::abs(at(row, k)) > std::abs(at(pivot, k))) pivot = row;
    }
    if (pivot != k) {
      for (int64_t column = k; column < n; ++column) std::swap(at(k, column), at(pivot, column));
      result = -result;
    }
    result *= at(k, k);
    if (at(k, k) == 0.0) return 0.0;
    for (int64_t row = k + 1; row < n; ++row) {
      const double factor = at(row, k) / at(k, k);
      for (int64_t column = k + 1; column < n; ++column) at(row, column) -= factor * at(k, column);
    }
  }
  return result;
}

void determinant_reference(const Reference& call) {
  const Dims dims = call.input(0).dims();
  const int64_t n = dims[dims.rank - 1];
  visit_floating(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = call.input(0).data<T>();
    std::vector<double> matrix;
    call.fill<T>(0, [&](const int64_t*, int64_t linear) {
      matrix.assign(x + linear * n * n, x + (linear + 1) * n * n);
      return static_cast<T>(determinant(matrix, n));
    });
  });
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.determinant", "1", "Apache-2.0",
             tenon::op("tenon.determinant/1")
                 .doc("Determinants of square matrices, by elimination with partial pivoting")
                 .input("x", "[..., n, n], floating")
                 .output("y", "[...]; 1 for n = 0")
                 .infer(tenon::plugins::determinant_infer)
                 .reference(tenon::plugins::determinant_reference)
                 .tolerance([](const tenon::Attrs&, int32_t dtype) { return tenon::plugins::sum_tolerance(dtype); }))
