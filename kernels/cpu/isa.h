// The instruction sets that the CPU kernels are compiled for, and the choice among them at run time.
// Thread rule: every function is thread-safe.
#ifndef TENON_KERNELS_CPU_ISA_H_
#define TENON_KERNELS_CPU_ISA_H_

namespace tenon::cpu {

// Ordered: a machine that runs one runs all smaller ones.
enum class Isa : int {
  kBaseline = 0,  // x86-64: SSE2, 4 floats a vector
  kAvx2 = 1,      // AVX2, FMA, F16C: 8 floats a vector
  kAvx512 = 2,    // AVX-512 F, BW, DQ, VL: 16 floats a vector
};

// The best set that the processor and the operating system (saved register state) support, capped by the environment
// variable TENON_CPU_ISA = baseline | avx2 | avx512 (another value is ignored). Evaluated once, at the first call.
Isa detect_isa() noexcept;

// "baseline", "avx2" or "avx512".
const char* isa_name(Isa isa) noexcept;

// Floats in one vector: 4, 8 or 16.
constexpr int isa_vector_floats(Isa isa) { return 4 << static_cast<int>(isa); }

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_ISA_H_
