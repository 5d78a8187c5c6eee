// channel_shuffle for one instruction set. A vector of the output is put together from the few vectors of the input
// that its channels come from: neighbours of one group are neighbours there, too.
#include "kernels/cpu/internal/channel_shuffle_isa.h"

#include "kernels/cpu/internal/simd.h"

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

struct Source {
  int64_t channel;  // its first one
  int64_t offset;   // of that one's first pixel
  int32_t lane[kWidth];
  int32_t mask[kWidth];  // -1 where a lane comes from here
};

int64_t offset_of(const ChannelShuffleShape& shape, int64_t channel) {
  return channel / shape.block * shape.block * shape.pixels + channel % shape.block;
}

int find_sources(const ChannelShuffleShape& shape, int64_t channel, Source* sources) {
  const int64_t of_group = shape.channels / shape.groups;
  const int64_t reach = min_of(kWidth, shape.block);
  const int64_t count = min_of(min_of(kWidth, shape.block - channel % shape.block), shape.channels - channel);
  int64_t group = channel % shape.groups, of_it = channel / shape.groups;
  int found = 0;
  for (int64_t lane = 0; lane < count; ++lane) {
    const int64_t from = group * of_group + of_it;
    if (++group == shape.groups) group = 0, ++of_it;
    int s = 0;
    while (s < found && (from < sources[s].channel || from >= sources[s].channel + reach)) ++s;
    if (s == found) {
      // The last vector of a block overlaps the one before it, so that all are whole.
      const int64_t place = from % shape.block;
      const int64_t first = from - place + min_of(place / kWidth * kWidth, shape.block - reach);
      sources[found++] = {first, offset_of(shape, first), {}, {}};
    }
    sources[s].lane[lane] = static_cast<int32_t>(from - sources[s].channel);
    sources[s].mask[lane] = -1;
  }
  return found;
}

TENON_CPU_INLINE VecI load_lanes(const int32_t* lanes) { return bits(load(reinterpret_cast<const float*>(lanes))); }

TENON_CPU_INLINE Vec permute(Vec v, VecI lanes) {
#if defined(__AVX512F__)
  return _mm512_permutexvar_ps(lanes, v);
#elif defined(__AVX2__)
  return _mm256_permutevar8x32_ps(v, lanes);
#else
  float from[kWidth];
  int32_t lane[kWidth];
  store(from, v);
  store(reinterpret_cast<float*>(lane), from_bits(lanes));
  const float to[kWidth] = {from[lane[0]], from[lane[1]], from[lane[2]], from[lane[3]]};
  return load(to);
#endif
}

// kCount sources, known to the compiler so that lanes and masks stay in registers; 0: `count` of them.
template <int kCount>
void run(const ChannelShuffleShape& shape, const Source* sources, int count, int64_t valid, int64_t pixels,
         const float* input, float* output) {
  if (kCount != 0) count = kCount;
  VecI lanes[kCount != 0 ? kCount : kWidth], masks[kCount != 0 ? kCount : kWidth];
  for (int s = 0; s < count; ++s) {
    lanes[s] = load_lanes(sources[s].lane);
    masks[s] = load_lanes(sources[s].mask);
  }
  for (int64_t pixel = 0; pixel < pixels; ++pixel) {
    VecI y = bits(zero());
    for (int s = 0; s < count; ++s) {
      const float* from = input + sources[s].offset + pixel * shape.block;
      const Vec x = shape.block < kWidth ? load_first(from, shape.block) : load(from);
      y = or_i(y, and_i(masks[s], bits(permute(x, lanes[s]))));
    }
    float* const to = output + pixel * shape.block;
    if (valid >= kWidth) {
      store(to, from_bits(y));
    } else {
      store_first(to, from_bits(y), valid);
    }
  }
}

template <int kCount>
void run_of(const ChannelShuffleShape& shape, const Source* sources, int count, int64_t valid, int64_t pixels,
            const float* input, float* output) {
  if constexpr (kCount > 6 || kCount > kWidth) {
    run<0>(shape, sources, count, valid, pixels, input, output);
  } else if (count == kCount) {
    run<kCount>(shape, sources, count, valid, pixels, input, output);
  } else {
    run_of<kCount + 1>(shape, sources, count, valid, pixels, input, output);
  }
}

}  // namespace

void shuffle_vector(const ChannelShuffleShape& shape, int64_t channel, int64_t pixels, const float* input,
                    float* output) {
  Source sources[kWidth];
  const int count = find_sources(shape, channel, sources);
  const int64_t valid = shape.block - channel % shape.block;
  float* const to = output + offset_of(shape, channel);
  run_of<2>(shape, sources, count, valid, pixels, input, to);
}

}  // namespace tenon::cpu::TENON_CPU_ISA
