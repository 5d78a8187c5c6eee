// What the kernels on cuDNN share: errors, descriptors of its graph API, handles, operation graphs, and execution plans
// that are built from the text of a tactic.
#ifndef TENON_PLUGINS_COMMON_CUDNN_H_
#define TENON_PLUGINS_COMMON_CUDNN_H_

#include <cudnn_graph.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tenon/sdk/kernel.hpp>
#include <type_traits>
#include <utility>
#include <vector>

namespace tenon::plugins {

// TN_DEVICE with cuDNN's words for the status and for its reason.
class CudnnError : public Failure {
 public:
  CudnnError(cudnnStatus_t status, const std::string& doing);
  // The library is sound: it refuses what it was asked for.
  bool is_refusal() const;

 private:
  cudnnStatus_t status_;
};

inline void check_cudnn(cudnnStatus_t status, const char* doing) {
  if (status != CUDNN_STATUS_SUCCESS) throw CudnnError(status, doing);
}

// Declined where cuDNN refuses.
template <class Fn>
auto cudnn_or_decline(Fn&& fn) {
  try {
    return fn();
  } catch (const CudnnError& error) {
    if (error.is_refusal()) throw Declined(error.what());
    throw;
  }
}

// Makes a GPU current on the thread for a scope.
class CudnnDevice {
 public:
  explicit CudnnDevice(int ordinal);
  CudnnDevice(const CudnnDevice&) = delete;
  CudnnDevice& operator=(const CudnnDevice&) = delete;
  ~CudnnDevice();

 private:
  int before_ = -1;
};

// The handle of the call's stream, which all kernels of a context share. Ask in set_shapes first, where it is made; in
// enqueue it is only looked up.
cudnnHandle_t cudnn_handle(const Exec& exec);

// Handles for planning, one for each GPU. Plans may outlive none of them, so instances share ownership of this.
class CudnnPlanner {
 public:
  CudnnPlanner() = default;
  CudnnPlanner(const CudnnPlanner&) = delete;
  CudnnPlanner& operator=(const CudnnPlanner&) = delete;
  ~CudnnPlanner();

  // fn(handle), with the GPU current; one thread at a time.
  template <class Fn>
  auto plan(int ordinal, Fn&& fn) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const CudnnDevice current(ordinal);
    return fn(handle(ordinal));
  }

 private:
  cudnnHandle_t handle(int ordinal);
  std::mutex mutex_;
  std::map<int, cudnnHandle_t> handles_;
};

template <class T>
constexpr cudnnBackendAttributeType_t cudnn_attribute_type() {
  if constexpr (std::is_same_v<T, int64_t>) {
    return CUDNN_TYPE_INT64;
  } else if constexpr (std::is_same_v<T, bool>) {
    return CUDNN_TYPE_BOOLEAN;
  } else if constexpr (std::is_same_v<T, float>) {
    return CUDNN_TYPE_FLOAT;
  } else if constexpr (std::is_same_v<T, double>) {
    return CUDNN_TYPE_DOUBLE;
  } else if constexpr (std::is_same_v<T, cudnnHandle_t>) {
    return CUDNN_TYPE_HANDLE;
  } else if constexpr (std::is_same_v<T, cudnnBackendDescriptor_t>) {
    return CUDNN_TYPE_BACKEND_DESCRIPTOR;
  } else if constexpr (std::is_same_v<T, cudnnDataType_t>) {
    return CUDNN_TYPE_DATA_TYPE;
  } else if constexpr (std::is_same_v<T, cudnnConvolutionMode_t>) {
    return CUDNN_TYPE_CONVOLUTION_MODE;
  } else if constexpr (std::is_same_v<T, cudnnPointwiseMode_t>) {
    return CUDNN_TYPE_POINTWISE_MODE;
  } else if constexpr (std::is_same_v<T, cudnnNanPropagation_t>) {
    return CUDNN_TYPE_NAN_PROPOGATION;
  } else if constexpr (std::is_same_v<T, cudnnBackendHeurMode_t>) {
    return CUDNN_TYPE_HEUR_MODE;
  } else if constexpr (std::is_same_v<T, cudnnBackendKnobType_t>) {
    return CUDNN_TYPE_KNOB_TYPE;
  } else {
    static_assert(std::is_same_v<T, cudnnBackendNumericalNote_t>);
    return CUDNN_TYPE_NUMERICAL_NOTE;
  }
}

