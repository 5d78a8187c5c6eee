// tenon.conv2d/1 through cuDNN's graph API: one tactic for each engine configuration.
//   graph=fused;engine=..;knobs=..   convolution, bias and activation as one graph; a bias of 0 if there is none, since
//                                    f32 engines know only the pattern with a bias
//   graph=plain;engine=..;knobs=..   the convolution; then one pass of kernels/cuda for bias and activation, if any
// Both are listed because few fused engines compute f32 without tf32. Weights stay [k][c][r][s] for row; for nhwc they
// are kept as [k][r][s][c].
#include <memory>
#include <set>
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/cast.h"
#include "kernels/cuda/copy_strided.h"
#include "kernels/cuda/pointwise.h"
#include "plugins/common/cuda.h"
#include "plugins/common/cudnn.h"
#include "plugins/common/pack_key.h"
#include "plugins/conv2d/conv2d.h"

namespace tenon::plugins {
namespace {

constexpr uint32_t kRevision = 1;

// Bounds on the listing, which costs a finalised plan for each try: some engines compile device code there.
constexpr int kMaxFused = 6, kMaxTactics = 10;
constexpr int kMaxFusedTries = 10, kMaxTries = 25;

// Tensors in row format may be the caller's, which are only promised to be aligned to their elements; those in nhwc are
// the host's, which aligns as the port asks. So are weights and bias.
constexpr uint32_t kHostAlignment = 16;

enum TensorId : int64_t { kIdX = 1, kIdWeights, kIdBias, kIdY, kIdConvolved, kIdBiased };

// [1,c,1,1]-like tensors included.
std::vector<int64_t> strides_of(const std::vector<int64_t>& dims, cuda::Layout layout) {
  const int64_t c = dims[1], h = dims[2], w = dims[3];
  if (layout == cuda::Layout::kNhwc) return {h * w * c, 1, w * c, c};
  return {c * h * w, h * w, w, 1};
}

// cuDNN's form of an activation. Declined where it has none with the same values.
CudnnDescriptor activation_descriptor(const cuda::Epilogue& activation) {
  CudnnDescriptor result(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  result.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_PROPAGATE_NAN);
  const auto mode = [&](cudnnPointwiseMode_t value) { result.set(CUDNN_ATTR_POINTWISE_MODE, value); };
  const auto alpha = static_cast<double>(activation.alpha), beta = static_cast<double>(activation.beta);
  switch (activation.kind) {
    case cuda::UnaryKind::kRelu:
      mode(CUDNN_POINTWISE_RELU_FWD);
      break;
    case cuda::UnaryKind::kLeakyRelu:
      mode(CUDNN_POINTWISE_RELU_FWD);
      result.set(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, alpha);
      break;
    case cuda::UnaryKind::kClip:
      if (!(alpha < beta)) throw Declined("cuDNN clips to a range, which this is not");
      mode(CUDNN_POINTWISE_RELU_FWD);
      result.set(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, alpha).set(CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, beta);
      break;
    case cuda::UnaryKind::kLogistic:
      mode(CUDNN_POINTWISE_SIGMOID_FWD);
      break;
    case cuda::UnaryKind::kTanh:
      mode(CUDNN_POINTWISE_TANH_FWD);
      break;
    case cuda::UnaryKind::kSwish:
      mode(CUDNN_POINTWISE_SWISH_FWD);
      result.set(CUDNN_ATTR_POINTWISE_SWISH_BETA, 1.0);
      break;
    case cuda::UnaryKind::kElu:
      mode(CUDNN_POINTWISE_ELU_FWD);
      result.set(CUDNN_ATTR_POINTWISE_ELU_ALPHA, alpha);
      break;
    default:
      throw Declined("cuDNN does not know this activation");
  }
  return result;
}

// What graphs are made from.
struct ConvProblem {
  cpu::Conv2dGeometry g;
  cuda::Layout layout = cuda::Layout::kNchw;
  cuda::ElementType type = cuda::ElementType::kF32;
  cuda::Epilogue activation;
  bool has_bias = false;
  bool allow_tf32 = false;
  int ordinal = 0;

  ConvProblem() = default;
  ConvProblem(const Site& site, const Combo& combo)
      : g(conv2d_geometry(site)),
        layout(to_cuda_layout(combo.input(kConvX).format)),
        type(to_cuda_float(combo.input(kConvX).dtype)),
        activation(cuda_activation_epilogue(site)),
        has_bias(site.has_input(kConvBias)),
        allow_tf32(site.allow_tf32()),
        ordinal(site.device().ordinal) {}

