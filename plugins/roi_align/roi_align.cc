// tenon.roi_align/1 with Tenon's kernel, and tenon.max_roi_pool/1 on its reference alone: features of regions of
// images.
#include <algorithm>
#include <cmath>
#include <limits>
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/checked.h"
#include "plugins/common/parallel.h"
#include "plugins/common/tolerance.h"

namespace tenon::plugins {
namespace {

constexpr int kX = 0, kRois = 1, kBatchIndices = 2;

// Attributes of roi_align and sizes of an image.
struct RoiAlign {
  bool max = false, half_pixel = true;
  int64_t height = 1, width = 1;  // of the output
  int64_t sampling_ratio = 0;
  double spatial_scale = 1;
  int64_t images = 0, channels = 0, image_height = 0, image_width = 0;
};

RoiAlign roi_align_of(const Attrs& attrs, const Dims& x) {
  RoiAlign align;
  align.max = attrs.str("mode") == "max";
  align.half_pixel = attrs.str("coordinate_transformation_mode") == "half_pixel";
  align.height = attrs.i64("output_height");
  align.width = attrs.i64("output_width");
  align.sampling_ratio = attrs.i64("sampling_ratio");
  align.spatial_scale = attrs.f64("spatial_scale");
  align.images = x[0], align.channels = x[1], align.image_height = x[2], align.image_width = x[3];
  return align;
}

// Where the samples of a region lie along one axis.
template <class T>
struct RoiAxis {
  T start, bin, samples;

