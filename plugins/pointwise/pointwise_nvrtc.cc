// tenon.pointwise.nvrtc on GPUs: code for the expression at hand, compiled when an engine is built and kept in it, and
// beside the timing cache.
#include <cuda.h>
#include <dlfcn.h>

#include <memory>
#include <string>
#include <tenon/sdk/plugin.hpp>

#include "kernels/common/broadcast.h"
#include "plugins/pointwise/nvrtc.h"
#include "plugins/pointwise/pointwise.h"
#include "plugins/pointwise/pointwise_source.h"

namespace tenon::plugins {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 31;  // the kernels count in 32 bits
constexpr unsigned kThreads = 256;
constexpr uint64_t kMaxCubin = 64u << 20;

// The driver's functions, looked up at the first call: a plugin that was linked to it could not be loaded where there
// is no GPU.
struct Driver {
  decltype(&cuInit) init;
  decltype(&cuDeviceGet) device_get;
  decltype(&cuDeviceGetAttribute) device_get_attribute;
  decltype(&cuGetErrorString) get_error_string;
  decltype(&cuModuleLoadData) module_load_data;
  decltype(&cuModuleUnload) module_unload;
  decltype(&cuModuleGetFunction) module_get_function;
  decltype(&cuLaunchKernel) launch_kernel;
};

Driver load_driver() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw Declined(text("no CUDA driver: ", dlerror()));
  const auto find = [&](auto* function, const char* name) {
    *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(library, name));
    if (*function == nullptr) throw Declined(text("the CUDA driver has no ", name));
  };
  Driver driver;
  find(&driver.init, "cuInit");
  find(&driver.device_get, "cuDeviceGet");
  find(&driver.device_get_attribute, "cuDeviceGetAttribute");
  find(&driver.get_error_string, "cuGetErrorString");
  find(&driver.module_load_data, "cuModuleLoadData");
  find(&driver.module_unload, "cuModuleUnload");
  find(&driver.module_get_function, "cuModuleGetFunction");
  find(&driver.launch_kernel, "cuLaunchKernel");
  return driver;
}

const Driver& driver() {
  static const Driver table = load_driver();
  return table;
}

void check_driver(CUresult result, const char* doing) {
  if (result == CUDA_SUCCESS) return;
  const char* reason = nullptr;
  driver().get_error_string(result, &reason);
  throw Failure(TN_DEVICE, text(doing, ": ", reason != nullptr ? reason : "unknown error", " (", int{result}, ")"));
}

// 90 for compute capability 9.0.
int compute_capability(int ordinal) {
  check_driver(driver().init(0), "starting the CUDA driver");
  CUdevice device = 0;
  check_driver(driver().device_get(&device, ordinal), "finding the GPU");
  int major = 0, minor = 0;
  check_driver(driver().device_get_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device),
               "asking it");
  check_driver(driver().device_get_attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device),
               "asking it");
  return 10 * major + minor;
}

std::string source_of(const Site& site) {
  return pointwise_source(expression_of(site.attrs(), site.num_inputs()), site.num_inputs(), site.output_dtype(0));
}

bool aligned(const void* data) { return reinterpret_cast<uintptr_t>(data) % 16 == 0; }

class PointwiseNvrtc final : public IPlugin {
 public:
  explicit PointwiseNvrtc(std::shared_ptr<CubinCache> cache) : cache_(std::move(cache)) {}
  ~PointwiseNvrtc() override { terminate(); }

  void configure(const Config& config) override {
    prepare(config);
    sm_ = compute_capability(config.site().device().ordinal);
    cubin_ = cache_->find(config.host(), source_of(config.site()), sm_);
  }
  void serialize(const Writer& writer) const override {
    writer.value(static_cast<int32_t>(sm_));
    writer.value(static_cast<uint64_t>(cubin_->size()));
    writer.bytes(cubin_->data(), cubin_->size());
  }
  void deserialize(const Reader& reader, const Config& config) override {
    prepare(config);
    sm_ = reader.value<int32_t>();
    const int found = compute_capability(config.site().device().ordinal);
    if (sm_ != found) {
      throw Invalid(text("the engine has code for compute capability ", sm_, ", found ", found, "; build it again"));
    }
    const auto size = reader.value<uint64_t>();
    if (size == 0 || size > kMaxCubin) throw Invalid(text("expected 1 to ", kMaxCubin, " bytes of code, found ", size));
    auto cubin = std::make_shared<std::vector<char>>(size);
    reader.bytes(cubin->data(), size);
    cubin_ = cubin;
    cache_->put(source_of(config.site()), sm_, cubin_);  // for the same node with other dims
  }

