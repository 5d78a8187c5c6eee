#include "core/device/cuda/cuda_device.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <map>
#include <utility>

#include "core/base/failure.h"
#include "core/device/cuda/elementwise.h"

namespace tenon {
namespace {

/// kNoMemory for memory, kDevice for the rest. Takes the error off the thread unless it has broken the device.
Status to_status(cudaError_t error, const std::string& what) {
  if (error == cudaSuccess) return {};
  cudaGetLastError();
  const Code code = error == cudaErrorMemoryAllocation ? Code::kNoMemory : Code::kDevice;
  return {code, fmt::format("{}: {} ({})", what, cudaGetErrorString(error), cudaGetErrorName(error))};
}

cudaStream_t raw(Stream& stream) { return static_cast<cudaStream_t>(stream.handle()); }

/// Makes a GPU current for a scope: CUDA's calls act on the thread's current one.
class Current {
 public:
  explicit Current(int ordinal) {
    cudaGetDevice(&before_);
    if (before_ != ordinal) cudaSetDevice(ordinal);
    changed_ = before_ != ordinal;
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  ~Current() {
    if (changed_) cudaSetDevice(before_);
  }

 private:
  int before_ = 0;
  bool changed_ = false;
};

/// A stream and the library handles that kernels share on it.
class CudaStream final : public Stream {
 public:
  CudaStream(int ordinal, cudaStream_t stream, bool owned) : ordinal_(ordinal), stream_(stream), owned_(owned) {}
  ~CudaStream() override {
    const Current current(ordinal_);
    for (auto& [key, object] : objects_) object.destroy(object.object);
    if (owned_) cudaStreamDestroy(stream_);
  }
  void* handle() const override { return stream_; }
  Status synchronize() override {
    const Current current(ordinal_);
    return to_status(cudaStreamSynchronize(stream_), "waiting for the GPU");
  }
  Status wait_for(const Event& event) override;
  const TnCudaHandles* handles() const { return &handles_; }

 private:
  struct Object {
    void* object;
    void(TN_CALL* destroy)(void*);
  };

  static TnStatus TN_CALL get(const TnCudaHandles* self, const char* key,
                              TnStatus(TN_CALL* create)(void* stream, void** object),
                              void(TN_CALL* destroy)(void* object), void** object) {
    auto& stream = *static_cast<CudaStream*>(self->context);
    const auto known = stream.objects_.find(std::string_view(key));
    if (known != stream.objects_.end()) {
      *object = known->second.object;
      return TN_OK;
    }
    const TnStatus status = create(stream.stream_, object);
    if (status == TN_OK) stream.objects_.emplace(key, Object{*object, destroy});
    return status;
  }

  int ordinal_;
  cudaStream_t stream_;
  bool owned_;
  std::map<std::string, Object, std::less<>> objects_;
  const TnCudaHandles handles_{TN_HEADER(TnCudaHandles), 0, this, &CudaStream::get};
};

class CudaEvent final : public Event {
 public:
  explicit CudaEvent(cudaEvent_t event) : event_(event) {}
  ~CudaEvent() override { cudaEventDestroy(event_); }
  Status record(Stream& stream) override {
    return to_status(cudaEventRecord(event_, raw(stream)), "recording an event");
  }
  Status wait() override { return to_status(cudaEventSynchronize(event_), "waiting for the GPU"); }
  Result<double> elapsed_ms(const Event& start) const override {
    float ms = 0;
    TENON_RETURN_IF_ERROR(to_status(cudaEventElapsedTime(&ms, static_cast<const CudaEvent&>(start).event_, event_),
                                    "reading the time between events"));
    return static_cast<double>(ms);
  }
  cudaEvent_t handle() const { return event_; }

 private:
  cudaEvent_t event_;
};

Status CudaStream::wait_for(const Event& event) {
  const Current current(ordinal_);
  return to_status(cudaStreamWaitEvent(stream_, static_cast<const CudaEvent&>(event).handle(), 0),
                   "having a stream wait for another");
}

class CudaRecording final : public Recording {
 public:
  CudaRecording(cudaGraphExec_t graph, std::size_t launches) : graph_(graph), launches_(launches) {}
  ~CudaRecording() override { cudaGraphExecDestroy(graph_); }
  /// Takes over another capture's launches if it has the same shape.
  bool update(cudaGraph_t graph) {
    cudaGraphExecUpdateResultInfo info{};
    if (cudaGraphExecUpdate(graph_, graph, &info) == cudaSuccess) return true;
    cudaGetLastError();
    return false;
  }
  Status launch(Stream& stream) override {
    return to_status(cudaGraphLaunch(graph_, raw(stream)), "launching a CUDA graph");
  }
  std::size_t launches() const override { return launches_; }

