// The conversions of cast that instruction sets have instructions for.
#ifndef TENON_KERNELS_CPU_INTERNAL_CAST_ISA_H_
#define TENON_KERNELS_CPU_INTERNAL_CAST_ISA_H_

#include <cstdint>

namespace tenon::cpu {

struct CastTable {
  // Convert the first elements and return how many; the caller converts the rest. Results are those of cast.cc.
  int64_t (*f16_to_f32)(int64_t count, const uint16_t* from, float* to);
  int64_t (*f32_to_f16)(int64_t count, const float* from, uint16_t* to);
};

namespace baseline {
extern const CastTable kCastTable;
}
namespace avx2 {
extern const CastTable kCastTable;
}
namespace avx512 {
extern const CastTable kCastTable;
}

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_INTERNAL_CAST_ISA_H_