  void initialize(const Init&) override {
    check_driver(driver().module_load_data(&module_, cubin_->data()), "loading the code");
    check_driver(driver().module_get_function(&vector_, module_, "pointwise_vector"), "finding the kernel");
    check_driver(driver().module_get_function(&single_, module_, "pointwise_single"), "finding the kernel");
  }
  void terminate() noexcept override {
    if (module_ != nullptr) driver().module_unload(module_);
    module_ = nullptr;
  }

  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    Dims dims[kSourceOperands];
    int ranks[kSourceOperands] = {};
    const int64_t* extents[kSourceOperands] = {};
    PointwiseLaunch launch = {};
    for (int n = 0; n < num_operands_; ++n) {
      dims[n] = operand_dims(format_, inputs[n].dims);
      ranks[n] = dims[n].rank;
      extents[n] = dims[n].d;
      launch.operands[n] = inputs[n].data;
    }
    kernels::Broadcast<kSourceOperands> shape;
    if (!kernels::broadcast_shape(ranks, extents, &shape)) {
      throw Invalid(text("the shapes of the inputs do not broadcast to ", to_text(outputs[0].dims)));
    }
    const int64_t elements = Dims(outputs[0].dims).elements();
    if (elements == 0) return;
    if (elements >= kMaxElements) throw Invalid(text("expected fewer than 2^31 elements, found ", elements));
    shape = kernels::collapse(shape);
    const int inner = shape.rank - 1;
    launch.output = outputs[0].data;
    launch.axes = static_cast<uint32_t>(inner);
    launch.columns = static_cast<uint32_t>(shape.dims[inner]);
    bool wide = aligned(launch.output) && (inner == 0 || launch.columns % width_ == 0);
    for (int n = 0; n < num_operands_; ++n) {
      launch.steps[n] = static_cast<uint32_t>(shape.strides[n][inner]);
      wide = wide && (launch.steps[n] == 0 || aligned(launch.operands[n]));
      for (int axis = 0; axis < inner; ++axis) launch.strides[n][axis] = static_cast<uint32_t>(shape.strides[n][axis]);
    }
    for (int axis = 0; axis < inner; ++axis) launch.sizes[axis] = static_cast<uint32_t>(shape.dims[axis]);
    launch.chunks = wide ? (launch.columns + width_ - 1) / width_ : launch.columns;
    launch.total = static_cast<uint32_t>(elements / launch.columns) * launch.chunks;
    void* parameters[] = {&launch};
    check_driver(driver().launch_kernel(wide ? vector_ : single_, (launch.total + kThreads - 1) / kThreads, 1, 1,
                                        kThreads, 1, 1, 0, static_cast<CUstream>(exec.stream()), parameters, nullptr),
                 "launching the kernel");
  }

 private:
  void prepare(const Config& config) {
    num_operands_ = config.site().num_inputs();
    format_ = config.combo().output(0).format;
    width_ = static_cast<uint32_t>(vector_elements(config.site().output_dtype(0)));
  }

  std::shared_ptr<CubinCache> cache_;
  int num_operands_ = 0;
  TnFormat format_ = row_format();
  uint32_t width_ = 1;
  int sm_ = 0;
  Cubin cubin_;
  CUmodule module_ = nullptr;
  CUfunction vector_ = nullptr;
  CUfunction single_ = nullptr;
};

Definitions pointwise_nvrtc() {
  const auto cache = std::make_shared<CubinCache>();
  Definitions all;
  for (const int32_t dtype : {TN_F32, TN_F16, TN_BF16}) {
    all.add(kernel("tenon.pointwise/1", text("tenon.pointwise.nvrtc.", dtype_name(dtype), ".cuda"),
                   [cache] { return std::make_unique<PointwiseNvrtc>(cache); })
                .cuda()
                .deterministic()
                .graph_capturable()
                .supports([dtype](const Site& site) {
                  if (site.output_dtype(0) != dtype) throw Declined(text("it computes ", dtype_name(dtype), " alone"));
                  if (site.max_output_dims(0).elements() >= kMaxElements) throw Declined("more than 2^31 elements");
                  source_of(site);
                })
                .more_combos([dtype](const Site& site, Combos& combos) {
                  add_pointwise_combos(site, dtype, {row, nhwc}, combos);
                })
                // Here and not in supports, which is asked again when an engine is loaded: that compiles nothing.
                .tactics([cache](const Site& site, const Combo&, Tactics& tactics) {
                  cache->find(site.host(), source_of(site), compute_capability(site.device().ordinal));
                  tactics.add("");
                }));
  }
  return all;
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.pointwise.nvrtc", "1", "Apache-2.0", tenon::plugins::pointwise_nvrtc())
