// tenon.resize/1 on kernels/cuda, for the images of the CPU's kernels:
//   tenon.resize.nearest.cuda   elements of 1, 2, 4 or 8 bytes
//   tenon.resize.taps.*.cuda    weights of neighbouring cells
#include <memory>
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/resize.h"
#include "plugins/common/cuda.h"
#include "plugins/common/move.h"
#include "plugins/common/pack_key.h"
#include "plugins/resize/resize.h"

namespace tenon::plugins {
namespace {

bool is_nearest(const Site& site) { return site.attrs().str("mode") == "nearest"; }

// Persistent memory: the indices of rows and columns, then their weights, 4 bytes each.
class ResizeCuda final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Site site = config.site();
    const ResizeOptions options = resize_options(site.attrs());
    ResizeImages images = resize_images(site);
    if (is_nhwc(config.combo().input(kResizeX).format)) {
      // The channels are in front of the rows here and behind the columns in memory.
      inner_ = site.dims(kResizeX)[1];
      images.planes = site.dims(kResizeX)[0];
    }
    planes_ = images.planes;
    nearest_ = is_nearest(site);
    bytes_ = dtype_size(site.dtype(kResizeX));
    if (!nearest_) type_ = to_cuda_float(site.dtype(kResizeX));
    const ResizeTaps rows = resize_taps(options, images.rows), columns = resize_taps(options, images.columns);
    rows_ = {images.rows.in, images.rows.out, rows.count, nullptr, nullptr};
    columns_ = {images.columns.in, images.columns.out, columns.count, nullptr, nullptr};
    row_entries_ = rows.index.size();
    index_ = rows.index;
    index_.insert(index_.end(), columns.index.begin(), columns.index.end());
    weight_.assign(rows.weight.begin(), rows.weight.end());
    weight_.insert(weight_.end(), columns.weight.begin(), columns.weight.end());
    sizes_.persistent = index_.size() * (sizeof(int32_t) + sizeof(float));
    PackKey()
        .add("tenon.resize.tables.cuda")
        .add(index_.data(), index_.size() * sizeof(int32_t))
        .add(weight_.data(), weight_.size() * sizeof(float))
        .store(&sizes_);
  }
  Sizes sizes() const override { return sizes_; }

  void initialize(const Init& init) override {
    auto* index = init.persistent<int32_t>();
    auto* weight = reinterpret_cast<float*>(index + index_.size());
    rows_.index = index;
    rows_.weight = weight;
    columns_.index = index + row_entries_;
    columns_.weight = weight + row_entries_;
    if (init.filled()) return;
    const auto stream = static_cast<cudaStream_t>(init.raw().exec->stream);
    check_cuda(cudaMemcpyAsync(index, index_.data(), index_.size() * sizeof(int32_t), cudaMemcpyHostToDevice, stream));
    check_cuda(cudaMemcpyAsync(weight, weight_.data(), weight_.size() * sizeof(float), cudaMemcpyHostToDevice, stream));
  }

  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    check_cuda(nearest_ ? cuda::resize_nearest(planes_, rows_, columns_, inner_, bytes_, inputs[0].data,
                                               outputs[0].data, cuda_stream(exec))
                        : cuda::resize(type_, planes_, rows_, columns_, inner_, inputs[0].data, outputs[0].data,
                                       cuda_stream(exec)));
  }

 private:
  bool nearest_ = false;
  cuda::ElementType type_ = cuda::ElementType::kF32;
  int64_t planes_ = 1, inner_ = 1;
  int bytes_ = 4;
  cuda::ResizeTable rows_, columns_;
  size_t row_entries_ = 0;
  std::vector<int32_t> index_;
  std::vector<float> weight_;
  Sizes sizes_;
};

Kernel resize_kernel(const std::string& name, bool nearest, std::initializer_list<int32_t> dtypes) {
  const std::vector<int32_t> taken = dtypes;  // none: all
  return cuda_kernel<ResizeCuda>("tenon.resize/1", name)
      .supports([nearest](const Site& site) {
        if (is_nearest(site) != nearest) throw Declined("another mode");
        resize_images(site);
      })
      .more_combos([taken](const Site& site, Combos& combos) {
        const int32_t dtype = site.dtype(kResizeX);
        move_bytes(dtype);
        if (!taken.empty() && taken[0] != dtype) return;
        for (auto port : cuda_image_ports()) {
          const Port x = port(dtype);
          if (!is_row(x.format) && site.dims(kResizeX).rank != 4) continue;
          combos.add(ComboSpec({x, any_constant(), any_constant(), any_constant()}, {x}));
        }
      })
      .tactics([](const Site& site, const Combo& combo, Tactics& tactics) {
        const Dims x = site.dims(kResizeX), y = site.output_dims(0);
        if (is_nhwc(combo.input(kResizeX).format)) {
          const ResizeImages images = resize_images(site);
          const auto is = [&](const ResizeAxis& axis, int n) { return axis.in == x[n] && axis.out == y[n]; };
          const bool rows_and_columns = images.planes == x[0] * x[1] && x[0] == y[0] && x[1] == y[1] &&
                                        is(images.rows, 2) && is(images.columns, 3);
          if (!rows_and_columns) throw Declined("in nhwc it resizes rows and columns");
        }
        tactics.add("");
      });
}

Definitions resize_cuda() {
  return {resize_kernel("tenon.resize.nearest.cuda", true, {}),
          resize_kernel("tenon.resize.taps.f32.cuda", false, {TN_F32}),
          resize_kernel("tenon.resize.taps.f16.cuda", false, {TN_F16})};
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.resize.cuda", "1", "Apache-2.0", tenon::plugins::resize_cuda())
