// A layer with a kernel for the CPU and one for NVIDIA GPUs: the bytes of pictures, pixel by pixel, become normalized
// planes. y[n,c,h,w] = (x[n,h,w,c] - mean[c]) / deviation[c]
#include <cuda_runtime.h>

#include <tenon/plugin/ext/cuda.h>
#include <random>
#include <tenon/sdk/plugin.hpp>

namespace {

struct Normalization {
  float mean[3], deviation[3];

  __host__ __device__ float operator()(uint8_t x, int channel) const {
    return (static_cast<float>(x) - mean[channel]) / deviation[channel];
  }
};

Normalization normalization_of(const tenon::Attrs& attrs) {
  const auto mean = attrs.f64s("mean"), deviation = attrs.f64s("deviation");
  if (mean.size() != 3 || deviation.size() != 3) {
    throw tenon::Invalid(
        tenon::text("mean and deviation: expected 3 numbers each, found ", mean.size(), " and ", deviation.size()));
  }
  Normalization result{};
  for (int c = 0; c < 3; ++c) {
    result.mean[c] = static_cast<float>(mean[c]);
    result.deviation[c] = static_cast<float>(deviation[c]);
    if (result.deviation[c] == 0)
      throw tenon::Invalid(tenon::text("deviation ", c, ": expected another number than 0"));
  }
  return result;
}

// --- the op: what is right ---

void infer(const tenon::Infer& question) {
  const tenon::Tensor x = question.input(0, 4);
  if (x.dtype() != TN_U8 || x.dim(3) != 3) {
    throw tenon::Invalid(
        tenon::text("x: expected u8 [N,H,W,3], found ", tenon::dtype_name(x.dtype()), " ", tenon::to_text(x.dims())));
  }
  normalization_of(question.attrs());
  question.output(0, TN_F32, {x.dim(0), 3, x.dim(1), x.dim(2)});
}

void reference(const tenon::Reference& call) {
  const Normalization normalization = normalization_of(call.attrs());
  const tenon::Dims dims = call.input(0).dims();
  const uint8_t* x = call.input(0).data<uint8_t>();
  call.fill<float>(0, [&](const int64_t* index, int64_t) {
    const int64_t pixel = (index[0] * dims[1] + index[2]) * dims[2] + index[3];
    return normalization(x[3 * pixel + index[1]], static_cast<int>(index[1]));
  });
}

/// What kernels are verified with. Without it bytes would be numbers below 4.
void generate(const tenon::Generate& call) {
  std::mt19937_64 random(call.seed);
  const tenon::Tensor x(call.inputs[0]);
  for (int64_t i = 0; i < x.elements(); ++i) x.data<uint8_t>()[i] = static_cast<uint8_t>(random());
}

// --- the kernel for the CPU ---

class NormalizeCpu final : public tenon::IPlugin {
 public:
  void configure(const tenon::Config& config) override { normalization_ = normalization_of(config.site().attrs()); }
  void enqueue(const tenon::Exec&, const TnTensor* inputs, const TnTensor* outputs) const override {
    const tenon::Dims dims = inputs[0].dims;
    const int64_t plane = dims.product(1, 3);
    const auto* x = static_cast<const uint8_t*>(inputs[0].data);
    auto* y = static_cast<float*>(outputs[0].data);
    for (int64_t n = 0; n < dims[0]; ++n, x += 3 * plane) {
      for (int c = 0; c < 3; ++c, y += plane) {
        for (int64_t i = 0; i < plane; ++i) y[i] = normalization_(x[3 * i + c], c);
      }
    }
  }

