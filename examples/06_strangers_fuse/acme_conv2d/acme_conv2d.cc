// Acme's kernel for tenon.conv2d/1, an op of somebody else: plain loops, which store through any f32 epilogue.
#include <algorithm>
#include <tenon/sdk/evaluate_expression.hpp>
#include <tenon/sdk/plugin.hpp>

namespace {

class AcmeConv2d final : public tenon::IPlugin {
 public:
  void configure(const tenon::Config& config) override {
    const tenon::Site site = config.site();
    const auto strides = site.attrs().i64s("strides", 2, 1), dilations = site.attrs().i64s("dilations", 2, 1);
    const auto pads = site.attrs().i64s("pads", 4, 0);
    std::copy(strides.begin(), strides.end(), stride_);
    std::copy(dilations.begin(), dilations.end(), dilation_);
    std::copy_n(pads.begin(), 2, pad_);  // top and left; the output's dims tell the rest
    groups_ = site.attrs().i64("groups");
    num_inputs_ = site.num_inputs();
    epilogue_ = tenon::epilogue_evaluator(site);
  }

  void enqueue(const tenon::Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Job job = {this, inputs, outputs};
    const auto body = [](void* argument, int64_t plane) {
      const Job& self = *static_cast<const Job*>(argument);
      self.kernel->fill_plane(plane, self.inputs, self.outputs[0]);
    };
    const int64_t planes = outputs[0].dims.d[0] * outputs[0].dims.d[1];
    if (const TnParallel* pool = exec.parallel()) {
      pool->run(pool->context, planes, body, const_cast<Job*>(&job));
    } else {
      for (int64_t plane = 0; plane < planes; ++plane) body(const_cast<Job*>(&job), plane);
    }
  }

 private:
  struct Job {
    const AcmeConv2d* kernel;
    const TnTensor* inputs;
    const TnTensor* outputs;
  };

  /// One picture's output channel. Each row of sums goes through the epilogue before the next is begun.
  void fill_plane(int64_t plane, const TnTensor* inputs, const TnTensor& output) const {
    const TnDims &in = inputs[0].dims, &w = inputs[1].dims, &out = output.dims;
    const int64_t picture = plane / out.d[1], channel = plane % out.d[1];
    const int64_t first_in = channel / (out.d[1] / groups_) * w.d[1];
    const float* x = static_cast<const float*>(inputs[0].data) + (picture * in.d[1] + first_in) * in.d[2] * in.d[3];
    const float* weights = static_cast<const float*>(inputs[1].data) + channel * w.d[1] * w.d[2] * w.d[3];
    const bool has_bias = num_inputs_ > 2 && inputs[2].data != nullptr;
    const float bias = has_bias ? static_cast<const float*>(inputs[2].data)[channel] : 0.0f;
    for (int64_t row = 0; row < out.d[2]; ++row) {
      const int64_t first = (plane * out.d[2] + row) * out.d[3];
      float* y = static_cast<float*>(output.data) + first;
      for (int64_t column = 0; column < out.d[3]; ++column) {
        y[column] = bias + sum_at(x, weights, in, w, row * stride_[0] - pad_[0], column * stride_[1] - pad_[1]);
      }
      epilogue_.run(y, inputs + num_inputs_, first, out.d[3], y);
    }
  }

  /// The weighted pixels under the window whose upper left corner is (top, left), over all channels of the group.
  float sum_at(const float* x, const float* weights, const TnDims& in, const TnDims& w, int64_t top,
               int64_t left) const {
    float sum = 0;
    for (int64_t c = 0; c < w.d[1]; ++c) {
      for (int64_t r = 0; r < w.d[2]; ++r) {
        const int64_t h = top + r * dilation_[0];
        if (h < 0 || h >= in.d[2]) continue;
        for (int64_t s = 0; s < w.d[3]; ++s) {
          const int64_t v = left + s * dilation_[1];
          if (v < 0 || v >= in.d[3]) continue;
          sum += x[(c * in.d[2] + h) * in.d[3] + v] * weights[(c * w.d[2] + r) * w.d[3] + s];
        }
      }
    }
    return sum;
  }

  int64_t stride_[2] = {1, 1}, dilation_[2] = {1, 1}, pad_[2] = {0, 0}, groups_ = 1;
  int num_inputs_ = 0;
  tenon::ExprEvaluator epilogue_;
};

}  // namespace

TENON_PLUGIN("acme.conv2d", "1.0", "Apache-2.0",
             tenon::kernel<AcmeConv2d>("tenon.conv2d/1", "acme.conv2d.direct.f32")
                 .combo({tenon::f32_row(), tenon::f32_row(), tenon::f32_row()}, {tenon::f32_row()})
                 .epilogue([](const tenon::Site& site) { tenon::epilogue_evaluator(site); })
                 .deterministic())
