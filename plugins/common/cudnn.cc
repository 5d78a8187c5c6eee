#include "plugins/common/cudnn.h"

#include <cuda_runtime_api.h>

#include <tenon/plugin/ext/cuda.h>
#include <cstdio>
#include <sstream>

namespace tenon::plugins {
namespace {

constexpr int64_t kMaxSuggestions = 64;  // of one heuristic; the good ones come first

// The first cause in the library's log of an error, which has a line for each level of its calls, the innermost first.
std::string first_cause(std::string log) {
  const size_t reason = log.find("Reason: ");
  log.erase(0, reason != std::string::npos ? reason + 8 : log.find_first_not_of(" \n"));
  log.erase(std::min(log.size(), log.find('\n')));
  return log;
}

std::string describe(cudnnStatus_t status, const std::string& doing) {
  char log[2048] = "";
  cudnnGetLastErrorString(log, sizeof log);
  const std::string cause = first_cause(log);
  return text("cuDNN: ", doing, ": ", cudnnGetErrorString(status), cause.empty() ? "" : text(" (", cause, ")"));
}

// Why the last creation of a handle on this thread failed: the host's call has no room for text of ours. No string,
// whose destructor would keep the plugin mapped as long as the thread.
thread_local char handle_failure[1024] = "";

TnStatus TN_CALL create_handle(void* stream, void** object) {
  cudnnHandle_t handle = nullptr;
  cudnnStatus_t status = cudnnCreate(&handle);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = cudnnSetStream(handle, static_cast<cudaStream_t>(stream));
    if (status == CUDNN_STATUS_SUCCESS) {
      *object = handle;
      return TN_OK;
    }
  }
  std::snprintf(handle_failure, sizeof handle_failure, "%s", describe(status, "creating a handle").c_str());
  if (handle != nullptr) cudnnDestroy(handle);
  return TN_DEVICE;
}

void TN_CALL destroy_handle(void* object) { cudnnDestroy(static_cast<cudnnHandle_t>(object)); }

// Lets the thread allocate memory and load code while a stream of its is being captured: engines do so at their first
// launch, which may be the captured one. Neither becomes part of the capture.
class RelaxedCapture {
 public:
  RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;
  ~RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;  // afterwards: the thread's own
};

CudnnConfig config_of(const CudnnDescriptor& suggestion) {
  CudnnConfig config;
  const auto engines = suggestion.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
  if (engines.empty()) throw CudnnError(CUDNN_STATUS_INTERNAL_ERROR, "reading a suggestion without engine");
  config.engine = engines[0].get<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  for (const CudnnDescriptor& choice : suggestion.get(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                                      CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS)) {
    config.knobs.emplace_back(choice.get<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE),
                              choice.get<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
  }
  std::sort(config.knobs.begin(), config.knobs.end());
  return config;
}

}  // namespace

CudnnError::CudnnError(cudnnStatus_t status, const std::string& doing)
    : Failure(TN_DEVICE, describe(status, doing)), status_(status) {}

bool CudnnError::is_refusal() const {
  const int category = CUDNN_STATUS_CATEGORY(static_cast<int>(status_));
  // An internal error while planning is most often code that does not compile, which is that engine's fault alone.
  return category == CUDNN_STATUS_BAD_PARAM || category == CUDNN_STATUS_NOT_SUPPORTED ||
         category == CUDNN_STATUS_INTERNAL_ERROR;
}

CudnnDevice::CudnnDevice(int ordinal) {
  int now = -1;
  if (cudaGetDevice(&now) != cudaSuccess) cudaGetLastError();
  if (now == ordinal) return;
  const cudaError_t error = cudaSetDevice(ordinal);
  if (error != cudaSuccess) {
    cudaGetLastError();
    throw Failure(TN_DEVICE, text("selecting GPU ", ordinal, ": ", cudaGetErrorString(error)));
  }
  before_ = now;
}

CudnnDevice::~CudnnDevice() {
  if (before_ >= 0) cudaSetDevice(before_);
}

cudnnHandle_t cudnn_handle(const Exec& exec) {
  const auto* handles = static_cast<const TnCudaHandles*>(exec.raw().handles);
  if (handles == nullptr) throw Failure(TN_INTERNAL, "the host lends no library handles on this device");
  void* object = nullptr;
  if (handles->get(handles, "cudnn", create_handle, destroy_handle, &object) != TN_OK) {
    throw Failure(TN_DEVICE, handle_failure);
  }
  return static_cast<cudnnHandle_t>(object);
}

