// tenon.conv_integer/1: convolution of 8-bit integers with zero points.
#include "kernels/cpu/conv_integer.h"

#include <vector>

#include "plugins/common/checked.h"
#include "plugins/common/pack_key.h"
#include "plugins/common/parallel.h"
#include "plugins/quantize/quantize.h"

namespace tenon::plugins {
namespace {

constexpr int kX = 0, kWeights = 1, kXZero = 2, kWeightsZero = 3, kBias = 4;

// x [N, C, D...], weights [M, C/groups, K...] with attributes for each spatial axis.
struct ConvInteger {
  int spatial = 0;
  int64_t groups = 1;
  Dims x, weights, result;
  std::vector<int64_t> strides, pads, dilations;  // pads: the begins of all axes, then their ends

  // Invalid names the attribute or input that does not fit.
  static ConvInteger make(const Attrs& attrs, const Dims& x, const Dims& weights) {
    if (x.rank < 3) throw Invalid(text("input x: expected at least rank 3 [N,C,D...], found ", to_text(x)));
    if (weights.rank != x.rank) {
      throw Invalid(text("input weights: expected rank ", x.rank, " as x ", to_text(x), ", found ", to_text(weights)));
    }
    ConvInteger g;
    g.x = x;
    g.weights = weights;
    g.spatial = x.rank - 2;
    const auto list = [&](const char* name, int size, int64_t least) {
      const List<int64_t> values = pixels(attrs, name, size, least);
      return std::vector<int64_t>(values.begin(), values.end());
    };
    g.strides = list("strides", g.spatial, 1);
    g.dilations = list("dilations", g.spatial, 1);
    g.pads = list("pads", 2 * g.spatial, 0);
    g.groups = attrs.i64("groups");
    if (x[1] % g.groups != 0 || weights[0] % g.groups != 0 || weights[1] != x[1] / g.groups) {
      throw Invalid(text("input weights: expected [M, C / groups, ...] with M and C divisible by ", g.groups,
                         " groups for x ", to_text(x), ", found ", to_text(weights)));
    }
    g.result = {x[0], weights[0]};
    for (int n = 0; n < g.spatial; ++n) {
      const int64_t kernel = weights[n + 2];
      if (kernel < 1 || kernel > INT32_MAX) {
        throw Invalid(text("input weights: expected a kernel of at least 1, found ", to_text(weights)));
      }
      const int64_t extent = (kernel - 1) * g.dilations[n] + 1;
      const int64_t padded = checked_sum(x[n + 2], g.pads[n] + g.pads[n + g.spatial], "padded input");
      if (extent > padded) {
        throw Invalid(text("the kernel ", to_text(weights), " does not fit into the padded input ", to_text(x)));
      }
      g.result.push_back((padded - extent) / g.strides[n] + 1);
    }
    return g;
  }
};

void conv_integer_infer(const Infer& question) {
  const ConvInteger g = ConvInteger::make(question.attrs(), question.input(kX).dims(), question.input(kWeights).dims());
  for (const int n : {kX, kWeights}) {
    const int32_t dtype = question.input(n).dtype();
    const char* name = n == kX ? "x" : "weights";
    if (dtype != TN_U8 && dtype != TN_I8) {
      throw Invalid(text("input ", name, ": expected u8 or i8, found ", dtype_name(dtype)));
    }
    const int zero = n == kX ? kXZero : kWeightsZero;
    if (!question.has_input(zero)) continue;
    const Tensor zero_point = question.input(zero);
    const bool fits = zero_point.elements() == 1 || (n == kWeights && zero_point.dims() == Dims{g.weights[0]});
    if (zero_point.dtype() != dtype || !fits) {
      throw Invalid(text("input ", name, "_zero_point: expected one ", dtype_name(dtype),
                         n == kX ? "" : " or one for each output channel", ", found ", dtype_name(zero_point.dtype()),
                         to_text(zero_point.dims())));
    }
  }
  if (question.has_input(kBias)) {
    const Tensor bias = question.input(kBias);
    if (bias.dtype() != TN_I32 || bias.dims() != Dims{g.weights[0]}) {
      throw Invalid(
          text("input bias: expected i32[", g.weights[0], "], found ", dtype_name(bias.dtype()), to_text(bias.dims())));
    }
  }
  question.output(0, TN_I32, g.result);
}

int32_t zero_point(const Reference& call, int input, int64_t channel) {
  if (!call.has_input(input)) return 0;
  const Tensor zero = call.input(input);
  return static_cast<int32_t>(zero.integer(zero.elements() == 1 ? 0 : channel));
}

template <class X, class W>
void reference_of(const Reference& call) {
  const ConvInteger g = ConvInteger::make(call.attrs(), call.input(kX).dims(), call.input(kWeights).dims());
  const X* x = call.input(kX).data<X>();
  const W* weights = call.input(kWeights).data<W>();
  const int32_t* bias = call.has_input(kBias) ? call.input(kBias).data<int32_t>() : nullptr;
  const int32_t x_zero = zero_point(call, kXZero, 0);
  const int64_t group_in = g.weights[1], group_out = g.weights[0] / g.groups;
  Dims taps = g.weights;  // [C / groups, K...]
  for (int n = 0; n + 1 < taps.rank; ++n) taps[n] = taps[n + 1];
  --taps.rank;
  TnBox all{};
  for (int n = 0; n < taps.rank; ++n) all.size[n] = taps[n];
  call.fill<int32_t>(0, [&](const int64_t* index, int64_t) {
    const int64_t channel = index[1];
    const int32_t w_zero = zero_point(call, kWeightsZero, channel);
    uint32_t sum = bias != nullptr ? static_cast<uint32_t>(bias[channel]) : 0;  // wraps
    for_each_in_box(taps, all, [&](const int64_t* tap, int64_t linear, int64_t) {
      int64_t place = index[0] * g.x[1] + channel / group_out * group_in + tap[0];
      for (int n = 0; n < g.spatial; ++n) {
        const int64_t at = index[n + 2] * g.strides[n] - g.pads[n] + tap[n + 1] * g.dilations[n];
        if (at < 0 || at >= g.x[n + 2]) return;
        place = place * g.x[n + 2] + at;
      }
      const int32_t weight = int32_t{weights[channel * taps.elements() + linear]} - w_zero;
      sum += static_cast<uint32_t>((int32_t{x[place]} - x_zero) * weight);
    });
    return static_cast<int32_t>(sum);
  });
}

template <class Body>
void visit_byte(int32_t dtype, const Body& body) {
  return dtype == TN_U8 ? body(uint8_t()) : body(int8_t());
}

void conv_integer_reference(const Reference& call) {
  visit_byte(call.input(kX).dtype(), [&](auto x) {
    visit_byte(call.input(kWeights).dtype(), [&](auto w) { reference_of<decltype(x), decltype(w)>(call); });
  });
}

cpu::IntegerConvGeometry image_geometry(const ConvInteger& c) {
  cpu::IntegerConvGeometry g;
  const int w = c.spatial - 1;
  g.n = c.x[0], g.c = c.x[1], g.m = c.weights[0], g.groups = c.groups;
  g.w = c.x[w + 2], g.s = c.weights[w + 2], g.ow = c.result[w + 2];
  g.stride_w = c.strides[w], g.pad_left = c.pads[w], g.dilation_w = c.dilations[w];
  if (c.spatial == 2) {
    g.h = c.x[2], g.r = c.weights[2], g.oh = c.result[2];
    g.stride_h = c.strides[0], g.pad_top = c.pads[0], g.dilation_h = c.dilations[0];
  }
  return g;
}

// Weights are packed once if they and their zero points are constant, else at every call.
class ConvIntegerKernel final : public IPlugin {
 public:
  static void tactics(const Site& site, const Combo&, Tactics& tactics) {
    ConvIntegerKernel instance;
    instance.set_site(site);
    tactics.add("", instance.sizes_.workspace);
  }
  void configure(const Config& config) override {
    const Site site = config.site();
    set_site(site);
    if (!packs_once_) return;
    PackKey key;
    key.add(text("tenon.conv_integer ", dtype_name(site.dtype(kWeights)))).add(site.constant(kWeights));
    if (has_weights_zero_) key.add(site.constant(kWeightsZero));
    key.store(&sizes_);
  }
  Sizes sizes() const override { return sizes_; }

