// tenon.attention/1 and tenon.rotary_embedding/1 on kernels/cuda.
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/attention.h"
#include "plugins/attention/attention.h"
#include "plugins/attention/rotary_embedding.h"
#include "plugins/common/cuda.h"

namespace tenon::plugins {
namespace {

class AttentionCuda final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Site site = config.site();
    has_mask_ = site.has_input(kMask);
    has_lengths_ = site.has_input(kLengths);
    is_bool_ = has_mask_ && site.dtype(kMask) == TN_BOOL;
    const Dims mask = has_mask_ ? site.max_dims(kMask) : Dims();
    form_ = AttentionGeometry::make(site.max_dims(kQuery), site.max_dims(kKey), site.max_dims(kValue),
                                    has_mask_ ? &mask : nullptr, site.attrs());
    type_ = to_cuda_float(config.combo().input(kQuery).dtype);
  }

  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    AttentionGeometry g = form_;
    const Dims mask = has_mask_ ? Dims(inputs[kMask].dims) : Dims();
    g.set_dims(inputs[kQuery].dims, inputs[kKey].dims, inputs[kValue].dims, has_mask_ ? &mask : nullptr);
    cuda::AttentionShape shape;
    shape.batch = g.batch, shape.heads = g.heads, shape.key_heads = g.key_heads;
    shape.queries = g.queries, shape.keys = g.keys, shape.size = g.size, shape.value_size = g.value_size;
    shape.mask_keys = g.mask_keys;
    std::copy_n(g.mask_strides, 4, shape.mask_strides);
    shape.scale = static_cast<float>(g.scale);
    shape.softcap = static_cast<float>(g.softcap);
    shape.causal = g.causal;
    shape.past = g.past, shape.left = g.left, shape.right = g.right;
    cuda::AttentionBuffers buffers;
    buffers.q = inputs[kQuery].data, buffers.k = inputs[kKey].data, buffers.v = inputs[kValue].data;
    if (is_bool_) {
      buffers.allowed = static_cast<const unsigned char*>(inputs[kMask].data);
    } else if (has_mask_) {
      buffers.bias = inputs[kMask].data;
    }
    if (has_lengths_) buffers.lengths = static_cast<const int64_t*>(inputs[kLengths].data);
    buffers.y = outputs[0].data;
    check_cuda(cuda::attention(type_, shape, buffers, cuda_stream(exec)));
  }

 private:
  AttentionGeometry form_;
  cuda::ElementType type_ = cuda::ElementType::kF32;
  bool has_mask_ = false, has_lengths_ = false, is_bool_ = false;
};

class RotaryCuda final : public IPlugin {
 public:
  void configure(const Config& config) override {
    form_ = RotaryForm(config.site().attrs());
    has_positions_ = config.site().has_input(kPositions);
    type_ = to_cuda_float(config.combo().input(kX).dtype);
  }

  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims positions = has_positions_ ? Dims(inputs[kPositions].dims) : Dims();
    const auto g = RotaryGeometry::make(inputs[kX].dims, inputs[kCos].dims, inputs[kSin].dims,
                                        has_positions_ ? &positions : nullptr, form_);
    cuda::RotaryShape shape;
    shape.batch = g.batch, shape.steps = g.steps, shape.heads = g.heads, shape.size = g.size;
    shape.half = g.half, shape.table_rows = g.rows;
    shape.heads_first = g.heads_first, shape.interleaved = g.interleaved;
    check_cuda(cuda::rotary_embedding(type_, shape, inputs[kX].data, inputs[kCos].data, inputs[kSin].data,
                                      has_positions_ ? static_cast<const int64_t*>(inputs[kPositions].data) : nullptr,
                                      outputs[0].data, cuda_stream(exec)));
  }

 private:
  RotaryForm form_;
  cuda::ElementType type_ = cuda::ElementType::kF32;
  bool has_positions_ = false;
};

// `count` inputs of the dtype, then optional ones of their own.
void add_combo(const Site& site, Combos& combos, int32_t dtype, int count, std::initializer_list<int> optional) {
  std::vector<Port> inputs(static_cast<size_t>(count), row(dtype));
  for (const int port : optional) inputs.push_back(site.has_input(port) ? row(site.dtype(port)) : any_constant());
  combos.add(ComboSpec(inputs, {row(dtype)}));
}

Kernel attention_kernel(int32_t dtype) {
  return cuda_kernel<AttentionCuda>("tenon.attention/1", cuda_name("tenon.attention.streamed", dtype))
      .supports([](const Site& site) {
        if (std::max(site.max_dims(kQuery)[3], site.max_dims(kValue)[3]) > cuda::kAttentionMaxSize) {
          throw Declined(text("it takes heads of up to ", cuda::kAttentionMaxSize));
        }
      })
      .more_combos([dtype](const Site& site, Combos& combos) {
        if (site.has_input(kMask) && site.dtype(kMask) != TN_BOOL && site.dtype(kMask) != dtype) {
          throw Declined("the mask has another dtype");
        }
        add_combo(site, combos, dtype, 3, {kMask, kLengths});
      });
}

Kernel rotary_kernel(int32_t dtype) {
  return cuda_kernel<RotaryCuda>("tenon.rotary_embedding/1", cuda_name("tenon.rotary_embedding.pairs", dtype))
      .more_combos([dtype](const Site& site, Combos& combos) { add_combo(site, combos, dtype, 3, {kPositions}); });
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.attention.cuda", "1", "Apache-2.0",
             tenon::plugins::for_cuda_floats(tenon::plugins::attention_kernel),
             tenon::plugins::for_cuda_floats(tenon::plugins::rotary_kernel))
