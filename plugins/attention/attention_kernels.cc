// tenon.attention/1 on Tenon's gemm. A task is a block of rows of one head: scores of all keys that any of the rows
// sees, softmax of each row, product with the values. Where queries of the heads that share a key head follow each
// other in memory, they are one matrix.
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

// A matrix of queries that see the same keys: those of `heads` heads.
struct QueryMatrix {
  int64_t heads = 1;
  int64_t rows = 0;

  explicit QueryMatrix(const AttentionGeometry& g) : rows(g.queries) {
    const bool dense = g.q.head == g.queries * g.q.row && g.y.head == g.queries * g.y.row;
    if (!dense || g.key_heads == 0) return;
    heads = g.heads / g.key_heads;
    rows *= heads;
  }
};

class AttentionKernel final : public IPlugin {
 public:
  static void tactics(const Site& site, const Combo&, Tactics& tactics) {
    const AttentionGeometry g = most_of(site);
    const int64_t most = QueryMatrix(g).rows;
    for (const cpu::Isa isa : gemm_isas()) {
      for (const int64_t rows : kRows) {
        if (rows == kRows[0] || most > std::min(rows, kRows[0])) {
          for (const char* values : {"direct", "packed"}) {
            tactics.add(text("isa=", cpu::isa_name(isa), ";rows=", rows, ";values=", values),
                        workspace(g, rows, site.threads(), isa));
          }
        }
      }
    }
  }

