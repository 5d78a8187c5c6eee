// tenon.yolo/1: activations of Darknet's [yolo] head (YOLOv3), and Tenon's kernel for it.
#include <cstring>
#include <optional>

#include <tenon/sdk/plugin.hpp>

#include "plugins/common/detection_head.h"
#include "plugins/common/parallel.h"

namespace tenon::plugins {
namespace {

constexpr int64_t kYoloCoords = 4;

DetectionHead yolo_head(const Attrs& attrs) { return {attrs, kYoloCoords}; }

void yolo_reference(const Reference& call) {
  const DetectionHead head = yolo_head(call.attrs());
  const double scale = call.attrs().f64("scale_x_y");
  const float* x = call.input(0).data<float>();
  call.fill<float>(0, [&](const int64_t* index, int64_t linear) {
    const int64_t entry = index[1] % head.entries();
    if (entry == 2 || entry == 3) return x[linear];
    const double value = logistic(static_cast<double>(x[linear]));
    return static_cast<float>(entry < 2 ? value * scale - 0.5 * (scale - 1.0) : value);
  });
}

class YoloKernel final : public IPlugin {
 public:
  void configure(const Config& config) override {
    head_.emplace(yolo_head(config.site().attrs()));
    scale_ = static_cast<float>(config.site().attrs().f64("scale_x_y"));
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims dims = inputs[0].dims;
    const int64_t pixels = dims[2] * dims[3];
    const float* x = static_cast<const float*>(inputs[0].data);
    float* y = static_cast<float*>(outputs[0].data);
    const cpu::Isa isa = cpu::detect_isa();
    const auto unary = [&](cpu::UnaryKind kind, float alpha, float beta, const float* from, float* to, int64_t count) {
      cpu::pointwise_unary(kind, alpha, beta, count, from, to, cpu::Parallel(), isa);
    };
    cpu::parallel_for(to_parallel(exec), dims[0] * head_->anchors, [&](int64_t box) {
      const int64_t at = box * head_->entries() * pixels;
      const int64_t rest = at + kYoloCoords * pixels;
      unary(cpu::UnaryKind::kLogistic, 0, 0, x + at, y + at, 2 * pixels);
      if (scale_ != 1.0f) {
        unary(cpu::UnaryKind::kLinear, scale_, -0.5f * (scale_ - 1.0f), y + at, y + at, 2 * pixels);
      }
      std::memcpy(y + at + 2 * pixels, x + at + 2 * pixels, static_cast<size_t>(2 * pixels) * sizeof(float));
      unary(cpu::UnaryKind::kLogistic, 0, 0, x + rest, y + rest, (1 + head_->classes) * pixels);
    });
  }

 private:
  std::optional<DetectionHead> head_;
  float scale_ = 1;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN(
    "tenon.yolo", "1", "Apache-2.0",
    tenon::plugins::detection_op("tenon.yolo/1")
        .doc("Activations of Darknet's [yolo] head (YOLOv3): logistic on x, y, objectness and classes, w and h "
             "untouched; then x and y become v * scale_x_y - (scale_x_y - 1) / 2. Boxes are decoded by whoever "
             "reads the output")
        .attr_f64("scale_x_y", "lets centres reach the borders of their cell")
        .default_value("1")
        .input("x", "[N,anchors*(5+classes),H,W] of f32")
        .infer([](const tenon::Infer& q) { tenon::plugins::yolo_head(q.attrs()).infer(q); })
        .reference(tenon::plugins::yolo_reference),
    tenon::kernel<tenon::plugins::YoloKernel>("tenon.yolo/1", "tenon.yolo.vector.f32")
        .combo({tenon::f32_row()}, {tenon::f32_row()})
        .deterministic())
