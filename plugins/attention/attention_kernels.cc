// tenon.attention/1 on Tenon's gemm. A task is a block of rows of one key head: scores of all keys that any of the rows
// sees, softmax of each row, product with the values. Queries of the heads that share a key head are one matrix.
#include <cmath>
#include <limits>
#include <memory>
#include <tenon/sdk/kernel.hpp>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/pointwise.h"
#include "kernels/cpu/softmax.h"
#include "plugins/attention/attention.h"
#include "plugins/common/gemm_tactics.h"
#include "plugins/common/parallel.h"

namespace tenon::plugins {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
constexpr int64_t kRows[] = {64, 16, 256};

uint64_t aligned(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

AttentionGeometry site_geometry(const Site& site) {
  const Dims mask = site.has_input(kMask) ? site.max_dims(kMask) : Dims();
  return AttentionGeometry::make(site.max_dims(kQuery), site.max_dims(kKey), site.max_dims(kValue),
                                 site.has_input(kMask) ? &mask : nullptr, site.attrs());
}

class AttentionKernel final : public IPlugin {
 public:
  static void tactics(const Site& site, const Combo&, Tactics& tactics) {
    const AttentionGeometry g = site_geometry(site);
    for (const cpu::Isa isa : gemm_isas()) {
      for (const int64_t rows : kRows) {
        if (rows == kRows[0] || rows_of(g) > std::min(rows, kRows[0])) {
          tactics.add(text("isa=", cpu::isa_name(isa), ";rows=", rows), workspace(g, rows, site.threads(), isa));
        }
      }
    }
  }

  void configure(const Config& config) override {
    const Site site = config.site();
    isa_ = isa_of(config.params());
    block_ = config.params().i64("rows");
    if (block_ < 1 || block_ > 4096) throw Declined(text("no such tactic: rows=", block_));
    most_ = site_geometry(site);
    is_bool_ = site.has_input(kMask) && site.dtype(kMask) == TN_BOOL;
    has_mask_ = site.has_input(kMask);
    has_lengths_ = site.has_input(kLengths);
    sizes_.workspace = workspace(most_, block_, site.threads(), isa_);
  }
  Sizes sizes() const override { return sizes_; }

  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const AttentionGeometry& g = most_;
    const int64_t rows = rows_of(g), blocks = (rows + block_ - 1) / block_;
    const uint64_t slot_bytes = slot(g, block_, isa_);
    char* memory = exec.workspace<char>();
    cpu::parallel_tasks(to_parallel(exec), g.batch * g.key_heads * blocks, [&](int64_t thread, int64_t task) {
      char* own = memory + static_cast<uint64_t>(thread) * slot_bytes;
      block(task / blocks, task % blocks * block_, std::min(rows, (task % blocks + 1) * block_), inputs,
            static_cast<float*>(outputs[0].data), own);
    });
  }

 private:
  // Rows of the matrix of one key head: its heads' queries.
  static int64_t rows_of(const AttentionGeometry& g) {
    return g.key_heads == 0 ? 0 : g.heads / g.key_heads * g.queries;
  }
  static cpu::GemmShape product(const AttentionGeometry& g, int64_t rows, int64_t keys) {
    return cpu::GemmShape::dense(rows, keys, g.size, false, true);
  }
  static cpu::GemmShape sum(const AttentionGeometry& g, int64_t rows, int64_t keys) {
    return cpu::GemmShape::dense(rows, g.value_size, keys);
  }
  static uint64_t scores_bytes(const AttentionGeometry& g, int64_t block) {
    return aligned(static_cast<uint64_t>(std::min(block, rows_of(g)) * g.keys) * sizeof(float));
  }
  // Scratch of one thread.
  static uint64_t slot(const AttentionGeometry& g, int64_t block, cpu::Isa isa) {
    const int64_t rows = std::min(block, rows_of(g));
    const cpu::GemmTactic blocks = cpu::gemm_tactic(0, isa);
    return scores_bytes(g, block) +
           aligned(std::max(cpu::gemm_workspace_bytes(product(g, rows, g.keys), blocks, 1, isa),
                            cpu::gemm_workspace_bytes(sum(g, rows, g.keys), blocks, 1, isa)));
  }
  static uint64_t workspace(const AttentionGeometry& g, int64_t block, int threads, cpu::Isa isa) {
    return static_cast<uint64_t>(threads) * slot(g, block, isa);
  }

  // Rows [begin, end) of a key head, counted through all batches.
  void block(int64_t key_head, int64_t begin, int64_t end, const TnTensor* inputs, float* y, char* own) const {
    const AttentionGeometry& g = most_;
    const int64_t rows = end - begin, first = key_head * rows_of(g) + begin;
    const int64_t batch = key_head / g.key_heads;
    int64_t length = -1;
    if (has_lengths_) length = std::max<int64_t>(0, static_cast<const int64_t*>(inputs[kLengths].data)[batch]);
    AttentionGeometry::Range seen = {g.keys, 0};
    for (int64_t row = begin; row < end; ++row) {
      const AttentionGeometry::Range range = g.range(row % g.queries, length);
      if (range.begin == range.end) continue;
      seen = {std::min(seen.begin, range.begin), std::max(seen.end, range.end)};
    }
    y += first * g.value_size;
    const int64_t keys = seen.end - seen.begin;
    if (keys <= 0) return void(std::fill_n(y, rows * g.value_size, 0.0f));
    const float* q = static_cast<const float*>(inputs[kQuery].data) + first * g.size;
    const float* k = static_cast<const float*>(inputs[kKey].data) + (key_head * g.keys + seen.begin) * g.size;
    const float* v = static_cast<const float*>(inputs[kValue].data) + (key_head * g.keys + seen.begin) * g.value_size;
    float* scores = reinterpret_cast<float*>(own);
    void* gemm = own + scores_bytes(g, block_);
    const cpu::GemmTactic blocks = cpu::gemm_tactic(0, isa_);
    cpu::GemmOutput output;
    output.c = scores;
    cpu::gemm(product(g, rows, keys), q, k, output, blocks, gemm, cpu::Parallel(), isa_);
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t head = (first + row) / g.queries % g.heads, query = (begin + row) % g.queries;
      const AttentionGeometry::Range range = g.range(query, length);
      weights(range, seen, batch, head, query, inputs, scores + row * keys);
    }
    output.c = y;
    cpu::gemm(sum(g, rows, keys), scores, v, output, blocks, gemm, cpu::Parallel(), isa_);
  }