 private:
  Normalization normalization_{};
};

// --- the kernel for GPUs ---

/// What a thread reads and writes at once: kPixels neighbours, and one channel of them.
template <int kPixels>
struct alignas(kPixels) Pixels {
  uint8_t v[kPixels][3];
};
template <int kPixels>
struct alignas(4 * kPixels) Floats {
  float v[kPixels];
};

/// One thread normalizes kPixels neighbours. Bound by memory: 3 bytes in and 12 out a pixel. REQUIRES: for 4 pixels, a
/// plane whose size is a multiple of 4, x aligned to 4 bytes and y to 16.
template <int kPixels>
__global__ void normalize(const uint8_t* x, float* y, int64_t pixels, int64_t plane, Normalization normalization) {
  const int64_t pixel = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kPixels;
  if (pixel >= pixels) return;
  const auto in = *reinterpret_cast<const Pixels<kPixels>*>(x + 3 * pixel);
  const int64_t picture = pixel / plane;
  float* out = y + 3 * picture * plane + (pixel - picture * plane);
  for (int c = 0; c < 3; ++c) {
    Floats<kPixels> values;
    for (int i = 0; i < kPixels; ++i) values.v[i] = normalization(in.v[i][c], c);
    *reinterpret_cast<Floats<kPixels>*>(out + c * plane) = values;
  }
}

bool is_aligned(const void* pointer, uintptr_t bytes) { return reinterpret_cast<uintptr_t>(pointer) % bytes == 0; }

class NormalizeCuda final : public tenon::IPlugin {
 public:
  void configure(const tenon::Config& config) override {
    normalization_ = normalization_of(config.site().attrs());
    block_ = static_cast<unsigned>(config.params().i64("block"));
    pixels_ = config.params().i64("pixels");
  }
  void enqueue(const tenon::Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const tenon::Dims dims = inputs[0].dims;
    const int64_t plane = dims.product(1, 3), pixels = dims[0] * plane;
    const auto* x = static_cast<const uint8_t*>(inputs[0].data);
    auto* y = static_cast<float*>(outputs[0].data);
    // A caller's own tensors are only promised to be aligned to their elements.
    const bool wide = pixels_ == 4 && plane % 4 == 0 && is_aligned(x, 4) && is_aligned(y, 16);
    const int64_t threads = wide ? pixels / 4 : pixels;
    if (threads == 0) return;
    const auto stream = static_cast<cudaStream_t>(exec.stream());
    const auto blocks = static_cast<unsigned>((threads + block_ - 1) / block_);
    const auto kernel = wide ? normalize<4> : normalize<1>;
    kernel<<<blocks, block_, 0, stream>>>(x, y, pixels, plane, normalization_);
    const cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess) throw tenon::Failure(TN_DEVICE, cudaGetErrorString(error));
  }

 private:
  Normalization normalization_{};
  unsigned block_ = 0;
  int64_t pixels_ = 0;
};

/// All are measured. The likeliest comes first, in case that time runs out: four pixels a thread, unless that leaves
/// multiprocessors without a block.
void list_tactics(const tenon::Site& site, const tenon::Combo&, tenon::Tactics& tactics) {
  const TnHost* host = site.host();
  const auto* cuda = static_cast<const TnCuda*>(host->get_interface(host, TN_IFACE_CUDA));
  if (cuda == nullptr) throw tenon::Declined("the host does not offer " TN_IFACE_CUDA);
  TnCudaProperties gpu{};
  gpu.struct_size = TN_HEADER(TnCudaProperties);
  tenon::check_host(cuda->properties(site.device().ordinal, &gpu));

  const tenon::Dims dims = site.dims(0);
  const int64_t plane = dims.product(1, 3);
  const int first = dims[0] * plane >= int64_t{4} * 256 * gpu.multiprocessors ? 4 : 1;
  for (const int pixels : {first, 5 - first}) {  // 4 and 1, or 1 and 4
    if (plane % pixels != 0) continue;
    for (const int block : {256, 128}) tactics.add(tenon::text("block=", block, ";pixels=", pixels));
  }
}

}  // namespace

TENON_PLUGIN("org.example.normalize_picture", "1.0", "Apache-2.0",
             tenon::op("org.example.normalize_picture/1")
                 .doc("Bytes of pictures as normalized planes. y[n,c,h,w] = (x[n,h,w,c] - mean[c]) / deviation[c]")
                 .attr_f64s("mean", "of each channel")
                 .default_value("0,0,0")
                 .attr_f64s("deviation", "of each channel, not 0")
                 .default_value("255,255,255")
                 .input("x", "u8 [N,H,W,3]")
                 .output("y", "f32 [N,3,H,W]")
                 .infer(infer)
                 .reference(reference)
                 .generate(generate),
             tenon::kernel<NormalizeCpu>("org.example.normalize_picture/1", "example.normalize_picture.scalar.f32")
                 .combo({tenon::row(TN_U8)}, {tenon::f32_row()})
                 .deterministic(),
             tenon::kernel<NormalizeCuda>("org.example.normalize_picture/1",
                                          "example.normalize_picture.planes.f32.cuda")
                 .cuda()
                 .combo({tenon::row(TN_U8)}, {tenon::f32_row()})
                 .tactics(list_tactics)
                 .deterministic()
                 .graph_capturable())
