// RNN, GRU, LSTM.
#include "importers/onnx/rules.h"

namespace tenon::onnx {
namespace {

std::string joined(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ",") + name;
  return all;
}

void recurrent(OnnxNode& node, const char* op, int num_inputs, int num_outputs) {
  const bool batch_first = node.i64("layout", 0) != 0;
  NewAttrs attrs = node.attrs();
  attrs.str("direction", node.str("direction", "forward"))
      .str("activations", joined(node.strs("activations", std::vector<std::string>())))
      .f64("clip", node.f64("clip", 0.0));
  const std::vector<double> none;
  if (node.has("activation_alpha")) attrs.f64s("activation_alpha", node.f64s("activation_alpha", none));
  if (node.has("activation_beta")) attrs.f64s("activation_beta", node.f64s("activation_beta", none));
  if (node.type() == "GRU") attrs.i64("linear_before_reset", node.flag("linear_before_reset", false));
  if (node.type() == "LSTM") attrs.i64("input_forget", node.flag("input_forget", false));
  const int64_t hidden = node.rank(2) == 3 ? node.dims(2)[2] : 0;
  if (const int64_t said = node.i64("hidden_size", hidden); said != hidden) {
    throw Invalid(text("hidden_size = ", said, ", but R has shape ", to_text(node.dims(2))));
  }
  std::vector<TnValueId> inputs;
  for (int n = 0; n < num_inputs; ++n) {
    TnValueId input = node.optional_input(n);
    const bool moved = n == 0 || n == 5 || n == 6;  // x and the initial states
    if (input != TN_NO_ID && batch_first && moved) {
      if (node.rank(n) != 3) throw Invalid(text("input ", n, ": expected rank 3, found ", to_text(node.dims(n))));
      input = node.transpose(input, {1, 0, 2});
    }
    inputs.push_back(input);
  }
  std::vector<TnValueId> outputs = node.add(op, attrs, inputs, num_outputs);
  for (int n = 0; n < num_outputs; ++n) {
    if (!node.wants(n)) continue;
    TnValueId output = outputs[static_cast<size_t>(n)];
    if (batch_first) output = n == 0 ? node.transpose(output, {2, 0, 1, 3}) : node.transpose(output, {1, 0, 2});
    node.output(n, output);
  }
}

const Rule kRules[] = {
    {"RNN", {7, 14, 22}, [](OnnxNode& node) { recurrent(node, "tenon.rnn/1", 6, 2); }},
    {"GRU", {7, 14, 22}, [](OnnxNode& node) { recurrent(node, "tenon.gru/1", 6, 2); }},
    {"LSTM", {7, 14, 22}, [](OnnxNode& node) { recurrent(node, "tenon.lstm/1", 8, 3); }},
};

}  // namespace

std::span<const Rule> recurrent_rules() { return kRules; }

}  // namespace tenon::onnx
