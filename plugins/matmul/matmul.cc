// tenon.matmul/1: products of matrices, batched.
#include "plugins/matmul/matmul.h"

#include <tenon/sdk/plugin.hpp>

#include "plugins/common/tolerance.h"

namespace tenon::plugins {
namespace {

void matmul_infer(const Infer& question) {
  const Tensor a = question.input(0);
  const Tensor b = question.input(1);
  if (a.dtype() != b.dtype()) {
    throw Invalid(text("input b: expected dtype ", dtype_name(a.dtype()), " as of a, found ", dtype_name(b.dtype())));
  }
  const Attrs attrs = question.attrs();
  const MatmulGeometry g =
      MatmulGeometry::make(a.dims(), b.dims(), attrs.flag("transpose_a"), attrs.flag("transpose_b"));
  question.output(0, a.dtype(), g.result);
}

template <class T>
void matmul_reference_of(const Reference& call) {
  using Sum = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;  // unsigned: integers wrap
  const Attrs attrs = call.attrs();
  const MatmulGeometry g = MatmulGeometry::make(call.input(0).dims(), call.input(1).dims(), attrs.flag("transpose_a"),
                                                attrs.flag("transpose_b"));
  int64_t a_batch[TN_MAX_RANK] = {};
  int64_t b_batch[TN_MAX_RANK] = {};
  broadcast_strides(g.batch_a, g.batch, a_batch);
  broadcast_strides(g.batch_b, g.batch, b_batch);
  const int64_t a_row = g.transpose_a ? 1 : g.k;
  const int64_t a_step = g.transpose_a ? g.m : 1;
  const int64_t b_column = g.transpose_b ? g.k : 1;
  const int64_t b_step = g.transpose_b ? 1 : g.n;
  const T* a = call.input(0).data<T>();
  const T* b = call.input(1).data<T>();
  call.fill<T>(0, [&](const int64_t* index, int64_t) {
    const int64_t* place = index + g.batch.rank;
    const T* x = a + offset_of(index, a_batch, g.batch.rank) * g.m * g.k + place[0] * a_row;
    const T* y = b + offset_of(index, b_batch, g.batch.rank) * g.k * g.n + place[1] * b_column;
    Sum sum = 0;
    for (int64_t k = 0; k < g.k; ++k) sum += static_cast<Sum>(x[k * a_step]) * static_cast<Sum>(y[k * b_step]);
    return static_cast<T>(sum);
  });
}

void matmul_reference(const Reference& call) {
  visit_number(call.output(0).dtype(), [&](auto zero) { matmul_reference_of<decltype(zero)>(call); });
}

// The columns of several products are those of one.
Siblings matmul_siblings(const Infer& inferred) {
  const int columns = inferred.input(1).rank() - (inferred.attrs().flag("transpose_b") ? 2 : 1);
  return {inferred.output(0).rank() - 1, {TN_SAME_VALUE, columns}};
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.matmul", "1", "Apache-2.0",
             tenon::op("tenon.matmul/1")
                 .doc("Product of matrices. y[..., m, n] = sum over k of a[..., m, k] * b[..., k, n]; batch dims "
                      "broadcast as numpy's do")
                 .attr_i64("transpose_a", "1: a is stored as [..., k, m]")
                 .default_value("0")
                 .range("0|1")
                 .attr_i64("transpose_b", "1: b is stored as [..., n, k]")
                 .default_value("0")
                 .range("0|1")
                 .input("a", "[..., m, k]")
                 .input("b", "[..., k, n], of a's dtype")
                 .output("y", "[..., m, n]")
                 .infer(tenon::plugins::matmul_infer)
                 .reference(tenon::plugins::matmul_reference)
                 .siblings(tenon::plugins::matmul_siblings)
                 .tolerance([](const tenon::Attrs&, int32_t dtype) { return tenon::plugins::sum_tolerance(dtype); }),
             tenon::plugins::matmul_kernels())
