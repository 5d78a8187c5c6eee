// Tactics of kernels that run kernels/cpu's gemm: instruction set and cache blocking, "isa=avx2;mc=96;nc=512;kc=256".
#ifndef TENON_PLUGINS_COMMON_GEMM_TACTICS_H_
#define TENON_PLUGINS_COMMON_GEMM_TACTICS_H_

#include <algorithm>
#include <tenon/sdk/site.hpp>
#include <vector>

#include "kernels/cpu/gemm.h"

namespace tenon::plugins {

// The instruction sets worth timing: the machine's best and, where that is AVX-512, AVX2, which can win by its clock.
inline std::vector<cpu::Isa> gemm_isas() {
  const cpu::Isa best = cpu::detect_isa();
  if (best == cpu::Isa::kAvx512) return {best, cpu::Isa::kAvx2};
  return {best};
}

// Declined for a set that this machine lacks.
inline cpu::Isa isa_of(const Params& params) {
  const std::string name = params.str("isa");
  for (cpu::Isa isa : {cpu::Isa::kBaseline, cpu::Isa::kAvx2, cpu::Isa::kAvx512}) {
    if (name != cpu::isa_name(isa)) continue;
    if (isa > cpu::detect_isa()) throw Declined(text("this processor has no ", name));
    return isa;
  }
  throw Declined(text("no such instruction set: '", name, "'"));
}

inline std::string gemm_params(cpu::Isa isa, const cpu::GemmTactic& blocks) {
  return text("isa=", cpu::isa_name(isa), ";mc=", blocks.mc, ";nc=", blocks.nc, ";kc=", blocks.kc);
}

inline cpu::GemmTactic gemm_blocks_of(const Params& params) {
  const cpu::GemmTactic blocks = {params.i64("mc"), params.i64("nc"), params.i64("kc")};
  if (blocks.mc < 1 || blocks.nc < 1 || blocks.kc < 1) {
    throw Declined(text("no such tactic: expected positive blocks, found '", params.text(), "'"));
  }
  return blocks;
}

// A blocking that exceeds a product in every direction does the same as a smaller one that does too; true if `blocks`
// repeats one of the earlier blockings in this way.
inline bool gemm_repeats(int index, cpu::Isa isa, int64_t m, int64_t n, int64_t k) {
  const auto clamp = [&](int i) {
    cpu::GemmTactic t = cpu::gemm_tactic(i, isa);
    return cpu::GemmTactic{std::min(t.mc, m), std::min(t.nc, n), std::min(t.kc, k)};
  };
  const cpu::GemmTactic mine = clamp(index);
  for (int i = 0; i < index; ++i) {
    const cpu::GemmTactic other = clamp(i);
    if (other.mc == mine.mc && other.nc == mine.nc && other.kc == mine.kc) return true;
  }
  return false;
}

// Calls add(isa, blocks) for every blocking worth timing on a product of this size.
template <class Add>
void for_each_gemm_tactic(int64_t m, int64_t n, int64_t k, Add&& add) {
  for (cpu::Isa isa : gemm_isas()) {
    for (int index = 0; index < cpu::gemm_tactic_count(); ++index) {
      if (!gemm_repeats(index, isa, m, n, k)) add(isa, cpu::gemm_tactic(index, isa));
    }
  }
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_GEMM_TACTICS_H_
