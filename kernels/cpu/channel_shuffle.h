// channel_shuffle: the channels of all groups in turns, for float32 images whose channels are neighbours in memory.
#ifndef TENON_KERNELS_CPU_CHANNEL_SHUFFLE_H_
#define TENON_KERNELS_CPU_CHANNEL_SHUFFLE_H_

#include <cstdint>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"

namespace tenon::cpu {

// Images of [n][ceil(channels / block)][pixels][block]: block is `channels` for NHWC, 8 or 16 for blocked formats.
struct ChannelShuffleShape {
  int64_t n;
  int64_t channels;
  int64_t groups;
  int64_t pixels;
  int64_t block;
};

// Output channel j * groups + g is input channel g * (channels / groups) + j; channels that fill up the last block of
// the output become 0. Input and output must not overlap.
// REQUIRES: isa <= detect_isa(); groups >= 1 divides channels. Nothing is allocated or thrown.
void channel_shuffle(const ChannelShuffleShape& shape, const float* input, float* output, const Parallel& parallel,
                     Isa isa) noexcept;

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_CHANNEL_SHUFFLE_H_
