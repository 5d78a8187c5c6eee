// tenon.attention/1 and tenon.attention_scores/1: scaled dot products.
#include "plugins/attention/attention.h"

#include <cmath>
#include <limits>
#include <tenon/sdk/plugin.hpp>
#include <vector>

#include "plugins/common/tolerance.h"

namespace tenon::plugins {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// For Infer and Reference.
template <class Question>
AttentionGeometry geometry_of(const Question& question, bool scores) {
  return AttentionGeometry::make(
      question.attrs(), !scores, [&](int port) { return question.has_input(port); },
      [&](int port) { return question.input(port).dims(); });
}

void attention_infer(const Infer& question, bool scores) {
  const int32_t dtype = question.input(kQuery).dtype();
  if (!is_floating(dtype)) throw Invalid(text("input q: expected a floating dtype, found ", dtype_name(dtype)));
  const auto expect = [&](int port, const char* name, int32_t wanted, int32_t other) {
    if (!question.has_input(port)) return;
    const int32_t found = question.input(port).dtype();
    if (found != wanted && found != other) {
      throw Invalid(text("input ", name, ": expected dtype ", dtype_name(wanted), ", found ", dtype_name(found)));
    }
  };
  expect(kKey, "k", dtype, dtype);
  expect(kValue, "v", dtype, dtype);
  expect(kMask, "mask", dtype, TN_BOOL);
  expect(kLengths, "lengths", TN_I64, TN_I64);
  const AttentionGeometry g = geometry_of(question, scores);
  if (question.has_input(kLengths) && question.input(kLengths).dims() != Dims{g.batch}) {
    throw Invalid(text("input lengths: expected [", g.batch, "], found ", to_text(question.input(kLengths).dims())));
  }
  question.output(0, dtype, scores ? Dims{g.batch, g.heads, g.queries, g.keys} : g.result);
}

// Rows of scores, one at a time.
template <class T>
class Scores {
 public:
  Scores(const Reference& call, bool scores)
      : g_(geometry_of(call, scores)),
        q_(call.input(kQuery).data<T>()),
        k_(call.input(call.has_input(kKey) ? kKey : kQuery).data<T>()),
        raw_(static_cast<size_t>(g_.keys)),
        capped_(raw_),
        biased_(raw_),
        weights_(raw_) {
    if (call.has_input(kMask)) {
      (call.input(kMask).dtype() == TN_BOOL ? allowed_ : bias_) = call.input(kMask).data();
    }
    if (call.has_input(kLengths)) lengths_ = call.input(kLengths).data<int64_t>();
  }
  const AttentionGeometry& geometry() const { return g_; }
  // Computes the row unless it is the last one asked for.
  void select(int64_t batch, int64_t head, int64_t query) {
    const int64_t row = (batch * g_.heads + head) * g_.queries + query;
    if (row == row_) return;
    row_ = row;
    const T* q = q_ + g_.q.at(batch, head, query);
    const AttentionGeometry::Range range =
        g_.range(query, lengths_ == nullptr ? -1 : std::max<int64_t>(lengths_[batch], 0));
    double largest = kMinusInfinity;
    for (int64_t j = 0; j < g_.keys; ++j) {
      const auto at = static_cast<size_t>(j);
      double sum = 0;
      const T* k = k_ + g_.k.at(batch, g_.key_head(head), j);
      for (int64_t n = 0; n < g_.size; ++n) sum += static_cast<double>(q[n]) * static_cast<double>(k[n]);
      raw_[at] = sum * g_.scale;
      capped_[at] = g_.softcap > 0 ? g_.softcap * std::tanh(raw_[at] / g_.softcap) : raw_[at];
      const double bias = j >= range.begin && j < range.end ? mask(batch, head, query, j) : kMinusInfinity;
      biased_[at] = bias == kMinusInfinity ? kMinusInfinity : capped_[at] + bias;
      largest = std::max(largest, biased_[at]);
    }
    // A query without keys gets zeros.
    double sum = 0;
    for (int64_t j = 0; j < g_.keys; ++j) {
      const auto at = static_cast<size_t>(j);
      weights_[at] = largest == kMinusInfinity ? 0 : std::exp(biased_[at] - largest);
      sum += weights_[at];
    }
    for (double& weight : weights_) weight = largest == kMinusInfinity ? 0 : weight / sum;
  }
  const std::vector<double>& raw() const { return raw_; }
  const std::vector<double>& capped() const { return capped_; }
  const std::vector<double>& biased() const { return biased_; }
  const std::vector<double>& weights() const { return weights_; }

 private:
  double mask(int64_t batch, int64_t head, int64_t query, int64_t key) const {
    const int64_t index[] = {batch, head, query, key};
    const int64_t at = offset_of(index, g_.mask_strides, 4);
    if (allowed_ != nullptr) return static_cast<const uint8_t*>(allowed_)[at] != 0 ? 0 : kMinusInfinity;
    return bias_ == nullptr ? 0 : static_cast<double>(static_cast<const T*>(bias_)[at]);
  }

