#include "pipeline/runner.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>

#include "pipeline/classify.h"
#include "pipeline/decode.h"
#include "pipeline/decoders.h"
#include "pipeline/draw.h"
#include "pipeline/labels.h"

namespace tenon::pipeline {
namespace {

struct DtypeRow {
  std::int32_t dtype;
  NpyType npy;
  const char* name;
};
constexpr DtypeRow kDtypes[] = {
    {TN_F32, NpyType::kF4, "float32"}, {TN_F64, NpyType::kF8, "float64"}, {TN_F16, NpyType::kF2, "float16"},
    {TN_I8, NpyType::kI1, "int8"},     {TN_I16, NpyType::kI2, "int16"},   {TN_I32, NpyType::kI4, "int32"},
    {TN_I64, NpyType::kI8, "int64"},   {TN_U8, NpyType::kU1, "uint8"},    {TN_U16, NpyType::kU2, "uint16"},
    {TN_U32, NpyType::kU4, "uint32"},  {TN_U64, NpyType::kU8, "uint64"},  {TN_BOOL, NpyType::kB1, "bool"}};

const DtypeRow* find_dtype(std::int32_t dtype) {
  for (const DtypeRow& row : kDtypes) {
    if (row.dtype == dtype) return &row;
  }
  return nullptr;
}

std::string numpy_name(NpyType type) {
  for (const DtypeRow& row : kDtypes) {
    if (row.npy == type) return row.name;
  }
  return "";
}

std::string dims_text(const std::vector<std::int64_t>& dims) { return nlohmann::json(dims).dump(); }

std::int64_t elements(const std::vector<std::int64_t>& dims) {
  std::int64_t count = 1;
  for (const std::int64_t size : dims) count *= size;
  return count;
}

/// Whether the profile of a tensor holds the dims.
bool holds(const TensorInfo& info, const std::vector<std::int64_t>& dims) {
  if (dims.size() != info.min.size()) return false;
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] < info.min[axis] || dims[axis] > info.max[axis]) return false;
  }
  return true;
}