  void initialize(const Init& init) override {
    if (!packs_once_) return;
    weights_ = init.persistent<int16_t>();
    if (init.filled()) return;
    pack(init.constant(kWeights).raw(), has_weights_zero_ ? &init.constant(kWeightsZero).raw() : nullptr, weights_);
  }

  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    char* scratch = exec.workspace<char>();
    const int16_t* weights = weights_;
    if (!packs_once_) {
      auto* packed = exec.workspace<int16_t>();
      pack(inputs[kWeights], has_weights_zero_ ? &inputs[kWeightsZero] : nullptr, packed);
      weights = packed;
      scratch += weights_bytes_;
    }
    visit_byte(inputs[kX].dtype, [&](auto type) {
      using X = decltype(type);
      const int32_t zero = has_x_zero_ ? *static_cast<const X*>(inputs[kXZero].data) : 0;
      cpu::conv_integer(g_, static_cast<const X*>(inputs[kX].data), zero, weights,
                        has_bias_ ? static_cast<const int32_t*>(inputs[kBias].data) : nullptr,
                        static_cast<int32_t*>(outputs[0].data), scratch, to_parallel(exec), cpu::detect_isa());
    });
  }

 private:
  void set_site(const Site& site) {
    g_ = image_geometry(ConvInteger::make(site.attrs(), site.max_dims(kX), site.max_dims(kWeights)));
    const uint64_t numbers = static_cast<uint64_t>(cpu::conv_integer_weights(g_));
    weights_bytes_ = (numbers * sizeof(int16_t) + 63) / 64 * 64;
    has_x_zero_ = site.has_input(kXZero);
    has_weights_zero_ = site.has_input(kWeightsZero);
    has_bias_ = site.has_input(kBias);
    packs_once_ = site.is_constant(kWeights) && (!has_weights_zero_ || site.is_constant(kWeightsZero));
    sizes_.workspace = static_cast<uint64_t>(cpu::conv_integer_scratch(site.threads()));
    (packs_once_ ? sizes_.persistent : sizes_.workspace) += weights_bytes_;
  }