// Owns a descriptor. Setters come before finalize, getters after it; each throws CudnnError.
class CudnnDescriptor {
 public:
  explicit CudnnDescriptor(cudnnBackendDescriptorType_t type);
  CudnnDescriptor(CudnnDescriptor&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  CudnnDescriptor& operator=(CudnnDescriptor&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~CudnnDescriptor() {
    if (raw_ != nullptr) cudnnBackendDestroyDescriptor(raw_);
  }
  cudnnBackendDescriptor_t raw() const { return raw_; }

  CudnnDescriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, size_t count,
                       const void* values);
  template <class T>
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, const T& value) {
    return set(name, cudnn_attribute_type<T>(), 1, &value);
  }
  template <class T>
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, const std::vector<T>& values) {
    return set(name, cudnn_attribute_type<T>(), values.size(), values.data());
  }
  CudnnDescriptor& finalize();

  template <class T>
  T get(cudnnBackendAttributeName_t name) const {
    T value{};
    read(name, cudnn_attribute_type<T>(), 1, &value);
    return value;
  }
  template <class T>
  std::vector<T> get(cudnnBackendAttributeName_t name, int64_t at_most) const {
    std::vector<T> values(static_cast<size_t>(at_most));
    values.resize(read(name, cudnn_attribute_type<T>(), at_most, values.data()));
    return values;
  }
  // The library fills descriptors that the caller has made.
  std::vector<CudnnDescriptor> get(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
                                   int64_t at_most) const;
  // How many elements an attribute has.
  int64_t count(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) const;

 private:
  size_t read(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t at_most, void* values) const;
  cudnnBackendDescriptor_t raw_ = nullptr;
};

// An engine and the choices of its knobs, those by number. As text "engine=14;knobs=2:10,13:1": sorted by knob, so that
// equal configurations have equal text; a knob that is not named has the engine's default.
struct CudnnConfig {
  int64_t engine = 0;
  std::vector<std::pair<int64_t, int64_t>> knobs;

  std::string text() const;
  // Declined for anything that text() does not write.
  static CudnnConfig parse(const Params& params);
};

// An operation graph and the descriptors that it consists of.
class CudnnGraph {
 public:
  // `type` of the tensors: CUDNN_DATA_FLOAT or CUDNN_DATA_HALF.
  explicit CudnnGraph(cudnnDataType_t type) : type_(type) {}
  cudnnDataType_t type() const { return type_; }
  // A tensor, given its pointer as `id` by CudnnPlan::execute unless it is virtual, which is to say never stored; those
  // are float.
  cudnnBackendDescriptor_t tensor(int64_t id, const std::vector<int64_t>& dims, const std::vector<int64_t>& strides,
                                  int64_t alignment, bool is_virtual = false);
  // Finalises a descriptor and keeps it as long as the graph.
  cudnnBackendDescriptor_t keep(CudnnDescriptor descriptor);
  // The same for an operation, in the order of execution.
  void operation(CudnnDescriptor descriptor) { operations_.push_back(keep(std::move(descriptor))); }
  void finalize(cudnnHandle_t handle);

  cudnnBackendDescriptor_t raw() const { return graph_.raw(); }
  // What cuDNN would try, the likeliest best first; nothing if the heuristic does not know such graphs.
  std::vector<CudnnConfig> suggestions(cudnnBackendHeurMode_t mode) const;
  // Engines are numbered from 0; many do not run this graph.
  int64_t engine_count() const { return graph_.get<int64_t>(CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT); }

 private:
  cudnnDataType_t type_;
  std::deque<CudnnDescriptor> kept_;
  std::vector<cudnnBackendDescriptor_t> operations_;
  CudnnDescriptor graph_{CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR};
};

struct CudnnBinding {
  int64_t id;
  const void* data;
};

// An execution plan. REQUIRES: the GPU is current in every call, the destructor finds it by itself.
class CudnnPlan {
 public:
  // Declined if the engine does not run the graph, is not deterministic, rounds its inputs or adds in less than f32;
  // f32 tensors are computed with in tf32 only where that is allowed.
  CudnnPlan(int ordinal, std::shared_ptr<const CudnnGraph> graph, const CudnnConfig& config, bool allow_tf32);
  ~CudnnPlan();
  CudnnPlan(const CudnnPlan&) = delete;
  CudnnPlan& operator=(const CudnnPlan&) = delete;

  // May compile device code. Declined if cuDNN refuses.
  void finalize(cudnnHandle_t handle);
  uint64_t workspace() const { return workspace_; }
  // Launches on the handle's stream. Describes the pointers to cuDNN anew each time, which allocates host memory.
  void execute(cudnnHandle_t handle, const std::vector<CudnnBinding>& bindings, void* workspace) const;

 private:
  struct Parts;
  int ordinal_;
  uint64_t workspace_ = 0;
  std::unique_ptr<Parts> parts_;
  mutable std::mutex mutex_;
};

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_CUDNN_H_
