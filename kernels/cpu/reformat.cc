#include "kernels/cpu/reformat.h"

#include <cstring>

#include "kernels/cpu/internal/move.h"

namespace tenon::cpu {
namespace {

using Word = uint32_t;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Where a layout keeps channels [c, c + count) of one image, `count` <= the layout's run of channels.
struct View {
  int64_t run;  // channels that are neighbours in a pixel, or 1 for planes
  int64_t pixel_stride;
  int64_t block_stride;  // from one run (or plane) to the next
};

View view(Layout layout, int64_t c, int64_t cells) {
  if (layout == Layout::kNchw) return {1, 1, cells};
  if (layout == Layout::kNhwc) return {c, c, 0};
  const int64_t block = layout_block(layout);
  return {block, block, cells * block};
}

int64_t channel_offset(const View& view, int64_t channel) {
  return channel / view.run * view.block_stride + channel % view.run;
}

// Moves channels [c, c + count) of cells [begin, end); both views keep them together, or apart as planes.
void move(const View& from, const View& to, int64_t c, int64_t count, int64_t begin, int64_t end, const Word* input,
          Word* output) {
  const Word* source = input + channel_offset(from, c) + begin * from.pixel_stride;
  Word* target = output + channel_offset(to, c) + begin * to.pixel_stride;
  const int64_t cells = end - begin;
  if (from.run == 1) {
    transpose_matrix(count, cells, source, from.block_stride, target, to.pixel_stride);
  } else if (to.run == 1) {
    transpose_matrix(cells, count, source, from.pixel_stride, target, to.block_stride);
  } else {
    for (int64_t i = 0; i < cells; ++i) {
      for (int64_t j = 0; j < count; ++j) target[i * to.pixel_stride + j] = source[i * from.pixel_stride + j];
    }
  }
}

}  // namespace

void reformat(Layout from, Layout to, int64_t n, int64_t c, int64_t h, int64_t w, const void* input, void* output,
              const Parallel& parallel) noexcept {
  const int64_t cells = h * w;
  if (n <= 0 || c <= 0 || cells <= 0) return;
  const auto* source = static_cast<const Word*>(input);
  auto* target = static_cast<Word*>(output);
  if (from == to && layout_block(from) == 1) {
    parallel_ranges(parallel, n * c * cells, 16 * 1024, [&](int64_t begin, int64_t end) {
      std::memcpy(target + begin, source + begin, (end - begin) * sizeof(Word));
    });
    return;
  }
  const View in = view(from, c, cells);
  const View out = view(to, c, cells);
  const int64_t in_image = layout_elements(from, 1, c, h, w);
  const int64_t out_image = layout_elements(to, 1, c, h, w);
  // Channels move in groups that divide every block, cells in pieces that stay in the first-level cache.
  const int64_t in_block = layout_block(from);
  const int64_t out_block = layout_block(to);
  const int64_t group = in_block > 1 && out_block > 1     ? std::min(in_block, out_block)
                        : in_block == 1 && out_block == 1 ? 64
                                                          : std::max(in_block, out_block);
  const int64_t groups = ceil_div(c, group);
  constexpr int64_t kCells = 256;
  const int64_t pieces = ceil_div(cells, kCells);
  parallel_ranges(parallel, n * groups * pieces, 4, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      const int64_t begin = task % pieces * kCells;
      const int64_t end = std::min(begin + kCells, cells);
      const int64_t channel = task / pieces % groups * group;
      const int64_t image = task / pieces / groups;
      const int64_t count = std::min(group, c - channel);
      move(in, out, channel, count, begin, end, source + image * in_image, target + image * out_image);
      if (out_block == 1 || channel + count < c) continue;
      const int64_t filled = (c - 1) % out_block + 1;
      Word* block = target + image * out_image + (c - 1) / out_block * out.block_stride;
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t j = filled; j < out_block; ++j) block[i * out_block + j] = 0;
      }
    }
  });
}

}  // namespace tenon::cpu
