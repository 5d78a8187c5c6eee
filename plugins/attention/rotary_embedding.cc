// tenon.rotary_embedding/1 and Tenon's kernel for it: memory bound, one pass.
#include <algorithm>
#include <tenon/sdk/kernel.hpp>
#include <tenon/sdk/op.hpp>

#include "plugins/attention/attention.h"
#include "plugins/attention/rotary_embedding.h"
#include "plugins/common/parallel.h"
#include "plugins/common/tolerance.h"

namespace tenon::plugins {
namespace {

void rotary_infer(const Infer& question) {
  const int32_t dtype = question.input(kX).dtype();
  if (!is_floating(dtype)) throw Invalid(text("input x: expected a floating dtype, found ", dtype_name(dtype)));
  if (question.input(kCos).dtype() != dtype || question.input(kSin).dtype() != dtype) {
    throw Invalid(text("inputs cos and sin: expected dtype ", dtype_name(dtype), " as of x"));
  }
  if (question.has_input(kPositions) && question.input(kPositions).dtype() != TN_I64) {
    throw Invalid(text("input positions: expected i64, found ", dtype_name(question.input(kPositions).dtype())));
  }
  RotaryGeometry::make(question);
  question.output(0, dtype, question.input(kX).dims());
}

void rotary_reference(const Reference& call) {
  const RotaryGeometry g = RotaryGeometry::make(call);
  const int64_t* positions = g.has_positions ? call.input(kPositions).data<int64_t>() : nullptr;
  visit_floating(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T *x = call.input(kX).data<T>(), *cos = call.input(kCos).data<T>(), *sin = call.input(kSin).data<T>();
    call.fill<T>(0, [&](const int64_t* index, int64_t linear) {
      const int64_t at = linear % g.size;
      if (at >= 2 * g.half) return x[linear];
      const int64_t pair = g.interleaved ? at / 2 : at % g.half;
      const bool second = g.interleaved ? at % 2 == 1 : at >= g.half;
      const int64_t table = g.row(index[0] * g.steps + index[g.heads_first ? 2 : 1], positions) * g.half + pair;
      const int64_t distance = g.interleaved ? 1 : g.half;
      const double c = static_cast<double>(cos[table]), s = static_cast<double>(sin[table]);
      const double own = static_cast<double>(x[linear]);
      const double other = static_cast<double>(x[second ? linear - distance : linear + distance]);
      return static_cast<T>(second ? s * other + c * own : c * own - s * other);
    });
  });
}

// Positions have to be rows of the tables.
void rotary_inputs(const Generate& call) {
  if (call.num_inputs <= kPositions || call.inputs[kPositions].dtype != TN_I64) return;
  const int64_t rows = call.inputs[kCos].dims.d[0];
  int64_t* positions = static_cast<int64_t*>(call.inputs[kPositions].data);
  for (int64_t n = 0; n < Dims(call.inputs[kPositions].dims).elements(); ++n) {
    positions[n] =
        rows == 0 ? 0 : static_cast<int64_t>((call.seed + static_cast<uint64_t>(n) * 7) % static_cast<uint64_t>(rows));
  }
}

class RotaryKernel final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Site site = config.site();
    const bool has = site.has_input(kPositions);
    const Dims positions = has ? site.dims(kPositions) : Dims();
    g_ = RotaryGeometry::make(site.dims(kX), site.dims(kCos), site.dims(kSin), has ? &positions : nullptr,
                              RotaryForm(site.attrs()));
  }

  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const RotaryGeometry& g = g_;
    const int64_t* positions = g.has_positions ? static_cast<const int64_t*>(inputs[kPositions].data) : nullptr;
    for (int64_t n = 0; n < g.batch * g.steps; ++n) g.row(n, positions);  // no exception in the loops below
    const float* x = static_cast<const float*>(inputs[kX].data);
    const float *cos = static_cast<const float*>(inputs[kCos].data),
                *sin = static_cast<const float*>(inputs[kSin].data);
    float* y = static_cast<float*>(outputs[0].data);
    const int64_t grain = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, g.size));
    cpu::parallel_ranges(to_parallel(exec), g.batch * g.heads * g.steps, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t batch = row / (g.heads * g.steps);
        const int64_t step = g.heads_first ? row % g.steps : row / g.heads % g.steps;
        const int64_t table = g.row(batch * g.steps + step, positions) * g.half;
        turn(x + row * g.size, cos + table, sin + table, y + row * g.size);
      }
    });
  }

 private:
  void turn(const float* x, const float* cos, const float* sin, float* y) const {
    const int64_t half = g_.half;
    if (g_.interleaved) {
      for (int64_t n = 0; n < half; ++n) {
        const float a = x[2 * n], b = x[2 * n + 1];
        y[2 * n] = cos[n] * a - sin[n] * b;
        y[2 * n + 1] = sin[n] * a + cos[n] * b;
      }
    } else {
      for (int64_t n = 0; n < half; ++n) {
        const float a = x[n], b = x[half + n];
        y[n] = cos[n] * a - sin[n] * b;
        y[half + n] = sin[n] * a + cos[n] * b;
      }
    }
    for (int64_t n = 2 * half; n < g_.size; ++n) y[n] = x[n];
  }
  RotaryGeometry g_;
};

void rotary_combos(const Site& site, Combos& combos) {
  if (!site.is_static()) throw Declined("shapes vary");
  combos.add(ComboSpec({f32_row(), f32_row(), f32_row(), site.has_input(kPositions) ? row(TN_I64) : any_constant()},
                       {f32_row()})
                 .may_alias(0, kX));
}

}  // namespace

Definitions rotary_embedding_definitions() {
  Definitions all;
  all.add(op("tenon.rotary_embedding/1")
              .doc("Rotary position embedding (Su et al. 2021). Pairs (a, b) of each head's numbers become (a cos - b "
                   "sin, a sin + b cos); a pair is n and n + half, or with interleaved 2n and 2n + 1")
              .attr_i64("num_heads", "of x of rank 3")
              .default_value("0")
              .range("[0,)")
              .attr_i64("rotary_size", "so many numbers of each head turn, the others are copied; 0: all")
              .default_value("0")
              .range("[0,)")
              .attr_i64("interleaved", "1: neighbours are pairs")
              .default_value("0")
              .range("0|1")
              .input("x", "[batch, heads, steps, size] or [batch, steps, heads*size], floating")
              .input("cos", "[rows, half] with positions, [batch, steps, half] without")
              .input("sin", "as cos")
              .input("positions", "i64 [batch, steps]: rows of the tables")
              .optional()
              .output("y", "as x")
              .infer(rotary_infer)
              .reference(rotary_reference)
              .generate(rotary_inputs)
              .tolerance([](const Attrs&, int32_t dtype) { return pointwise_tolerance(dtype); }));
  all.add(kernel<RotaryKernel>("tenon.rotary_embedding/1", "tenon.rotary_embedding.rows.f32")
              .more_combos(rotary_combos)
              .deterministic());
  return all;
}

}  // namespace tenon::plugins
