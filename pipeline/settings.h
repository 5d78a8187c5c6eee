// PipelineSettings: pre- and post-processing as it travels in an engine, so that the engine file is all one needs.
//
// Thread rule: plain values and free functions.
#ifndef TENON_PIPELINE_SETTINGS_H
#define TENON_PIPELINE_SETTINGS_H

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <tenon/status.hpp>

#include "pipeline/config.h"
#include "pipeline/metadata.h"

namespace tenon::pipeline {

struct PipelineSettings {
  PreprocessOptions preprocess;
  PostprocessConfig postprocess;  ///< `labels` is not used: the names are below
  std::vector<std::string> labels;
  bool draw = true;
};

/// Reads the label file that the pipeline names.
Result<PipelineSettings> settings_of(const PipelineConfig& config);

/// For an engine without metadata "pipeline": what its importer said it is (detector, classifier) with usual values.
PipelineSettings default_settings(bool detects, bool classifies);

/// The text of metadata "pipeline", and back.
std::string settings_text(const PipelineSettings& settings);
Result<PipelineSettings> parse_settings(const std::string& text);

/// "0x" and hex digits.
std::string hash_text(std::uint64_t hash);

}  // namespace tenon::pipeline

#endif  // TENON_PIPELINE_SETTINGS_H
