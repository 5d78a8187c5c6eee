#include "kernels/cuda/reformat.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/copy_strided.h"

namespace tenon::cuda {
namespace {

constexpr int kThreads = 256;

// Element (channel, cell) of an image is at channel / block * block_stride + channel % block * lane_stride
// + cell * cell_stride.
struct View {
  int64_t block, block_stride, lane_stride, cell_stride, image;
};

View view(Layout layout, int64_t c, int64_t cells) {
  const int64_t image = layout_elements(layout, 1, c, 1, cells);
  if (layout == Layout::kNchw) return {1, cells, 0, 1, image};
  if (layout == Layout::kNhwc) return {c, 0, 1, c, image};
  const int64_t block = layout_block(layout);
  return {block, cells * block, 1, block, image};
}

// Threads stride over the output's elements, filling ones included. Bound: memory; reads of planes into blocks are
// gathered by the cache.
template <class T, class Index>
__global__ void __launch_bounds__(kThreads)
    reformat_kernel(int64_t count, int64_t c, View from, Divider<Index> from_block, Divider<Index> channels,
                    Divider<Index> lanes, Divider<Index> cells, Divider<Index> blocks, bool to_planes, const T* input,
                    T* output) {
  for (int64_t i = global_thread(); i < count; i += global_threads()) {
    Index rest = static_cast<Index>(i);
    Index channel;
    Index cell;
    Index image;
    if (to_planes) {
      cell = rest;
      channel = cells.split(&cell);
      image = channels.split(&channel);
    } else {  // [image][block][cell][lane]
      Index lane = rest;
      cell = lanes.split(&lane);
      Index block = cells.split(&cell);
      image = blocks.split(&block);
      channel = block * lanes.divisor + lane;
    }
    Index lane = channel;
    const Index block = from_block.split(&lane);
    const int64_t at =
        image * from.image + block * from.block_stride + lane * from.lane_stride + cell * from.cell_stride;
    output[i] = static_cast<int64_t>(channel) < c ? input[at] : T{0};
  }
}

}  // namespace

cudaError_t reformat(Layout from, Layout to, int64_t n, int64_t c, int64_t h, int64_t w, int element_size,
                     const void* input, void* output, cudaStream_t stream) noexcept {
  if (element_size != 2 && element_size != 4) return cudaErrorInvalidValue;
  const int64_t cells = h * w;
  if (n <= 0 || c <= 0 || cells <= 0) return cudaSuccess;
  if (layout_block(from) == 1 && layout_block(to) == 1) {
    const int64_t dims[] = {n, c, cells};
    const int64_t planes[] = {c * cells, cells, 1};
    const int64_t interleaved[] = {c * cells, 1, c};
    return copy_strided(3, dims, from == Layout::kNchw ? planes : interleaved,
                        to == Layout::kNchw ? planes : interleaved, element_size, input, output, stream);
  }
  const View source = view(from, c, cells);
  const int64_t lanes = to == Layout::kNhwc ? c : layout_block(to);
  const int64_t count = layout_elements(to, n, c, h, w);
  with_bits(element_size, [&](auto bits) {
    using T = decltype(bits);
    with_index(std::max(count, layout_elements(from, n, c, h, w)), [&](auto index) {
      using Index = decltype(index);
      reformat_kernel<T, Index><<<grid_for(count, kThreads), kThreads, 0, stream>>>(
          count, c, source, Divider<Index>(source.block), Divider<Index>(c), Divider<Index>(lanes),
          Divider<Index>(cells), Divider<Index>(ceil_div(c, lanes)), to == Layout::kNchw, static_cast<const T*>(input),
          static_cast<T*>(output));
    });
  });
  return cudaGetLastError();
}

}  // namespace tenon::cuda
