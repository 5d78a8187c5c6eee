// tenon.rnn/1, tenon.gru/1 and tenon.lstm/1 on Tenon's gemm: the inputs of all steps are one product, then each step is
// a product of the state with packed recurrence weights and a pass over the gates, row by row.
#include <algorithm>
#include <memory>
#include <tenon/sdk/kernel.hpp>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/pointwise.h"
#include "plugins/common/gemm_tactics.h"
#include "plugins/common/pack_key.h"
#include "plugins/common/parallel.h"
#include "plugins/recurrent/recurrent.h"

namespace tenon::plugins {
namespace {

using cpu::GemmShape;
using cpu::UnaryKind;

uint64_t aligned(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

// Deals pieces of one block of memory; with nullptr it only counts.
class Pieces {
 public:
  explicit Pieces(void* memory) : memory_(static_cast<char*>(memory)) {}
  float* floats(int64_t count) { return reinterpret_cast<float*>(bytes(static_cast<uint64_t>(count) * sizeof(float))); }
  char* bytes(uint64_t size) {
    char* piece = memory_ == nullptr ? nullptr : memory_ + used_;
    used_ += aligned(size);
    return piece;
  }
  uint64_t used() const { return used_; }

 private:
  char* memory_;
  uint64_t used_ = 0;
};

void recurrent_supports(CellKind kind, const Site& site) {
  const auto constant = [&](int port, const char* name) {
    if (site.has_input(port) && !site.is_constant(port)) throw Declined(text(name, " are not constant"));
    if (site.has_input(port) && site.dtype(port) != TN_F32) throw Declined(text(name, " are not f32"));
  };
  constant(kWeights, "the weights");
  constant(kRecurrence, "the recurrence weights");
  constant(kBias, "the biases");
  if (kind == CellKind::kLstm) constant(kPeepholes, "the peepholes");
}

// Of one direction; persistent.
struct Packed {
  char* input = nullptr;       // W
  char* recurrence = nullptr;  // R; of GRU the rows of z and r
  char* candidate = nullptr;   // GRU: the rows of h
  float* bias = nullptr;       // what the product with W adds: Wb + Rb, of a GRU with linear_before_reset without Rbh
  float* candidate_bias = nullptr;  // Rbh of such a GRU
  float* peepholes = nullptr;
};

struct Scratch {
  float* input = nullptr;  // x W' + bias: [steps, batch, gates]
  float* gates = nullptr;  // [batch, gates]
  float* h = nullptr;      // [batch, hidden]
  float* c = nullptr;
  float* reset = nullptr;  // r * h
  char* gemm = nullptr;
};

class RecurrentKernel final : public IPlugin {
 public:
  explicit RecurrentKernel(CellKind kind) : kind_(kind) {}

  void configure(const Config& config) override {
    const Site site = config.site();
    recurrent_supports(kind_, site);
    isa_ = isa_of(config.params());
    blocks_ = gemm_blocks_of(config.params());
    form_ = std::make_unique<RecurrentForm>(kind_, site.attrs());
    most_ = RecurrentGeometry::make(site.max_dims(kX), site.max_dims(kRecurrence));
    has_bias_ = site.has_input(kBias);
    has_peepholes_ = kind_ == CellKind::kLstm && site.has_input(kPeepholes);
    for (int port : {kLengths, kInitialH, kInitialC}) {
      has_[port] = port < num_recurrent_inputs(kind_) && site.has_input(port);
    }
    Pieces persistent(nullptr), workspace(nullptr);
    for (int d = 0; d < form_->directions; ++d) deal_packed(&persistent);
    sizes_.persistent = persistent.used();
    threads_ = site.threads();
    deal_scratch(most_, &workspace);
    sizes_.workspace = workspace.used();
    PackKey key;
    key.add(text("tenon.recurrent ", static_cast<int>(kind_), cpu::isa_name(isa_), form_->linear_before_reset));
    for (int port : {kWeights, kRecurrence, kBias, kPeepholes}) {
      if (port < num_recurrent_inputs(kind_) && site.has_input(port)) key.add(text(port)).add(site.constant(port));
    }
    key.store(&sizes_);
  }

  static uint64_t workspace(CellKind kind, const Site& site, cpu::Isa isa, const cpu::GemmTactic& blocks) {
    RecurrentKernel kernel(kind);
    kernel.isa_ = isa;
    kernel.blocks_ = blocks;
    kernel.threads_ = site.threads();
    Pieces pieces(nullptr);
    kernel.deal_scratch(RecurrentGeometry::make(site.max_dims(kX), site.max_dims(kRecurrence)), &pieces);
    return pieces.used();
  }

  Sizes sizes() const override { return sizes_; }

  void initialize(const Init& init) override {
    Pieces pieces(init.persistent<void>());
    for (int d = 0; d < form_->directions; ++d) packed_[d] = deal_packed(&pieces);
    if (init.filled()) return;
    const int64_t gates = most_.gates, hidden = most_.hidden;
    for (int d = 0; d < form_->directions; ++d) {
      const Packed& p = packed_[d];
      const float* weights = init.constant(kWeights).data<float>() + d * gates * most_.inputs;
      const float* recurrence = init.constant(kRecurrence).data<float>() + d * gates * hidden;
      cpu::gemm_pack_b(input_shape(most_), weights, p.input, cpu::Parallel(), isa_);
      cpu::gemm_pack_b(recurrent_shape(most_), recurrence, p.recurrence, cpu::Parallel(), isa_);
      if (kind_ == CellKind::kGru) {
        cpu::gemm_pack_b(candidate_shape(most_), recurrence + 2 * hidden * hidden, p.candidate, cpu::Parallel(), isa_);
      }
      if (has_bias_) {
        const float* bias = init.constant(kBias).data<float>() + d * 2 * gates;
        for (int64_t n = 0; n < gates; ++n) {
          const bool apart = form_->linear_before_reset && n >= 2 * hidden;
          p.bias[n] = apart ? bias[n] : bias[n] + bias[gates + n];
          if (apart) p.candidate_bias[n - 2 * hidden] = bias[gates + n];
        }
      }
      if (has_peepholes_) {
        std::copy_n(init.constant(kPeepholes).data<float>() + d * 3 * hidden, 3 * hidden, p.peepholes);
      }
    }
  }

  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const RecurrentGeometry g = RecurrentGeometry::make(inputs[kX].dims, inputs[kRecurrence].dims);
    const cpu::Parallel parallel = to_parallel(exec);
    Pieces pieces(exec.workspace<void>());
    const Scratch scratch = deal_scratch(g, &pieces);
    const int64_t state = g.batch * g.hidden;
    const auto initial = [&](int port, int d, float* to) {
      const float* from = has_[port] ? static_cast<const float*>(inputs[port].data) + d * state : nullptr;
      if (from != nullptr) {
        std::copy_n(from, state, to);
      } else {
        std::fill_n(to, state, 0.0f);
      }
    };
    for (int d = 0; d < form_->directions; ++d) {
      const Packed& p = packed_[d];
      cpu::GemmOutput product;
      product.c = scratch.input;
      if (has_bias_) {
        product.bias = p.bias;
        product.bias_axis = cpu::BiasAxis::kPerColumn;
      }
      cpu::gemm_prepacked_b(input_shape(g), static_cast<const float*>(inputs[kX].data), p.input, product, blocks_,
                            scratch.gemm, parallel, isa_);
      initial(kInitialH, d, scratch.h);
      initial(kInitialC, d, scratch.c);
      for (int64_t s = 0; s < g.steps; ++s) {
        const int64_t t = form_->backward(d) ? g.steps - 1 - s : s;
        float* y = static_cast<float*>(outputs[0].data) + (t * form_->directions + d) * state;
        step(g, d, t, has_[kLengths] ? &inputs[kLengths] : nullptr, scratch, y, parallel);
      }
      std::copy_n(scratch.h, state, static_cast<float*>(outputs[1].data) + d * state);
      if (kind_ == CellKind::kLstm) std::copy_n(scratch.c, state, static_cast<float*>(outputs[2].data) + d * state);
    }
  }

 private:
  GemmShape input_shape(const RecurrentGeometry& g) const {
    return GemmShape::dense(g.steps * g.batch, g.gates, g.inputs, false, true);
  }
  // The product with the state writes into the gates' rows.
  GemmShape recurrent_shape(const RecurrentGeometry& g) const {
    const int64_t columns = kind_ == CellKind::kGru ? 2 * g.hidden : g.gates;
    return {g.batch, columns, g.hidden, false, true, g.hidden, g.hidden, g.gates};
  }
  GemmShape candidate_shape(const RecurrentGeometry& g) const {
    return {g.batch, g.hidden, g.hidden, false, true, g.hidden, g.hidden, g.gates};
  }

  Packed deal_packed(Pieces* pieces) const {
    Packed p;
    p.input = pieces->bytes(cpu::gemm_packed_b_bytes(most_.inputs, most_.gates, isa_));
    p.recurrence = pieces->bytes(cpu::gemm_packed_b_bytes(most_.hidden, recurrent_shape(most_).n, isa_));
    if (kind_ == CellKind::kGru)
      p.candidate = pieces->bytes(cpu::gemm_packed_b_bytes(most_.hidden, most_.hidden, isa_));
    if (has_bias_) {
      p.bias = pieces->floats(most_.gates);
      p.candidate_bias = pieces->floats(form_->linear_before_reset ? most_.hidden : 0);
    }
    if (has_peepholes_) p.peepholes = pieces->floats(3 * most_.hidden);
    return p;
  }

  Scratch deal_scratch(const RecurrentGeometry& g, Pieces* pieces) const {
    Scratch s;
    size_t gemm = 0;
    for (const GemmShape& shape : {input_shape(most_of(g)), recurrent_shape(most_of(g)), candidate_shape(most_of(g))}) {
      gemm = std::max(gemm, cpu::gemm_prepacked_b_workspace_bytes(shape, blocks_, threads_, isa_));
    }
    s.gemm = pieces->bytes(gemm);
    s.input = pieces->floats(g.steps * g.batch * g.gates);
    s.gates = pieces->floats(g.batch * g.gates);
    s.h = pieces->floats(g.batch * g.hidden);
    s.c = pieces->floats(g.batch * g.hidden);
    s.reset = pieces->floats(g.batch * g.hidden);
    return s;
  }
  // The gemm's part is sized for the largest shapes at every call.
  const RecurrentGeometry& most_of(const RecurrentGeometry& g) const { return most_.gates > 0 ? most_ : g; }

  void clip(int64_t count, float* x) const {
    if (form_->clip <= 0) return;
    const float bound = static_cast<float>(form_->clip);
    cpu::pointwise_unary(UnaryKind::kClip, -bound, bound, count, x, x, cpu::Parallel(), isa_);
  }

  // x = function(clip(x))
  void apply_clipped(const GateFunction& function, int64_t count, float* x) const {
    clip(count, x);
    apply(function, count, x);
  }

  void apply(const GateFunction& function, int64_t count, float* x) const {
    const auto unary = [&](UnaryKind kind, double alpha = 0, double beta = 0) {
      cpu::pointwise_unary(kind, static_cast<float>(alpha), static_cast<float>(beta), count, x, x, cpu::Parallel(),
                           isa_);
    };
    using Kind = GateFunction::Kind;
    switch (function.kind) {
      case Kind::kRelu:
        return unary(UnaryKind::kRelu);
      case Kind::kTanh:
        return unary(UnaryKind::kTanh);
      case Kind::kSigmoid:
        return unary(UnaryKind::kLogistic);
      case Kind::kAffine:
        return unary(UnaryKind::kLinear, function.alpha, function.beta);
      case Kind::kLeakyRelu:
        return unary(UnaryKind::kLeakyRelu, function.alpha);
      case Kind::kHardSigmoid:
        return unary(UnaryKind::kHardSigmoid, function.alpha, function.beta);
      case Kind::kElu:
        return unary(UnaryKind::kElu, function.alpha);
      case Kind::kScaledTanh:
        unary(UnaryKind::kLinear, function.beta);
        unary(UnaryKind::kTanh);
        return unary(UnaryKind::kLinear, function.alpha);
      case Kind::kThresholdedRelu:
      case Kind::kSoftsign:
      case Kind::kSoftplus:
        for (int64_t n = 0; n < count; ++n) x[n] = static_cast<float>(function(static_cast<double>(x[n])));
    }
  }

  // c = a B' + residual (+ bias), into rows of gates.
  void multiply(const GemmShape& shape, const float* a, const char* b, float* c, const float* residual,
                const float* bias, const Scratch& scratch, const cpu::Parallel& parallel) const {
    cpu::GemmOutput output;
    output.c = c;
    output.residual = residual;
    output.bias = bias;
    output.bias_axis = bias == nullptr ? cpu::BiasAxis::kNone : cpu::BiasAxis::kPerColumn;
    cpu::gemm_prepacked_b(shape, a, b, output, blocks_, scratch.gemm, parallel, isa_);
  }

  void step(const RecurrentGeometry& g, int d, int64_t t, const TnTensor* lengths, const Scratch& scratch, float* y,
            const cpu::Parallel& parallel) const {
    const Packed& p = packed_[d];
    const int64_t hidden = g.hidden;
    const float* input = scratch.input + t * g.batch * g.gates;
    const bool gru = kind_ == CellKind::kGru, reset_first = gru && !form_->linear_before_reset;
    multiply(recurrent_shape(g), scratch.h, p.recurrence, scratch.gates, input, nullptr, scratch, parallel);
    const int64_t grain = std::max<int64_t>(1, 2048 / std::max<int64_t>(1, g.gates));
    const auto for_rows = [&](const auto& body) {
      cpu::parallel_ranges(parallel, g.batch, grain, [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b) body(b, scratch.gates + b * g.gates, scratch.h + b * hidden);
      });
    };
    if (reset_first) {
      for_rows([&](int64_t b, float* gates, const float* h) {
        apply_clipped(form_->function(d, 0), 2 * hidden, gates);
        for (int64_t j = 0; j < hidden; ++j) scratch.reset[b * hidden + j] = gates[hidden + j] * h[j];
      });
    }
    if (gru) {
      multiply(candidate_shape(g), reset_first ? scratch.reset : scratch.h, p.candidate, scratch.gates + 2 * hidden,
               reset_first ? input + 2 * hidden : nullptr, reset_first ? nullptr : p.candidate_bias, scratch, parallel);
    }
    for_rows([&](int64_t b, float* gates, float* h) {
      float* out = y + b * hidden;
      if (lengths != nullptr && t >= Tensor(*lengths).integer(b)) return void(std::fill_n(out, hidden, 0.0f));
      if (kind_ == CellKind::kRnn) {
        apply_clipped(form_->function(d, 0), hidden, gates);
        std::copy_n(gates, hidden, h);
      } else if (gru) {
        if (!reset_first) {
          const float* own = input + b * g.gates + 2 * hidden;
          apply_clipped(form_->function(d, 0), 2 * hidden, gates);
          for (int64_t j = 0; j < hidden; ++j)
            gates[2 * hidden + j] = own[j] + gates[hidden + j] * gates[2 * hidden + j];
        }
        apply_clipped(form_->function(d, 1), hidden, gates + 2 * hidden);
        for (int64_t j = 0; j < hidden; ++j) h[j] = (1 - gates[j]) * gates[2 * hidden + j] + gates[j] * h[j];
      } else {
        lstm_row(d, p.peepholes, hidden, gates, h, scratch.c + b * hidden);
      }
      std::copy_n(h, hidden, out);
    });
  }

