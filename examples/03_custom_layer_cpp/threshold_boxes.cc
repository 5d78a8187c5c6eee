// A layer with two outputs in C++: keeps the boxes whose score reaches a threshold, and says how many they are.
#include <algorithm>
#include <tenon/sdk/plugin.hpp>
#include <vector>

namespace {

/// Rows of [N,5] are x, y, w, h, score. Writes the rows that stay, in order, then zeros, to [N,4]; returns their
/// number.
int64_t keep_boxes(const float* rows, int64_t count, double threshold, float* boxes) {
  int64_t kept = 0;
  for (int64_t n = 0; n < count; ++n) {
    const float* row = rows + 5 * n;
    if (static_cast<double>(row[4]) < threshold) continue;
    std::copy(row, row + 4, boxes + 4 * kept++);
  }
  std::fill(boxes + 4 * kept, boxes + 4 * count, 0.0f);
  return kept;
}

void infer(const tenon::Infer& question) {
  const tenon::Tensor rows = question.input(0, 2);
  if (rows.dtype() != TN_F32 || rows.dim(1) != 5) {
    throw tenon::Invalid(tenon::text("rows: expected float32 [N,5], found ", tenon::dtype_name(rows.dtype()), " ",
                                     tenon::to_text(rows.dims())));
  }
  question.output(0, TN_F32, {rows.dim(0), 4});
  question.output(1, TN_I64, {1});
}

/// A box of an output may depend on all inputs, so the whole result is made and the box cut out of it.
void reference(const tenon::Reference& call) {
  const tenon::Tensor rows = call.input(0);
  std::vector<float> boxes(static_cast<size_t>(4 * rows.dim(0)));
  const int64_t kept = keep_boxes(rows.data<float>(), rows.dim(0), call.attrs().f64("threshold"), boxes.data());
  call.fill<float>(0, [&](const int64_t*, int64_t linear) { return boxes[static_cast<size_t>(linear)]; });
  call.fill<int64_t>(1, [&](const int64_t*, int64_t) { return kept; });
}

class ThresholdBoxes final : public tenon::IPlugin {
 public:
  void configure(const tenon::Config& config) override { threshold_ = config.site().attrs().f64("threshold"); }
  void enqueue(const tenon::Exec&, const TnTensor* inputs, const TnTensor* outputs) const override {
    *static_cast<int64_t*>(outputs[1].data) = keep_boxes(static_cast<const float*>(inputs[0].data), inputs[0].dims.d[0],
                                                         threshold_, static_cast<float*>(outputs[0].data));
  }

 private:
  double threshold_ = 0;
};

}  // namespace

TENON_PLUGIN(
    "org.example.threshold_boxes", "1.0", "Apache-2.0",
    tenon::op("org.example.threshold_boxes/1")
        .doc("Boxes whose score is at least the threshold, in order and filled up with zeros, and their number")
        .attr_f64("threshold")
        .default_value("0.5")
        .input("rows", "[N,5]: x, y, w, h, score")
        .output("boxes", "[N,4]")
        .output("count", "int64 [1]")
        .infer(infer)
        .reference(reference),
    tenon::kernel<ThresholdBoxes>("org.example.threshold_boxes/1", "example.threshold_boxes.scalar.f32")
        .combo({tenon::f32_row()}, {tenon::f32_row(), tenon::row(TN_I64)})
        .deterministic())
