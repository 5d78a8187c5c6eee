// tenon.non_max_suppression/1: the boxes that stay when those that overlap better ones are taken out.
#include <algorithm>
#include <array>
#include <tenon/sdk/plugin.hpp>
#include <vector>

#include "plugins/common/integers.h"

namespace tenon::plugins {
namespace {

constexpr int kBoxes = 0, kScores = 1, kMost = 2, kIou = 3, kScore = 4;

struct Corners {
  float y1, x1, y2, x2;
};

Corners corners_of(const float* box, bool centers) {
  if (centers) return {box[1] - box[3] / 2, box[0] - box[2] / 2, box[1] + box[3] / 2, box[0] + box[2] / 2};
  return {std::min(box[0], box[2]), std::min(box[1], box[3]), std::max(box[0], box[2]), std::max(box[1], box[3])};
}

// Boxes without an area overlap nothing.
bool overlaps(const Corners& a, const Corners& b, float most) {
  const float height = std::min(a.y2, b.y2) - std::max(a.y1, b.y1);
  const float width = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  if (!(height > 0) || !(width > 0)) return false;
  const float common = height * width;
  const float all = (a.y2 - a.y1) * (a.x2 - a.x1) + (b.y2 - b.y1) * (b.x2 - b.x1) - common;
  return all > 0 && common / all > most;
}

using Selected = std::vector<std::array<int64_t, 3>>;

// Boxes of one class of one image, the best first; of equals that with the lower number.
void select(const float* boxes, const float* scores, int64_t count, int64_t most, float iou, const float* least,
            bool centers, int64_t image, int64_t number, Selected* selected) {
  std::vector<int64_t> order;
  for (int64_t n = 0; n < count; ++n) {
    const bool sound = scores[n] == scores[n];
    if (sound && (least == nullptr || scores[n] > *least)) order.push_back(n);
  }
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  std::vector<Corners> kept;
  for (const int64_t n : order) {
    if (static_cast<int64_t>(kept.size()) >= most) return;
    const Corners box = corners_of(boxes + 4 * n, centers);
    if (std::any_of(kept.begin(), kept.end(), [&](const Corners& other) { return overlaps(box, other, iou); }))
      continue;
    kept.push_back(box);
    selected->push_back({image, number, n});
  }
}

template <class Question>
const Tensor* known(const Question& question, int n, const char* name, Tensor* tensor) {
  if (!question.has_input(n)) return nullptr;
  *tensor = question.input(n);
  check_contents(*tensor, name);
  return tensor;
}

template <class Question>
Selected select_all(const Question& question) {
  Tensor most = question.input(0), iou = most, least = most, boxes = most, scores = most;
  const Tensor* limit = known(question, kMost, "max_output_boxes_per_class", &most);
  Selected selected;
  if (limit == nullptr || limit->integer(0) <= 0) return selected;
  const bool bounded = known(question, kIou, "iou_threshold", &iou) != nullptr;
  const bool scored = known(question, kScore, "score_threshold", &least) != nullptr;
  known(question, kBoxes, "boxes", &boxes);
  known(question, kScores, "scores", &scores);
  const int64_t images = boxes.dim(0), count = boxes.dim(1), classes = scores.dim(1);
  const bool centers = question.attrs().flag("center_point_box");
  for (int64_t image = 0; image < images; ++image) {
    for (int64_t c = 0; c < classes; ++c) {
      select(boxes.template data<float>() + image * count * 4,
             scores.template data<float>() + (image * classes + c) * count, count, limit->integer(0),
             bounded ? iou.template data<float>()[0] : 0.0f, scored ? least.template data<float>() : nullptr, centers,
             image, c, &selected);
    }
  }
  return selected;
}

void check_scalar(const Infer& question, int n, const char* name, int32_t dtype) {
  if (!question.has_input(n)) return;
  const Tensor scalar = question.input(n);
  if (scalar.dtype() != dtype || scalar.elements() != 1) {
    throw Invalid(text("input ", name, ": expected one ", dtype_name(dtype), ", found ", to_text(scalar.dims()), " of ",
                       dtype_name(scalar.dtype())));
  }
}

// Dtypes and dims, so far as they do not depend on contents.
void check_inputs(const Infer& question) {
  const Tensor boxes = question.input(kBoxes, 3), scores = question.input(kScores, 3);
  if (boxes.dtype() != TN_F32 || scores.dtype() != TN_F32) throw Invalid("expected boxes and scores of f32");
  if (boxes.dim(2) != 4) throw Invalid(text("input boxes: expected [N,B,4], found ", to_text(boxes.dims())));
  if (scores.dim(0) != boxes.dim(0) || scores.dim(2) != boxes.dim(1)) {
    throw Invalid(
        text("input scores: expected [", boxes.dim(0), ",C,", boxes.dim(1), "], found ", to_text(scores.dims())));
  }
  check_scalar(question, kMost, "max_output_boxes_per_class", TN_I64);
  check_scalar(question, kIou, "iou_threshold", TN_F32);
  check_scalar(question, kScore, "score_threshold", TN_F32);
}

void nms_infer(const Infer& question) {
  check_inputs(question);
  question.output(0, TN_I64, {static_cast<int64_t>(select_all(question).size()), 3});
}

void nms_bound(const Infer& question) {
  check_inputs(question);
  Dims most = question.input(kScores).dims();  // every box of each class of each image
  const bool limited = question.has_input(kMost);
  if (!limited || question.input(kMost).has_data()) {
    const int64_t limit = limited ? question.input(kMost).integer(0) : 0;
    most[2] = std::min(std::max<int64_t>(limit, 0), most[2]);
  }
  question.output(0, TN_I64, {most.elements(), 3});
}

void nms_reference(const Reference& call) {
  const Selected selected = select_all(call);
  call.fill<int64_t>(0, [&](const int64_t* index, int64_t) {
    const auto n = static_cast<size_t>(index[0]);
    return n < selected.size() ? selected[n][static_cast<size_t>(index[1])] : 0;
  });
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN(
    "tenon.non_max_suppression", "1", "Apache-2.0",
    tenon::op("tenon.non_max_suppression/1")
        .doc("For each class of each image the boxes in order of their scores, without those whose intersection "
             "over union with one before is above iou_threshold "
             "(https://onnx.ai/onnx/operators/onnx__NonMaxSuppression.html)")
        .attr_i64("center_point_box", "1: boxes are x and y of the centre, width, height; 0: y1, x1, y2, x2")
        .default_value("0")
        .range("0|1")
        .input("boxes", "f32 [N,B,4]")
        .host_value()
        .input("scores", "f32 [N,C,B]")
        .host_value()
        .input("max_output_boxes_per_class", "i64; absent: 0, no boxes")
        .optional()
        .host_value()
        .input("iou_threshold", "f32; absent: 0")
        .optional()
        .host_value()
        .input("score_threshold", "f32; boxes with a score above it take part; absent: all")
        .optional()
        .host_value()
        .output("selected", "i64 [S,3]: image, class, box")
        .infer(tenon::plugins::nms_infer)
        .infer_bound(tenon::plugins::nms_bound)
        .reference(tenon::plugins::nms_reference)
        .tolerance(0, 0))
