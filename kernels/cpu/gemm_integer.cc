#include "kernels/cpu/gemm_integer.h"

#include <algorithm>

#include "kernels/cpu/internal/gemm_integer_isa.h"

namespace tenon::cpu {
namespace {

// 64 KiB of B: half of a second-level cache of 128 KiB, the smallest in use.
constexpr int64_t kBlockColumns = 64;
constexpr int64_t kBlockPairs = 256;
constexpr int64_t kSlotBytes = kBlockColumns * kBlockPairs * 2 * static_cast<int64_t>(sizeof(int16_t));
constexpr int64_t kLeastRows = 32;  // of a task: packing B is worth it from there on

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

int64_t gemm_integer_scratch(int64_t threads) noexcept { return std::max<int64_t>(threads, 1) * kSlotBytes; }

void gemm_integer(const IntegerGemm& job, void* scratch, const Parallel& parallel, Isa isa) noexcept {
  const IntegerGemmTable& table = isa == Isa::kAvx512 ? avx512::kIntegerGemmTable
                                  : isa == Isa::kAvx2 ? avx2::kIntegerGemmTable
                                                      : baseline::kIntegerGemmTable;
  const int64_t pairs = integer_pairs(job.k);
  const int64_t column_blocks = ceil_div(job.n, kBlockColumns);
  if (job.m <= 0 || job.n <= 0 || pairs == 0) return;
  // Rows are split only as far as the columns do not keep all threads busy.
  const int64_t wanted = ceil_div(4 * parallel_threads(parallel), column_blocks);
  const int64_t row_blocks = std::clamp<int64_t>(job.m / kLeastRows, 1, wanted);
  parallel_tasks(parallel, column_blocks * row_blocks, [&](int64_t slot, int64_t task) {
    auto* packed = reinterpret_cast<int16_t*>(static_cast<char*>(scratch) + slot * kSlotBytes);
    const int64_t first = task % column_blocks * kBlockColumns;
    const int64_t last = std::min(first + kBlockColumns, job.n);
    const Range rows = split_range(job.m, row_blocks, task / column_blocks);
    for (int64_t begin = 0; begin < pairs; begin += kBlockPairs) {
      const int64_t end = std::min(begin + kBlockPairs, pairs);
      for (int64_t n = first; n < last; n += kIntegerPanel) {
        const int64_t columns = std::min(kIntegerPanel, last - n);
        int16_t* panel = packed + (n - first) * kBlockPairs * 2;
        job.pack_b(job.context, n, columns, begin, end, panel);
        table.panel(rows.end - rows.begin, columns, end - begin, job.a + (rows.begin * pairs + begin) * 2, pairs * 2,
                    panel, job.c + rows.begin * job.ldc + n, job.ldc);
      }
    }
  });
}

template <class T>
void pack_integer_panel(const void* context, int64_t n, int64_t columns, int64_t begin, int64_t end, int16_t* panel) {
  const auto& matrix = *static_cast<const IntegerMatrix<T>*>(context);
  const bool dense = matrix.column_stride == 1 && matrix.zero_row_stride == 0 && columns == kIntegerPanel;
  int zeros[kIntegerPanel] = {};
  if (dense && matrix.zero_points != nullptr) {
    for (int64_t i = 0; i < columns; ++i) zeros[i] = matrix.zero_points[(n + i) * matrix.zero_column_stride];
  }
  for (int64_t pair = begin; pair < end; ++pair, panel += 2 * kIntegerPanel) {
    const bool odd = 2 * pair + 1 == matrix.rows;
    if (dense && !odd) {
      const T* even_row = matrix.data + 2 * pair * matrix.row_stride + n;
      const T* odd_row = even_row + matrix.row_stride;
      for (int64_t i = 0; i < kIntegerPanel; ++i) {
        panel[2 * i] = static_cast<int16_t>(even_row[i] - zeros[i]);
        panel[2 * i + 1] = static_cast<int16_t>(odd_row[i] - zeros[i]);
      }
      continue;
    }
    for (int64_t i = 0; i < columns; ++i) {
      panel[2 * i] = matrix.at(2 * pair, n + i);
      panel[2 * i + 1] = odd ? int16_t{0} : matrix.at(2 * pair + 1, n + i);
    }
  }
}

template <class T>
void pack_integer_rows(const IntegerMatrix<T>& matrix, int64_t k, int64_t begin, int64_t end, int16_t* packed) {
  const int64_t stride = 2 * integer_pairs(k);
  for (int64_t row = begin; row < end; ++row) {
    int16_t* out = packed + row * stride;
    for (int64_t n = 0; n < k; ++n) out[n] = matrix.at(row, n);
    if (k % 2 != 0) out[k] = 0;
  }
}

template void pack_integer_panel<uint8_t>(const void*, int64_t, int64_t, int64_t, int64_t, int16_t*);
template void pack_integer_panel<int8_t>(const void*, int64_t, int64_t, int64_t, int64_t, int16_t*);
template void pack_integer_rows<uint8_t>(const IntegerMatrix<uint8_t>&, int64_t, int64_t, int64_t, int16_t*);
template void pack_integer_rows<int8_t>(const IntegerMatrix<int8_t>&, int64_t, int64_t, int64_t, int16_t*);

}  // namespace tenon::cpu