 private:
  cudaGraphExec_t graph_;
  std::size_t launches_;  // an update keeps the shape, so it keeps this number
};

/// Nodes that do something on the device; the others only order these.
Result<std::size_t> count_launches(cudaGraph_t graph) {
  std::size_t count = 0;
  TENON_RETURN_IF_ERROR(to_status(cudaGraphGetNodes(graph, nullptr, &count), "counting the nodes of a CUDA graph"));
  std::vector<cudaGraphNode_t> nodes(count);
  TENON_RETURN_IF_ERROR(to_status(cudaGraphGetNodes(graph, nodes.data(), &count), "listing the nodes of a CUDA graph"));
  std::size_t launches = 0;
  for (const cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type{};
    TENON_RETURN_IF_ERROR(to_status(cudaGraphNodeGetType(node, &type), "looking at a node of a CUDA graph"));
    const bool orders =
        type == cudaGraphNodeTypeEmpty || type == cudaGraphNodeTypeEventRecord || type == cudaGraphNodeTypeWaitEvent;
    if (!orders) ++launches;
  }
  return launches;
}

class CudaDevice final : public Device {
 public:
  CudaDevice(int ordinal, const cudaDeviceProp& properties, int driver, CudaAllocator* allocator)
      : allocator_(allocator) {
    info_.kind = TN_CUDA;
    info_.ordinal = ordinal;
    info_.cache_bytes = static_cast<std::uint64_t>(properties.l2CacheSize);
    info_.name = properties.name;
    info_.signature = fmt::format("cuda:sm{}{}:{}:driver{}.{}", properties.major, properties.minor, properties.name,
                                  driver / 1000, driver % 1000 / 10);
    abi_ = {TN_HEADER(TnDevice), info_.kind, info_.ordinal, 1, info_.name.c_str(), info_.signature.c_str()};
  }
  ~CudaDevice() override {
    const Current current(info_.ordinal);
    if (memory_stream_ != nullptr) {
      cudaStreamSynchronize(memory_stream_);
      cudaStreamDestroy(memory_stream_);
    }
  }

  /// Creates the context on the GPU, which fails on one that is broken, full or forbidden.
  Status open() {
    const Current current(info_.ordinal);
    TENON_RETURN_IF_ERROR(check(cudaStreamCreateWithFlags(&memory_stream_, cudaStreamNonBlocking), "opening the GPU"));
    // What was freed stays in the pool: building and running engines in turns would map it again and again.
    cudaMemPool_t pool = nullptr;
    TENON_RETURN_IF_ERROR(check(cudaDeviceGetDefaultMemPool(&pool, info_.ordinal), "opening the memory pool"));
    std::uint64_t kept = kKeptBytes;
    return check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept), "setting up the memory pool");
  }

  const DeviceInfo& info() const override { return info_; }

  Result<void*> allocate(std::size_t bytes) override {
    const Current current(info_.ordinal);
    if (allocator_ != nullptr) {
      void* memory = allocator_->allocate(info_.ordinal, bytes);
      if (memory != nullptr) return memory;
      return Status(Code::kNoMemory,
                    fmt::format("{}: the caller's allocator gave no memory for {} bytes", name(), bytes));
    }
    void* memory = nullptr;
    cudaError_t error = cudaMallocAsync(&memory, bytes, memory_stream_);
    // Ready for every stream once this one is through.
    if (error == cudaSuccess) error = cudaStreamSynchronize(memory_stream_);
    TENON_RETURN_IF_ERROR(
        check(error, fmt::format("could not allocate {} bytes; free memory, or lower the batch or the "
                                 "workspace limit",
                                 bytes)));
    return memory;
  }
  void free(void* memory) override {
    if (memory == nullptr) return;
    const Current current(info_.ordinal);
    if (allocator_ != nullptr) return allocator_->free(info_.ordinal, memory);
    cudaFreeAsync(memory, memory_stream_);
  }
  Result<void*> allocate_staging(std::size_t bytes) override {
    const Current current(info_.ordinal);
    void* memory = nullptr;
    TENON_RETURN_IF_ERROR(
        check(cudaMallocHost(&memory, bytes), fmt::format("could not pin {} bytes of host memory", bytes)));
    return memory;
  }
  void free_staging(void* memory) override {
    const Current current(info_.ordinal);
    cudaFreeHost(memory);
  }
  bool reaches(const void* memory) const override {
    const Current current(info_.ordinal);
    cudaPointerAttributes attributes{};
    if (cudaPointerGetAttributes(&attributes, memory) != cudaSuccess) {
      cudaGetLastError();
      return false;
    }
    return attributes.type == cudaMemoryTypeManaged ||
           (attributes.type == cudaMemoryTypeDevice && attributes.device == info_.ordinal);
  }

