#include "plugins/common/cublaslt.h"

#include <cublasLt.h>
#include <tenon/plugin/ext/cuda.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>
#include <vector>

#include "plugins/common/cuda.h"

namespace tenon::plugins {
namespace {

// Bump when results or speed change by what is written here.
constexpr uint32_t kRevision = 2;
constexpr const char* kAlike = ";alike=";
// Of each compute type, per site.
constexpr int kMostTactics = 10;
constexpr uint64_t kWorkspaceLimit = uint64_t{32} << 20;
// What the algorithms may rely on: the widest access of a thread, and what TMA needs.
constexpr uint32_t kAlignment = 16;

// How a product is computed; the sums are float32.
enum class Math {
  kFloat32,
  kTf32,  // of float32 operands
  kHalf,  // f16 operands and result
};
Math exact_math(cuda::ElementType type) { return type == cuda::ElementType::kF16 ? Math::kHalf : Math::kFloat32; }

// Partial sums that are added in a separate step, and are float32 until then. INPLACE is left out: cublasLt.h promises
// that the parts are added one after the other, but not in which order.
uint32_t reduction_schemes(Math math) {
  return math == Math::kHalf ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE
                             : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
}

// What an algorithm must not do.
uint64_t forbidden(Math math) {
  constexpr uint64_t kHalfInputs = CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16F | CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16BF |
                                   CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_8F_E4M3 |
                                   CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_8F_E5M2;
  switch (math) {
    case Math::kFloat32:  // tensor cores have no float32, so they would round the operands
      return kHalfInputs | CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32 | CUBLASLT_NUMERICAL_IMPL_FLAGS_TENSOR_OP_MASK;
    case Math::kTf32:
      return kHalfInputs;
    case Math::kHalf:  // CUBLAS_COMPUTE_32F takes f16 as it is
      break;
  }
  return 0;
}

std::string reason(const char* call, cublasStatus_t status) {
  return text(call, ": ", cublasLtGetStatusString(status), " (", cublasLtGetStatusName(status), ")");
}

void require(const char* call, cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) throw Declined(reason(call, status));
}

// One product with all that is fused into it.
struct Product {
  cuda::GemmShape shape;
  bool bias = false;
  bool residual = false;
  bool relu = false;

  bool empty() const { return shape.m == 0 || shape.n == 0 || shape.batches == 0; }
};

// Declined where the library has no such epilogue; the host then applies it.
CudaEpilogue cublaslt_epilogue(const Site& site) {
  const CudaEpilogue epilogue = cuda_epilogue(site);
  if (epilogue.activation.kind != cuda::UnaryKind::kNone && epilogue.activation.kind != cuda::UnaryKind::kRelu) {
    throw Declined("cuBLASLt applies no other activation than relu");
  }
  return epilogue;
}

Product product_of(const Site& site, const cuda::GemmShape& shape) {
  const CudaEpilogue epilogue = cublaslt_epilogue(site);
  Product product;
  product.shape = shape;
  product.bias = site.has_input(2);
  product.residual = epilogue.residual >= 0;
  product.relu = epilogue.activation.kind == cuda::UnaryKind::kRelu;
  return product;
}

template <class T>
void set(cublasLtMatmulDescOpaque_t* desc, cublasLtMatmulDescAttributes_t attribute, T value) {
  require("cublasLtMatmulDescSetAttribute", cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof value));
}
template <class T>
void set(cublasLtMatrixLayoutOpaque_t* layout, cublasLtMatrixLayoutAttribute_t attribute, T value) {
  require("cublasLtMatrixLayoutSetAttribute",
          cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, sizeof value));
}
template <class T>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute, T value) {
  require("cublasLtMatmulPreferenceSetAttribute",
          cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value));
}

void make_layout(cublasLtMatrixLayoutOpaque_t* layout, Math math, int64_t rows, int64_t columns, int64_t ld,
                 int64_t batches, int64_t stride) {
  const cudaDataType_t type = math == Math::kHalf ? CUDA_R_16F : CUDA_R_32F;
  require("cublasLtMatrixLayoutInit",
          cublasLtMatrixLayoutInit(layout, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), ld));
  if (batches > std::numeric_limits<int32_t>::max()) throw Declined("more batches than cuBLASLt counts");
  set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(batches));
  set(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride);
}

