// What tenon.rnn/1, tenon.gru/1 and tenon.lstm/1 share: shapes, attributes, gate functions. Ports, gate orders and
// meanings are those of ONNX (RNN-22, GRU-22, LSTM-22) with layout 0.
#ifndef TENON_PLUGINS_RECURRENT_RECURRENT_H_
#define TENON_PLUGINS_RECURRENT_RECURRENT_H_

#include <string>
#include <tenon/sdk/definition.hpp>
#include <tenon/sdk/questions.hpp>
#include <vector>

namespace tenon::plugins {

enum class CellKind { kRnn, kGru, kLstm };

// Inputs, in this order; kInitialC and kPeepholes of LSTM only.
enum RecurrentPort { kX, kWeights, kRecurrence, kBias, kLengths, kInitialH, kInitialC, kPeepholes };

inline int gates_of(CellKind kind) { return kind == CellKind::kRnn ? 1 : kind == CellKind::kGru ? 3 : 4; }
inline int num_recurrent_inputs(CellKind kind) { return kind == CellKind::kLstm ? 8 : 6; }
inline int num_recurrent_outputs(CellKind kind) { return kind == CellKind::kLstm ? 3 : 2; }

struct GateFunction {
  enum class Kind {
    kRelu,
    kTanh,
    kSigmoid,
    kAffine,           // alpha * x + beta
    kLeakyRelu,        // x < 0 ? alpha * x : x
    kThresholdedRelu,  // x >= alpha ? x : 0
    kScaledTanh,       // alpha * tanh(beta * x)
    kHardSigmoid,      // min(max(alpha * x + beta, 0), 1)
    kElu,              // x < 0 ? alpha * (exp(x) - 1) : x
    kSoftsign,         // x / (1 + |x|)
    kSoftplus          // log(1 + exp(x))
  };
  Kind kind = Kind::kTanh;
  double alpha = 0;
  double beta = 0;

  double operator()(double x) const;
};

struct RecurrentForm {
  CellKind kind;
  int directions = 1;
  bool reverse = false;                 // the first direction runs backwards
  std::vector<GateFunction> functions;  // of the first direction, then of the second
  double clip = 0;                      // the sums of gates are clipped to [-clip, clip]; 0: not
  bool input_forget = false;
  bool linear_before_reset = false;

  // Invalid names the attribute that is wrong.
  RecurrentForm(CellKind cell, const Attrs& attrs);
  bool backward(int direction) const { return direction == 1 || reverse; }
  const GateFunction& function(int direction, int n) const {
    return functions[functions.size() / static_cast<size_t>(directions) * static_cast<size_t>(direction) +
                     static_cast<size_t>(n)];
  }
};

struct RecurrentGeometry {
  int64_t steps = 0;
  int64_t batch = 0;
  int64_t inputs = 0;  // features of x
  int64_t hidden = 0;
  int64_t gates = 0;  // values per step and row: hidden times gates_of(kind)

  static RecurrentGeometry make(const Dims& x, const Dims& recurrence) {
    return {x[0], x[1], x[2], recurrence[2], recurrence[1]};
  }
};

// Tenon's own kernels.
Definitions recurrent_kernels();

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_RECURRENT_RECURRENT_H_
