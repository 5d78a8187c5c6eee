// TENON_CPU_INLINE: for every inline function that files compiled for a special instruction set may use. A function
// that is always inlined leaves no out-of-line copy, so the linker cannot pick an AVX-512 copy for an older machine.
#ifndef TENON_KERNELS_CPU_INLINE_H_
#define TENON_KERNELS_CPU_INLINE_H_

#define TENON_CPU_INLINE __attribute__((always_inline)) inline

#endif  // TENON_KERNELS_CPU_INLINE_H_