// The product in the library's words. It thinks in columns, where a row-major matrix is its own transpose: it is asked
// for C' = B' * A', [n,m] with a bias per row.
struct Operation {
  cublasLtMatmulDescOpaque_t desc;
  cublasLtMatrixLayoutOpaque_t left, right, result;

  // Declined if the library refuses it.
  void make(const Product& product, Math math) {
    const cuda::GemmShape& s = product.shape;
    const cublasComputeType_t compute = math == Math::kTf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    require("cublasLtMatmulDescInit", cublasLtMatmulDescInit(&desc, compute, CUDA_R_32F));
    set(&desc, CUBLASLT_MATMUL_DESC_TRANSA, static_cast<int32_t>(s.trans_b ? CUBLAS_OP_T : CUBLAS_OP_N));
    set(&desc, CUBLASLT_MATMUL_DESC_TRANSB, static_cast<int32_t>(s.trans_a ? CUBLAS_OP_T : CUBLAS_OP_N));
    if (product.bias || product.relu) {
      set(&desc, CUBLASLT_MATMUL_DESC_EPILOGUE,
          static_cast<uint32_t>(!product.bias  ? CUBLASLT_EPILOGUE_RELU
                                : product.relu ? CUBLASLT_EPILOGUE_RELU_BIAS
                                               : CUBLASLT_EPILOGUE_BIAS));
    }
    // Heuristics and checks read the alignment from the pointer and nothing else.
    if (product.bias) set_bias(reinterpret_cast<const void*>(uintptr_t{kAlignment}));
    make_layout(&left, math, s.trans_b ? s.k : s.n, s.trans_b ? s.n : s.k, s.ldb, s.batches, s.b_stride);
    make_layout(&right, math, s.trans_a ? s.m : s.k, s.trans_a ? s.k : s.m, s.lda, s.batches, s.a_stride);
    make_layout(&result, math, s.n, s.m, s.ldc, s.batches, s.c_stride);
  }
  void set_bias(const void* bias) { set(&desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias); }

  // Whether the algorithm computes it, and the bytes of workspace that it then needs.
  cublasStatus_t check(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algo, uint64_t* workspace) {
    cublasLtMatmulHeuristicResult_t found{};
    const cublasStatus_t status =
        cublasLtMatmulAlgoCheck(handle, &desc, &left, &right, &result, &result, &algo, &found);
    *workspace = found.workspaceSize;
    return status;
  }
};

// `otherwise` if the library does not know the attribute.
template <class T>
T config_of(const cublasLtMatmulAlgo_t& algo, cublasLtMatmulAlgoConfigAttributes_t attribute, T otherwise) {
  T value{};
  size_t written = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoConfigGetAttribute(&algo, attribute, &value, sizeof value, &written);
  return status == CUBLAS_STATUS_SUCCESS ? value : otherwise;
}

std::string params_of(const cublasLtMatmulAlgo_t& algo, Math math) {
  std::string params = text("algo=", config_of<int32_t>(algo, CUBLASLT_ALGO_CONFIG_ID, -1));
  const auto add = [&](const char* key, auto value) {
    if (value != 0) params += text(";", key, "=", value);
  };
  add("tile", config_of<uint32_t>(algo, CUBLASLT_ALGO_CONFIG_TILE_ID, 0));
  add("stages", config_of<uint32_t>(algo, CUBLASLT_ALGO_CONFIG_STAGES_ID, 0));
  const auto parts = config_of<int32_t>(algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 1);
  if (parts != 1) add("splitk", parts);
  add("reduction", config_of<uint32_t>(algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, 0));
  add("swizzle", config_of<uint32_t>(algo, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 0));
  add("custom", config_of<uint32_t>(algo, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 0));
  add("inner", config_of<uint16_t>(algo, CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, 0));
  add("cluster", config_of<uint16_t>(algo, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, 0));
  return math == Math::kTf32 ? params + ";compute=tf32" : params;
}