  Status copy_to_device(void* destination, const void* source, std::size_t bytes, Stream& stream) override {
    return copy(destination, source, bytes, cudaMemcpyHostToDevice, stream);
  }
  Status copy_to_host(void* destination, const void* source, std::size_t bytes, Stream& stream) override {
    return copy(destination, source, bytes, cudaMemcpyDeviceToHost, stream);
  }
  Status fill(void* destination, int byte, std::size_t bytes, Stream& stream) override {
    if (bytes == 0) return {};
    const Current current(info_.ordinal);
    return check(cudaMemsetAsync(destination, byte, bytes, raw(stream)), "filling memory");
  }
  Status copy_strided(void* destination, const std::int64_t* destination_strides, const void* source,
                      const std::int64_t* source_strides, const TnDims& dims, std::size_t element_bytes,
                      Stream& stream) override {
    const Current current(info_.ordinal);
    CudaStrides strides;
    strides.rank = dims.rank;
    for (int axis = 0; axis < dims.rank; ++axis) {
      if (dims.d[axis] == 0) return {};
      strides.dims[axis] = dims.d[axis];
      strides.to[axis] = destination_strides[axis];
      strides.from[axis] = source_strides[axis];
    }
    return check(launch_copy(destination, source, strides, element_bytes, raw(stream)), "copying between strides");
  }
  Status apply_expression(const TnExpr& expression, float* data, std::int64_t count, void* stream) override {
    CudaExpression program;
    if (expression.num_instrs > CudaExpression::kMaxInstrs) {
      return {Code::kDeclined, fmt::format("an expression of {} steps is too long for the GPU; at most {}",
                                           expression.num_instrs, CudaExpression::kMaxInstrs)};
    }
    for (std::uint32_t i = 0; i < expression.num_instrs; ++i) {
      const TnExprInstr& instr = expression.instrs[i];
      if (!knows_primitive(instr.primitive) || (instr.primitive == TN_EX_INPUT && instr.operand != 0)) {
        return {Code::kDeclined,
                fmt::format("the GPU does not know step {} of the expression (primitive {})", i, instr.primitive)};
      }
      program.instrs[program.count++] = {static_cast<std::int16_t>(instr.primitive), static_cast<std::int16_t>(instr.a),
                                         static_cast<std::int16_t>(instr.b), static_cast<std::int16_t>(instr.c),
                                         static_cast<float>(instr.value)};
    }
    return check(launch_expression(program, data, count, static_cast<cudaStream_t>(stream)), "applying an expression");
  }

