#include "kernels/cpu/isa.h"

#include <cpuid.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace tenon::cpu {
namespace {

uint64_t saved_register_state() {
  uint32_t low = 0;
  uint32_t high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

// Bit numbers: Intel Software Developer's Manual, volume 2, CPUID leaves 1 and 7, and volume 1, 13.3 (XCR0).
Isa processor_isa() {
  unsigned eax, ebx, ecx, edx;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx)) return Isa::kBaseline;
  const bool fma = ecx & 1u << 12;
  const bool osxsave = ecx & 1u << 27;
  const bool avx = ecx & 1u << 28;
  const bool f16c = ecx & 1u << 29;
  if (!(fma && osxsave && avx && f16c)) return Isa::kBaseline;
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return Isa::kBaseline;
  constexpr uint64_t kYmmState = 0x6;
  constexpr uint64_t kZmmState = 0xe6;
  const uint64_t state = saved_register_state();
  const bool avx2 = ebx & 1u << 5;
  if (!avx2 || (state & kYmmState) != kYmmState) return Isa::kBaseline;
  constexpr unsigned kAvx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;  // F, DQ, BW, VL
  return (ebx & kAvx512) == kAvx512 && (state & kZmmState) == kZmmState ? Isa::kAvx512 : Isa::kAvx2;
}

Isa capped_isa() {
  const Isa best = processor_isa();
  const char* cap = std::getenv("TENON_CPU_ISA");
  if (cap == nullptr) return best;
  for (int i = 0; i < static_cast<int>(best); ++i) {
    if (std::strcmp(cap, isa_name(static_cast<Isa>(i))) == 0) return static_cast<Isa>(i);
  }
  return best;
}

}  // namespace

Isa detect_isa() noexcept {
  static const Isa isa = capped_isa();
  return isa;
}

const char* isa_name(Isa isa) noexcept {
  return isa == Isa::kAvx512 ? "avx512" : isa == Isa::kAvx2 ? "avx2" : "baseline";
}

}  // namespace tenon::cpu
