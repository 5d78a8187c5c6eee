// tenon.region/1: activations of Darknet's [region] head (YOLOv2), and Tenon's kernel for it.
#include <cstring>
#include <optional>

#include <tenon/sdk/plugin.hpp>

#include "kernels/cpu/softmax.h"
#include "plugins/common/detection_head.h"
#include "plugins/common/parallel.h"

namespace tenon::plugins {
namespace {

DetectionHead region_head(const Attrs& attrs) { return {attrs, attrs.i64("coords")}; }

void region_reference(const Reference& call) {
  const DetectionHead head = region_head(call.attrs());
  const bool softmax = call.attrs().flag("softmax");
  const Dims dims = call.input(0).dims();
  const int64_t pixels = dims[2] * dims[3];
  const float* x = call.input(0).data<float>();
  call.fill<float>(0, [&](const int64_t* index, int64_t linear) {
    const int64_t entry = index[1] % head.entries();
    const double value = static_cast<double>(x[linear]);
    if (entry < 2 || entry == head.coords) return static_cast<float>(logistic(value));
    if (entry < head.coords) return x[linear];
    if (!softmax) return static_cast<float>(logistic(value));
    const int64_t first = linear - (entry - head.coords - 1) * pixels;
    double largest = -HUGE_VAL, sum = 0.0;
    for (int64_t c = 0; c < head.classes; ++c) largest = std::max(largest, static_cast<double>(x[first + c * pixels]));
    for (int64_t c = 0; c < head.classes; ++c) sum += std::exp(static_cast<double>(x[first + c * pixels]) - largest);
    return static_cast<float>(std::exp(value - largest) / sum);
  });
}

class RegionKernel final : public IPlugin {
 public:
  void configure(const Config& config) override {
    head_.emplace(region_head(config.site().attrs()));
    softmax_ = config.site().attrs().flag("softmax");
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims dims = inputs[0].dims;
    const int64_t pixels = dims[2] * dims[3];
    const float* x = static_cast<const float*>(inputs[0].data);
    float* y = static_cast<float*>(outputs[0].data);
    const cpu::Parallel serial;
    const cpu::Isa isa = cpu::detect_isa();
    const auto logistics = [&](int64_t at, int64_t count) {
      cpu::pointwise_unary(cpu::UnaryKind::kLogistic, 0, 0, count * pixels, x + at, y + at, serial, isa);
    };
    cpu::parallel_for(to_parallel(exec), dims[0] * head_->anchors, [&](int64_t box) {
      const int64_t at = box * head_->entries() * pixels;
      const int64_t classes = at + (head_->coords + 1) * pixels;
      logistics(at, 2);
      std::memcpy(y + at + 2 * pixels, x + at + 2 * pixels,
                  static_cast<size_t>((head_->coords - 2) * pixels) * sizeof(float));
      logistics(at + head_->coords * pixels, 1);
      if (softmax_) {
        cpu::softmax(cpu::SoftmaxKind::kSoftmax, 1, head_->classes, pixels, x + classes, y + classes, serial, isa);
      } else {
        logistics(classes, head_->classes);
      }
    });
  }

 private:
  std::optional<DetectionHead> head_;
  bool softmax_ = true;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN(
    "tenon.region", "1", "Apache-2.0",
    tenon::plugins::detection_op("tenon.region/1")
        .doc("Activations of Darknet's [region] head (YOLOv2): logistic on x, y and objectness, the other coords "
             "untouched, softmax or logistic on the classes. Boxes are decoded by whoever reads the output")
        .attr_i64("coords")
        .default_value("4")
        .range("[2,)")
        .attr_i64("softmax", "1: softmax over the classes, 0: logistic each")
        .default_value("1")
        .range("0|1")
        .input("x", "[N,anchors*(coords+1+classes),H,W] of f32")
        .infer([](const tenon::Infer& q) { tenon::plugins::region_head(q.attrs()).infer(q); })
        .reference(tenon::plugins::region_reference),
    tenon::kernel<tenon::plugins::RegionKernel>("tenon.region/1", "tenon.region.vector.f32")
        .combo({tenon::f32_row()}, {tenon::f32_row()})
        .deterministic())