  RoiAxis(T begin, T end, int64_t bins, const RoiAlign& align) {
    const T scale = static_cast<T>(align.spatial_scale), shift = align.half_pixel ? T(0.5) : T(0);
    start = begin * scale - shift;
    T length = end * scale - shift - start;
    if (!align.half_pixel) length = std::max(length, T(1));  // malformed regions become 1 x 1
    bin = length / static_cast<T>(bins);
    samples = align.sampling_ratio > 0 ? static_cast<T>(align.sampling_ratio) : std::ceil(bin);
    if (!(samples >= 0)) samples = 0;
  }
  T at(int64_t place, T sample) const {
    return start + static_cast<T>(place) * bin + (sample + T(0.5)) * bin / samples;
  }
  // Samples of a bin that may lie in [-1, size]: [first, last). Regions may be far larger than the image.
  void range(int64_t place, int64_t size, int64_t* first, int64_t* last) const {
    const T begin = start + static_cast<T>(place) * bin, step = bin / samples;
    T low = 0, high = samples;
    if (step > 0) {
      low = std::max(low, std::floor((T(-1) - begin) / step) - 2);
      high = std::min(high, std::ceil((static_cast<T>(size) - begin) / step) + 2);
    }
    // Not a number, or beyond what can be counted: nothing.
    const bool sound = high > low && high < T(1e9);
    *first = sound ? static_cast<int64_t>(low) : 0;
    *last = sound ? static_cast<int64_t>(high) : 0;
  }
};

// A coordinate between two pixels. False if it is too far outside.
template <class T>
bool between(T x, int64_t size, int64_t* low, int64_t* high, T* part) {
  if (!(x >= T(-1) && x <= static_cast<T>(size))) return false;
  x = std::max(x, T(0));
  *low = static_cast<int64_t>(x);
  if (*low >= size - 1) {
    *low = *high = size - 1;
    *part = 0;
  } else {
    *high = *low + 1;
    *part = x - static_cast<T>(*low);
  }
  return true;
}

// Calls visit(indices of 4 pixels, their weights) for the samples of a bin in reach of the image. Returns how many
// samples the bin has in all.
template <class T, class Visit>
T for_each_sample(const RoiAlign& align, const T* roi, int64_t row, int64_t column, Visit&& visit) {
  const RoiAxis<T> x(roi[0], roi[2], align.width, align), y(roi[1], roi[3], align.height, align);
  int64_t y_first, y_last, x_first, x_last;
  y.range(row, align.image_height, &y_first, &y_last);
  x.range(column, align.image_width, &x_first, &x_last);
  for (int64_t i = y_first; i < y_last; ++i) {
    int64_t top, bottom, left, right;
    T down, across;
    if (!between(y.at(row, static_cast<T>(i)), align.image_height, &top, &bottom, &down)) continue;
    for (int64_t j = x_first; j < x_last; ++j) {
      if (!between(x.at(column, static_cast<T>(j)), align.image_width, &left, &right, &across)) continue;
      const int64_t w = align.image_width;
      const int64_t index[] = {top * w + left, top * w + right, bottom * w + left, bottom * w + right};
      const T weight[] = {(1 - down) * (1 - across), (1 - down) * across, down * (1 - across), down * across};
      visit(index, weight);
    }
  }
  return y.samples * x.samples;
}

// The bin's value from what its samples gave: their sum, or their largest; samples out of reach count as 0.
template <class Sum>
Sum bin_value(bool max, Sum gathered, int64_t reached, Sum samples) {
  if (!max) return gathered / std::max(samples, Sum(1));
  if (reached == 0) return 0;
  return static_cast<Sum>(reached) < samples ? std::max(gathered, Sum(0)) : gathered;
}

// What one sample of one channel adds.
template <class Sum, class T, class X>
void gather(bool max, const X* image, const int64_t* index, const T* weight, bool first, Sum* gathered) {
  Sum corner[4];
  for (int n = 0; n < 4; ++n) corner[n] = static_cast<Sum>(weight[n]) * static_cast<Sum>(image[index[n]]);
  if (!max) {
    *gathered += corner[0] + corner[1] + corner[2] + corner[3];
  } else {
    const Sum most = std::max(std::max(corner[0], corner[1]), std::max(corner[2], corner[3]));
    *gathered = first ? most : std::max(*gathered, most);
  }
}

int64_t image_of(int64_t image, int64_t images, const char* input) {
  if (image < 0 || image >= images) {
    throw Invalid(text("input ", input, ": expected images 0 to ", images - 1, ", found ", image));
  }
  return image;
}

void check_regions(const Infer& question, int64_t columns) {
  const Tensor x = question.input(kX, 4), rois = question.input(kRois, 2);
  if (!is_floating(x.dtype())) throw Invalid(text("input x: expected a floating dtype, found ", dtype_name(x.dtype())));
  if (x.dim(2) < 1 || x.dim(3) < 1) {
    throw Invalid(text("input x: expected images with at least one pixel, found ", to_text(x.dims())));
  }
  if (rois.dtype() != x.dtype() || rois.dim(1) != columns) {
    throw Invalid(text("input rois: expected [R,", columns, "] of ", dtype_name(x.dtype()), ", found ",
                       to_text(rois.dims()), " of ", dtype_name(rois.dtype())));
  }
}

void roi_align_infer(const Infer& question) {
  check_regions(question, 4);
  const Tensor x = question.input(kX), rois = question.input(kRois), images = question.input(kBatchIndices);
  if (images.dims() != Dims{rois.dim(0)} || images.dtype() != TN_I64) {
    throw Invalid(text("input batch_indices: expected [", rois.dim(0), "] of i64, found ", to_text(images.dims()),
                       " of ", dtype_name(images.dtype())));
  }
  const RoiAlign align = roi_align_of(question.attrs(), x.dims());
  question.output(0, x.dtype(), {rois.dim(0), align.channels, align.height, align.width});
}

void roi_align_reference(const Reference& call) {
  const RoiAlign align = roi_align_of(call.attrs(), call.input(kX).dims());
  const int64_t* images = call.input(kBatchIndices).data<int64_t>();
  const int64_t pixels = align.image_height * align.image_width;
  visit_floating(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = call.input(kX).data<T>();
    const T* rois = call.input(kRois).data<T>();
    call.fill<T>(0, [&](const int64_t* index, int64_t) {
      const int64_t n = image_of(images[index[0]], align.images, "batch_indices");
      const T* image = x + (n * align.channels + index[1]) * pixels;
      double gathered = 0;
      int64_t reached = 0;
      const T samples =
          for_each_sample(align, rois + 4 * index[0], index[2], index[3], [&](const int64_t* corners, const T* weight) {
            gather(align.max, image, corners, weight, reached++ == 0, &gathered);
          });
      return static_cast<T>(bin_value(align.max, gathered, reached, static_cast<double>(samples)));
    });
  });
}

// Regions of all images, some of them partly outside.
void fill_randomly(const Generate& ask, uint32_t rois, uint32_t columns) {
  uint64_t state = ask.seed * 2 + 1;
  const auto unit = [&] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state >> 40) / static_cast<double>(1 << 24);
  };
  const Dims x = ask.inputs[kX].dims;
  visit_floating(ask.inputs[kX].dtype, [&](auto zero) {
    using T = decltype(zero);
    T* image = static_cast<T*>(ask.inputs[kX].data);
    for (int64_t n = 0; n < x.elements(); ++n) image[n] = static_cast<T>(2 * unit() - 1);
    T* region = static_cast<T*>(ask.inputs[rois].data);
    for (int64_t n = 0; n < ask.inputs[rois].dims.d[0]; ++n, region += columns) {
      if (columns == 5) region[0] = static_cast<T>(std::floor(unit() * static_cast<double>(x[0])));
      for (int corner = 0; corner < 2; ++corner) {
        T* point = region + columns - 4 + 2 * corner;
        point[0] = static_cast<T>((0.6 * unit() + 0.5 * corner) * static_cast<double>(x[3]));
        point[1] = static_cast<T>((0.6 * unit() + 0.5 * corner) * static_cast<double>(x[2]));
      }
    }
  });
  if (columns == 5) return;
  auto* images = static_cast<int64_t*>(ask.inputs[kBatchIndices].data);
  for (int64_t n = 0; n < ask.inputs[kBatchIndices].dims.d[0]; ++n) images[n] = n % std::max<int64_t>(x[0], 1);
}

