// The geometry of tenon.attention/1 and tenon.attention_scores/1.
#ifndef TENON_PLUGINS_ATTENTION_ATTENTION_H_
#define TENON_PLUGINS_ATTENTION_ATTENTION_H_

#include <algorithm>
#include <tenon/sdk/attrs.hpp>
#include <tenon/sdk/box.hpp>
#include <tenon/sdk/definition.hpp>

namespace tenon::plugins {

enum AttentionPort { kQuery, kKey, kValue, kMask, kLengths };

struct AttentionGeometry {
  int64_t batch = 0, heads = 0, key_heads = 0, queries = 0, keys = 0, size = 0, value_size = 0;
  int64_t mask_keys = 0;          // keys behind these are masked; `keys` without a mask
  int64_t mask_strides[4] = {};   // of batch, head, query, key
  double scale = 1, softcap = 0;  // softcap 0: none
  bool causal = false;
  int64_t past = 0, left = -1, right = -1;

  // `mask` NULL: absent. Invalid if the shapes do not fit together.
  static AttentionGeometry make(const Dims& q, const Dims& k, const Dims& v, const Dims* mask, const Attrs& attrs) {
    AttentionGeometry g;
    g.scale = attrs.f64("scale");
    g.softcap = attrs.f64("softcap");
    g.causal = attrs.flag("causal");
    g.past = std::min(attrs.i64("past"), int64_t{1} << 48);  // places stay far from overflow
    g.left = attrs.i64("left_window");
    g.right = attrs.i64("right_window");
    g.set_dims(q, k, v, mask);
    return g;
  }
  void set_dims(const Dims& q, const Dims& k, const Dims& v, const Dims* mask) {
    if (q.rank != 4 || k.rank != 4 || v.rank != 4) {
      throw Invalid(text("inputs: expected rank 4, found ", to_text(q), ", ", to_text(k), " and ", to_text(v)));
    }
    batch = q[0], heads = q[1], queries = q[2], size = q[3];
    key_heads = k[1], keys = k[2], value_size = v[3];
    if (k != Dims{batch, key_heads, keys, size} || v != Dims{batch, key_heads, keys, value_size}) {
      throw Invalid(text("inputs k and v: expected [", batch, ",heads,keys,", size, "] and [", batch,
                         ",heads,keys,size] for q of shape ", to_text(q), ", found ", to_text(k), " and ", to_text(v)));
    }
    if (key_heads < 1 ? heads != 0 : heads % key_heads != 0) {
      throw Invalid(text("expected heads of q to be a multiple of those of k, found ", heads, " and ", key_heads));
    }
    mask_keys = keys;
    if (mask == nullptr) return;
    if (mask->rank < 1 || mask->rank > 4)
      throw Invalid(text("input mask: expected rank 1 to 4, found ", to_text(*mask)));
    mask_keys = (*mask)[mask->rank - 1];
    const Dims scores = {batch, heads, queries, mask_keys};
    if (mask_keys > keys || broadcast_dims(*mask, scores) != scores) {
      throw Invalid(text("input mask: expected a shape that broadcasts to ", to_text(Dims{batch, heads, queries, keys}),
                         ", found ", to_text(*mask)));
    }
    broadcast_strides(*mask, scores, mask_strides);
  }

  struct Range {
    int64_t begin, end;
  };
  // The keys that query `i` may attend, whatever the mask says. `length`: valid keys of the sequence; negative: all,
  // and the queries follow `past` keys; otherwise they are the last of them.
  Range range(int64_t i, int64_t length) const {
    const bool given = length >= 0;
    Range r = {0, given ? std::min(length, keys) : keys};
    r.end = std::min(r.end, mask_keys);
    const int64_t place = i + (given ? length - queries : past);
    if (causal) r.end = std::min(r.end, place + 1);
    if (right >= 0 && right < keys) r.end = std::min(r.end, place + right + 1);
    if (left >= 0 && left <= place) r.begin = place - left;
    r.end = std::max(r.end, int64_t{0});
    r.begin = std::min(r.begin, r.end);
    return r;
  }
};

// Tenon's own kernel.
Definitions attention_kernels();
Definitions rotary_embedding_definitions();
Definitions linear_attention_definitions();

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_ATTENTION_ATTENTION_H_