  bool has_activation() const { return activation.kind != cuda::UnaryKind::kNone; }
  bool has_epilogue() const { return has_bias || has_activation(); }
  int64_t group_channels() const { return g.c / g.groups; }
  bool is_half() const { return type == cuda::ElementType::kF16; }
  int element_size() const { return element_type_size(type); }
  // [k][c][r][s] and [k][r][s][c] are the same bytes otherwise.
  bool packs() const { return layout == cuda::Layout::kNhwc && group_channels() > 1 && g.r * g.s > 1; }

  std::shared_ptr<const CudnnGraph> graph(cudnnHandle_t handle, bool fused) const;

 private:
  CudnnDescriptor convolution() const;
};

// Pads of which the last windows read nothing may have any size; cuDNN has most engines for equal ones.
int64_t post_pad(int64_t size, int64_t kernel, int64_t stride, int64_t dilation, int64_t pre, int64_t post,
                 int64_t output_size) {
  const int64_t least = (output_size - 1) * stride + dilation * (kernel - 1) + 1 - size - pre;
  return pre >= least && pre < least + stride ? pre : post;
}

CudnnDescriptor ConvProblem::convolution() const {
  CudnnDescriptor result(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  result.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION)
      .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t{2})
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, std::vector<int64_t>{g.pad_top, g.pad_left})
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS,
           std::vector<int64_t>{post_pad(g.h, g.r, g.stride_h, g.dilation_h, g.pad_top, g.pad_bottom, g.oh),
                                post_pad(g.w, g.s, g.stride_w, g.dilation_w, g.pad_left, g.pad_right, g.ow)})
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, std::vector<int64_t>{g.stride_h, g.stride_w})
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, std::vector<int64_t>{g.dilation_h, g.dilation_w});
  return result;
}

std::shared_ptr<const CudnnGraph> ConvProblem::graph(cudnnHandle_t handle, bool fused) const {
  auto graph = std::make_shared<CudnnGraph>(is_half() ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT);
  const std::vector<int64_t> y_dims{g.n, g.k, g.oh, g.ow};
  const int64_t alignment = layout == cuda::Layout::kNhwc ? int64_t{kHostAlignment} : element_size();
  const auto tensor = [&](int64_t id, const std::vector<int64_t>& dims, int64_t aligned, bool is_virtual) {
    return graph->tensor(id, dims, strides_of(dims, layout), aligned, is_virtual);
  };
  const cudnnBackendDescriptor_t y = tensor(kIdY, y_dims, alignment, false);
  const bool activates = fused && has_activation();

  cudnnBackendDescriptor_t result = fused ? tensor(kIdConvolved, y_dims, alignment, true) : y;
  CudnnDescriptor convolve(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  convolve.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, graph->keep(convolution()))
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, tensor(kIdX, {g.n, g.c, g.h, g.w}, alignment, false))
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
           tensor(kIdWeights, {g.k, group_channels(), g.r, g.s}, kHostAlignment, false))
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, result)
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 1.0f)
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 0.0f);
  graph->operation(std::move(convolve));

  if (fused) {
    CudnnDescriptor add(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    add.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_ADD).set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
    const cudnnBackendDescriptor_t biased = activates ? tensor(kIdBiased, y_dims, alignment, true) : y;
    CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, graph->keep(std::move(add)))
        .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, result)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, tensor(kIdBias, {1, g.k, 1, 1}, kHostAlignment, false))
        .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, biased);
    graph->operation(std::move(operation));
    result = biased;
  }
  if (activates) {
    CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, graph->keep(activation_descriptor(activation)))
        .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, result)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    graph->operation(std::move(operation));
  }
  graph->finalize(handle);
  return graph;
}

// Lists the tactics of both graphs.
class ConvSearch {
 public:
  ConvSearch(const ConvProblem& problem, cudnnHandle_t handle, Tactics* tactics)
      : problem_(problem), handle_(handle), tactics_(tactics) {}

  void run() {
    if (problem_.has_epilogue()) search(true);
    search(false);
    if (tactics_->count() == 0) {
      throw Declined(reason_.empty() ? "cuDNN has no deterministic engine for this convolution" : reason_);
    }
  }

 private:
  bool full(bool fused) const {
    return tactics_->count() >= (fused ? kMaxFused : kMaxTactics) || tries_ >= (fused ? kMaxFusedTries : kMaxTries);
  }

