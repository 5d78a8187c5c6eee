// What ops with bool operands or results share: pairs of operands on cpu::compare, and bool data, which is one byte.
#ifndef TENON_PLUGINS_COMMON_BOOLEANS_H_
#define TENON_PLUGINS_COMMON_BOOLEANS_H_

#include <array>
#include <tenon/sdk/box.hpp>
#include <tenon/sdk/plugin_base.hpp>
#include <tenon/sdk/questions.hpp>

#include "kernels/cpu/elementwise.h"
#include "plugins/common/parallel.h"

namespace tenon::plugins {

// Any byte but 0 is true.
inline const uint8_t* bool_data(const Tensor& tensor) {
  if (tensor.dtype() != TN_BOOL) throw Invalid(text("expected bool data, found ", dtype_name(tensor.dtype())));
  return static_cast<const uint8_t*>(tensor.data());
}

// Strides of two operands at an index of the output.
class PairOffsets {
 public:
  explicit PairOffsets(const Reference& call) : rank_(call.output(0).rank()) {
    broadcast_strides(call.input(0).dims(), call.output(0).dims(), a_.data());
    broadcast_strides(call.input(1).dims(), call.output(0).dims(), b_.data());
  }
  int64_t a(const int64_t* index) const { return offset_of(index, a_.data(), rank_); }
  int64_t b(const int64_t* index) const { return offset_of(index, b_.data(), rank_); }

 private:
  int rank_;
  std::array<int64_t, TN_MAX_RANK> a_{};
  std::array<int64_t, TN_MAX_RANK> b_{};
};

struct ComparedType {
  int32_t dtype;
  cpu::ElementType element;
};
inline constexpr ComparedType kComparedTypes[] = {{TN_F32, cpu::ElementType::kF32},  {TN_F64, cpu::ElementType::kF64},
                                                  {TN_I32, cpu::ElementType::kI32},  {TN_I64, cpu::ElementType::kI64},
                                                  {TN_I8, cpu::ElementType::kI8},    {TN_U8, cpu::ElementType::kU8},
                                                  {TN_BOOL, cpu::ElementType::kBool}};

// y = a op b, row-major.
inline void run_compare(cpu::CompareKind kind, const TnTensor& a, const TnTensor& b, const TnTensor& y,
                        const Exec& exec) {
  cpu::ElementType element = cpu::ElementType::kBool;
  for (const ComparedType& type : kComparedTypes) {
    if (type.dtype == a.dtype) element = type.element;
  }
  cpu::BroadcastShape shape;
  if (!cpu::broadcast_shape(a.dims.rank, a.dims.d, b.dims.rank, b.dims.d, &shape)) {
    throw Invalid(text("shapes ", to_text(a.dims), " and ", to_text(b.dims), " do not broadcast"));
  }
  cpu::compare(kind, element, shape, a.data, b.data, static_cast<uint8_t*>(y.data), to_parallel(exec),
               cpu::detect_isa());
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_BOOLEANS_H_
