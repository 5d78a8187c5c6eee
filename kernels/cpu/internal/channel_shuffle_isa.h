// The per-instruction-set part of channel_shuffle.
#ifndef TENON_KERNELS_CPU_INTERNAL_CHANNEL_SHUFFLE_ISA_H_
#define TENON_KERNELS_CPU_INTERNAL_CHANNEL_SHUFFLE_ISA_H_

#include "kernels/cpu/channel_shuffle.h"

namespace tenon::cpu {

// `pixels` pixels of the vector of output channels that begins at `channel`; input and output are those of the first
// pixel of the image's first block.
using ShuffleVector = void(const ChannelShuffleShape& shape, int64_t channel, int64_t pixels, const float* input,
                           float* output);

namespace baseline {
ShuffleVector shuffle_vector;
}
namespace avx2 {
ShuffleVector shuffle_vector;
}
namespace avx512 {
ShuffleVector shuffle_vector;
}

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_INTERNAL_CHANNEL_SHUFFLE_ISA_H_