  void search(bool fused) {
    try {
      const auto graph = cudnn_or_decline([&] { return problem_.graph(handle_, fused); });
      seen_.clear();
      for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_FALLBACK}) {
        if (full(fused)) return;
        for (const CudnnConfig& config : graph->suggestions(mode)) offer(graph, fused, config);
      }
      // The heuristics favour tf32 even where it is not allowed: every engine with its default knobs comes last.
      if (full(fused)) return;
      const int64_t engines = cudnn_or_decline([&] { return graph->engine_count(); });
      for (int64_t engine = 0; engine < engines; ++engine) offer(graph, fused, {engine, {}});
    } catch (const Declined& declined) {
      keep_reason(declined);
    }
  }

  void offer(const std::shared_ptr<const CudnnGraph>& graph, bool fused, const CudnnConfig& config) {
    const std::string params = text("graph=", fused ? "fused" : "plain", ";", config.text());
    if (full(fused) || !seen_.insert(params).second) return;
    try {
      CudnnPlan plan(problem_.ordinal, graph, config, problem_.allow_tf32);
      ++tries_;
      plan.finalize(handle_);
      tactics_->add(params, plan.workspace());
    } catch (const Declined& declined) {
      keep_reason(declined);
    }
  }

  void keep_reason(const Declined& declined) {
    if (reason_.empty()) reason_ = declined.what();
  }

  const ConvProblem& problem_;
  cudnnHandle_t handle_;
  Tactics* tactics_;
  std::set<std::string> seen_;
  std::string reason_;
  int tries_ = 0;
};

// Persistent memory: the packed weights, if they are; then what is missing for each channel: a bias of 0 of the fused
// graph, or, as floats, the factor of 1 of the pass that adds a bias and, in f16, the bias.
class ConvCudnn final : public IPlugin {
 public:
  explicit ConvCudnn(std::shared_ptr<CudnnPlanner> planner) : planner_(std::move(planner)) {}

  void configure(const Config& config) override {
    const Site site = config.site();
    problem_ = ConvProblem(site, config.combo());
    const std::string graph = config.params().str("graph");
    if (graph != "fused" && graph != "plain") {
      throw Declined(text("no such tactic: expected graph=fused or graph=plain, found '", graph, "'"));
    }
    fused_ = graph == "fused";
    engine_ = CudnnConfig::parse(config.params());
    const cpu::Conv2dGeometry& g = problem_.g;
    if (problem_.packs()) {
      filler_at_ = static_cast<uint64_t>(g.k * problem_.group_channels() * g.r * g.s * problem_.element_size());
      filler_at_ = (filler_at_ + kHostAlignment - 1) / kHostAlignment * kHostAlignment;
    }
    persistent_ = filler_at_ + filler_bytes();
    if (persistent_ != 0) {
      PackKey key;
      key.add(text("tenon.conv2d.cudnn;", problem_.element_size(), ";", problem_.packs() ? "krsc" : "none", ";",
                   filler_bytes(), ";", fused_ ? "bias" : "factor"));
      if (problem_.packs()) key.add(site.constant(kConvWeights));
      if (widens_bias()) key.add(site.constant(kConvBias));
      key.store(&keys_);
    }
  }

  Sizes sizes() const override {
    Sizes sizes = keys_;
    sizes.persistent = persistent_;
    sizes.workspace = plan().workspace();
    return sizes;
  }

  void initialize(const Init& init) override {
    plan();
    auto* persistent = init.persistent<unsigned char>();
    weights_ = problem_.packs() ? persistent : init.device_constant<void>(kConvWeights);
    unsigned char* filler = persistent + filler_at_;
    const cpu::Conv2dGeometry& g = problem_.g;
    ones_ = reinterpret_cast<const float*>(filler);
    bias_ = !problem_.has_bias ? filler
            : widens_bias()    ? filler + g.k * sizeof(float)
                               : init.device_constant<void>(kConvBias);
    if (init.filled()) return;
    const auto stream = static_cast<cudaStream_t>(init.raw().exec->stream);
    if (problem_.packs()) {
      const int64_t dims[] = {g.k, problem_.group_channels(), g.r, g.s};
      const int perm[] = {0, 2, 3, 1};
      check_cuda(cuda::transpose(4, dims, perm, problem_.element_size(), init.device_constant<void>(kConvWeights),
                                 persistent, stream));
    }
    if (fused_) {
      check_cuda(cudaMemsetAsync(filler, 0, filler_bytes(), stream));
    } else if (problem_.has_bias) {
      const std::vector<float> ones(static_cast<size_t>(g.k), 1.0f);
      check_cuda(cudaMemcpyAsync(filler, ones.data(), ones.size() * sizeof(float), cudaMemcpyHostToDevice, stream));
      check_cuda(cudaStreamSynchronize(stream));  // `ones` ends here
    }
    if (widens_bias()) {
      check_cuda(cuda::cast(problem_.type, cuda::ElementType::kF32, g.k, init.device_constant<void>(kConvBias),
                            filler + g.k * sizeof(float), stream));
    }
  }