CudnnPlanner::~CudnnPlanner() {
  for (const auto& [ordinal, handle] : handles_) {
    try {
      const CudnnDevice current(ordinal);
      cudnnDestroy(handle);
    } catch (const Failure&) {
      // Without the device there is nothing left to give back.
    }
  }
}

cudnnHandle_t CudnnPlanner::handle(int ordinal) {
  const auto known = handles_.find(ordinal);
  if (known != handles_.end()) return known->second;
  cudnnHandle_t handle = nullptr;
  check_cudnn(cudnnCreate(&handle), "creating a handle");
  handles_.emplace(ordinal, handle);
  return handle;
}

CudnnDescriptor::CudnnDescriptor(cudnnBackendDescriptorType_t type) {
  check_cudnn(cudnnBackendCreateDescriptor(type, &raw_), "creating a descriptor");
}

CudnnDescriptor& CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, size_t count,
                                      const void* values) {
  const cudnnStatus_t status = cudnnBackendSetAttribute(raw_, name, type, static_cast<int64_t>(count), values);
  if (status != CUDNN_STATUS_SUCCESS) throw CudnnError(status, text("setting attribute ", static_cast<int>(name)));
  return *this;
}

CudnnDescriptor& CudnnDescriptor::finalize() {
  check_cudnn(cudnnBackendFinalize(raw_), "finalising a descriptor");
  return *this;
}

size_t CudnnDescriptor::read(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t at_most,
                             void* values) const {
  int64_t count = 0;
  const cudnnStatus_t status = cudnnBackendGetAttribute(raw_, name, type, at_most, &count, values);
  if (status != CUDNN_STATUS_SUCCESS) throw CudnnError(status, text("reading attribute ", static_cast<int>(name)));
  return static_cast<size_t>(std::clamp<int64_t>(count, 0, at_most));
}

int64_t CudnnDescriptor::count(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) const {
  int64_t count = 0;
  const cudnnStatus_t status = cudnnBackendGetAttribute(raw_, name, type, 0, &count, nullptr);
  if (status != CUDNN_STATUS_SUCCESS) throw CudnnError(status, text("counting attribute ", static_cast<int>(name)));
  return count;
}

std::vector<CudnnDescriptor> CudnnDescriptor::get(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
                                                  int64_t at_most) const {
  std::vector<CudnnDescriptor> descriptors;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int64_t n = 0; n < at_most; ++n) raw.push_back(descriptors.emplace_back(type).raw());
  const size_t count = read(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, at_most, raw.data());
  descriptors.erase(descriptors.begin() + static_cast<std::ptrdiff_t>(count), descriptors.end());
  return descriptors;
}

std::string CudnnConfig::text() const {
  std::string result = sdk::text("engine=", engine, ";knobs=");
  for (size_t n = 0; n < knobs.size(); ++n) {
    result += sdk::text(n == 0 ? "" : ",", knobs[n].first, ":", knobs[n].second);
  }
  return result;
}

CudnnConfig CudnnConfig::parse(const Params& params) {
  CudnnConfig config;
  config.engine = params.i64("engine");
  std::istringstream choices(params.str("knobs"));
  std::pair<int64_t, int64_t> choice;
  for (char between = ':'; choices >> choice.first >> between >> choice.second;) {
    config.knobs.push_back(choice);
    if (!(choices >> between)) break;
  }
  const std::string given = sdk::text("engine=", params.str("engine"), ";knobs=", params.str("knobs"));
  if (config.text() != given) {
    throw Declined(sdk::text("no such tactic: expected 'engine=14;knobs=2:10,13:1' or the like, found '", given, "'"));
  }
  return config;
}

cudnnBackendDescriptor_t CudnnGraph::tensor(int64_t id, const std::vector<int64_t>& dims,
                                            const std::vector<int64_t>& strides, int64_t alignment, bool is_virtual) {
  CudnnDescriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, is_virtual ? CUDNN_DATA_FLOAT : type_)
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, dims)
      .set(CUDNN_ATTR_TENSOR_STRIDES, strides)
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment)
      .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, is_virtual);
  return keep(std::move(tensor));
}

