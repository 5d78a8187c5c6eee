// The geometry of tenon.matmul/1, shared by its definition, Tenon's kernels and the oneDNN adapter.
#ifndef TENON_PLUGINS_MATMUL_MATMUL_H_
#define TENON_PLUGINS_MATMUL_MATMUL_H_

#include <tenon/sdk/box.hpp>
#include <tenon/sdk/definition.hpp>

namespace tenon::plugins {

// y[..., m, n] = sum over k of A[..., m, k] * B[..., k, n]; batch dims broadcast as numpy's do.
struct MatmulGeometry {
  bool transpose_a = false;
  bool transpose_b = false;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  Dims batch;    // of the result
  Dims batch_a;  // as they are, before broadcasting
  Dims batch_b;
  Dims result;

  // Invalid if the shapes do not fit together.
  static MatmulGeometry make(const Dims& a, const Dims& b, bool transpose_a, bool transpose_b) {
    if (a.rank < 2 || b.rank < 2) {
      throw Invalid(text("inputs: expected ranks of at least 2, found shapes ", to_text(a), " and ", to_text(b)));
    }
    MatmulGeometry g;
    g.transpose_a = transpose_a;
    g.transpose_b = transpose_b;
    g.m = a[a.rank - (transpose_a ? 1 : 2)];
    g.k = a[a.rank - (transpose_a ? 2 : 1)];
    g.n = b[b.rank - (transpose_b ? 2 : 1)];
    const int64_t k_of_b = b[b.rank - (transpose_b ? 1 : 2)];
    if (g.k != k_of_b) {
      throw Invalid(text("shapes ", to_text(a), transpose_a ? " (transposed)" : "", " and ", to_text(b),
                         transpose_b ? " (transposed)" : "", ": expected equal inner sizes, found ", g.k, " and ",
                         k_of_b));
    }
    for (int axis = 0; axis < a.rank - 2; ++axis) g.batch_a.push_back(a[axis]);
    for (int axis = 0; axis < b.rank - 2; ++axis) g.batch_b.push_back(b[axis]);
    g.batch = broadcast_dims(g.batch_a, g.batch_b);
    g.result = g.batch;
    g.result.push_back(g.m);
    g.result.push_back(g.n);
    return g;
  }

  int64_t matrices() const { return batch.elements(); }
  // B is one matrix for all batches.
  bool single_b() const { return batch_b.elements() == 1; }

  // All rows of all batches are rows of one product: one B, and A packed and not transposed.
  void fold_batches() {
    if (!single_b() || transpose_a || batch_a.elements() != matrices()) return;
    m *= matrices();
    batch = batch_a = batch_b = Dims();
  }
};

// Tenon's own kernels.
Definitions matmul_kernels();

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_MATMUL_MATMUL_H_
