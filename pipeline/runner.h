// Runner: pictures and tensors through an engine, and what it found in them.
//
// Thread rule: one thread at a time.
#ifndef TENON_PIPELINE_RUNNER_H
#define TENON_PIPELINE_RUNNER_H

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <tenon/status.hpp>
#include <tenon/tenon.hpp>

#include "pipeline/debug_tensors.h"
#include "pipeline/image.h"
#include "pipeline/npy.h"
#include "pipeline/results.h"
#include "pipeline/settings.h"

namespace tenon::pipeline {

class Runner {
 public:
  /// Settings come from the engine's metadata "pipeline", or are the usual ones for what the engine is.
  static Result<Runner> create(const Engine& engine);

  const PipelineSettings& settings() const { return settings_; }
  PipelineSettings& settings() { return settings_; }

  /// One picture through the network. Fails with kInvalid if the network has not exactly one image input [N,C,H,W] of
  /// f32. `annotated`, if given, becomes the picture with what was found drawn in.
  Result<InputResult> run_image(const std::string& path, Image* annotated);
  /// A .npy file for the network's only input, taken as it is; boxes of detections are in pixels of that input. Fails
  /// like run_tensors, and with kInvalid if the network has several inputs.
  Result<InputResult> run_array(const std::string& path);
  /// Named arrays, converted to the inputs' types. Fails with kInvalid, listing inputs that are missing or unknown and
  /// dims that do not fit.
  Result<InputResult> run_tensors(const std::map<std::string, NpyArray>& tensors);

  /// Looks at these tensors of the engine in every run from now on, without changing what it computes.
  Status debug(DebugTensors tensors);
  /// The outputs of the last run and its debug tensors, by name.
  Result<std::map<std::string, NpyArray>> outputs() const;
  const Timings& timings() const { return timings_; }

 private:
  struct Buffer {
    TensorInfo info;  ///< with the present dims
    std::vector<std::uint8_t> bytes;
  };
  Runner(Engine engine, ExecutionContext context) : engine_(std::move(engine)), context_(std::move(context)) {}
  Status set_inputs(const std::map<std::string, NpyArray>& tensors);
  /// Tells the context of the inputs' dims, if they have changed, and makes room for the outputs.
  Status set_dims();
  Status execute();
  Result<std::vector<Detection>> find_detections(const Geometry& geometry) const;
  Result<InputResult> finish(const std::string& input, const Geometry* geometry);
  const Buffer* find_output(const std::string& name) const;

  Engine engine_;
  ExecutionContext context_;
  PipelineSettings settings_;
  std::optional<DetectionMetadata> detection_;
  std::string classification_output_;
  std::vector<Buffer> inputs_, outputs_;
  std::optional<DebugTensors> debug_;
  Timings timings_;
};

/// Of a dtype that numpy has.
std::optional<NpyType> npy_type_of(std::int32_t dtype);
/// "float32" of TN_F32, "" for a dtype that is not written to .npy files.
std::string numpy_dtype(std::int32_t dtype);

}  // namespace tenon::pipeline

#endif  // TENON_PIPELINE_RUNNER_H
