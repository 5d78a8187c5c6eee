#include "pipeline/results.h"

#include "pipeline/labels.h"

namespace tenon::pipeline {

using nlohmann::ordered_json;

ordered_json run_json(const RunReport& report) {
  ordered_json results = ordered_json::array();
  for (const InputResult& result : report.results) {
    ordered_json detections = ordered_json::array();
    for (const Detection& found : result.detections) {
      detections.push_back({{"class", label_of(report.labels, found.class_id)},
                            {"class_id", found.class_id},
                            {"score", found.score},
                            {"box", {found.box.left, found.box.top, found.box.width, found.box.height}}});
    }
    ordered_json classes = ordered_json::array();
    for (const ClassScore& found : result.classes) {
      classes.push_back(
          {{"class", label_of(report.labels, found.class_id)}, {"class_id", found.class_id}, {"score", found.score}});
    }
    ordered_json outputs = ordered_json::array();
    for (const OutputInfo& output : result.outputs) {
      outputs.push_back({{"name", output.name}, {"dims", output.dims}, {"dtype", output.dtype}});
      if (!output.debug) continue;
      outputs.back()["debug"] = true;
      outputs.back()["side_run"] = output.side_run;
    }
    results.push_back({{"input", result.input},
                       {"detections", std::move(detections)},
                       {"classes", std::move(classes)},
                       {"outputs", std::move(outputs)}});
  }
  return {{"results", std::move(results)},
          {"timings_ms",
           {{"preprocess", report.timings_ms.preprocess},
            {"infer", report.timings_ms.infer},
            {"postprocess", report.timings_ms.postprocess}}},
          {"device", report.device}};
}

std::string run_json_text(const RunReport& report) {
  return run_json(report).dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace tenon::pipeline