  void pack(const TnTensor& weights, const TnTensor* zero, int16_t* packed) const {
    visit_byte(weights.dtype, [&](auto type) {
      using W = decltype(type);
      cpu::conv_integer_pack(g_, static_cast<const W*>(weights.data),
                             zero != nullptr ? static_cast<const W*>(zero->data) : nullptr,
                             zero != nullptr ? Tensor(*zero).elements() : 0, packed);
    });
  }

  cpu::IntegerConvGeometry g_;
  uint64_t weights_bytes_ = 0;
  bool packs_once_ = false;
  bool has_x_zero_ = false, has_weights_zero_ = false, has_bias_ = false;
  int16_t* weights_ = nullptr;
  Sizes sizes_;
};

}  // namespace

Definitions conv_integer_definitions() {
  Kernel kernel_definition = kernel<ConvIntegerKernel>("tenon.conv_integer/1", "tenon.conv_integer.gemm");
  for (const int32_t x : {TN_U8, TN_I8}) {
    for (const int32_t w : {TN_U8, TN_I8}) {
      kernel_definition.combo({row(x), row(w), row(x), row(w), row(TN_I32)}, {row(TN_I32)});
    }
  }
  kernel_definition.supports([](const Site& site) {
    if (site.dims(kX).rank > 4) throw Declined("the reference does more than two spatial axes");
  });
  return {op("tenon.conv_integer/1")
              .doc("Convolution of 8-bit integers, as ONNX's ConvInteger with a bias. y = bias[m] + sum over the "
                   "group's channels and the kernel of (x - x_zero_point) * (weights - weights_zero_point), modulo "
                   "2^32; outside the image x is x_zero_point")
              .attr_i64s("strides", "pixels, one for each spatial axis")
              .required()
              .attr_i64s("pads", "pixels before each spatial axis, then after each")
              .required()
              .attr_i64s("dilations", "distance of the kernel's pixels along each spatial axis")
              .required()
              .attr_i64("groups", "input and output channels are split into as many groups")
              .default_value("1")
              .range("[1,)")
              .input("x", "[N, C, D...], u8 or i8")
              .input("weights", "[M, C / groups, K...], u8 or i8")
              .input("x_zero_point", "one element, x's dtype")
              .optional()
              .input("weights_zero_point", "one element or [M], weights' dtype")
              .optional()
              .input("bias", "[M], i32")
              .optional()
              .output("y", "[N, M, ...], i32")
              .infer(conv_integer_infer)
              .reference(conv_integer_reference)
              .generate(generate_bytes),
          kernel_definition.tactics(ConvIntegerKernel::tactics).deterministic()};
}

}  // namespace tenon::plugins
