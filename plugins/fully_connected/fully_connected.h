// The geometry of tenon.fully_connected/1, shared by its definition, Tenon's kernels and the oneDNN adapter.
#ifndef TENON_PLUGINS_FULLY_CONNECTED_FULLY_CONNECTED_H_
#define TENON_PLUGINS_FULLY_CONNECTED_FULLY_CONNECTED_H_

#include <tenon/sdk/definition.hpp>
#include <tenon/sdk/site.hpp>

namespace tenon::plugins {

struct FullyConnectedGeometry {
  int64_t n = 0;         // rows of x
  int64_t features = 0;  // C: everything from `axis` on
  int64_t outputs = 0;   // K
  Dims result;

  // `bias` NULL: absent. Invalid if the shapes do not fit together.
  static FullyConnectedGeometry make(const Dims& x, const Dims& weights, const Dims* bias, int64_t given) {
    if (x.rank < 1) throw Invalid("input x: expected rank of at least 1, found a scalar");
    const int64_t axis = given < 0 ? given + x.rank : given;
    if (axis < 0 || axis > x.rank) {
      throw Invalid(text("attribute 'axis': expected an axis of x of shape ", to_text(x), ", found ", given));
    }
    FullyConnectedGeometry g;
    g.n = x.product(0, static_cast<int>(axis));
    g.features = x.product(static_cast<int>(axis), x.rank);
    g.outputs = weights.rank == 2 ? weights[0] : 0;
    for (int n = 0; n < axis; ++n) g.result.push_back(x[n]);
    g.result.push_back(g.outputs);
    if (weights.rank != 2 || weights[1] != g.features) {
      throw Invalid(text("input weights: expected [outputs,", g.features, "] for x of shape ", to_text(x), ", found ",
                         to_text(weights)));
    }
    if (bias && *bias != Dims{g.outputs}) {
      throw Invalid(text("input bias: expected [", g.outputs, "], found ", to_text(*bias)));
    }
    return g;
  }
};

// Tenon's own kernels.
Definitions fully_connected_kernels();

// Rules that make dense layers of products.
Definitions fully_connected_rules();

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_FULLY_CONNECTED_FULLY_CONNECTED_H_
