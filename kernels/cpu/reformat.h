// reformat: between the layouts of layout.h, elements of 4 bytes.
#ifndef TENON_KERNELS_CPU_REFORMAT_H_
#define TENON_KERNELS_CPU_REFORMAT_H_

#include <cstdint>

#include "kernels/common/layout.h"
#include "kernels/cpu/parallel.h"

namespace tenon::cpu {

// Any layout to any layout (a plain copy if they are equal). Filling channels of a blocked output are written as 0;
// those of a blocked input are not read. Buffers are aligned to 4 bytes and do not overlap. Nothing is allocated or
// thrown.
void reformat(Layout from, Layout to, int64_t n, int64_t c, int64_t h, int64_t w, const void* input, void* output,
              const Parallel& parallel) noexcept;

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_REFORMAT_H_