// Tasks are regions times blocks of channels, so that a sample's pixels and weights serve many channels.
class RoiAlignKernel final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Site site = config.site();
    if (!site.is_static()) throw Declined("it works on fixed dims");
    align_ = roi_align_of(site.attrs(), site.dims(kX));
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    constexpr int64_t kBlock = 32;
    const RoiAlign& a = align_;
    const auto* x = static_cast<const float*>(inputs[kX].data);
    const auto* rois = static_cast<const float*>(inputs[kRois].data);
    const auto* images = static_cast<const int64_t*>(inputs[kBatchIndices].data);
    auto* y = static_cast<float*>(outputs[0].data);
    const int64_t count = inputs[kRois].dims.d[0], blocks = (a.channels + kBlock - 1) / kBlock;
    const int64_t pixels = a.image_height * a.image_width, bins = a.height * a.width;
    for (int64_t n = 0; n < count; ++n) image_of(images[n], a.images, "batch_indices");
    cpu::parallel_tasks(to_parallel(exec), count * blocks, [&](int64_t, int64_t task) {
      const int64_t region = task / blocks, begin = task % blocks * kBlock;
      const int64_t channels = std::min(kBlock, a.channels - begin);
      const float* first = x + (images[region] * a.channels + begin) * pixels;
      for (int64_t bin = 0; bin < bins; ++bin) {
        float gathered[kBlock] = {};
        int64_t reached = 0;
        const float samples = for_each_sample(
            a, rois + 4 * region, bin / a.width, bin % a.width, [&](const int64_t* corners, const float* weight) {
              for (int64_t c = 0; c < channels; ++c) {
                gather(a.max, first + c * pixels, corners, weight, reached == 0, &gathered[c]);
              }
              ++reached;
            });
        for (int64_t c = 0; c < channels; ++c) {
          y[(region * a.channels + begin + c) * bins + bin] = bin_value(a.max, gathered[c], reached, samples);
        }
      }
    });
  }

 private:
  RoiAlign align_;
};

List<int64_t> pooled_shape(const Attrs& attrs) { return pixels(attrs, "pooled_shape", 2, 1); }

void max_roi_pool_infer(const Infer& question) {
  check_regions(question, 5);
  const Tensor x = question.input(kX);
  const List<int64_t> shape = pooled_shape(question.attrs());
  question.output(0, x.dtype(), {question.input(kRois).dim(0), x.dim(1), shape[0], shape[1]});
}

// One axis of a bin of a region: the pixels [first, last). The region's corners are rounded to pixels and belong to it.
void pooled_range(double begin, double end, double scale, int64_t bins, int64_t bin, int64_t size, int64_t* first,
                  int64_t* last) {
  const auto pixel = [&](double at) { return std::clamp(std::round(at * scale), -1e9, 1e9); };
  const double start = pixel(begin), length = std::max(pixel(end) - start + 1, 1.0);
  // Multiplied first: exact where bins divide the region.
  const auto edge = [&](int64_t n) { return static_cast<double>(n) * length / static_cast<double>(bins); };
  const double most = static_cast<double>(size);
  *first = static_cast<int64_t>(std::clamp(std::floor(edge(bin)) + start, 0.0, most));
  *last = static_cast<int64_t>(std::clamp(std::ceil(edge(bin + 1)) + start, 0.0, most));
}