cudnnBackendDescriptor_t CudnnGraph::keep(CudnnDescriptor descriptor) {
  descriptor.finalize();
  return kept_.emplace_back(std::move(descriptor)).raw();
}

void CudnnGraph::finalize(cudnnHandle_t handle) {
  graph_.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle).set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations_).finalize();
}

std::vector<CudnnConfig> CudnnGraph::suggestions(cudnnBackendHeurMode_t mode) const {
  std::vector<CudnnConfig> configs;
  try {
    CudnnDescriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, raw()).set(CUDNN_ATTR_ENGINEHEUR_MODE, mode).finalize();
    const int64_t count = heuristic.count(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR);
    if (count <= 0) return configs;
    for (const CudnnDescriptor& suggestion : heuristic.get(
             CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, std::min(count, kMaxSuggestions))) {
      configs.push_back(config_of(suggestion));
    }
  } catch (const CudnnError& error) {
    if (!error.is_refusal()) throw;
  }
  return configs;
}

// In the order of construction; destroyed from the last to the first.
struct CudnnPlan::Parts {
  std::shared_ptr<const CudnnGraph> graph;
  std::vector<CudnnDescriptor> choices;
  CudnnDescriptor engine{CUDNN_BACKEND_ENGINE_DESCRIPTOR};
  CudnnDescriptor config{CUDNN_BACKEND_ENGINECFG_DESCRIPTOR};
  CudnnDescriptor plan{CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR};
};

CudnnPlan::CudnnPlan(int ordinal, std::shared_ptr<const CudnnGraph> graph, const CudnnConfig& config, bool allow_tf32)
    : ordinal_(ordinal), parts_(std::make_unique<Parts>()) {
  parts_->graph = std::move(graph);
  cudnn_or_decline([&] {
    parts_->engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, parts_->graph->raw())
        .set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, config.engine)
        .finalize();
    for (const auto& [knob, value] : config.knobs) {
      CudnnDescriptor choice(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
      choice.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, static_cast<cudnnBackendKnobType_t>(knob))
          .set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, value)
          .finalize();
      parts_->choices.push_back(std::move(choice));
    }
  });
  for (const auto note : cudnn_or_decline([&] {
         return parts_->engine.get<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                                                CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
       })) {
    if (note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) throw Declined("the engine is not deterministic");
    if (note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION) throw Declined("the engine adds in less than f32");
    if (note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) throw Declined("the engine rounds its inputs");
    // With f32 tensors this is tf32.
    if (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE && parts_->graph->type() == CUDNN_DATA_FLOAT && !allow_tf32) {
      throw Declined("the engine computes in tf32, which is not allowed here");
    }
  }
}

CudnnPlan::~CudnnPlan() {
  try {
    const CudnnDevice current(ordinal_);
    parts_.reset();
  } catch (const Failure&) {
    parts_.reset();
  }
}

void CudnnPlan::finalize(cudnnHandle_t handle) {
  cudnn_or_decline([&] {
    parts_->config.set(CUDNN_ATTR_ENGINECFG_ENGINE, parts_->engine.raw());
    if (!parts_->choices.empty()) {
      std::vector<cudnnBackendDescriptor_t> choices;
      for (const CudnnDescriptor& choice : parts_->choices) choices.push_back(choice.raw());
      parts_->config.set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, choices);
    }
    parts_->config.finalize();
    parts_->plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle)
        .set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, parts_->config.raw())
        .finalize();
    workspace_ = static_cast<uint64_t>(
        std::max<int64_t>(0, parts_->plan.get<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)));
  });
}

void CudnnPlan::execute(cudnnHandle_t handle, const std::vector<CudnnBinding>& bindings, void* workspace) const {
  std::vector<int64_t> ids;
  std::vector<const void*> pointers;
  for (const CudnnBinding& binding : bindings) {
    ids.push_back(binding.id);
    pointers.push_back(binding.data);
  }
  CudnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids)
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers.size(), pointers.data())
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace)
      .finalize();
  // cuDNN does not promise that threads may execute one plan at a time together, and contexts share the instance.
  const std::lock_guard<std::mutex> lock(mutex_);
  const RelaxedCapture relaxed;
  check_cudnn(cudnnBackendExecute(handle, parts_->plan.raw(), pack.raw()), "launching");
}

}  // namespace tenon::plugins