// Why the algorithm must not be used; nullptr if it may.
const char* objection(const cublasLtMatmulAlgo_t& algo, Math math) {
  if (config_of<uint32_t>(algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, CUBLASLT_REDUCTION_SCHEME_INPLACE) &
      ~reduction_schemes(math)) {
    return "the algorithm may add its parts in any order or rounded";
  }
  uint64_t flags = 0;
  size_t written = 0;
  if (cublasLtMatmulAlgoCapGetAttribute(&algo, CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS, &flags, sizeof flags,
                                        &written) != CUBLAS_STATUS_SUCCESS) {
    return "the library does not tell how the algorithm computes";
  }
  if (flags & forbidden(math)) return "the algorithm rounds further than asked for";
  if (math == Math::kTf32 && !(flags & CUBLASLT_NUMERICAL_IMPL_FLAGS_TENSOR_OP_MASK)) {
    return "the algorithm does not compute in tf32";
  }
  return nullptr;
}

// A handle for questions, on the site's GPU, which is current as long as this lives. Declined if there is none.
class Inquiry {
 public:
  explicit Inquiry(int ordinal) : before_(current()) {
    switch_to(ordinal);
    const cublasStatus_t status = cublasLtCreate(&handle_);
    if (status == CUBLAS_STATUS_SUCCESS) return;
    cudaSetDevice(before_);
    throw Declined(reason("cublasLtCreate", status));
  }
  Inquiry(const Inquiry&) = delete;
  Inquiry& operator=(const Inquiry&) = delete;
  ~Inquiry() {
    cublasLtDestroy(handle_);
    cudaSetDevice(before_);
  }
  cublasLtHandle_t handle() const { return handle_; }

 private:
  static void declined_unless(cudaError_t error) {
    if (error == cudaSuccess) return;
    cudaGetLastError();
    throw Declined(text(cudaGetErrorString(error), " (", cudaGetErrorName(error), ")"));
  }
  static int current() {
    int ordinal = 0;
    declined_unless(cudaGetDevice(&ordinal));
    return ordinal;
  }
  static void switch_to(int ordinal) { declined_unless(cudaSetDevice(ordinal)); }

  int before_;
  cublasLtHandle_t handle_ = nullptr;
};

std::vector<cublasLtMatmulHeuristicResult_t> ask_heuristic(cublasLtHandle_t handle, Operation* operation, Math math) {
  cublasLtMatmulPreferenceOpaque_t preference;
  require("cublasLtMatmulPreferenceInit", cublasLtMatmulPreferenceInit(&preference));
  set(&preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspaceLimit);
  set(&preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reduction_schemes(math));
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    set(&preference, attribute, kAlignment);
  }
  set(&preference, CUBLASLT_MATMUL_PREF_IMPL_MASK, ~forbidden(math));
  std::vector<cublasLtMatmulHeuristicResult_t> results(kMostTactics);
  int count = 0;
  require(
      "cublasLtMatmulAlgoGetHeuristic",
      cublasLtMatmulAlgoGetHeuristic(handle, &operation->desc, &operation->left, &operation->right, &operation->result,
                                     &operation->result, &preference, kMostTactics, results.data(), &count));
  results.resize(static_cast<size_t>(count));
  return results;
}

// Adds the tactics of one compute type. Declined if the library has none.
void add_tactics(const Inquiry& inquiry, const Product& product, const Product& most, Math math, Tactics& tactics) {
  Operation operation, largest;
  operation.make(product, math);
  largest.make(most, math);
  std::vector<std::string> listed;
  const char* objected = nullptr;
  for (const cublasLtMatmulHeuristicResult_t& found : ask_heuristic(inquiry.handle(), &operation, math)) {
    if (found.state != CUBLAS_STATUS_SUCCESS) continue;
    if (const char* why = objection(found.algo, math)) {
      objected = why;
      continue;
    }
    uint64_t workspace = found.workspaceSize, of_largest = 0;
    // An algorithm that cannot do the largest dims leaves them to the other kernel.
    if (largest.check(inquiry.handle(), found.algo, &of_largest) == CUBLAS_STATUS_SUCCESS && of_largest > workspace &&
        of_largest <= kWorkspaceLimit) {
      workspace = of_largest;
    }
    const std::string params = params_of(found.algo, math);
    // Algorithms may differ only in what the attributes do not tell. The bytes of cublasLtMatmulAlgo_t cannot name
    // them: part of them changes from one question to the next.
    const auto alike = std::count(listed.begin(), listed.end(), params);
    listed.push_back(params);
    tactics.add(alike ? text(params, kAlike, alike + 1) : params, workspace, &found.algo, sizeof found.algo);
  }
  if (listed.empty()) throw Declined(objected ? objected : "cuBLASLt knows no algorithm for this product");
}

