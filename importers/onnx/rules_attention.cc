// Attention, FlexAttention, LinearAttention, RotaryEmbedding, CausalConvWithState.
#include <cmath>

#include "importers/onnx/rules.h"

namespace tenon::onnx {
namespace {

/// [batch, steps, heads*size] as [batch, heads, steps, size].
TnValueId split_heads(OnnxNode& node, TnValueId value, int64_t heads, const char* attr) {
  const Dims dims = node.dims_of(value);
  if (dims.rank == 4) return value;
  if (dims.rank != 3 || heads < 1 || dims[2] % heads != 0) {
    throw Invalid(text("expected rank 4, or rank 3 and a divisor of the last dim in ", attr, ", found ", to_text(dims),
                       " and ", heads));
  }
  return node.transpose(node.reshape(value, {dims[0], dims[1], heads, dims[2] / heads}), {0, 2, 1, 3});
}

double attention_scale(OnnxNode& node, const Dims& q) {
  return node.f64("scale", 1.0 / std::sqrt(static_cast<double>(std::max<int64_t>(q[3], 1))));
}

/// Behind what is kept from before, if there is any.
TnValueId append(OnnxNode& node, TnValueId past, TnValueId now) {
  if (past == TN_NO_ID || node.dims_of(past).elements() == 0) return now;
  return node.add("tenon.concat/1", node.attrs().i64("axis", 2), {past, now});
}

void attention_rule(OnnxNode& node) {
  const bool packed = node.rank(0) == 3;
  const TnValueId q = split_heads(node, node.input(0), node.i64("q_num_heads", 0), "q_num_heads");
  const int64_t key_heads = node.i64("kv_num_heads", 0);
  const TnValueId past_k = node.optional_input(4), past_v = node.optional_input(5);
  const TnValueId k = append(node, past_k, split_heads(node, node.input(1), key_heads, "kv_num_heads"));
  const TnValueId own_v = append(node, past_v, split_heads(node, node.input(2), key_heads, "kv_num_heads"));
  if ((past_k == TN_NO_ID) != (past_v == TN_NO_ID)) throw Invalid("past_key and past_value: expected both or none");
  if (past_k != TN_NO_ID && node.has_input(6)) throw Invalid("nonpad_kv_seqlen does not go with past_key");
  const int32_t dtype = node.dtype_of(q);
  const TnValueId v = node.cast(own_v, dtype);
  TnValueId mask = node.optional_input(3);
  if (mask != TN_NO_ID && node.dtype_of(mask) != TN_BOOL) mask = node.cast(mask, dtype);
  const Dims q_dims = node.dims_of(q);
  if (q_dims.rank != 4) throw Invalid(text("input Q: expected rank 3 or 4, found ", to_text(node.dims(0))));
  // Softmax works in at least the precision that softmax_precision asks for.
  const auto attrs = [&] {
    NewAttrs list = node.attrs();
    list.f64("scale", attention_scale(node, q_dims))
        .f64("softcap", node.f64("softcap", 0.0))
        .i64("causal", node.flag("is_causal", false))
        .i64("past", past_k == TN_NO_ID ? 0 : node.dims_of(past_k)[2])
        .i64("left_window", node.i64("left_window_size", -1))
        .i64("right_window", node.i64("right_window_size", -1));
    return list;
  };
  const std::vector<TnValueId> inputs = {q, k, v, mask, node.optional_input(6)};
  TnValueId y = node.add("tenon.attention/1", attrs(), inputs);
  if (packed) {
    const Dims dims = node.dims_of(y);
    y = node.reshape(node.transpose(y, {0, 2, 1, 3}), {dims[0], dims[2], dims[1] * dims[3]});
  }
  node.output(0, y);
  node.output(1, k);
  node.output(2, own_v);
  if (!node.wants(3)) return;
  const char* stages[] = {"product", "softcap", "mask", "weights"};
  const int64_t mode = node.i64("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) throw Invalid(text("qk_matmul_output_mode: expected 0 to 3, found ", mode));
  node.output(3, node.add("tenon.attention_scores/1", std::move(attrs().str("stage", stages[mode])), inputs));
}

/// One of the graphs that change the scores.
TnValueId modified(OnnxNode& node, const char* attr, TnValueId value, bool* failed) {
  if (!node.has(attr) || *failed) return value;
  const std::vector<Item> results = node.inline_graph(node.graph(attr), {Item::tensor(value)}, attr);
  if (results.size() != 1) throw Invalid(text(attr, ": expected one output, found ", results.size()));
  *failed = results[0].kind != Item::Kind::kTensor;
  return *failed ? value : results[0].value;
}

void flex_attention_rule(OnnxNode& node) {
  const Dims q = node.dims(0), k = node.dims(1), v = node.dims(2);
  if (q.rank != 4 || k.rank != 4 || v.rank != 4) throw Invalid("inputs Q, K and V: expected rank 4");
  if (k[1] < 1 || q[1] % k[1] != 0) throw Invalid(text(q[1], " heads of Q are no multiple of ", k[1], " of K"));
  const int32_t dtype = node.dtype(0);
  const double scale = attention_scale(node, q);
  if (!node.has("score_mod") && !node.has("prob_mod")) {
    return node.output(0, node.add("tenon.attention/1", node.attrs().f64("scale", scale),
                                   {node.input(0), node.input(1), node.input(2)}));
  }
  const int64_t precision = node.i64("softmax_precision", dtype == TN_F64 ? TN_F64 : TN_F32);
  if (!is_floating(static_cast<int32_t>(precision))) {
    throw Invalid(text("softmax_precision: expected a floating type, found ", precision));
  }
  const auto middle = static_cast<int32_t>(precision);
  // Heads that share a key head are rows of one matrix.
  const auto rows = [&](TnValueId value, int64_t last) {
    return q[1] == k[1] ? value : node.reshape(value, {q[0], k[1], q[1] / k[1] * q[2], last});
  };
  const auto heads = [&](TnValueId value, int64_t last) {
    return q[1] == k[1] ? value : node.reshape(value, {q[0], q[1], q[2], last});
  };
  TnValueId scores = heads(node.add("tenon.matmul/1", node.attrs().i64("transpose_b", 1),
                                    {rows(node.cast(node.input(0), middle), q[3]), node.cast(node.input(1), middle)}),
                           k[2]);
  scores = node.add("tenon.mul/1", {scores, node.scalar(middle, scale)});
  bool failed = false;
  scores = modified(node, "score_mod", scores, &failed);
  if (!failed) scores = node.add("tenon.softmax/1", node.attrs().i64("axis", -1), {scores});
  scores = modified(node, "prob_mod", scores, &failed);
  if (failed) return node.output(0, Item{Item::Kind::kFailed, TN_NO_ID, {}});
  const TnValueId y = node.add("tenon.matmul/1", {rows(scores, k[2]), node.cast(node.input(2), middle)});
  node.output(0, node.cast(heads(y, v[3]), dtype));
}

void rotary_embedding_rule(OnnxNode& node) {
  NewAttrs attrs = node.attrs();
  attrs.i64("num_heads", node.i64("num_heads", 0))
      .i64("rotary_size", node.i64("rotary_embedding_dim", 0))
      .i64("interleaved", node.flag("interleaved", false));
  node.output(0, node.add("tenon.rotary_embedding/1", attrs,
                          {node.input(0), node.input(1), node.input(2), node.optional_input(3)}));
}

void linear_attention_rule(OnnxNode& node) {
  NewAttrs attrs = node.attrs();
  attrs.i64("heads", node.i64("q_num_heads"))
      .i64("key_heads", node.i64("kv_num_heads"))
      .str("rule", node.str("update_rule", "gated_delta"))
      .f64("scale", node.f64("scale", 0.0));
  std::vector<TnValueId> inputs;
  for (int n = 0; n < 6; ++n) inputs.push_back(n < 3 ? node.input(n) : node.optional_input(n));
  const std::vector<TnValueId> outputs = node.add("tenon.linear_attention/1", attrs, inputs, 2);
  node.output(0, outputs[0]);
  node.output(1, outputs[1]);
}

void causal_conv_rule(OnnxNode& node) {
  const Dims x = node.dims(0), w = node.dims(1);
  if (x.rank != 3 || w != Dims{x[1], 1, w[2]} || w[2] < 1) {
    throw Invalid(text("expected input [batch,channels,length] and weight [channels,1,size], found ", to_text(x),
                       " and ", to_text(w)));
  }
  const int64_t before = w[2] - 1;
  const Dims past_dims = {x[0], x[1], before};
  TnValueId past = node.optional_input(3);
  if (past != TN_NO_ID && node.dims_of(past) != past_dims) {
    throw Invalid(text("past_state: expected ", to_text(past_dims), ", found ", to_text(node.dims_of(past))));
  }
  if (past == TN_NO_ID) {
    const std::vector<float> zeros(static_cast<size_t>(node.made_elements(past_dims)));
    past = node.cast(node.constant(host_tensor(TN_F32, past_dims, zeros.data())), node.dtype(0));
  }
  const TnValueId all = append(node, past, node.input(0));
  const std::string activation = node.str("activation", "none");
  const bool swish = activation == "silu" || activation == "swish";
  if (!swish && activation != "none") throw Unsupported{text("attribute activation = ", activation)};
  // What goes into the activation is not rounded to 16 bits.
  const int32_t dtype = node.dtype(0);
  const auto wide = [&](TnValueId value) { return value == TN_NO_ID || !swish ? value : node.cast(value, TN_F32); };
  TnValueId y = node.add("tenon.conv2d/1", node.attrs().i64("groups", x[1]),
                         {node.reshape(wide(all), {x[0], x[1], 1, before + x[2]}),
                          node.reshape(wide(node.input(1)), {x[1], 1, 1, w[2]}), wide(node.optional_input(2))});
  if (swish) y = node.cast(node.add("tenon.swish/1", {y}), dtype);
  node.output(0, node.reshape(y, {x[0], x[1], x[2]}));
  if (!node.wants(1)) return;
  node.output(1, node.add("tenon.slice/1",
                          node.attrs().i64s("starts", {x[2]}).i64s("ends", {x[2] + before}).i64s("axes", {2}), {all}));
}

const Rule kRules[] = {
    {"Attention", {23, 24, 25}, attention_rule},
    {"RotaryEmbedding", {23}, rotary_embedding_rule},
    {"LinearAttention", {27}, linear_attention_rule},
    {"CausalConvWithState", {27}, causal_conv_rule},
    {"FlexAttention", {1}, flex_attention_rule, "ai.onnx.preview"},
};

}  // namespace

std::span<const Rule> attention_rules() { return kRules; }

}  // namespace tenon::onnx
