#include "tests/fusion/network_maker.h"

#include <cmath>

namespace tenon::fusion {

const std::vector<std::string>& spelled_forms() {
  static const std::vector<std::string> all = {"swish",           "mish",      "hard_swish", "hard_swish_gate", "gelu",
                                               "gelu_half_first", "gelu_gate", "gelu_tanh"};
  return all;
}

Value spell(NetworkMaker& make, const std::string& form, const Value& x, double off, const Value& gate_of) {
  const auto times = [&](const Value& a, const Value& b) { return make.op("mul", {a, b}); };
  if (form == "swish") return times(x, make.op("logistic", {gate_of}));
  if (form == "mish") return times(x, make.op("tanh", {make.op("softplus", {gate_of})}));
  if (form == "hard_swish" || form == "hard_swish_gate") {
    const Value gate =
        make.op("clip", {make.op("add", {gate_of, make.number(3 + off)}), make.number(0), make.number(6)});
    if (form == "hard_swish") return make.op("div", {times(x, gate), make.number(6)});
    return times(x, make.op("div", {gate, make.number(6)}));
  }
  if (form == "gelu_tanh") {
    const Value cubed = times(make.op("pow", {gate_of, make.number(3)}), make.number(0.044715 + off));
    const Value line = times(make.op("add", {gate_of, cubed}), make.number(0.7978845608028654));
    return times(times(x, make.number(0.5)), make.op("add", {make.op("tanh", {line}), make.number(1)}));
  }
  // Half of the exporters multiply with the reciprocal of the root.
  const Value scaled = form == "gelu_half_first" ? times(gate_of, make.number(std::sqrt(0.5)))
                                                 : make.op("div", {gate_of, make.number(std::sqrt(2.0))});
  const Value erf = make.op("erf", {scaled});
  const Value gate = make.op("add", {erf, make.number(1 + off)});
  if (form == "gelu") return times(times(x, gate), make.number(0.5));
  if (form == "gelu_half_first") return times(times(x, make.number(0.5)), gate);
  if (form == "gelu_gate") return times(x, times(gate, make.number(0.5)));
  throw std::runtime_error("no such form: " + form);
}

}  // namespace tenon::fusion
