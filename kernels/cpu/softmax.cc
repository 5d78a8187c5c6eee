#include "kernels/cpu/softmax.h"

#include <algorithm>

#include "kernels/cpu/internal/softmax_isa.h"

namespace tenon::cpu {

namespace {

const SoftmaxTable& table_of(Isa isa) {
  return isa == Isa::kAvx512 ? avx512::kSoftmaxTable
         : isa == Isa::kAvx2 ? avx2::kSoftmaxTable
                             : baseline::kSoftmaxTable;
}

}  // namespace

void softmax_of_scores(int64_t count, float scale, const float* bias, float* x, Isa isa) noexcept {
  if (count > 0) table_of(isa).scores(count, scale, bias, x);
}

void softmax(SoftmaxKind kind, int64_t outer, int64_t axis, int64_t inner, const float* input, float* output,
             const Parallel& parallel, Isa isa) noexcept {
  if (outer <= 0 || axis <= 0 || inner <= 0) return;
  const SoftmaxTable& table = table_of(isa);
  constexpr int64_t kGrain = 4 * 1024;  // elements of a task
  if (inner == 1) {
    parallel_ranges(parallel, outer, std::max<int64_t>(kGrain / axis, 1), [&](int64_t begin, int64_t end) {
      table.rows(kind, end - begin, axis, input + begin * axis, output + begin * axis);
    });
    return;
  }
  constexpr int64_t kColumns = 256;  // of a task; a multiple of every vector width
  const int64_t blocks = (inner + kColumns - 1) / kColumns;
  parallel_for(parallel, outer * blocks, [&](int64_t task) {
    const int64_t offset = task / blocks * axis * inner;
    const int64_t begin = task % blocks * kColumns;
    table.columns(kind, axis, inner, begin, std::min(begin + kColumns, inner), input + offset, output + offset);
  });
}

}  // namespace tenon::cpu
