// recurrent: layers of simple recurrent cells, GRU and LSTM cells, float types (element_type.h), arithmetic and states
// in float32. Gate orders and meanings are those of ONNX (RNN-22, GRU-22, LSTM-22) with layout 0. Launches on the
// stream (a product for the inputs of all steps, then one or two kernels for each step), allocates nothing, does not
// wait, may be captured; returns the error of the launches. The same sizes give the same bits. No overlap.
#ifndef TENON_KERNELS_CUDA_RECURRENT_H_
#define TENON_KERNELS_CUDA_RECURRENT_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/element_type.h"

namespace tenon::cuda {

enum class CellKind : int { kRnn, kGru, kLstm };

// The functions that gates apply.
struct GateFunction {
  enum class Kind : int {
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
    kSoftplus,         // log(1 + exp(x))
  };
  Kind kind = Kind::kTanh;
  float alpha = 0;
  float beta = 0;
};

constexpr int recurrent_gates(CellKind kind) { return kind == CellKind::kRnn ? 1 : kind == CellKind::kGru ? 3 : 4; }

struct RecurrentShape {
  CellKind kind = CellKind::kLstm;
  int64_t steps = 0, batch = 0, inputs = 0, hidden = 0;
  int directions = 1;
  bool reverse = false;          // the first direction runs backwards; the second one always does
  GateFunction functions[2][3];  // of each direction: RNN 1, GRU 2, LSTM 3
  float clip = 0;                // the sums of gates are clipped to [-clip, clip]; 0: not
  bool input_forget = false;     // LSTM: f = 1 - i
  bool linear_before_reset = false;

  int64_t gates() const { return recurrent_gates(kind) * hidden; }
};

// May be null: bias, lengths, the initial states and peepholes.
struct RecurrentBuffers {
  const void* x = nullptr;             // [steps][batch][inputs]
  const void* weights = nullptr;       // [directions][gates][inputs]
  const void* recurrence = nullptr;    // [directions][gates][hidden]
  const void* bias = nullptr;          // [directions][2][gates]
  const int32_t* lengths32 = nullptr;  // [batch] steps of each sequence; behind its end y is 0 and the state stays
  const int64_t* lengths64 = nullptr;  // the same, wider; at most one of the two is given
  const void* initial_h = nullptr;     // [directions][batch][hidden]
  const void* initial_c = nullptr;     // LSTM
  const void* peepholes = nullptr;     // LSTM: [directions][3][hidden]: i, o, f
  void* y = nullptr;                   // [steps][directions][batch][hidden]
  void* y_h = nullptr;                 // [directions][batch][hidden]
  void* y_c = nullptr;                 // LSTM
  void* workspace = nullptr;           // recurrent_workspace_bytes, aligned to 256
};

size_t recurrent_workspace_bytes(ElementType type, const RecurrentShape& shape) noexcept;
cudaError_t recurrent(ElementType type, const RecurrentShape& shape, const RecurrentBuffers& buffers,
                      cudaStream_t stream) noexcept;

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_RECURRENT_H_