  AttentionGeometry g_;
  const T* q_;
  const T* k_;
  const void* allowed_ = nullptr;
  const void* bias_ = nullptr;
  const int64_t* lengths_ = nullptr;
  int64_t row_ = -1;
  std::vector<double> raw_, capped_, biased_, weights_;
};

template <class T>
void attention_reference_of(const Reference& call) {
  Scores<T> scores(call, false);
  const AttentionGeometry& g = scores.geometry();
  const T* v = call.input(call.has_input(kValue) ? kValue : kQuery).data<T>();
  const bool merged = g.result.rank == 3;
  call.fill<T>(0, [&](const int64_t* index, int64_t) {
    const int64_t batch = index[0], head = merged ? index[2] / g.value_size : index[1];
    const int64_t n = merged ? index[2] % g.value_size : index[3];
    scores.select(batch, head, merged ? index[1] : index[2]);
    double sum = 0;
    for (int64_t j = 0; j < g.keys; ++j) {
      const double weight = scores.weights()[static_cast<size_t>(j)];
      if (weight != 0) sum += weight * static_cast<double>(v[g.v.at(batch, g.key_head(head), j) + n]);
    }
    return static_cast<T>(sum);
  });
}

template <class T>
void scores_reference_of(const Reference& call) {
  Scores<T> scores(call, true);
  const std::string stage = call.attrs().str("stage");
  const std::vector<double>& list = stage == "product"   ? scores.raw()
                                    : stage == "softcap" ? scores.capped()
                                    : stage == "mask"    ? scores.biased()
                                                         : scores.weights();
  call.fill<T>(0, [&](const int64_t* index, int64_t) {
    scores.select(index[0], index[1], index[2]);
    return static_cast<T>(list[static_cast<size_t>(index[3])]);
  });
}

Op attention_op(const char* id, const char* doc, bool scores) {
  Op op(id);
  op.doc(doc)
      .attr_f64("scale", "of the products; usually 1 / sqrt(size)")
      .required()
      .attr_f64("softcap", "products become softcap * tanh(product / softcap); 0: not")
      .default_value("0")
      .range("[0,)")
      .attr_i64("causal", "1: a query sees the keys up to its own place")
      .default_value("0")
      .range("0|1")
      .attr_i64("past", "keys before the first query's place, unless lengths are given")
      .default_value("0")
      .range("[0,)")
      .attr_i64("left_window", "keys before its own place that a query sees; -1: all")
      .default_value("-1")
      .range("[-1,)")
      .attr_i64("right_window", "keys behind its own place that a query sees; -1: all")
      .default_value("-1")
      .range("[-1,)")
      .attr_i64("heads", "of q of rank 3")
      .default_value("0")
      .range("[0,)")
      .attr_i64("key_heads", "of k and v of rank 3; 0: as many as q has")
      .default_value("0")
      .range("[0,)");
  if (!scores) {
    op.attr_i64("merge_heads", "1: y is [batch, queries, heads * value size]").default_value("0").range("0|1");
  }
  if (scores) {
    op.attr_str("stage", "which scores: product, after softcap, after mask, or the weights")
        .default_value("weights")
        .range("product|softcap|mask|weights");
  }
  op.input("q",
           "[batch, heads, queries, size] or [batch, queries, heads * size], floating; without k and v [batch, steps, "
           "(heads + 2 * key_heads) * size] with those of all heads behind each other, q, k and v")
      .input("k",
             "[batch, key heads, keys, size] or [batch, keys, key_heads * size]; each head is shared by heads / key "
             "heads heads of q that follow each other")
      .optional()
      .input("v", "[batch, key heads, keys, value size] or [batch, keys, key_heads * value size]")
      .optional()
      .input("mask",
             "broadcasts to [batch, heads, queries, keys]; bool: 0 hides a key, floating: is added; keys behind "
             "its last axis are hidden")
      .optional()
      .input("lengths", "i64 [batch]: keys of each sequence; the queries are at its end")
      .optional()
      .output("y", scores ? "[batch, heads, queries, keys]" : "[batch, heads, queries, value size]")
      .infer([scores](const Infer& question) { attention_infer(question, scores); })
      .reference([scores](const Reference& call) {
        visit_floating(call.output(0).dtype(), [&](auto zero) {
          scores ? scores_reference_of<decltype(zero)>(call) : attention_reference_of<decltype(zero)>(call);
        });
      })
      .tolerance([](const Attrs&, int32_t dtype) { return sum_tolerance(dtype); });
  return op;
}

Definitions attention_definitions() {
  Definitions all;
  all.add(
      attention_op("tenon.attention/1",
                   "Scaled dot product attention (Vaswani et al. 2017). y = softmax(scale * q k' + mask) v; zeros for "
                   "a query that sees no key (ONNX Attention-25)",
                   false));
  all.add(attention_op("tenon.attention_scores/1",
                       "The scores inside of tenon.attention. y = scale * q k', or a later stage of them", true));
  return all;
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.attention", "1", "Apache-2.0", tenon::plugins::attention_definitions(),
             tenon::plugins::attention_kernels(), tenon::plugins::attention_rules(),
             tenon::plugins::attention_layout_rules(), tenon::plugins::rotary_embedding_definitions(),
             tenon::plugins::linear_attention_definitions())
