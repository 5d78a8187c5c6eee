// The JSON of `tenon run`: what was found in each input, how long it took, and on which device.
//
//   {"results": [{"input": "dog.jpg",
//                 "detections": [{"class": "dog", "class_id": 16, "score": 0.65, "box": [x, y, w, h]}],
//                 "classes": [{"class": "tabby", "class_id": 281, "score": 0.44}],
//                 "outputs": [{"name": "layer121", "dims": [1, 255, 10, 10], "dtype": "float32"},
//                             {"name": "layer7", "dims": [1, 24, 40, 40], "dtype": "float32", "debug": true,
//                              "side_run": false}]}],
//    "timings_ms": {"preprocess": 1.2, "infer": 3.4, "postprocess": 0.1},
//    "device": "cpu"}
//
// A box is left, top, width, height in pixels of the input picture, not clipped. All three lists are always there.
// Only tensors of --debug-output have the fields debug and side_run.
//
// Thread rule: plain values and free functions; call from any thread.
#ifndef TENON_PIPELINE_RESULTS_H
#define TENON_PIPELINE_RESULTS_H

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "pipeline/detection.h"

namespace tenon::pipeline {

/// One output tensor of the network.
struct OutputInfo {
  std::string name;
  std::vector<std::int64_t> dims;
  std::string dtype;      ///< "float32", "int64", ...
  bool debug = false;     ///< asked for with --debug-output
  bool side_run = false;  ///< see DebugTensors
};

/// What came out for one input.
struct InputResult {
  std::string input;  ///< as the user gave it
  std::vector<Detection> detections;
  std::vector<ClassScore> classes;
  std::vector<OutputInfo> outputs;
};

/// Milliseconds, summed over all inputs.
struct Timings {
  double preprocess = 0;
  double infer = 0;
  double postprocess = 0;
};

struct RunReport {
  std::vector<InputResult> results;
  std::vector<std::string> labels;  ///< class names; a class without one is "class N"
  Timings timings_ms;
  std::string device;
};

/// The report in the form above. Keys keep the order above.
nlohmann::ordered_json run_json(const RunReport& report);

/// The same as text with a line feed at the end. Bytes that are not UTF-8 (file names can hold any) become U+FFFD;
/// numbers that are not finite become null, as JSON has no word for them.
std::string run_json_text(const RunReport& report);

}  // namespace tenon::pipeline

#endif  // TENON_PIPELINE_RESULTS_H