class Stopwatch {
 public:
  explicit Stopwatch(double* total) : total_(total), start_(std::chrono::steady_clock::now()) {}
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() {
    *total_ += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  double* total_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace

std::optional<NpyType> npy_type_of(std::int32_t dtype) {
  const DtypeRow* row = find_dtype(dtype);
  return row != nullptr ? std::optional(row->npy) : std::nullopt;
}

std::string numpy_dtype(std::int32_t dtype) {
  const DtypeRow* row = find_dtype(dtype);
  return row != nullptr ? row->name : "";
}

Result<Runner> Runner::create(const Engine& engine) {
  TENON_ASSIGN(ExecutionContext context, ExecutionContext::create(engine));
  Runner runner(engine, std::move(context));
  const auto add = [&](const std::vector<TensorInfo>& tensors, std::vector<Buffer>* buffers) -> Status {
    for (const TensorInfo& info : tensors) {
      const DtypeRow* row = find_dtype(info.dtype);
      if (row == nullptr) return {Code::kInvalid, "tensor " + info.name + " has a dtype that files cannot hold here"};
      buffers->push_back(
          {info, std::vector<std::uint8_t>(static_cast<std::size_t>(elements(info.dims)) * npy_type_size(row->npy))});
    }
    return {};
  };
  TENON_RETURN_IF_ERROR(add(engine.inputs(), &runner.inputs_));
  TENON_RETURN_IF_ERROR(add(engine.outputs(), &runner.outputs_));
  const Result<std::string> detection = engine.metadata("detection");
  if (detection.ok()) {
    TENON_ASSIGN(runner.detection_, detection_metadata_from_text(*detection));
  }
  const Result<std::string> classification = engine.metadata("classification");
  if (classification.ok()) {
    runner.classification_output_ = nlohmann::json::parse(*classification, nullptr, false).value("output", "");
  }
  const Result<std::string> settings = engine.metadata("pipeline");
  if (settings.ok()) {
    TENON_ASSIGN(runner.settings_, parse_settings(*settings));
  } else {
    runner.settings_ = default_settings(detection.ok(), classification.ok());
  }
  return runner;
}

Result<InputResult> Runner::run_image(const std::string& path, Image* annotated) {
  const bool image_input = inputs_.size() == 1 && inputs_[0].info.dims.size() == 4 && inputs_[0].info.dtype == TN_F32;
  if (!image_input) {
    return Status(Code::kInvalid,
                  "this network has not exactly one float32 input [N,C,H,W], so a picture does not fit; "
                  "give its inputs with --tensor NAME=FILE.npy");
  }
  const std::vector<std::int64_t>& dims = inputs_[0].info.dims;
  Geometry geometry;
  TENON_ASSIGN(Image image, read_image(path));
  {
    const Stopwatch watch(&timings_.preprocess);
    TENON_ASSIGN(const Preprocessed ready,
                 preprocess(image, settings_.preprocess, static_cast<int>(dims[3]), static_cast<int>(dims[2])));
    if (ready.tensor.channels != dims[1] || ready.tensor.height != dims[2] || ready.tensor.width != dims[3]) {
      return Status(Code::kInvalid, path + ": the picture gives [" + std::to_string(ready.tensor.channels) + "," +
                                        std::to_string(ready.tensor.height) + "," + std::to_string(ready.tensor.width) +
                                        "], the network's input is " + dims_text(dims));
    }
    geometry = ready.geometry;
    // Every place of the batch gets the picture; what comes out of the first one is read.
    const std::size_t size = ready.tensor.data.size() * sizeof(float);
    for (std::int64_t n = 0; n < dims[0]; ++n) {
      std::memcpy(inputs_[0].bytes.data() + static_cast<std::size_t>(n) * size, ready.tensor.data.data(), size);
    }
  }
  TENON_RETURN_IF_ERROR(execute());
  TENON_ASSIGN(InputResult result, finish(path, &geometry));
  if (annotated != nullptr) {
    if (settings_.draw && !result.classes.empty()) {
      std::vector<std::string> lines;
      for (const ClassScore& entry : result.classes) {
        char percent[32];
        std::snprintf(percent, sizeof(percent), "%5.1f%%  ", static_cast<double>(entry.score) * 100);
        lines.push_back(percent + label_of(settings_.labels, entry.class_id));
      }
      draw_lines(image, lines);
    } else if (settings_.draw) {
      draw_detections(image, result.detections, settings_.labels);
    }
    *annotated = std::move(image);
  }
  return result;
}

Result<InputResult> Runner::run_array(const std::string& path) {
  if (inputs_.size() != 1) {
    return Status(Code::kInvalid, path + ": the network has " + std::to_string(inputs_.size()) +
                                      " inputs, so one array does not fit; give each with --tensor NAME=FILE.npy");
  }
  TENON_ASSIGN(NpyArray array, read_npy(path));
  TENON_RETURN_IF_ERROR(set_inputs({{inputs_[0].info.name, std::move(array)}}).with_context(path));
  TENON_RETURN_IF_ERROR(execute());
  const std::vector<std::int64_t>& dims = inputs_[0].info.dims;
  if (dims.size() != 4) return finish(path, nullptr);
  const int width = static_cast<int>(dims[3]);
  const int height = static_cast<int>(dims[2]);
  const Geometry geometry{width, height, width, height, width, height, 0, 0};
  return finish(path, &geometry);
}

Result<InputResult> Runner::run_tensors(const std::map<std::string, NpyArray>& tensors) {
  TENON_RETURN_IF_ERROR(set_inputs(tensors).with_context("--tensor"));
  TENON_RETURN_IF_ERROR(execute());
  return finish("", nullptr);
}

Status Runner::set_inputs(const std::map<std::string, NpyArray>& tensors) {
  std::string problems;
  for (Buffer& input : inputs_) {
    const auto given = tensors.find(input.info.name);
    if (given == tensors.end()) {
      problems += " input " + input.info.name + " " + dims_text(input.info.dims) + " is missing;";
      continue;
    }
    if (!holds(input.info, given->second.dims)) {
      const bool varies = input.info.min != input.info.max;
      problems += " input " + input.info.name + ": expected dims " +
                  (varies ? "from " + dims_text(input.info.min) + " to " + dims_text(input.info.max)
                          : dims_text(input.info.dims)) +
                  ", found " + dims_text(given->second.dims) + ";";
      continue;
    }
    TENON_ASSIGN(NpyArray converted, convert_npy(given->second, find_dtype(input.info.dtype)->npy));
    input.bytes = std::move(converted.bytes);
    input.info.dims = given->second.dims;
  }
  for (const auto& [name, array] : tensors) {
    bool known = false;
    for (const Buffer& input : inputs_) known = known || input.info.name == name;
    if (!known) problems += " the network has no input " + name + ";";
  }
  if (!problems.empty()) return {Code::kInvalid, problems.substr(1, problems.size() - 2)};
  return set_dims();
}

Status Runner::set_dims() {
  for (const Buffer& input : inputs_) {
    TENON_RETURN_IF_ERROR(context_.set_input_dims(input.info.name, input.info.dims));
  }
  for (Buffer& output : outputs_) {
    TENON_ASSIGN(output.info.dims, context_.dims(output.info.name));
    output.bytes.resize(static_cast<std::size_t>(elements(output.info.dims)) *
                        npy_type_size(find_dtype(output.info.dtype)->npy));
  }
  return {};
}

Status Runner::execute() {
  for (Buffer& input : inputs_) TENON_RETURN_IF_ERROR(context_.set_tensor(input.info.name, input.bytes.data()));
  for (Buffer& output : outputs_) TENON_RETURN_IF_ERROR(context_.set_tensor(output.info.name, output.bytes.data()));
  {
    const Stopwatch watch(&timings_.infer);
    TENON_RETURN_IF_ERROR(context_.execute());
  }
  if (!debug_) return {};
  std::vector<DebugInput> given;
  for (const Buffer& input : inputs_) given.push_back({input.info.name, input.info.dims, input.bytes.data()});
  return debug_->run_side(given);
}

Status Runner::debug(DebugTensors tensors) {
  debug_.emplace(std::move(tensors));
  return debug_->observe(&context_);
}

const Runner::Buffer* Runner::find_output(const std::string& name) const {
  for (const Buffer& output : outputs_) {
    if (output.info.name == name) return &output;
  }
  return nullptr;
}

Result<std::vector<Detection>> Runner::find_detections(const Geometry& geometry) const {
  const PostprocessConfig& post = settings_.postprocess;
  const DetectOptions options{post.threshold, post.nms, post.nms_kind};
  const auto first = [](const Buffer& output) -> std::span<const float> {  // of the pictures of a batch
    const std::vector<std::int64_t>& dims = output.info.dims;
    return {reinterpret_cast<const float*>(output.bytes.data()),
            static_cast<std::size_t>(elements(dims) / (dims.empty() ? 1 : std::max<std::int64_t>(dims[0], 1)))};
  };
  if (const std::optional<Decoder> decoder = decoder_named(post.decoder)) {
    std::vector<RawOutput> outputs;
    for (const Buffer& output : outputs_) {
      if (output.info.dtype == TN_F32) outputs.push_back({output.info.name, output.info.dims, first(output)});
    }
    return detect(*decoder, outputs, geometry, options);
  }
  if (!detection_) {
    return Status(Code::kInvalid,
                  "the model does not say where its detection heads are (no [yolo] or [region] section); set "
                  "postprocess.decoder to yolox, nanodet, ultraface or yunet if it is one of these, or use "
                  "postprocess type tensors");
  }
  std::vector<HeadValues> heads;
  for (const HeadMetadata& head : detection_->heads) {
    const char* kind = head.kind == HeadKind::kRegion ? "region" : "yolo";
    if (post.decoder != "auto" && post.decoder != kind) {
      return Status(Code::kInvalid, "postprocess.decoder is " + post.decoder + ", but the model's head " + head.output +
                                        " is a " + kind + " head; use decoder auto or " + kind);
    }
    const Buffer* output = find_output(head.output);
    if (output == nullptr) return Status(Code::kInvalid, "the engine has no output " + head.output);
    const std::vector<std::int64_t>& dims = output->info.dims;
    heads.push_back({first(*output), static_cast<int>(dims[1]), static_cast<int>(dims[2]), static_cast<int>(dims[3])});
  }
  return detect(*detection_, heads, geometry, options);
}

Result<InputResult> Runner::finish(const std::string& input, const Geometry* geometry) {
  const Stopwatch watch(&timings_.postprocess);
  InputResult result;
  result.input = input;
  for (const Buffer& output : outputs_) {
    const bool debug = debug_ && debug_->values().count(output.info.name) != 0;
    result.outputs.push_back({output.info.name, output.info.dims, numpy_dtype(output.info.dtype), debug});
  }
  for (const auto& [name, tensor] : debug_ ? debug_->values() : std::map<std::string, DebugTensor>()) {
    if (find_output(name) != nullptr) continue;
    result.outputs.push_back({name, tensor.array.dims, numpy_name(tensor.array.type), true, tensor.side_run});
  }
  const PostprocessConfig& post = settings_.postprocess;
  if (post.type == PostprocessType::kDetections && geometry != nullptr) {
    TENON_ASSIGN(result.detections, find_detections(*geometry));
  }
  if (post.type == PostprocessType::kClasses) {
    const Buffer* output = classification_output_.empty() ? nullptr : find_output(classification_output_);
    if (output == nullptr && outputs_.size() == 1) output = &outputs_[0];
    if (output == nullptr || output->info.dtype != TN_F32) {
      return Status(Code::kInvalid, "postprocess type classes needs one float32 output of probabilities");
    }
    const std::int64_t count = elements(output->info.dims) / (output->info.dims.empty() ? 1 : output->info.dims[0]);
    result.classes =
        top_classes({reinterpret_cast<const float*>(output->bytes.data()), static_cast<std::size_t>(count)}, post.top);
  }
  return result;
}

Result<std::map<std::string, NpyArray>> Runner::outputs() const {
  std::map<std::string, NpyArray> arrays;
  for (const Buffer& output : outputs_) {
    arrays[output.info.name] = {find_dtype(output.info.dtype)->npy, output.info.dims, output.bytes};
  }
  for (const auto& [name, tensor] : debug_ ? debug_->values() : std::map<std::string, DebugTensor>()) {
    arrays.emplace(name, tensor.array);  // outputs are there already
  }
  return arrays;
}

}  // namespace tenon::pipeline
