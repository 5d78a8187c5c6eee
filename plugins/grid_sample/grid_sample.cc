// tenon.grid_sample/1: images read at points that another tensor gives, and Tenon's kernel for it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <tenon/sdk/plugin.hpp>

#include "kernels/cpu/sample.h"
#include "plugins/common/parallel.h"
#include "plugins/common/tolerance.h"
#include "plugins/grid_sample/grid_sample.h"

namespace tenon::plugins {
namespace {

constexpr int64_t kBlock = 256;  // pixels whose taps are worked out together

// Mirrors a coordinate at low and high until it lies between them.
double reflect(double x, double low, double high) {
  const double range = high - low;
  if (range <= 0) return low;
  const double there = std::fmod(std::fabs(x - low), 2 * range);
  return low + (there <= range ? there : 2 * range - there);
}

// One axis of a point: pixels and weights. A pixel that counts as zero has index 0 and weight 0.
void axis_taps(const Sampling& s, int axis, double normalized, int64_t* index, double* weight) {
  const double size = static_cast<double>(s.x[axis]);
  const double low = s.align_corners ? 0 : -0.5, high = s.align_corners ? size - 1 : size - 0.5;
  double x = s.align_corners ? (normalized + 1) / 2 * (size - 1) : ((normalized + 1) * size - 1) / 2;
  // Infinite and NaN coordinates lie somewhere far outside.
  if (!(std::fabs(x) < 1e9)) x = x > 0 ? 1e9 : -1e9;
  if (s.mode == SampleMode::kNearest) x = std::nearbyint(x);
  if (x < low || x > high) {
    // As in PyTorch, where cubic filters see the border's pixels repeated and not the point moved to the border.
    if (s.padding == SamplePadding::kBorder && s.mode != SampleMode::kCubic) x = std::clamp(x, 0.0, size - 1);
    if (s.padding == SamplePadding::kReflection) x = reflect(x, low, high);
  }
  const double floor = std::floor(x), part = x - floor;
  const int taps = s.taps_per_axis();
  if (s.mode == SampleMode::kNearest) {
    weight[0] = 1;
  } else if (s.mode == SampleMode::kLinear) {
    weight[0] = 1 - part;
    weight[1] = part;
  } else {
    // Keys 1981, equation 4, with a = -0.75.
    const double a = -0.75;
    for (int t = 0; t < 4; ++t) {
      const double d = std::fabs(t - 1 - part);
      weight[t] = d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
    }
  }
  const int64_t first = static_cast<int64_t>(floor) - (taps == 4 ? 1 : 0);
  for (int t = 0; t < taps; ++t) {
    const int64_t at = first + t;
    index[t] = std::clamp<int64_t>(at, 0, s.x[axis] - 1);
    if (at == index[t] || s.padding == SamplePadding::kBorder) continue;
    if (s.padding == SamplePadding::kZeros) {
      weight[t] = 0;
    } else {
      index[t] =
          std::clamp<int64_t>(static_cast<int64_t>(reflect(static_cast<double>(at), low, high)), 0, s.x[axis] - 1);
    }
  }
}

// All taps of a point, whose last coordinate is that of the first spatial axis.
template <class T, class Weight>
void point_taps(const Sampling& s, const T* point, int64_t* index, Weight* weight) {
  int64_t axis_index[kMostAxes][4];
  double axis_weight[kMostAxes][4];
  for (int axis = 0; axis < s.rank; ++axis) {
    axis_taps(s, axis, static_cast<double>(point[s.rank - 1 - axis]), axis_index[axis], axis_weight[axis]);
  }
  const int per_axis = s.taps_per_axis(), all = s.taps();
  for (int t = 0; t < all; ++t) {
    int64_t at = 0, step = 1;
    double product = 1;
    int rest = t;
    for (int axis = s.rank - 1; axis >= 0; --axis) {
      const int tap = rest % per_axis;
      rest /= per_axis;
      at += axis_index[axis][tap] * step;
      product *= axis_weight[axis][tap];
      step *= s.x[axis];
    }
    index[t] = at;
    weight[t] = static_cast<Weight>(product);
  }
}

void grid_sample_infer(const Infer& question) {
  const Tensor x = question.input(0), grid = question.input(1);
  if (!is_floating(grid.dtype())) {
    throw Invalid(text("input grid: expected a floating dtype, found ", dtype_name(grid.dtype())));
  }
  if (!is_floating(x.dtype())) visit_number(x.dtype(), [](auto) {});
  const Sampling s = sampling_of(question.attrs(), x.dims(), grid.dims());
  if (s.rank > kMostAxes || (s.mode == SampleMode::kCubic && s.rank > 4)) throw Invalid("too many spatial axes");
  Dims dims = {x.dim(0), x.dim(1)};
  for (int axis = 0; axis < s.rank; ++axis) dims.push_back(grid.dim(axis + 1));
  question.output(0, x.dtype(), dims);
}

template <class T>
T to_element(double value) {
  if constexpr (std::is_integral_v<T>) {
    if (!(value > static_cast<double>(std::numeric_limits<T>::lowest()))) return std::numeric_limits<T>::lowest();
    if (value >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  }
  return static_cast<T>(value);
}

void grid_sample_reference(const Reference& call) {
  const Sampling s = sampling_of(call.attrs(), call.input(0).dims(), call.input(1).dims());
  const int64_t channels = call.input(0).dim(1);
  const int taps = s.taps();
  std::vector<int64_t> index(static_cast<size_t>(taps));
  std::vector<double> weight(static_cast<size_t>(taps));
  visit_floating(call.input(1).dtype(), [&](auto grid_zero) {
    const auto* grid = call.input(1).data<decltype(grid_zero)>();
    visit_number(call.output(0).dtype(), [&](auto zero) {
      using T = decltype(zero);
      const T* x = call.input(0).data<T>();
      call.fill<T>(0, [&](const int64_t* at, int64_t linear) {
        point_taps(s, grid + (at[0] * s.y_pixels + linear % s.y_pixels) * s.rank, index.data(), weight.data());
        const T* plane = x + (at[0] * channels + at[1]) * s.x_pixels;
        double sum = 0;
        for (int t = 0; t < taps; ++t) {
          const auto n = static_cast<size_t>(t);
          if (weight[n] != 0) sum += weight[n] * static_cast<double>(plane[index[n]]);
        }
        return to_element<T>(sum);
      });
    });
  });
}

// Points in and around the image.
void grid_sample_generate(const Generate& ask) {
  uint64_t state = ask.seed * 2 + 1;
  for (uint32_t n = 0; n < 2; ++n) {
    visit_number(ask.inputs[n].dtype, [&](auto zero) {
      using T = decltype(zero);
      T* data = static_cast<T*>(ask.inputs[n].data);
      for (int64_t i = 0; i < Dims(ask.inputs[n].dims).elements(); ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const double unit = static_cast<double>(state >> 40) / static_cast<double>(1 << 24);
        data[i] = static_cast<T>(std::is_integral_v<T> ? 100 * unit : 2.6 * unit - 1.3);
      }
    });
  }
}

class GridSampleKernel final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Site site = config.site();
    if (!site.is_static()) throw Declined("it works on fixed dims");
    sampling_ = sampling_of(site.attrs(), site.dims(0), site.dims(1));
    sizes_.workspace = workspace(sampling_, site.threads());
  }
  static uint64_t slot_bytes(const Sampling& s) {
    return static_cast<uint64_t>(kBlock * s.taps()) * (sizeof(int64_t) + sizeof(float));
  }
  static uint64_t workspace(const Sampling& s, int threads) { return slot_bytes(s) * static_cast<uint64_t>(threads); }
  Sizes sizes() const override { return sizes_; }

  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Sampling& s = sampling_;
    const int64_t images = inputs[0].dims.d[0], channels = inputs[0].dims.d[1], taps = s.taps();
    const int64_t blocks = (s.y_pixels + kBlock - 1) / kBlock;
    const auto* x = static_cast<const float*>(inputs[0].data);
    const auto* grid = static_cast<const float*>(inputs[1].data);
    auto* y = static_cast<float*>(outputs[0].data);
    char* scratch = exec.workspace<char>();
    cpu::parallel_tasks(to_parallel(exec), images * blocks, [&](int64_t slot, int64_t task) {
      auto* index = reinterpret_cast<int64_t*>(scratch + slot * static_cast<int64_t>(slot_bytes(s)));
      auto* weight = reinterpret_cast<float*>(index + kBlock * taps);
      const int64_t n = task / blocks, begin = task % blocks * kBlock;
      const int64_t count = std::min(kBlock, s.y_pixels - begin);
      for (int64_t p = 0; p < count; ++p) {
        point_taps(s, grid + (n * s.y_pixels + begin + p) * s.rank, index + p * taps, weight + p * taps);
      }
      cpu::sample(channels, count, static_cast<int>(taps), index, weight, x + n * channels * s.x_pixels, s.x_pixels,
                  y + n * channels * s.y_pixels + begin, s.y_pixels);
    });
  }