  void configure(const Config& config) override {
    const Site site = config.site();
    isa_ = isa_of(config.params());
    block_ = config.params().i64("rows");
    if (block_ < 1 || block_ > 4096) throw Declined(text("no such tactic: rows=", block_));
    direct_ = config.params().str("values") == "direct";
    most_ = most_of(site);
    for (int port = 0; port < kPorts; ++port) has_[port] = site.has_input(port);
    is_bool_ = has_[kMask] && site.dtype(kMask) == TN_BOOL;
    sizes_.workspace = workspace(most_, block_, site.threads(), isa_);
  }
  Sizes sizes() const override { return sizes_; }

  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    AttentionGeometry g = most_;
    g.set_dims([&](int port) { return has_[port]; }, [&](int port) { return Dims(inputs[port].dims); });
    const QueryMatrix matrix(g);
    const int64_t blocks = (matrix.rows + block_ - 1) / block_;
    const uint64_t slot_bytes = slot(most_, block_, isa_);
    char* memory = exec.workspace<char>();
    const int64_t heads = g.batch * g.heads / matrix.heads;
    cpu::parallel_tasks(to_parallel(exec), heads * blocks, [&](int64_t thread, int64_t task) {
      const int64_t first_head = task / blocks * matrix.heads;
      block(g,
            {first_head / g.heads, first_head % g.heads, task % blocks * block_,
             std::min(matrix.rows, (task % blocks + 1) * block_)},
            inputs, static_cast<float*>(outputs[0].data), memory + static_cast<uint64_t>(thread) * slot_bytes);
    });
  }

 private:
  // Rows [begin, end) of the matrix that begins with queries of this head.
  struct Block {
    int64_t batch, head, begin, end;
  };

  static cpu::GemmShape product(const AttentionGeometry& g, int64_t rows, int64_t keys) {
    cpu::GemmShape shape = cpu::GemmShape::dense(rows, keys, g.size, false, true);
    shape.lda = g.q.row;
    shape.ldb = g.k.row;
    return shape;
  }
  static cpu::GemmShape sum(const AttentionGeometry& g, int64_t rows, int64_t keys) {
    cpu::GemmShape shape = cpu::GemmShape::dense(rows, g.value_size, keys);
    shape.ldb = g.v.row;
    shape.ldc = g.y.row;
    return shape;
  }
  static int64_t most_rows(const AttentionGeometry& g, int64_t block) { return std::min(block, QueryMatrix(g).rows); }
  static uint64_t scores_bytes(const AttentionGeometry& g, int64_t block) {
    return aligned(static_cast<uint64_t>(most_rows(g, block) * g.keys) * sizeof(float));
  }
  // Scratch of one thread.
  static uint64_t slot(const AttentionGeometry& g, int64_t block, cpu::Isa isa) {
    const int64_t rows = most_rows(g, block);
    const cpu::GemmTactic blocks = cpu::gemm_tactic(0, isa);
    return scores_bytes(g, block) +
           aligned(std::max(cpu::gemm_workspace_bytes(product(g, rows, g.keys), blocks, 1, isa),
                            cpu::gemm_workspace_bytes(sum(g, rows, g.keys), blocks, 1, isa)));
  }
  static uint64_t workspace(const AttentionGeometry& g, int64_t block, int threads, cpu::Isa isa) {
    return static_cast<uint64_t>(threads) * slot(g, block, isa);
  }

  void block(const AttentionGeometry& g, const Block& at, const TnTensor* inputs, float* y, char* own) const {
    const int64_t rows = at.end - at.begin;
    int64_t length = -1;
    if (has_[kLengths]) length = std::max<int64_t>(0, static_cast<const int64_t*>(inputs[kLengths].data)[at.batch]);
    AttentionGeometry::Range seen = {g.keys, 0};
    for (int64_t row = at.begin; row < at.end; ++row) {
      const AttentionGeometry::Range range = g.range(row % g.queries, length);
      if (range.begin == range.end) continue;
      seen = {std::min(seen.begin, range.begin), std::max(seen.end, range.end)};
    }
    y += g.y.at(at.batch, at.head, at.begin);
    const int64_t keys = seen.end - seen.begin;
    if (keys <= 0) {
      for (int64_t row = 0; row < rows; ++row) std::fill_n(y + row * g.y.row, g.value_size, 0.0f);
      return;
    }
    const int64_t key_head = g.key_head(at.head);
    const float* q = static_cast<const float*>(inputs[kQuery].data) + g.q.at(at.batch, at.head, at.begin);
    const float* k =
        static_cast<const float*>(inputs[has_[kKey] ? kKey : kQuery].data) + g.k.at(at.batch, key_head, seen.begin);
    const float* v =
        static_cast<const float*>(inputs[has_[kValue] ? kValue : kQuery].data) + g.v.at(at.batch, key_head, seen.begin);
    float* scores = reinterpret_cast<float*>(own);
    void* gemm = own + scores_bytes(most_, block_);
    const cpu::GemmTactic blocks = cpu::gemm_tactic(0, isa_);
    cpu::GemmOutput output;
    output.c = scores;
    cpu::gemm(product(g, rows, keys), q, k, output, blocks, gemm, cpu::Parallel(), isa_);
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t head = at.head + (at.begin + row) / g.queries, query = (at.begin + row) % g.queries;
      weights(g, g.range(query, length), seen, at.batch, head, query, inputs, scores + row * keys);
    }
    output.c = y;
    if (direct_) return cpu::gemm_direct(sum(g, rows, keys), scores, v, output, cpu::Parallel(), isa_);
    cpu::gemm(sum(g, rows, keys), scores, v, output, blocks, gemm, cpu::Parallel(), isa_);
  }

  // Turns a row of products, of the keys in `seen`, into weights.
  void weights(const AttentionGeometry& g, AttentionGeometry::Range range, AttentionGeometry::Range seen, int64_t batch,
               int64_t head, int64_t query, const TnTensor* inputs, float* row) const {
    const int64_t keys = seen.end - seen.begin, count = range.end - range.begin;
    float* part = row + (range.begin - seen.begin);
    std::fill(row, count > 0 ? part : row + keys, 0.0f);
    if (count <= 0) return;
    std::fill(part + count, row + keys, 0.0f);
    const int64_t index[] = {batch, head, query, range.begin};
    const int64_t start = offset_of(index, g.mask_strides, 4), step = g.mask_strides[3];
    float scale = static_cast<float>(g.scale);
    const float* bias = nullptr;
    if (has_[kMask] && !is_bool_) bias = static_cast<const float*>(inputs[kMask].data) + start;
    if (g.softcap > 0 || is_bool_) {
      const auto unary = [&](cpu::UnaryKind kind, double factor) {
        cpu::pointwise_unary(kind, static_cast<float>(factor), 0, count, part, part, cpu::Parallel(), isa_);
      };
      unary(cpu::UnaryKind::kLinear, g.softcap > 0 ? g.scale / g.softcap : g.scale);
      if (g.softcap > 0) {
        unary(cpu::UnaryKind::kTanh, 0);
        unary(cpu::UnaryKind::kLinear, g.softcap);
      }
      scale = 1;
    }
    if (is_bool_) {
      const uint8_t* allowed = static_cast<const uint8_t*>(inputs[kMask].data) + start;
      for (int64_t j = 0; j < count; ++j) part[j] = allowed[j * step] != 0 ? part[j] : kMinusInfinity;
    }
    cpu::softmax_of_scores(count, scale, bias, part, isa_);
  }

  static constexpr int kPorts = kLengths + 1;
  AttentionGeometry most_;
  cpu::Isa isa_ = cpu::Isa::kBaseline;
  int64_t block_ = 0;
  bool direct_ = false;  // the values are read where they are, not packed first
  bool has_[kPorts] = {}, is_bool_ = false;
  Sizes sizes_;
};

void attention_combos(const Site& site, Combos& combos) {
  std::vector<Port> inputs(1, f32_row());
  for (const int port : {kKey, kValue}) inputs.push_back(site.has_input(port) ? f32_row() : any_constant());
  for (const int port : {kMask, kLengths}) {
    inputs.push_back(site.has_input(port) ? row(site.dtype(port)) : any_constant());
  }
  combos.add(ComboSpec(inputs, {f32_row()}));
}

}  // namespace

Definitions attention_kernels() {
  Definitions all;
  all.add(kernel<AttentionKernel>("tenon.attention/1", "tenon.attention.blocked.f32")
              .more_combos(attention_combos)
              .tactics(AttentionKernel::tactics)
              .deterministic());
  return all;
}

}  // namespace tenon::plugins