  // Turns a row of products, of the keys in `seen`, into weights.
  void weights(AttentionGeometry::Range range, AttentionGeometry::Range seen, int64_t batch, int64_t head,
               int64_t query, const TnTensor* inputs, float* row) const {
    const AttentionGeometry& g = most_;
    const int64_t keys = seen.end - seen.begin, count = range.end - range.begin;
    float* part = row + (range.begin - seen.begin);
    std::fill(row, count > 0 ? part : row + keys, 0.0f);
    if (count <= 0) return;
    std::fill(part + count, row + keys, 0.0f);
    const auto unary = [&](cpu::UnaryKind kind, double factor) {
      cpu::pointwise_unary(kind, static_cast<float>(factor), 0, count, part, part, cpu::Parallel(), isa_);
    };
    unary(cpu::UnaryKind::kLinear, g.softcap > 0 ? g.scale / g.softcap : g.scale);
    if (g.softcap > 0) {
      unary(cpu::UnaryKind::kTanh, 0);
      unary(cpu::UnaryKind::kLinear, g.softcap);
    }
    if (has_mask_) {
      const int64_t index[] = {batch, head, query, range.begin};
      const int64_t start = offset_of(index, g.mask_strides, 4), step = g.mask_strides[3];
      if (is_bool_) {
        const uint8_t* allowed = static_cast<const uint8_t*>(inputs[kMask].data) + start;
        for (int64_t j = 0; j < count; ++j) part[j] = allowed[j * step] != 0 ? part[j] : kMinusInfinity;
      } else {
        const float* bias = static_cast<const float*>(inputs[kMask].data) + start;
        for (int64_t j = 0; j < count; ++j) {
          part[j] = bias[j * step] == kMinusInfinity ? kMinusInfinity : part[j] + bias[j * step];
        }
      }
    }
    bool any = false;
    for (int64_t j = 0; j < count; ++j) any |= part[j] != kMinusInfinity;
    if (!any) return void(std::fill_n(part, count, 0.0f));
    cpu::softmax(cpu::SoftmaxKind::kSoftmax, 1, count, 1, part, part, cpu::Parallel(), isa_);
  }

  AttentionGeometry most_;
  cpu::Isa isa_ = cpu::Isa::kBaseline;
  int64_t block_ = 0;
  bool has_mask_ = false, is_bool_ = false, has_lengths_ = false;
  Sizes sizes_;
};

void attention_supports(const Site& site) {
  if (!site.is_static()) throw Declined("shapes vary");
}

void attention_combos(const Site& site, Combos& combos) {
  std::vector<Port> inputs(3, f32_row());
  for (const int port : {kMask, kLengths}) {
    inputs.push_back(site.has_input(port) ? row(site.dtype(port)) : any_constant());
  }
  combos.add(ComboSpec(inputs, {f32_row()}));
}

}  // namespace

Definitions attention_kernels() {
  Definitions all;
  all.add(kernel<AttentionKernel>("tenon.attention/1", "tenon.attention.blocked.f32")
              .supports(attention_supports)
              .more_combos(attention_combos)
              .tactics(AttentionKernel::tactics)
              .deterministic());
  return all;
}

}  // namespace tenon::plugins
