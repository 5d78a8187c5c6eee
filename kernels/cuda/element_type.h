// The element types of tensors, with the same numbers as kernels/cpu/cast.h.
#ifndef TENON_KERNELS_CUDA_ELEMENT_TYPE_H_
#define TENON_KERNELS_CUDA_ELEMENT_TYPE_H_

namespace tenon::cuda {

// Functions of "float types" take kF32 and kF16, and return cudaErrorInvalidValue for the others. With kF16 the storage
// is half precision; arithmetic is in float, and a result is rounded once, when it is stored.
enum class ElementType : int { kF32, kF64, kF16, kBf16, kI32, kI64, kI8, kU8, kBool };

// Bytes of one element.
constexpr int element_type_size(ElementType type) {
  return type == ElementType::kF64 || type == ElementType::kI64    ? 8
         : type == ElementType::kF32 || type == ElementType::kI32  ? 4
         : type == ElementType::kF16 || type == ElementType::kBf16 ? 2
                                                                   : 1;
}

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_ELEMENT_TYPE_H_
