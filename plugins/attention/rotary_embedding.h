// The geometry of tenon.rotary_embedding/1.
#ifndef TENON_PLUGINS_ATTENTION_ROTARY_EMBEDDING_H_
#define TENON_PLUGINS_ATTENTION_ROTARY_EMBEDDING_H_

#include <tenon/sdk/attrs.hpp>
#include <tenon/sdk/tensor.hpp>

namespace tenon::plugins {

enum RotaryPort { kX, kCos, kSin, kPositions };

struct RotaryForm {
  int64_t num_heads = 0, rotary_size = 0;
  bool interleaved = false;

  RotaryForm() = default;
  explicit RotaryForm(const Attrs& attrs)
      : num_heads(attrs.i64("num_heads")),
        rotary_size(attrs.i64("rotary_size")),
        interleaved(attrs.flag("interleaved")) {}
};

struct RotaryGeometry {
  int64_t batch = 0, heads = 0, steps = 0, size = 0;  // of a head
  int64_t half = 0;                                   // pairs that turn
  int64_t rows = 0;                                   // of the tables
  bool heads_first = false;  // x is [batch, heads, steps, size], else [batch, steps, heads*size]
  bool interleaved = false, has_positions = false;

  // For Infer, Reference and Site. Invalid if the shapes do not fit together.
  static RotaryGeometry make(const Dims& x, const Dims& cos, const Dims& sin, const Dims* positions,
                             const RotaryForm& form) {
    RotaryGeometry g;
    g.heads_first = x.rank == 4;
    g.interleaved = form.interleaved;
    g.has_positions = positions != nullptr;
    if (x.rank != 3 && x.rank != 4) throw Invalid(text("input x: expected rank 3 or 4, found ", to_text(x)));
    g.batch = x[0];
    g.steps = x[g.heads_first ? 2 : 1];
    g.heads = g.heads_first ? x[1] : form.num_heads;
    if (!g.heads_first && (g.heads < 1 || x[2] % g.heads != 0)) {
      throw Invalid(text("attribute 'num_heads': expected a divisor of ", x[2], ", found ", g.heads));
    }
    g.size = g.heads_first ? x[3] : x[2] / g.heads;
    const int64_t turned = form.rotary_size == 0 ? g.size : form.rotary_size;
    if (turned > g.size || turned % 2 != 0) {
      throw Invalid(text("attribute 'rotary_size': expected an even number up to ", g.size, ", found ", turned));
    }
    g.half = turned / 2;
    const Dims given = {g.batch, g.steps};
    if (g.has_positions && *positions != given) {
      throw Invalid(text("input positions: expected ", to_text(given), ", found ", to_text(*positions)));
    }
    g.rows = g.has_positions && cos.rank == 2 ? cos[0] : g.batch * g.steps;
    const Dims table = g.has_positions ? Dims{g.rows, g.half} : Dims{g.batch, g.steps, g.half};
    if (cos != table || sin != table) {
      throw Invalid(
          text("inputs cos and sin: expected ", to_text(table), ", found ", to_text(cos), " and ", to_text(sin)));
    }
    return g;
  }
  template <class Question>
  static RotaryGeometry make(const Question& question) {
    const bool has = question.has_input(kPositions);
    const Dims positions = has ? question.input(kPositions).dims() : Dims();
    return make(question.input(kX).dims(), question.input(kCos).dims(), question.input(kSin).dims(),
                has ? &positions : nullptr, RotaryForm(question.attrs()));
  }
  // The row of the tables for a step; Invalid if there is no such row.
  int64_t row(int64_t batch_step, const int64_t* positions) const {
    if (!has_positions) return batch_step;
    const int64_t position = positions[batch_step];
    if (position < 0 || position >= rows) {
      throw Invalid(text("input positions: expected 0 to ", rows - 1, ", found ", position));
    }
    return position;
  }
};

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_ATTENTION_ROTARY_EMBEDDING_H_
