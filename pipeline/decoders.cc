// Compiled with -ffp-contract=off, see resize.cc.
#include "pipeline/decoders.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "pipeline/nms.h"

namespace tenon::pipeline {
namespace {

constexpr std::pair<Decoder, const char*> kNames[] = {{Decoder::kYolox, "yolox"},
                                                      {Decoder::kNanodet, "nanodet"},
                                                      {Decoder::kUltraface, "ultraface"},
                                                      {Decoder::kYunet, "yunet"}};
constexpr int kStrides[] = {8, 16, 32};
constexpr int kBins = 8;  // of a NanoDet distance

/// The cells of one stride.
struct Grid {
  int stride, width, height;
  int cells() const { return width * height; }
};

std::vector<Grid> grids_of(const Geometry& geometry) {
  std::vector<Grid> grids;
  for (const int stride : kStrides) {
    grids.push_back({stride, (geometry.net_width + stride - 1) / stride, (geometry.net_height + stride - 1) / stride});
  }
  return grids;
}

std::string dims_text(const std::vector<std::int64_t>& dims) {
  std::string text;
  for (const std::int64_t size : dims) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

/// left, top, right, bottom or centre and size, in pixels of the network's input.
struct NetBox {
  float x, y, width, height;
};
NetBox from_corners(float left, float top, float right, float bottom) {
  return {(left + right) / 2, (top + bottom) / 2, right - left, bottom - top};
}

class Decoding {
 public:
  Decoding(Decoder decoder, std::span<const RawOutput> outputs, const Geometry& geometry, float threshold)
      : decoder_(decoder), outputs_(outputs), geometry_(geometry), threshold_(threshold) {}

  Status run() {
    switch (decoder_) {
      case Decoder::kYolox:
        return yolox();
      case Decoder::kNanodet:
        return nanodet();
      case Decoder::kUltraface:
        return ultraface();
      case Decoder::kYunet:
        return yunet();
    }
    return {Code::kInvalid, "unknown decoder"};
  }
  std::vector<Candidate> take() { return std::move(candidates_); }

 private:
  /// The outputs of shape [N, rows, columns]; -1 is any.
  std::vector<const RawOutput*> find(std::int64_t rows, std::int64_t columns) const {
    std::vector<const RawOutput*> found;
    for (const RawOutput& output : outputs_) {
      if (output.dims.size() != 3 || (rows >= 0 && output.dims[1] != rows)) continue;
      if (columns >= 0 && output.dims[2] != columns) continue;
      if (output.values.size() == static_cast<std::size_t>(output.dims[1] * output.dims[2])) found.push_back(&output);
    }
    return found;
  }

  Status misfit(const std::string& expected) const {
    std::string found;
    for (const RawOutput& output : outputs_) {
      found += (found.empty() ? "" : ", ") + output.name + " " + dims_text(output.dims);
    }
    return {Code::kInvalid, std::string("postprocess.decoder ") + decoder_name(decoder_) + ": expected " + expected +
                                " for a network input of " + std::to_string(geometry_.net_width) + " x " +
                                std::to_string(geometry_.net_height) + ", found the float32 outputs " +
                                (found.empty() ? "none" : found) +
                                "; choose the decoder of this model, or postprocess type tensors"};
  }

  bool wanted(float score) const { return score > threshold_ || std::isnan(score); }

  Status add(const RawOutput& output, int row, int class_id, float score, float objectness, const NetBox& box) {
    const RelativeBox in_net{
        box.x / static_cast<float>(geometry_.net_width), box.y / static_cast<float>(geometry_.net_height),
        box.width / static_cast<float>(geometry_.net_width), box.height / static_cast<float>(geometry_.net_height)};
    const RelativeBox mapped = to_picture(geometry_, in_net);
    const bool finite = std::isfinite(score) && std::isfinite(mapped.x) && std::isfinite(mapped.y) &&
                        std::isfinite(mapped.width) && std::isfinite(mapped.height);
    if (!finite) {
      return {Code::kInvalid, "output '" + output.name + "' has a score or a box that is not finite in row " +
                                  std::to_string(row) +
                                  "; the network overflowed: try precision fp32, and find the layer with "
                                  "'tenon compare'"};
    }
    candidates_.push_back({mapped, class_id, score, objectness});
    return {};
  }

  /// The first of the greatest; a NaN is taken for the greatest, so that it is seen.
  static int best(const float* values, int count) {
    int found = 0;
    for (int c = 0; c < count; ++c) {
      if (std::isnan(values[c])) return c;
      if (values[c] > values[found]) found = c;
    }
    return found;
  }

  static NetBox around_cell(const Grid& grid, int cell, const float* v) {
    const auto stride = static_cast<float>(grid.stride);
    return {(v[0] + static_cast<float>(cell % grid.width)) * stride,
            (v[1] + static_cast<float>(cell / grid.width)) * stride, std::exp(v[2]) * stride, std::exp(v[3]) * stride};
  }

  Status yolox() {
    const std::vector<Grid> grids = grids_of(geometry_);
    int rows = 0;
    for (const Grid& grid : grids) rows += grid.cells();
    const std::vector<const RawOutput*> found = find(rows, -1);
    if (found.size() != 1 || found[0]->dims[2] < 6) {
      return misfit("one output [N, " + std::to_string(rows) + ", 5 + classes]");
    }
    const int columns = static_cast<int>(found[0]->dims[2]);
    int row = 0;
    for (const Grid& grid : grids) {
      for (int cell = 0; cell < grid.cells(); ++cell, ++row) {
        const float* v = found[0]->values.data() + std::size_t(row) * columns;
        const int class_id = best(v + 5, columns - 5);
        const float score = v[4] * v[5 + class_id];
        if (!wanted(score)) continue;
        TENON_RETURN_IF_ERROR(add(*found[0], row, class_id, score, v[4], around_cell(grid, cell, v)));
      }
    }
    return {};
  }

  /// The mean bin under the softmax of the values.
  static float distance(const float* v) {
    const float top = *std::max_element(v, v + kBins);
    float sum = 0, weighted = 0;
    for (int bin = 0; bin < kBins; ++bin) {
      const float e = std::exp(v[bin] - top);
      sum += e;
      weighted += e * static_cast<float>(bin);
    }
    return weighted / sum;
  }

  Status nanodet() {
    for (const Grid& grid : grids_of(geometry_)) {
      const std::vector<const RawOutput*> found = find(grid.cells(), -1);
      const RawOutput* distances = nullptr;
      // With 32 classes both have one shape; a model lists its scores first.
      for (const RawOutput* output : found) distances = output->dims[2] == 4 * kBins ? output : distances;
      if (found.size() != 2 || distances == nullptr) {
        return misfit("for stride " + std::to_string(grid.stride) + " class scores [N, " +
                      std::to_string(grid.cells()) + ", classes] and distances [N, " + std::to_string(grid.cells()) +
                      ", " + std::to_string(4 * kBins) + "]");
      }
      const RawOutput& scores = *(found[0] == distances ? found[1] : found[0]);
      const int classes = static_cast<int>(scores.dims[2]);
      const auto stride = static_cast<float>(grid.stride);
      for (int cell = 0; cell < grid.cells(); ++cell) {
        const float* v = scores.values.data() + std::size_t(cell) * classes;
        const int class_id = best(v, classes);
        if (classes == 0 || !wanted(v[class_id])) continue;
        std::array<float, 4> far{};
        for (int side = 0; side < 4; ++side) {
          far[side] = distance(distances->values.data() + (std::size_t(cell) * 4 + side) * kBins) * stride;
        }
        const float x = (static_cast<float>(cell % grid.width) + 0.5f) * stride - 0.5f;
        const float y = (static_cast<float>(cell / grid.width) + 0.5f) * stride - 0.5f;
        TENON_RETURN_IF_ERROR(
            add(scores, cell, class_id, v[class_id], 1, from_corners(x - far[0], y - far[1], x + far[2], y + far[3])));
      }
    }
    return {};
  }

  Status ultraface() {
    const std::vector<const RawOutput*> scores = find(-1, 2), boxes = find(-1, 4);
    if (scores.size() != 1 || boxes.size() != 1 || scores[0]->dims[1] != boxes[0]->dims[1]) {
      return misfit("scores [N, boxes, 2] and boxes [N, boxes, 4]");
    }
    const auto width = static_cast<float>(geometry_.net_width), height = static_cast<float>(geometry_.net_height);
    for (int row = 0; row < scores[0]->dims[1]; ++row) {
      const float score = scores[0]->values[std::size_t(row) * 2 + 1];
      if (!wanted(score)) continue;
      const float* v = boxes[0]->values.data() + std::size_t(row) * 4;
      TENON_RETURN_IF_ERROR(
          add(*scores[0], row, 0, score, 1, from_corners(v[0] * width, v[1] * height, v[2] * width, v[3] * height)));
    }
    return {};
  }

  Status yunet() {
    for (const Grid& grid : grids_of(geometry_)) {
      const std::vector<const RawOutput*> scores = find(grid.cells(), 1), boxes = find(grid.cells(), 4);
      if (scores.size() != 2 || boxes.size() != 1) {
        const std::string cells = std::to_string(grid.cells());
        return misfit("for stride " + std::to_string(grid.stride) + " two outputs [N, " + cells +
                      ", 1], of class and of object, and boxes [N, " + cells + ", 4]");
      }
      for (int cell = 0; cell < grid.cells(); ++cell) {
        // Values slightly outside of 0..1 come from rounding.
        const float a = scores[0]->values[std::size_t(cell)], b = scores[1]->values[std::size_t(cell)];
        const float score =
            std::isnan(a) || std::isnan(b) ? a + b : std::sqrt(std::clamp(a, 0.0f, 1.0f) * std::clamp(b, 0.0f, 1.0f));
        if (!wanted(score)) continue;
        const float* v = boxes[0]->values.data() + std::size_t(cell) * 4;
        TENON_RETURN_IF_ERROR(add(*scores[0], cell, 0, score, 1, around_cell(grid, cell, v)));
      }
    }
    return {};
  }

  Decoder decoder_;
  std::span<const RawOutput> outputs_;
  const Geometry& geometry_;
  float threshold_;
  std::vector<Candidate> candidates_;
};

}  // namespace

const char* decoder_name(Decoder decoder) {
  for (const auto& [value, name] : kNames) {
    if (value == decoder) return name;
  }
  return "unknown";
}

std::optional<Decoder> decoder_named(std::string_view word) {
  for (const auto& [value, name] : kNames) {
    if (word == name) return value;
  }
  return std::nullopt;
}

Result<std::vector<Detection>> detect(Decoder decoder, std::span<const RawOutput> outputs, const Geometry& geometry,
                                      const DetectOptions& options) {
  Decoding decoding(decoder, outputs, geometry, options.threshold);
  TENON_RETURN_IF_ERROR(decoding.run());
  std::vector<Detection> detections;
  const NmsKind kind = options.nms_kind.value_or(NmsKind::kIou);
  for (const Candidate& kept : suppress(decoding.take(), options.nms_threshold, kind)) {
    detections.push_back({kept.class_id, kept.score, kept.objectness, to_pixels(geometry, kept.box)});
  }
  return detections;
}

}  // namespace tenon::pipeline
