// Box, RelativeBox, Detection and ClassScore: what a pipeline finds in a picture.
//
// Thread rule: plain values.
#ifndef TENON_PIPELINE_DETECTION_H
#define TENON_PIPELINE_DETECTION_H

namespace tenon::pipeline {

/// A rectangle in pixels of the input picture; it may reach outside the picture.
struct Box {
  float left = 0;
  float top = 0;
  float width = 0;
  float height = 0;
};

/// A rectangle by its centre and size, each as a share (0..1) of the width or height of a picture or network input.
struct RelativeBox {
  float x = 0;
  float y = 0;
  float width = 0;
  float height = 0;
};

/// One class of one box: a box with two classes above the threshold is two detections.
struct Detection {
  int class_id = 0;
  float score = 0;  ///< objectness * class probability
  float objectness = 0;
  Box box;
};

/// One class of a classifier, with its probability.
struct ClassScore {
  int class_id = 0;
  float score = 0;
};

}  // namespace tenon::pipeline

#endif  // TENON_PIPELINE_DETECTION_H