  Result<std::unique_ptr<Stream>> create_stream() override {
    const Current current(info_.ordinal);
    cudaStream_t stream = nullptr;
    TENON_RETURN_IF_ERROR(check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream"));
    return std::unique_ptr<Stream>(new CudaStream(info_.ordinal, stream, true));
  }
  Result<std::unique_ptr<Stream>> wrap_stream(void* handle) override {
    return std::unique_ptr<Stream>(new CudaStream(info_.ordinal, static_cast<cudaStream_t>(handle), false));
  }
  Result<std::unique_ptr<Event>> create_event() override {
    const Current current(info_.ordinal);
    cudaEvent_t event = nullptr;
    TENON_RETURN_IF_ERROR(check(cudaEventCreate(&event), "creating an event"));
    return std::unique_ptr<Event>(new CudaEvent(event));
  }

  Result<std::unique_ptr<Recording>> record(Stream& stream, const std::function<Status()>& body,
                                            std::unique_ptr<Recording> previous) override {
    const Current current(info_.ordinal);
    TENON_RETURN_IF_ERROR(
        check(cudaStreamBeginCapture(raw(stream), cudaStreamCaptureModeThreadLocal), "beginning a capture"));
    const Status launched = body();
    cudaGraph_t graph = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(raw(stream), &graph);
    cudaGraphExec_t executable = nullptr;
    cudaError_t error = ended;
    Result<std::size_t> launches = std::size_t{0};
    if (launched.ok() && error == cudaSuccess) {
      auto* known = static_cast<CudaRecording*>(previous.get());
      if (known != nullptr && known->update(graph)) {
        cudaGraphDestroy(graph);
        return previous;
      }
      launches = count_launches(graph);
      error = cudaGraphInstantiate(&executable, graph, 0);
    }
    if (graph != nullptr) cudaGraphDestroy(graph);
    if (error != cudaSuccess) cudaGetLastError();
    if (!launched.ok()) return launched;
    if (error != cudaSuccess) {
      return Status(Code::kDeclined, fmt::format("the launches cannot be captured: {}", cudaGetErrorString(error)));
    }
    auto recording = std::make_unique<CudaRecording>(executable, launches.ok() ? *launches : 0);
    TENON_RETURN_IF_ERROR(launches.status());
    return std::unique_ptr<Recording>(std::move(recording));
  }

  void prepare_exec(Stream& stream, TnExec* exec) override {
    cudaSetDevice(info_.ordinal);
    exec->struct_size = TN_HEADER(TnExec);
    exec->threads = 1;
    exec->stream = stream.handle();
    exec->handles = static_cast<CudaStream&>(stream).handles();
    exec->parallel = nullptr;
  }
  bool broken() override {
    const Current current(info_.ordinal);
    const cudaError_t error = cudaStreamQuery(memory_stream_);
    cudaGetLastError();
    return error != cudaSuccess && error != cudaErrorNotReady;
  }
  const TnDevice& abi() const override { return abi_; }

 private:
  static constexpr std::uint64_t kKeptBytes = std::uint64_t{256} << 20;

  std::string name() const { return fmt::format("cuda:{} ({})", info_.ordinal, info_.name); }
  Status check(cudaError_t error, const std::string& what) const {
    return error == cudaSuccess ? Status() : to_status(error, name() + ": " + what);
  }
  Status copy(void* destination, const void* source, std::size_t bytes, cudaMemcpyKind kind, Stream& stream) const {
    if (bytes == 0) return {};
    const Current current(info_.ordinal);
    return check(cudaMemcpyAsync(destination, source, bytes, kind, raw(stream)),
                 fmt::format("copying {} bytes {} the GPU", bytes, kind == cudaMemcpyHostToDevice ? "to" : "from"));
  }

  DeviceInfo info_;
  TnDevice abi_{};
  CudaAllocator* allocator_;
  cudaStream_t memory_stream_ = nullptr;
};

TnStatus TN_CALL interface_properties(std::int32_t ordinal, TnCudaProperties* out) {
  cudaDeviceProp properties{};
  int driver = 0;
  if (cudaGetDeviceProperties(&properties, ordinal) != cudaSuccess || cudaDriverGetVersion(&driver) != cudaSuccess) {
    cudaGetLastError();
    record_failure(TN_NOTFOUND, nullptr, fmt::format("there is no GPU {}", ordinal).c_str());
    return TN_NOTFOUND;
  }
  *out = {TN_HEADER(TnCudaProperties),
          ordinal,
          properties.major * 10 + properties.minor,
          properties.multiProcessorCount,
          properties.totalGlobalMem,
          static_cast<std::uint64_t>(properties.l2CacheSize),
          properties.sharedMemPerBlockOptin,
          driver,
          0};
  return TN_OK;
}

void* TN_CALL interface_alloc(std::uint64_t bytes, void* stream) {
  void* memory = nullptr;
  if (cudaMallocAsync(&memory, bytes, static_cast<cudaStream_t>(stream)) == cudaSuccess) return memory;
  cudaGetLastError();
  return nullptr;
}

void TN_CALL interface_free(void* memory, void* stream) { cudaFreeAsync(memory, static_cast<cudaStream_t>(stream)); }

}  // namespace

int cuda_device_count(std::string* why) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) return count;
  cudaGetLastError();
  if (why != nullptr) {
    *why = error == cudaSuccess || error == cudaErrorNoDevice ? "no NVIDIA GPU was found"
           : error == cudaErrorInsufficientDriver
               ? "no NVIDIA driver was found, or it is older than this build's CUDA runtime"
               : fmt::format("CUDA does not start: {} ({})", cudaGetErrorString(error), cudaGetErrorName(error));
  }
  return 0;
}

Result<std::shared_ptr<Device>> make_cuda_device(int ordinal, CudaAllocator* allocator) {
  std::string why;
  const int count = cuda_device_count(&why);
  if (count == 0) return Status(Code::kDevice, why);
  if (ordinal < 0 || ordinal >= count) {
    return Status(Code::kDevice,
                  fmt::format("there is no GPU {}; this machine has {}, numbered from 0", ordinal, count));
  }
  cudaDeviceProp properties{};
  int driver = 0;
  TENON_RETURN_IF_ERROR(to_status(cudaGetDeviceProperties(&properties, ordinal), "reading the GPU's properties"));
  TENON_RETURN_IF_ERROR(to_status(cudaDriverGetVersion(&driver), "reading the driver's version"));
  auto device = std::make_shared<CudaDevice>(ordinal, properties, driver, allocator);
  TENON_RETURN_IF_ERROR(device->open());
  return std::shared_ptr<Device>(device);
}

const TnCuda* cuda_interface() {
  static const TnCuda table{TN_HEADER(TnCuda), 0, &interface_properties, &interface_alloc, &interface_free};
  return &table;
}

}  // namespace tenon
