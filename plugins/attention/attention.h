// The geometry of tenon.attention/1 and tenon.attention_scores/1.
#ifndef TENON_PLUGINS_ATTENTION_ATTENTION_H_
#define TENON_PLUGINS_ATTENTION_ATTENTION_H_

#include <algorithm>
#include <tenon/sdk/attrs.hpp>
#include <tenon/sdk/box.hpp>
#include <tenon/sdk/definition.hpp>

namespace tenon::plugins {

enum AttentionPort { kQuery, kKey, kValue, kMask, kLengths };

// Where a row of a head begins in one of the tensors, in elements; the numbers of a row follow each other.
struct AttentionPlace {
  int64_t batch = 0, head = 0, row = 0;
  int64_t offset = 0;  // of the first row of all
  int64_t at(int64_t b, int64_t h, int64_t r) const { return offset + b * batch + h * head + r * row; }
};

struct AttentionGeometry {
  int64_t batch = 0, heads = 0, key_heads = 0, queries = 0, keys = 0, size = 0, value_size = 0;
  AttentionPlace q, k, v, y;
  Dims result;                    // of tenon.attention
  int64_t mask_keys = 0;          // keys behind these are masked; `keys` without a mask
  int64_t mask_strides[4] = {};   // of batch, head, query, key
  double scale = 1, softcap = 0;  // softcap 0: none
  bool causal = false;
  int64_t past = 0, left = -1, right = -1;

  // `merges`: the op has the attribute merge_heads. Invalid if the shapes do not fit together.
  template <class HasInput, class DimsOf>
  static AttentionGeometry make(const Attrs& attrs, bool merges, const HasInput& has_input, const DimsOf& dims) {
    AttentionGeometry g;
    g.scale = attrs.f64("scale");
    g.softcap = attrs.f64("softcap");
    g.causal = attrs.flag("causal");
    g.past = std::min(attrs.i64("past"), int64_t{1} << 48);  // places stay far from overflow
    g.left = attrs.i64("left_window");
    g.right = attrs.i64("right_window");
    g.given_heads_ = attrs.i64("heads");
    g.given_key_heads_ = attrs.i64("key_heads");
    g.merge_heads_ = merges && attrs.flag("merge_heads");
    g.set_dims(has_input, dims);
    return g;
  }
  template <class HasInput, class DimsOf>
  void set_dims(const HasInput& has_input, const DimsOf& dims) {
    if (has_input(kKey) != has_input(kValue)) throw Invalid("inputs k and v: expected both or none");
    if (has_input(kKey)) {
      set_separate(dims(kQuery), dims(kKey), dims(kValue));
    } else {
      set_packed(dims(kQuery));
    }
    y = merge_heads_ ? AttentionPlace{queries * heads * value_size, value_size, heads * value_size}
                     : AttentionPlace{heads * queries * value_size, queries * value_size, value_size};
    result = merge_heads_ ? Dims{batch, queries, heads * value_size} : Dims{batch, heads, queries, value_size};
    mask_keys = keys;
    if (has_input(kMask)) set_mask(dims(kMask));
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
  // The key head that a head of q reads.
  int64_t key_head(int64_t head) const { return head / (heads / key_heads); }

 private:
  // What is stored where: [batch, heads, rows, size], or [batch, rows, heads * size].
  struct Heads {
    int64_t heads, rows, size;
    AttentionPlace place;
  };
  static Heads heads_of(const char* name, const Dims& dims, const char* attr, int64_t given) {
    if (dims.rank == 4) {
      return {dims[1], dims[2], dims[3], {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3]}};
    }
    if (dims.rank != 3) throw Invalid(text("input ", name, ": expected rank 3 or 4, found ", to_text(dims)));
    if (given < 1 || dims[2] % given != 0) {
      throw Invalid(text("attribute '", attr, "': expected a divisor of ", dims[2], ", the last dim of ", name,
                         ", found ", given));
    }
    const int64_t size = dims[2] / given;
    return {given, dims[1], size, {dims[1] * dims[2], size, dims[2]}};
  }
  void set_separate(const Dims& q_dims, const Dims& k_dims, const Dims& v_dims) {
    const Heads own = heads_of("q", q_dims, "heads", given_heads_);
    const int64_t of_keys = given_key_heads_ > 0 ? given_key_heads_ : own.heads;
    const Heads of_k = heads_of("k", k_dims, "key_heads", of_keys);
    const Heads of_v = heads_of("v", v_dims, "key_heads", of_keys);
    batch = q_dims[0], heads = own.heads, queries = own.rows, size = own.size;
    key_heads = of_k.heads, keys = of_k.rows, value_size = of_v.size;
    q = own.place, k = of_k.place, v = of_v.place;
    if (k_dims[0] != batch || v_dims[0] != batch || of_k.size != size || of_v.heads != key_heads || of_v.rows != keys) {
      throw Invalid(text("inputs k and v: expected batch ", batch, ", the same heads and keys, and k with size ", size,
                         " for q of shape ", to_text(q_dims), ", found ", to_text(k_dims), " and ", to_text(v_dims)));
    }
    check_key_heads();
  }
  // [batch, steps, q, k and v of all heads behind each other].
  void set_packed(const Dims& dims) {
    heads = given_heads_, key_heads = given_key_heads_ > 0 ? given_key_heads_ : heads;
    const auto parts = static_cast<int64_t>(static_cast<uint64_t>(heads) + 2 * static_cast<uint64_t>(key_heads));
    if (dims.rank != 3 || heads < 1 || std::max(heads, key_heads) > dims[2] || dims[2] % parts != 0) {
      throw Invalid(text("input q alone: expected [batch,steps,(heads + 2 * key heads) * size] with ", heads,
                         " heads and ", key_heads, " key heads, found ", to_text(dims)));
    }
    batch = dims[0], queries = keys = dims[1], size = value_size = dims[2] / parts;
    q = {dims[1] * dims[2], size, dims[2], 0};
    k = v = q;
    k.offset = heads * size;
    v.offset = (heads + key_heads) * size;
    check_key_heads();
  }
  void check_key_heads() const {
    if (key_heads < 1 ? heads != 0 : heads % key_heads != 0) {
      throw Invalid(text("expected heads of q to be a multiple of those of k, found ", heads, " and ", key_heads));
    }
  }
  void set_mask(const Dims& mask) {
    if (mask.rank < 1 || mask.rank > 4) throw Invalid(text("input mask: expected rank 1 to 4, found ", to_text(mask)));
    mask_keys = mask[mask.rank - 1];
    const Dims scores = {batch, heads, queries, mask_keys};
    if (mask_keys > keys || broadcast_dims(mask, scores) != scores) {
      throw Invalid(text("input mask: expected a shape that broadcasts to ", to_text(Dims{batch, heads, queries, keys}),
                         ", found ", to_text(mask)));
    }
    broadcast_strides(mask, scores, mask_strides);
  }

  int64_t given_heads_ = 0, given_key_heads_ = 0;
  bool merge_heads_ = false;
};

// The most that a site may have.
template <class Site>
AttentionGeometry most_of(const Site& site) {
  return AttentionGeometry::make(
      site.attrs(), true, [&](int port) { return site.has_input(port); },
      [&](int port) { return site.max_dims(port); });
}

// Tenon's own kernel.
Definitions attention_kernels();

// Rules that recognise attention, and that spare it transposes and products.
Definitions attention_rules();
Definitions attention_layout_rules();

Definitions rotary_embedding_definitions();
Definitions linear_attention_definitions();

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_ATTENTION_ATTENTION_H_
