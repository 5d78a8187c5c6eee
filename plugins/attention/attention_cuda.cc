// tenon.attention/1 and tenon.rotary_embedding/1 on kernels/cuda.
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/attention.h"
#include "plugins/attention/attention.h"
#include "plugins/attention/rotary_embedding.h"
#include "plugins/common/cuda.h"

namespace tenon::plugins {
namespace {

cuda::AttentionStrides to_cuda(const AttentionPlace& place) { return {place.batch, place.head, place.row}; }

class AttentionCuda final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Site site = config.site();
    for (int port = 0; port < kPorts; ++port) has_[port] = site.has_input(port);
    is_bool_ = has_[kMask] && site.dtype(kMask) == TN_BOOL;
    form_ = most_of(site);
    type_ = to_cuda_float(config.combo().input(kQuery).dtype);
    element_ = dtype_size(config.combo().input(kQuery).dtype);
  }

  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    AttentionGeometry g = form_;
    g.set_dims([&](int port) { return has_[port]; }, [&](int port) { return Dims(inputs[port].dims); });
    cuda::AttentionShape shape;
    shape.batch = g.batch, shape.heads = g.heads, shape.key_heads = g.key_heads;
    shape.queries = g.queries, shape.keys = g.keys, shape.size = g.size, shape.value_size = g.value_size;
    shape.q = to_cuda(g.q), shape.k = to_cuda(g.k), shape.v = to_cuda(g.v), shape.y = to_cuda(g.y);
    shape.mask_keys = g.mask_keys;
    std::copy_n(g.mask_strides, 4, shape.mask_strides);
    shape.scale = static_cast<float>(g.scale);
    shape.softcap = static_cast<float>(g.softcap);
    shape.causal = g.causal;
    shape.past = g.past, shape.left = g.left, shape.right = g.right;
    const auto at = [&](int port, const AttentionPlace& place) {
      return static_cast<const char*>(inputs[has_[port] ? port : kQuery].data) + place.offset * element_;
    };
    cuda::AttentionBuffers buffers;
    buffers.q = at(kQuery, g.q), buffers.k = at(kKey, g.k), buffers.v = at(kValue, g.v);
    if (is_bool_) {
      buffers.allowed = static_cast<const unsigned char*>(inputs[kMask].data);
    } else if (has_[kMask]) {
      buffers.bias = inputs[kMask].data;
    }
    if (has_[kLengths]) buffers.lengths = static_cast<const int64_t*>(inputs[kLengths].data);
    buffers.y = outputs[0].data;
    check_cuda(cuda::attention(type_, shape, buffers, cuda_stream(exec)));
  }

 private:
  static constexpr int kPorts = kLengths + 1;
  AttentionGeometry form_;
  cuda::ElementType type_ = cuda::ElementType::kF32;
  int64_t element_ = 0;
  bool has_[kPorts] = {}, is_bool_ = false;
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

// `count` inputs of the dtype, where the site has them, then optional ones of their own.
void add_combo(const Site& site, Combos& combos, int32_t dtype, int count, std::initializer_list<int> optional) {
  std::vector<Port> inputs;
  for (int port = 0; port < count; ++port) inputs.push_back(site.has_input(port) ? row(dtype) : any_constant());
  for (const int port : optional) inputs.push_back(site.has_input(port) ? row(site.dtype(port)) : any_constant());
  combos.add(ComboSpec(inputs, {row(dtype)}));
}

Kernel attention_kernel(int32_t dtype) {
  return cuda_kernel<AttentionCuda>("tenon.attention/1", cuda_name("tenon.attention.streamed", dtype))
      .supports([](const Site& site) {
        const AttentionGeometry g = most_of(site);
        if (std::max(g.size, g.value_size) > cuda::kAttentionMaxSize) {
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