 private:
  Sampling sampling_;
  Sizes sizes_;
};

Definitions grid_sample_definitions() {
  Op definition = op("tenon.grid_sample/1");
  definition
      .doc(
          "y[n,c,o...] = x[n,c] interpolated at grid[n,o...], whose coordinates (the last axis first) run from -1 to 1 "
          "over the image (https://onnx.ai/onnx/operators/onnx__GridSample.html)")
      .attr_str("mode", "interpolation; halves of nearest go to the even pixel, cubic has a = -0.75")
      .default_value("linear")
      .range("nearest|linear|cubic")
      .attr_str("padding_mode", "what lies outside")
      .default_value("zeros")
      .range("zeros|border|reflection")
      .attr_i64("align_corners", "1: -1 and 1 are the centres of the outermost pixels, not their outer edges")
      .default_value("0")
      .range("0|1")
      .input("x", "[N,C,d1,...,dr], numbers")
      .input("grid", "[N,o1,...,or,r], floating")
      .output("y", "[N,C,o1,...,or]")
      .infer(grid_sample_infer)
      .reference(grid_sample_reference)
      .generate(grid_sample_generate)
      .tolerance([](const Attrs&, int32_t dtype) { return sum_tolerance(dtype); });
  Kernel kernel = tenon::kernel<GridSampleKernel>("tenon.grid_sample/1", "tenon.grid_sample.taps.f32");
  kernel.combo({f32_row(), f32_row()}, {f32_row()})
      .tactics([](const Site& site, const Combo&, Tactics& tactics) {
        if (!site.is_static()) throw Declined("it works on fixed dims");
        tactics.add("",
                    GridSampleKernel::workspace(sampling_of(site.attrs(), site.dims(0), site.dims(1)), site.threads()));
      })
      .deterministic();
  return {definition, kernel};
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.grid_sample", "1", "Apache-2.0", tenon::plugins::grid_sample_definitions())