thread_local cublasStatus_t last_create = CUBLAS_STATUS_SUCCESS;

TnStatus TN_CALL create_handle(void* /*stream*/, void** object) {
  cublasLtHandle_t handle = nullptr;
  last_create = cublasLtCreate(&handle);
  *object = handle;
  return last_create == CUBLAS_STATUS_SUCCESS ? TN_OK : TN_DEVICE;
}
void TN_CALL destroy_handle(void* object) { cublasLtDestroy(static_cast<cublasLtHandle_t>(object)); }

// The stream's handle, made by the first that asks.
cublasLtHandle_t handle_of(const TnExec& exec) {
  const auto* handles = static_cast<const TnCudaHandles*>(exec.handles);
  if (handles == nullptr) throw Failure(TN_DEVICE, "cuBLASLt: the host lends no library handles on this stream");
  void* object = nullptr;
  last_create = CUBLAS_STATUS_SUCCESS;
  const TnStatus status = handles->get(handles, "cublaslt", &create_handle, &destroy_handle, &object);
  if (status != TN_OK) throw Failure(status, reason("cublasLtCreate", last_create));
  return static_cast<cublasLtHandle_t>(object);
}

// What set_shapes leaves for enqueue. The handle is that of the stream of set_shapes, which lives as long as the
// context memory; the library's handles serve any stream, and the caller's may be a new one for each enqueue.
struct Call {
  cublasLtHandle_t handle = nullptr;
  bool by_library = false;
  Product product;
  Operation operation;
};
static_assert(std::is_trivially_destructible_v<Call>);

class GemmCublaslt final : public IPlugin {
 public:
  explicit GemmCublaslt(CublasltOp (*op_of)(const Site&)) : op_of_(op_of) {}

  void configure(const Config& config) override {
    const Site site = config.site();
    op_ = op_of_(site);
    product_ = product_of(site, op_.shape(site.dims(0), site.dims(1)));
    residual_input_ = site.num_inputs() + cublaslt_epilogue(site).residual;
    math_ = config.params().has("compute") ? Math::kTf32 : exact_math(product_.shape.type);
    if (math_ == Math::kTf32 && !site.allow_tf32()) {
      throw Declined("the tactic computes in tf32, which is not allowed here");
    }
    if (config.blob_size() != sizeof algo_) throw Declined("the tactic holds no algorithm of cuBLASLt's");
    std::memcpy(&algo_, config.blob(), sizeof algo_);
    const std::string params = params_of(algo_, math_);
    if (config.params().text().substr(0, config.params().text().find(kAlike)) != params) {
      throw Declined(text("cuBLASLt ", cublasLtGetVersion(), " reads the algorithm of '", config.params().text(),
                          "' as '", params, "'"));
    }
    if (const char* why = objection(algo_, math_)) throw Declined(why);
    sizes_.workspace = config.workspace();
    sizes_.context_host = sizeof(Call);
  }
  Sizes sizes() const override { return sizes_; }

  void initialize(const Init& init) override {
    Operation operation;
    operation.make(product_, math_);
    uint64_t workspace = 0;
    require("cublasLtMatmulAlgoCheck", operation.check(handle_of(*init.raw().exec), algo_, &workspace));
    if (workspace > sizes_.workspace) {
      throw Declined(text("the algorithm needs ", workspace, " bytes of workspace, the tactic has ", sizes_.workspace));
    }
  }

