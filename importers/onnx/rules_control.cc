// If, Loop, Scan: graphs inside nodes. They are unrolled while the model is read, so what decides them has to be known
// then.
#include <algorithm>
#include <optional>

#include "importers/onnx/onnx.pb.h"
#include "importers/onnx/rules.h"

namespace tenon::onnx {
namespace {

constexpr int64_t kMostRounds = 10000;

void if_rule(OnnxNode& node) {
  const bool condition = node.required_scalar(0) != 0;
  const std::vector<Item> results =
      node.inline_graph(node.graph(condition ? "then_branch" : "else_branch"), {}, condition ? "then" : "else");
  for (size_t n = 0; n < results.size(); ++n) node.output(static_cast<int>(n), results[n]);
}

/// What a known value of one bool says; nothing if it is computed at run time.
std::optional<bool> known_bool(OnnxNode& node, const Item& item) {
  if (item.kind != Item::Kind::kTensor) throw Invalid("the condition: expected a tensor");
  const std::optional<TnTensor> tensor = node.graph_view().value_const(item.value);
  if (!tensor) return std::nullopt;
  if (tensor->dtype != TN_BOOL || Dims(tensor->dims).elements() != 1) {
    throw Invalid(text("the condition: expected one bool, found ", dtype_name(tensor->dtype), to_text(tensor->dims)));
  }
  return *static_cast<const uint8_t*>(tensor->data) != 0;
}

/// The slices of all rounds one after the other along a new axis.
TnValueId stack(OnnxNode& node, const std::vector<Item>& rounds, int64_t axis) {
  std::vector<TnValueId> slices;
  for (const Item& round : rounds) {
    if (round.kind != Item::Kind::kTensor) throw Unsupported{"a body whose results to stack are no tensors"};
    const Dims dims = node.dims_of(round.value);
    const int64_t at = axis < 0 ? axis + dims.rank + 1 : axis;
    if (at < 0 || at > dims.rank) throw Invalid(text("axis ", axis, " of a result of rank ", dims.rank + 1));
    std::vector<int64_t> shape(dims.begin(), dims.end());
    shape.insert(shape.begin() + at, 1);
    slices.push_back(node.reshape(round.value, shape));
  }
  const Dims dims = node.dims_of(slices[0]);
  const int64_t at = axis < 0 ? axis + dims.rank : axis;
  return slices.size() == 1 ? slices[0] : node.add("tenon.concat/1", node.attrs().i64("axis", at), slices);
}

/// Copies a failure of a body to the node, whose other outputs are unknown then.
bool any_failed(const std::vector<Item>& items) {
  return std::any_of(items.begin(), items.end(), [](const Item& item) { return item.kind == Item::Kind::kFailed; });
}

void fail_outputs(OnnxNode& node) {
  for (int n = 0; n < node.num_outputs(); ++n) node.output(n, Item{Item::Kind::kFailed, TN_NO_ID, {}});
}

void loop_rule(OnnxNode& node) {
  const pb::GraphProto& body = node.graph("body");
  const std::optional<double> most = node.known_scalar(0);
  std::optional<bool> go_on = true;
  Item condition = Item::tensor(TN_NO_ID);
  if (node.has_input(1)) {
    condition = node.item(1);
    go_on = known_bool(node, condition);
  } else {
    const uint8_t yes = 1;
    condition.value = node.constant(host_tensor(TN_BOOL, Dims{}, &yes));
  }
  std::vector<Item> carried;
  for (int n = 2; n < node.num_inputs(); ++n) carried.push_back(node.item(n));
  const size_t num_stacked =
      static_cast<size_t>(std::max(0, body.output_size() - 1 - static_cast<int>(carried.size())));
  std::vector<std::vector<Item>> stacked(num_stacked);
  for (int64_t round = 0; !most || static_cast<double>(round) < *most; ++round) {
    if (!go_on) throw Unsupported{"a Loop whose number of rounds is decided at run time"};
    if (!*go_on) break;
    if (round >= kMostRounds) throw Unsupported{text("a Loop of more than ", kMostRounds, " rounds")};
    std::vector<Item> inputs = {Item::tensor(node.constant(host_tensor(TN_I64, Dims{}, &round))), condition};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    const std::vector<Item> outputs = node.inline_graph(body, inputs, text(round));
    if (any_failed(outputs)) return fail_outputs(node);
    if (outputs.size() < 1 + carried.size())
      throw Invalid(text("its body has ", outputs.size(), " outputs; expected at least ", 1 + carried.size()));
    condition = outputs[0];
    go_on = known_bool(node, condition);
    std::copy_n(outputs.begin() + 1, carried.size(), carried.begin());
    for (size_t n = 0; n < num_stacked; ++n) stacked[n].push_back(outputs[1 + carried.size() + n]);
  }
  int output = 0;
  for (const Item& item : carried) node.output(output++, item);
  for (const std::vector<Item>& rounds : stacked) {
    if (!node.wants(output)) {
      ++output;
      continue;
    }
    if (rounds.empty()) throw Unsupported{"a Loop without rounds that stacks results"};
    node.output(output++, stack(node, rounds, 0));
  }
}

int64_t at_or(const std::vector<int64_t>& list, size_t n, int64_t absent) { return n < list.size() ? list[n] : absent; }

void scan_rule(OnnxNode& node) {
  const pb::GraphProto& body = node.graph("body");
  const int64_t num_scanned = node.i64("num_scan_inputs");
  if (num_scanned < 1 || num_scanned > node.num_inputs())
    throw Invalid(text("num_scan_inputs: found ", num_scanned, " for ", node.num_inputs(), " inputs"));
  const int64_t num_states = node.num_inputs() - num_scanned;
  const std::vector<int64_t> none,
      input_axes = node.i64s("scan_input_axes", none), backwards = node.i64s("scan_input_directions", none),
      output_axes = node.i64s("scan_output_axes", none), output_backwards = node.i64s("scan_output_directions", none);
  std::vector<Item> states;
  for (int n = 0; n < num_states; ++n) states.push_back(node.item(n));
  std::vector<std::vector<Item>> stacked;
  int64_t rounds = -1;
  const auto axis_of = [&](size_t n) {
    const int input = static_cast<int>(num_states + static_cast<int64_t>(n));
    return normalize_axis(at_or(input_axes, n, 0), node.rank(input));
  };
  for (size_t n = 0; n < static_cast<size_t>(num_scanned); ++n) {
    const int64_t length = node.dims(static_cast<int>(num_states) + static_cast<int>(n))[axis_of(n)];
    if (rounds >= 0 && length != rounds)
      throw Invalid(text("the scanned inputs have ", rounds, " and ", length, " slices"));
    rounds = length;
  }
  if (rounds > kMostRounds) throw Unsupported{text("a Scan of more than ", kMostRounds, " rounds")};
  for (int64_t round = 0; round < rounds; ++round) {
    std::vector<Item> inputs = states;
    for (size_t n = 0; n < static_cast<size_t>(num_scanned); ++n) {
      const int input = static_cast<int>(num_states) + static_cast<int>(n);
      const int64_t at = at_or(backwards, n, 0) != 0 ? rounds - 1 - round : round;
      const int axis = axis_of(n);
      const TnValueId slice =
          node.add("tenon.slice/1", node.attrs().i64s("starts", {at}).i64s("ends", {at + 1}).i64s("axes", {axis}),
                   {node.input(input)});
      const Dims dims = node.dims_of(slice);
      std::vector<int64_t> shape(dims.begin(), dims.end());
      shape.erase(shape.begin() + axis);
      inputs.push_back(Item::tensor(node.reshape(slice, shape)));
    }
    const std::vector<Item> outputs = node.inline_graph(body, inputs, text(round));
    if (any_failed(outputs)) return fail_outputs(node);
    if (static_cast<int64_t>(outputs.size()) < num_states)
      throw Invalid(text("its body has ", outputs.size(), " outputs; expected at least ", num_states));
    std::copy_n(outputs.begin(), num_states, states.begin());
    stacked.resize(outputs.size() - static_cast<size_t>(num_states));
    for (size_t n = 0; n < stacked.size(); ++n) {
      const bool first = at_or(output_backwards, n, 0) != 0;
      stacked[n].insert(first ? stacked[n].begin() : stacked[n].end(), outputs[static_cast<size_t>(num_states) + n]);
    }
  }
  int output = 0;
  for (const Item& state : states) node.output(output++, state);
  if (rounds == 0 && node.num_outputs() > output) throw Unsupported{"a Scan without rounds that stacks results"};
  for (size_t n = 0; n < stacked.size(); ++n) {
    if (node.wants(output)) node.output(output, stack(node, stacked[n], at_or(output_axes, n, 0)));
    ++output;
  }
}

const Rule kRules[] = {
    {"If", {1, 11, 13, 16, 19, 21, 23, 24, 25}, if_rule},
    {"Loop", {1, 11, 13, 16, 19, 21, 23, 24, 25}, loop_rule},
    {"Scan", {9, 11, 16, 19, 21, 23, 24, 25}, scan_rule},
};

}  // namespace

std::span<const Rule> control_rules() { return kRules; }

}  // namespace tenon::onnx
