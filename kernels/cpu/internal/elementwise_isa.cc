// elementwise for one instruction set: plain loops over rows, which the compiler vectorises for strides of 0 and 1.
#include "kernels/cpu/internal/elementwise_isa.h"

#include "kernels/cpu/internal/combine.h"

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

template <class T>
void compare_as(CompareKind kind, int64_t count, const void* a_data, int64_t a_stride, const void* b_data,
                int64_t b_stride, uint8_t* y) {
  const T* a = static_cast<const T*>(a_data);
  const T* b = static_cast<const T*>(b_data);
  if (kind == CompareKind::kEqual) {
    combine(count, a, a_stride, b, b_stride, y, [](T p, T q) { return static_cast<uint8_t>(p == q); });
  } else if (kind == CompareKind::kLess) {
    combine(count, a, a_stride, b, b_stride, y, [](T p, T q) { return static_cast<uint8_t>(p < q); });
  } else if (kind == CompareKind::kLessEqual) {
    combine(count, a, a_stride, b, b_stride, y, [](T p, T q) { return static_cast<uint8_t>(p <= q); });
  } else {
    combine(count, a, a_stride, b, b_stride, y, [](T p, T q) { return static_cast<uint8_t>(!(p <= q) && !(q <= p)); });
  }
}

void compare_bools(CompareKind kind, int64_t count, const void* a_data, int64_t a_stride, const void* b_data,
                   int64_t b_stride, uint8_t* y) {
  const auto* a = static_cast<const uint8_t*>(a_data);
  const auto* b = static_cast<const uint8_t*>(b_data);
  const auto run = [&](const auto& function) {
    combine(count, a, a_stride, b, b_stride, y,
            [&](uint8_t p, uint8_t q) { return static_cast<uint8_t>(function(p != 0, q != 0)); });
  };
  switch (kind) {
    case CompareKind::kEqual:
      return run([](bool p, bool q) { return p == q; });
    case CompareKind::kLess:
      return run([](bool p, bool q) { return p < q; });
    case CompareKind::kLessEqual:
      return run([](bool p, bool q) { return p <= q; });
    case CompareKind::kUnordered:
      return run([](bool, bool) { return false; });
    case CompareKind::kAnd:
      return run([](bool p, bool q) { return p && q; });
    case CompareKind::kOr:
      return run([](bool p, bool q) { return p || q; });
    case CompareKind::kXor:
      return run([](bool p, bool q) { return p != q; });
  }
}

void compare(CompareKind kind, ElementType type, int64_t count, const void* a, int64_t a_stride, const void* b,
             int64_t b_stride, uint8_t* y) {
  switch (type) {
    case ElementType::kF32:
      return compare_as<float>(kind, count, a, a_stride, b, b_stride, y);
    case ElementType::kF64:
      return compare_as<double>(kind, count, a, a_stride, b, b_stride, y);
    case ElementType::kI32:
      return compare_as<int32_t>(kind, count, a, a_stride, b, b_stride, y);
    case ElementType::kI64:
      return compare_as<int64_t>(kind, count, a, a_stride, b, b_stride, y);
    case ElementType::kI8:
      return compare_as<int8_t>(kind, count, a, a_stride, b, b_stride, y);
    case ElementType::kU8:
      return compare_as<uint8_t>(kind, count, a, a_stride, b, b_stride, y);
    case ElementType::kBool:
      return compare_bools(kind, count, a, a_stride, b, b_stride, y);
    default:
      return;
  }
}

template <class T>
void where_as(int64_t count, const uint8_t* condition, int64_t condition_stride, const void* a_data, int64_t a_stride,
              const void* b_data, int64_t b_stride, void* y_data) {
  const T* a = static_cast<const T*>(a_data);
  const T* b = static_cast<const T*>(b_data);
  T* y = static_cast<T*>(y_data);
  if (condition_stride == 0) {
    const T* from = *condition != 0 ? a : b;
    const int64_t stride = *condition != 0 ? a_stride : b_stride;
    for (int64_t i = 0; i < count; ++i) y[i] = from[i * stride];
  } else if (condition_stride == 1 && a_stride == 1 && b_stride == 1) {
    for (int64_t i = 0; i < count; ++i) y[i] = condition[i] != 0 ? a[i] : b[i];
  } else if (condition_stride == 1 && a_stride == 1 && b_stride == 0) {
    const T second = *b;
    for (int64_t i = 0; i < count; ++i) y[i] = condition[i] != 0 ? a[i] : second;
  } else if (condition_stride == 1 && a_stride == 0 && b_stride == 1) {
    const T first = *a;
    for (int64_t i = 0; i < count; ++i) y[i] = condition[i] != 0 ? first : b[i];
  } else {
    for (int64_t i = 0; i < count; ++i) {
      y[i] = condition[i * condition_stride] != 0 ? a[i * a_stride] : b[i * b_stride];
    }
  }
}

void where(int element_bytes, int64_t count, const uint8_t* condition, int64_t condition_stride, const void* a,
           int64_t a_stride, const void* b, int64_t b_stride, void* y) {
  switch (element_bytes) {
    case 1:
      return where_as<uint8_t>(count, condition, condition_stride, a, a_stride, b, b_stride, y);
    case 2:
      return where_as<uint16_t>(count, condition, condition_stride, a, a_stride, b, b_stride, y);
    case 4:
      return where_as<uint32_t>(count, condition, condition_stride, a, a_stride, b, b_stride, y);
    default:
      return where_as<uint64_t>(count, condition, condition_stride, a, a_stride, b, b_stride, y);
  }
}

// Unsigned arithmetic wraps where signed would overflow.
template <class T, class U>
void integers_as(BinaryKind kind, int64_t count, const void* a_data, int64_t a_stride, const void* b_data,
                 int64_t b_stride, void* y_data) {
  const T* a = static_cast<const T*>(a_data);
  const T* b = static_cast<const T*>(b_data);
  T* y = static_cast<T*>(y_data);
  const auto run = [&](const auto& function) { combine(count, a, a_stride, b, b_stride, y, function); };
  switch (kind) {
    case BinaryKind::kAdd:
      return run([](T p, T q) { return static_cast<T>(static_cast<U>(p) + static_cast<U>(q)); });
    case BinaryKind::kSub:
      return run([](T p, T q) { return static_cast<T>(static_cast<U>(p) - static_cast<U>(q)); });
    case BinaryKind::kMul:
      return run([](T p, T q) { return static_cast<T>(static_cast<U>(p) * static_cast<U>(q)); });
    case BinaryKind::kMin:
      return run([](T p, T q) { return q < p ? q : p; });
    case BinaryKind::kMax:
      return run([](T p, T q) { return q > p ? q : p; });
    case BinaryKind::kPRelu:
      return run([](T p, T q) { return p < 0 ? static_cast<T>(static_cast<U>(p) * static_cast<U>(q)) : p; });
    case BinaryKind::kDiv:
      return;
  }
}

void integer_binary(BinaryKind kind, ElementType type, int64_t count, const void* a, int64_t a_stride, const void* b,
                    int64_t b_stride, void* y) {
  if (type == ElementType::kI32) return integers_as<int32_t, uint32_t>(kind, count, a, a_stride, b, b_stride, y);
  if (type == ElementType::kI64) return integers_as<int64_t, uint64_t>(kind, count, a, a_stride, b, b_stride, y);
}

}  // namespace

const ElementwiseTable kElementwiseTable = {compare, where, integer_binary};

}  // namespace tenon::cpu::TENON_CPU_ISA
