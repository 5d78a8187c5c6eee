// Pieces of transformers, spelled out as exporters do.
#ifndef TENON_TESTS_FUSION_TRANSFORMER_PIECES_H_
#define TENON_TESTS_FUSION_TRANSFORMER_PIECES_H_

#include <string>
#include <vector>

#include "tests/fusion/network_maker.h"
#include "tests/fusion/random_network.h"

namespace tenon::fusion {

/// How softmax(scale * q k' + mask) v is written.
struct AttentionSpelling {
  double scale = 1;           ///< 1: none
  bool divides = false;       ///< by 1 / scale, where it would multiply with scale
  bool scales_q = false;      ///< before the product, not behind it
  bool transposed_b = false;  ///< k as an operand that the product reads transposed, not behind a transpose
  Value mask;                 ///< rank 0 and no id: none
};

/// q [..., queries, size], k [..., keys, size], v [..., keys, value size].
Value spell_attention(NetworkMaker& make, const Value& q, const Value& k, const Value& v,
                      const AttentionSpelling& spelling);

/// [batch, rows, heads * size] as [batch, heads, rows, size], and back.
Value split_heads(NetworkMaker& make, const Value& x, std::int64_t heads);
Value merge_heads(NetworkMaker& make, const Value& x);

/// "layer_norm", "layer_norm_power", "layer_norm_inverse", "rms_norm", "rms_norm_inverse" or "rms_norm_reciprocal" over
/// the last `axes` axes. `scale` and `bias` are of "layer_norm_inverse" only. `off` is added to a number that the
/// spelling needs to be exact, where it has one.
Value spell_norm(NetworkMaker& make, const std::string& form, const Value& x, double epsilon, const Value& scale,
                 const Value& bias, int axes = 1, double off = 0);
const std::vector<std::string>& norm_forms();

/// exp(x) / sum(exp(x)), with the maximum taken off before if `shifted`.
Value spell_softmax(NetworkMaker& make, const Value& x, std::int64_t axis, bool shifted);

}  // namespace tenon::fusion

#endif  // TENON_TESTS_FUSION_TRANSFORMER_PIECES_H_
