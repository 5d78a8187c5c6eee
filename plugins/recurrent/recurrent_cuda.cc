// tenon.rnn/1, tenon.gru/1 and tenon.lstm/1 on kernels/cuda. Nothing is packed, so the weights may be computed.
#include <memory>
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/recurrent.h"
#include "plugins/common/cuda.h"
#include "plugins/recurrent/recurrent.h"

namespace tenon::plugins {
namespace {

cuda::CellKind to_cuda(CellKind kind) {
  return kind == CellKind::kRnn   ? cuda::CellKind::kRnn
         : kind == CellKind::kGru ? cuda::CellKind::kGru
                                  : cuda::CellKind::kLstm;
}

cuda::GateFunction to_cuda(const GateFunction& function) {
  static_assert(static_cast<int>(GateFunction::Kind::kSoftplus) ==
                static_cast<int>(cuda::GateFunction::Kind::kSoftplus));
  return {static_cast<cuda::GateFunction::Kind>(function.kind), static_cast<float>(function.alpha),
          static_cast<float>(function.beta)};
}

// The shape without dims.
cuda::RecurrentShape to_cuda(const RecurrentForm& form) {
  cuda::RecurrentShape shape;
  shape.kind = to_cuda(form.kind);
  shape.directions = form.directions;
  shape.reverse = form.reverse;
  const int count = static_cast<int>(form.functions.size()) / form.directions;
  for (int d = 0; d < form.directions; ++d) {
    for (int n = 0; n < count; ++n) shape.functions[d][n] = to_cuda(form.function(d, n));
  }
  shape.clip = static_cast<float>(form.clip);
  shape.input_forget = form.input_forget;
  shape.linear_before_reset = form.linear_before_reset;
  return shape;
}

void set_dims(const Dims& x, const Dims& recurrence, cuda::RecurrentShape* shape) {
  const RecurrentGeometry g = RecurrentGeometry::make(x, recurrence);
  shape->steps = g.steps, shape->batch = g.batch, shape->inputs = g.inputs, shape->hidden = g.hidden;
}

class RecurrentCuda final : public IPlugin {
 public:
  explicit RecurrentCuda(CellKind kind) : kind_(kind) {}

  static cuda::RecurrentShape largest(CellKind kind, const Site& site) {
    cuda::RecurrentShape shape = to_cuda(RecurrentForm(kind, site.attrs()));
    set_dims(site.max_dims(kX), site.max_dims(kRecurrence), &shape);
    return shape;
  }

  void configure(const Config& config) override {
    const Site site = config.site();
    type_ = to_cuda_float(config.combo().input(kX).dtype);
    shape_ = largest(kind_, site);
    sizes_.workspace = cuda::recurrent_workspace_bytes(type_, shape_);
    for (int port = 0; port < num_recurrent_inputs(kind_); ++port) has_[port] = site.has_input(port);
    wide_lengths_ = has_[kLengths] && site.dtype(kLengths) == TN_I64;
  }
  Sizes sizes() const override { return sizes_; }

  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    cuda::RecurrentShape shape = shape_;
    set_dims(inputs[kX].dims, inputs[kRecurrence].dims, &shape);
    const auto data = [&](int port) { return has_[port] ? inputs[port].data : nullptr; };
    cuda::RecurrentBuffers buffers;
    buffers.x = data(kX), buffers.weights = data(kWeights), buffers.recurrence = data(kRecurrence);
    buffers.bias = data(kBias);
    if (wide_lengths_) {
      buffers.lengths64 = static_cast<const int64_t*>(data(kLengths));
    } else {
      buffers.lengths32 = static_cast<const int32_t*>(data(kLengths));
    }
    buffers.initial_h = data(kInitialH);
    buffers.y = outputs[0].data, buffers.y_h = outputs[1].data;
    if (kind_ == CellKind::kLstm) {
      buffers.initial_c = data(kInitialC);
      buffers.peepholes = data(kPeepholes);
      buffers.y_c = outputs[2].data;
    }
    buffers.workspace = exec.workspace<void>();
    check_cuda(cuda::recurrent(type_, shape, buffers, cuda_stream(exec)));
  }

 private:
  CellKind kind_;
  cuda::ElementType type_ = cuda::ElementType::kF32;
  cuda::RecurrentShape shape_;
  bool has_[8] = {};
  bool wide_lengths_ = false;
  Sizes sizes_;
};

Kernel recurrent_kernel(CellKind kind, const std::string& name, int32_t dtype) {
  return cuda_kernel(name + "/1", cuda_name(name + ".steps", dtype),
                     [kind] { return std::make_unique<RecurrentCuda>(kind); })
      .more_combos([kind, dtype](const Site& site, Combos& combos) {
        std::vector<Port> inputs;
        for (int port = 0; port < num_recurrent_inputs(kind); ++port) {
          inputs.push_back(!site.has_input(port) ? any_constant() : row(port == kLengths ? site.dtype(port) : dtype));
        }
        combos.add(ComboSpec(inputs, std::vector<Port>(static_cast<size_t>(num_recurrent_outputs(kind)), row(dtype))));
      })
      .tactics([kind, dtype](const Site& site, const Combo&, Tactics& tactics) {
        tactics.add("", cuda::recurrent_workspace_bytes(to_cuda_float(dtype), RecurrentCuda::largest(kind, site)));
      });
}

Definitions recurrent_cuda() {
  Definitions all;
  for (const int32_t dtype : {TN_F32, TN_F16}) {
    all.add(recurrent_kernel(CellKind::kRnn, "tenon.rnn", dtype));
    all.add(recurrent_kernel(CellKind::kGru, "tenon.gru", dtype));
    all.add(recurrent_kernel(CellKind::kLstm, "tenon.lstm", dtype));
  }
  return all;
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.recurrent.cuda", "1", "Apache-2.0", tenon::plugins::recurrent_cuda())