  // Gates i, o, f, c. `gates` is overwritten.
  void lstm_row(int d, const float* peepholes, int64_t hidden, float* gates, float* h, float* c) const {
    float *in = gates, *out = gates + hidden, *forget = gates + 2 * hidden, *candidate = gates + 3 * hidden;
    const auto add_peephole = [&](int gate, float* to) {
      if (peepholes == nullptr) return;
      for (int64_t j = 0; j < hidden; ++j) to[j] += peepholes[gate * hidden + j] * c[j];
    };
    add_peephole(0, in);
    add_peephole(2, forget);
    apply_clipped(form_->function(d, 0), hidden, in);
    if (form_->input_forget) {
      for (int64_t j = 0; j < hidden; ++j) forget[j] = 1 - in[j];
    } else {
      apply_clipped(form_->function(d, 0), hidden, forget);
    }
    apply_clipped(form_->function(d, 1), hidden, candidate);
    for (int64_t j = 0; j < hidden; ++j) c[j] = forget[j] * c[j] + in[j] * candidate[j];
    add_peephole(1, out);
    apply_clipped(form_->function(d, 0), hidden, out);
    std::copy_n(c, hidden, h);
    apply(form_->function(d, 2), hidden, h);
    for (int64_t j = 0; j < hidden; ++j) h[j] *= out[j];
  }