  void set_shapes(const Exec& exec, const TnTensor* inputs, const TnTensor*) const override {
    Call* call = new (exec.context_host<void>()) Call;
    call->product = product_;
    call->product.shape = op_.shape(inputs[0].dims, inputs[1].dims);
    call->handle = handle_of(exec.raw());
    if (call->product.empty() || call->product.shape.k == 0) return;
    call->operation.make(call->product, math_);
    uint64_t workspace = 0;
    call->by_library = call->operation.check(call->handle, algo_, &workspace) == CUBLAS_STATUS_SUCCESS &&
                       workspace <= sizes_.workspace;
  }

  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    Call* call = exec.context_host<Call>();
    if (call->product.empty()) return;
    const void *a = inputs[0].data, *b = inputs[1].data;
    const void* bias = product_.bias ? inputs[2].data : nullptr;
    const void* residual = product_.residual ? inputs[residual_input_].data : nullptr;
    void* c = outputs[0].data;
    if (!call->by_library || !aligned({a, b, bias, residual, c})) {
      return without_library(exec, call->product.shape, a, b, bias, residual, c);
    }
    if (bias) call->operation.set_bias(bias);
    const float one = 1, beta = residual ? 1 : 0;
    Operation& o = call->operation;
    const cublasStatus_t status =
        cublasLtMatmul(handle_of(exec.raw()), &o.desc, &one, b, &o.left, a, &o.right, &beta, residual ? residual : c,
                       &o.result, c, &o.result, &algo_, exec.workspace<void>(), sizes_.workspace, cuda_stream(exec));
    if (status != CUBLAS_STATUS_SUCCESS) throw Failure(TN_DEVICE, reason("cublasLtMatmul", status));
  }

 private:
  static bool aligned(std::initializer_list<const void*> pointers) {
    uintptr_t bits = 0;
    for (const void* pointer : pointers) bits |= reinterpret_cast<uintptr_t>(pointer);
    return bits % kAlignment == 0;
  }
  void without_library(const Exec& exec, const cuda::GemmShape& shape, const void* a, const void* b, const void* bias,
                       const void* residual, void* c) const {
    cuda::GemmOutput output;
    output.c = c;
    output.bias = bias;
    output.bias_axis = bias ? cuda::BiasAxis::kPerColumn : cuda::BiasAxis::kNone;
    output.residual = residual;
    if (product_.relu) output.epilogue = cuda::Epilogue::relu();
    cuda::GemmTactic tactic = cuda::gemm_default_tactic(shape);
    tactic.split_k = 1;  // needs no workspace
    check_cuda(cuda::gemm(shape, a, b, output, tactic, nullptr, cuda_stream(exec)));
  }

  CublasltOp (*op_of_)(const Site&);
  CublasltOp op_;
  Product product_;  // for the site's dims
  int residual_input_ = 0;
  Math math_ = Math::kFloat32;
  cublasLtMatmulAlgo_t algo_{};
  Sizes sizes_;
};

void list_tactics(const Site& site, const CublasltOp& op, Tactics& tactics) {
  const Product product = product_of(site, op.shape(site.dims(0), site.dims(1)));
  const Product most = product_of(site, op.shape(site.max_dims(0), site.max_dims(1)));
  if (product.empty() || product.shape.k == 0) throw Declined("the product is empty");
  const Inquiry inquiry(site.device().ordinal);
  const Math exact = exact_math(product.shape.type);
  if (exact == Math::kFloat32 && site.allow_tf32()) {
    try {
      add_tactics(inquiry, product, most, Math::kTf32, tactics);
    } catch (const Declined&) {  // float32 is left
    }
  }
  try {
    add_tactics(inquiry, product, most, exact, tactics);
  } catch (const Declined&) {
    if (tactics.count() == 0) throw;
  }
}

}  // namespace

Kernel cublaslt_kernel(const std::string& op_id, const std::string& name, CublasltOp (*op_of)(const Site& site)) {
  Kernel definition = cuda_kernel(op_id, name, [op_of] { return std::make_unique<GemmCublaslt>(op_of); });
  // The version has six digits, 130100 for 13.1.0: another library's times are measured anew, and only these kernels'.
  definition.revision(kRevision * 10000000 + static_cast<uint32_t>(cublasLtGetVersion()))
      .tactics([op_of](const Site& site, const Combo&, Tactics& tactics) { list_tactics(site, op_of(site), tactics); })
      .epilogue([](const Site& site) { cublaslt_epilogue(site); });
  return definition;
}

}  // namespace tenon::plugins