void max_roi_pool_reference(const Reference& call) {
  const Dims dims = call.input(kX).dims();
  const List<int64_t> shape = pooled_shape(call.attrs());
  const double scale = call.attrs().f64("spatial_scale");
  visit_floating(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = call.input(kX).data<T>();
    const T* rois = call.input(kRois).data<T>();
    call.fill<T>(0, [&](const int64_t* index, int64_t) {
      const T* roi = rois + 5 * index[0];
      const bool counts = roi[0] >= 0 && static_cast<double>(roi[0]) < static_cast<double>(dims[0]);
      const int64_t n = image_of(counts ? static_cast<int64_t>(roi[0]) : -1, dims[0], "rois");
      int64_t top, bottom, left, right;
      pooled_range(roi[2], roi[4], scale, shape[0], index[2], dims[2], &top, &bottom);
      pooled_range(roi[1], roi[3], scale, shape[1], index[3], dims[3], &left, &right);
      if (top >= bottom || left >= right) return T(0);
      const T* image = x + (n * dims[1] + index[1]) * dims[2] * dims[3];
      T largest = image[top * dims[3] + left];
      for (int64_t row = top; row < bottom; ++row) {
        for (int64_t column = left; column < right; ++column) {
          largest = std::max(largest, image[row * dims[3] + column]);
        }
      }
      return largest;
    });
  });
}

Definitions roi_definitions() {
  Op align = op("tenon.roi_align/1");
  align
      .doc(
          "Mean or maximum of samples of x in each of output_height x output_width bins of each region, interpolated "
          "linearly (Mask R-CNN, https://arxiv.org/abs/1703.06870). The maximum is that of the weighted pixels, as "
          "https://onnx.ai/onnx/operators/onnx__RoiAlign.html has it")
      .attr_str("mode", "of a bin's samples")
      .default_value("avg")
      .range("avg|max")
      .attr_str("coordinate_transformation_mode", "half_pixel: corners are moved by -0.5 pixels")
      .default_value("half_pixel")
      .range("half_pixel|output_half_pixel")
      .attr_i64("output_height", "bins")
      .default_value("1")
      .range("[1,2147483647]")
      .attr_i64("output_width", "bins")
      .default_value("1")
      .range("[1,2147483647]")
      .attr_i64("sampling_ratio", "samples along each axis of a bin; 0: the size of the bin in pixels, rounded up")
      .default_value("0")
      .range("[0,65536]")
      .attr_f64("spatial_scale", "from coordinates of rois to pixels of x")
      .default_value("1")
      .input("x", "[N,C,H,W], floating")
      .input("rois", "[R,4]: x1, y1, x2, y2")
      .input("batch_indices", "i64 [R], the image of each region")
      .output("y", "[R,C,output_height,output_width]")
      .infer(roi_align_infer)
      .reference(roi_align_reference)
      .generate([](const Generate& ask) { fill_randomly(ask, kRois, 4); })
      .tolerance([](const Attrs&, int32_t dtype) { return sum_tolerance(dtype); });
  Op pool = op("tenon.max_roi_pool/1");
  pool.doc(
          "Largest pixel in each bin of each region, whose corners are rounded to pixels; 0 for an empty bin "
          "(Fast R-CNN, https://arxiv.org/abs/1504.08083)")
      .attr_i64s("pooled_shape", "bins: height, width")
      .required()
      .attr_f64("spatial_scale", "from coordinates of rois to pixels of x")
      .default_value("1")
      .input("x", "[N,C,H,W], floating")
      .input("rois", "[R,5]: image, x1, y1, x2, y2")
      .output("y", "[R,C,height,width]")
      .infer(max_roi_pool_infer)
      .reference(max_roi_pool_reference)
      .generate([](const Generate& ask) { fill_randomly(ask, kRois, 5); })
      .tolerance([](const Attrs&, int32_t dtype) { return pointwise_tolerance(dtype); });
  return {align, pool,
          kernel<RoiAlignKernel>("tenon.roi_align/1", "tenon.roi_align.channels.f32")
              .combo({f32_row(), f32_row(), row(TN_I64)}, {f32_row()})
              .supports([](const Site& site) {
                if (!site.is_static()) throw Declined("it works on fixed dims");
              })
              .deterministic()};
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.roi_align", "1", "Apache-2.0", tenon::plugins::roi_definitions())