  void set_shapes(const Exec& exec, const TnTensor*, const TnTensor*) const override { cudnn_handle(exec); }

  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    void* y = outputs[0].data;
    std::vector<CudnnBinding> bindings{{kIdX, inputs[kConvX].data}, {kIdWeights, weights_}, {kIdY, y}};
    if (fused_) bindings.push_back({kIdBias, bias_});
    plan_->execute(cudnn_handle(exec), bindings, exec.workspace<void>());
    if (fused_) return;
    const cpu::Conv2dGeometry& g = problem_.g;
    const cuda::Epilogue& activation = problem_.activation;
    if (problem_.has_bias) {
      check_cuda(cuda::channel_affine(problem_.type, problem_.layout, g.n, g.k, g.oh * g.ow, y, ones_,
                                      static_cast<const float*>(bias_), activation, y, cuda_stream(exec)));
    } else if (problem_.has_activation()) {
      check_cuda(cuda::pointwise_unary(problem_.type, activation.kind, activation.alpha, activation.beta,
                                       g.n * g.k * g.oh * g.ow, y, y, cuda_stream(exec)));
    }
  }

 private:
  bool widens_bias() const { return !fused_ && problem_.has_bias && problem_.is_half(); }
  uint64_t filler_bytes() const {
    if (fused_ == problem_.has_bias) return 0;
    const size_t bytes = fused_ ? static_cast<size_t>(problem_.element_size()) : sizeof(float);
    return static_cast<uint64_t>(problem_.g.k) * (widens_bias() ? 2 : 1) * bytes;
  }

  // Made when first asked for, since configure touches no device.
  const CudnnPlan& plan() const {
    if (plan_ == nullptr) {
      planner_->plan(problem_.ordinal, [&](cudnnHandle_t handle) {
        const auto graph = cudnn_or_decline([&] { return problem_.graph(handle, fused_); });
        auto plan = std::make_unique<CudnnPlan>(problem_.ordinal, graph, engine_, problem_.allow_tf32);
        plan->finalize(handle);
        plan_ = std::move(plan);
      });
    }
    return *plan_;
  }

  std::shared_ptr<CudnnPlanner> planner_;  // outlives plan_
  ConvProblem problem_;
  bool fused_ = false;
  CudnnConfig engine_;
  mutable std::unique_ptr<CudnnPlan> plan_;
  Sizes keys_;
  uint64_t filler_at_ = 0;
  uint64_t persistent_ = 0;
  const void* weights_ = nullptr;
  const void* bias_ = nullptr;  // of the tensors' type in the fused graph, else float
  const float* ones_ = nullptr;
};

void conv_supports(const Site& site) {
  require_static_constant(site);
  if (site.output_dims(0).elements() == 0 || site.dims(kConvX).elements() == 0) throw Declined("a tensor is empty");
}

Kernel conv_kernel(const std::shared_ptr<CudnnPlanner>& planner, int32_t dtype) {
  Kernel definition = cuda_kernel("tenon.conv2d/1", text("tenon.conv2d.cudnn.", dtype_name(dtype)),
                                  [planner] { return std::make_unique<ConvCudnn>(planner); });
  definition.combo({row(dtype), row(dtype), row(dtype)}, {row(dtype)});
  const Port image = nhwc(dtype).aligned(kHostAlignment);
  definition.combo({image, row(dtype), row(dtype)}, {image});
  // Another cuDNN has other engines, speeds and bits.
  definition.revision(kRevision * 1000000 + static_cast<uint32_t>(cudnnGetVersion()));
  definition.relocatable()
      .supports(conv_supports)
      .tactics([planner](const Site& site, const Combo& combo, Tactics& tactics) {
        const ConvProblem problem(site, combo);
        planner->plan(problem.ordinal, [&](cudnnHandle_t handle) { ConvSearch(problem, handle, &tactics).run(); });
      })
      .epilogue([](const Site& site) { cuda_activation_epilogue(site); });
  return definition;
}

Definitions conv_kernels() {
  const auto planner = std::make_shared<CudnnPlanner>();
  return for_cuda_floats([&](int32_t dtype) { return conv_kernel(planner, dtype); });
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.conv2d.cudnn", "1", "Apache-2.0", tenon::plugins::conv_kernels())
