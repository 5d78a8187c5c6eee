// DetectionMetadata: what a model says about its detection heads, as it travels through an engine file as JSON.
//
//   {"heads": [{"output": "layer121", "kind": "yolo", "classes": 80, "coords": 4, "anchors": [[115, 73], [119, 199]],
//               "anchor_unit": "pixel", "scale_x_y": 1.05, "nms_kind": "greedynms", "softmax": false}],
//    "net": {"width": 320, "height": 320, "channels": 3},
//    "labels": ["person", "bicycle"]}
//
// kind is "region" (YOLOv2) or "yolo" (YOLOv3). anchors are the pairs [width, height] that this head uses, in its own
// order, so a mask is already applied. anchor_unit is "pixel" (of the network's input) or "cell" (of the head's grid).
// nms_kind is the cfg's word. Optional: coords (4), anchor_unit (yolo: pixel, region: cell), scale_x_y (1),
// nms_kind ("default"), softmax (false), channels (3), labels (none). Other keys are ignored, so that importers can
// add.
//
// Thread rule: plain values and free functions; call from any thread.
#ifndef TENON_PIPELINE_METADATA_H
#define TENON_PIPELINE_METADATA_H

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <tenon/status.hpp>
#include <vector>

namespace tenon::pipeline {

enum class HeadKind { kRegion, kYolo };

/// One detection head. Its output has the shape [N, anchors * (coords + 1 + classes), H, W], activated: logistic on x,
/// y and objectness (scale_x_y already applied to x and y), w and h untouched, classes logistic or softmax.
struct HeadMetadata {
  std::string output;  ///< name of the network output that holds the head
  HeadKind kind = HeadKind::kYolo;
  int classes = 0;
  int coords = 4;
  std::vector<std::array<float, 2>> anchors;  ///< {width, height}
  bool anchors_in_pixels = true;              ///< of the network's input; false: in grid cells
  float scale_x_y = 1;                        ///< for information
  std::string nms_kind = "default";
  bool softmax = false;  ///< for information

  int channels() const { return static_cast<int>(anchors.size()) * (coords + 1 + classes); }
};

struct DetectionMetadata {
  std::vector<HeadMetadata> heads;
  int net_width = 0;
  int net_height = 0;
  int net_channels = 3;
  std::vector<std::string> labels;  ///< may be empty
};

/// Reads the form above. Fails with kInvalid, naming the field, what was expected and what was found.
Result<DetectionMetadata> detection_metadata_from_json(const nlohmann::json& json);

/// The same from text.
Result<DetectionMetadata> detection_metadata_from_text(std::string_view text);

/// Writes the form above; reading it back gives equal values.
nlohmann::json to_json(const DetectionMetadata& metadata);

}  // namespace tenon::pipeline

#endif  // TENON_PIPELINE_METADATA_H