  CellKind kind_;
  cpu::Isa isa_ = cpu::Isa::kBaseline;
  cpu::GemmTactic blocks_;
  std::unique_ptr<RecurrentForm> form_;
  RecurrentGeometry most_;
  int threads_ = 1;
  bool has_bias_ = false, has_peepholes_ = false;
  bool has_[8] = {};
  Sizes sizes_;
  Packed packed_[2];
};

void recurrent_combos(CellKind kind, const Site& site, Combos& combos) {
  std::vector<Port> inputs, outputs(static_cast<size_t>(num_recurrent_outputs(kind)), f32_row());
  for (int port = 0; port < num_recurrent_inputs(kind); ++port) {
    const bool packed = port == kWeights || port == kRecurrence || port == kBias || port == kPeepholes;
    if (packed || !site.has_input(port)) {
      inputs.push_back(any_constant());
    } else {
      inputs.push_back(port == kLengths ? row(site.dtype(port)) : f32_row());
    }
  }
  combos.add(ComboSpec(inputs, outputs));
}

}  // namespace

Definitions recurrent_kernels() {
  Definitions all;
  const std::pair<CellKind, const char*> kinds[] = {
      {CellKind::kRnn, "rnn"}, {CellKind::kGru, "gru"}, {CellKind::kLstm, "lstm"}};
  for (const auto& [cell, name] : kinds) {
    const CellKind kind = cell;
    Kernel definition(text("tenon.", name, "/1"), text("tenon.", name, ".gemm.f32"),
                      [kind] { return std::make_unique<RecurrentKernel>(kind); });
    definition.deterministic()
        .relocatable()
        .supports([kind](const Site& site) { recurrent_supports(kind, site); })
        .more_combos([kind](const Site& site, Combos& combos) { recurrent_combos(kind, site, combos); })
        .tactics([kind](const Site& site, const Combo&, Tactics& tactics) {
          for (const cpu::Isa isa : gemm_isas()) {
            const cpu::GemmTactic blocks = cpu::gemm_tactic(0, isa);
            tactics.add(gemm_params(isa, blocks), RecurrentKernel::workspace(kind, site, isa, blocks));
          }
        });
    all.add(definition);
  }
  return all;
}

}  // namespace tenon::plugins
