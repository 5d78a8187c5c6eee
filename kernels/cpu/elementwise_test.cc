#include "kernels/cpu/elementwise.h"

#include <cstring>
#include <limits>

#include "kernels/cpu/test_util.h"

namespace tenon::cpu {
namespace {

template <class T>
constexpr ElementType type_of() {
  if constexpr (std::is_same_v<T, float>) return ElementType::kF32;
  if constexpr (std::is_same_v<T, double>) return ElementType::kF64;
  if constexpr (std::is_same_v<T, int32_t>) return ElementType::kI32;
  if constexpr (std::is_same_v<T, int64_t>) return ElementType::kI64;
  if constexpr (std::is_same_v<T, int8_t>) return ElementType::kI8;
  return ElementType::kU8;
}

// Shapes whose rows have every combination of strides: dense, repeated, and both.
const std::vector<std::pair<std::vector<int64_t>, std::vector<int64_t>>> kShapes = {
    {{3, 70}, {3, 70}}, {{3, 70}, {1}}, {{1}, {3, 70}}, {{70}, {3, 1}}, {{200, 300}, {300}}, {{0, 3}, {1, 3}}};

int64_t volume(const std::vector<int64_t>& dims) {
  int64_t result = 1;
  for (const int64_t d : dims) result *= d;
  return result;
}

// Element of an operand with these dims at a position of a 2-D output.
int64_t at(const std::vector<int64_t>& dims, int64_t row, int64_t column) {
  const int64_t columns = dims.back();
  const int64_t rows = dims.size() > 1 ? dims[0] : 1;
  return (rows == 1 ? 0 : row) * columns + (columns == 1 ? 0 : column);
}

template <class T, class Y, class Run, class Expected>
void check(const Run& run, const Expected& expected) {
  for (const auto& [a_dims, b_dims] : kShapes) {
    BroadcastShape shape;
    ASSERT_TRUE(broadcast_shape(static_cast<int>(a_dims.size()), a_dims.data(), static_cast<int>(b_dims.size()),
                                b_dims.data(), &shape));
    std::vector<T> a, b;
    for (int64_t i = 0; i < volume(a_dims); ++i) a.push_back(static_cast<T>(i * 7 % 11 - (T(-1) < T(0) ? 5 : 0)));
    for (int64_t i = 0; i < volume(b_dims); ++i) b.push_back(static_cast<T>(i * 5 % 13 - (T(-1) < T(0) ? 6 : 0)));
    const int64_t rows = shape.dims[0], columns = shape.dims[1];
    for (const Isa isa : available_isas()) {
      Buffer y(static_cast<size_t>(rows * columns) * sizeof(Y));
      run(shape, a.data(), b.data(), y.data<Y>(), make_parallel(3), isa);
      EXPECT_TRUE(y.intact());
      for (int64_t n = 0; n < rows * columns; ++n) {
        const T p = a[at(a_dims, n / columns, n % columns)], q = b[at(b_dims, n / columns, n % columns)];
        ASSERT_EQ(y.data<Y>()[n], expected(p, q)) << n << " " << isa_name(isa);
      }
    }
  }
}

template <class T>
void check_compare() {
  const auto run = [](CompareKind kind) {
    return [kind](const BroadcastShape& shape, const T* a, const T* b, uint8_t* y, const Parallel& parallel, Isa isa) {
      compare(kind, type_of<T>(), shape, a, b, y, parallel, isa);
    };
  };
  check<T, uint8_t>(run(CompareKind::kEqual), [](T p, T q) { return p == q; });
  check<T, uint8_t>(run(CompareKind::kLess), [](T p, T q) { return p < q; });
  check<T, uint8_t>(run(CompareKind::kLessEqual), [](T p, T q) { return p <= q; });
  check<T, uint8_t>(run(CompareKind::kUnordered), [](T, T) { return false; });
}

TEST(Elementwise, Compare) {
  check_compare<float>();
  check_compare<double>();
  check_compare<int32_t>();
  check_compare<int64_t>();
  check_compare<int8_t>();
  check_compare<uint8_t>();
}

TEST(Elementwise, NanComparesFalse) {
  BroadcastShape shape;
  const int64_t three = 3;
  ASSERT_TRUE(broadcast_shape(1, &three, 1, &three, &shape));
  const float a[] = {NAN, 1, NAN}, b[] = {NAN, NAN, 1};
  for (const Isa isa : available_isas()) {
    for (const CompareKind kind : {CompareKind::kEqual, CompareKind::kLess, CompareKind::kLessEqual}) {
      uint8_t y[] = {9, 9, 9};
      compare(kind, ElementType::kF32, shape, a, b, y, {}, isa);
      EXPECT_EQ(y[0] + y[1] + y[2], 0);
    }
    const float c[] = {NAN, 1, 0};
    uint8_t y[] = {9, 9, 9};
    compare(CompareKind::kUnordered, ElementType::kF32, shape, c, c, y, {}, isa);
    EXPECT_EQ(y[0], 1);
    EXPECT_EQ(y[1] + y[2], 0);
  }
}

TEST(Elementwise, BoolsAreTrueWhenNotZero) {
  const auto run = [](CompareKind kind) {
    return [kind](const BroadcastShape& shape, const uint8_t* a, const uint8_t* b, uint8_t* y, const Parallel& parallel,
                  Isa isa) { compare(kind, ElementType::kBool, shape, a, b, y, parallel, isa); };
  };
  check<uint8_t, uint8_t>(run(CompareKind::kEqual), [](bool p, bool q) { return p == q; });
  check<uint8_t, uint8_t>(run(CompareKind::kAnd), [](bool p, bool q) { return p && q; });
  check<uint8_t, uint8_t>(run(CompareKind::kOr), [](bool p, bool q) { return p || q; });
  check<uint8_t, uint8_t>(run(CompareKind::kXor), [](bool p, bool q) { return p != q; });
}

template <class T>
void check_integers() {
  const auto run = [](BinaryKind kind) {
    return [kind](const BroadcastShape& shape, const T* a, const T* b, T* y, const Parallel& parallel, Isa isa) {
      integer_binary(kind, type_of<T>(), shape, a, b, y, parallel, isa);
    };
  };
  check<T, T>(run(BinaryKind::kAdd), [](T p, T q) { return p + q; });
  check<T, T>(run(BinaryKind::kSub), [](T p, T q) { return p - q; });
  check<T, T>(run(BinaryKind::kMul), [](T p, T q) { return p * q; });
  check<T, T>(run(BinaryKind::kMin), [](T p, T q) { return std::min(p, q); });
  check<T, T>(run(BinaryKind::kMax), [](T p, T q) { return std::max(p, q); });
  check<T, T>(run(BinaryKind::kPRelu), [](T p, T q) { return p < 0 ? p * q : p; });
}

TEST(Elementwise, Integers) {
  check_integers<int32_t>();
  check_integers<int64_t>();
}

TEST(Elementwise, IntegersWrap) {
  const BroadcastShape one;
  const int64_t most = std::numeric_limits<int64_t>::max(), next = 1;
  for (const Isa isa : available_isas()) {
    int64_t y = 0;
    integer_binary(BinaryKind::kAdd, ElementType::kI64, one, &most, &next, &y, {}, isa);
    EXPECT_EQ(y, std::numeric_limits<int64_t>::min());
  }
}

template <class T>
void check_where(const std::vector<int64_t>& c_dims, const std::vector<int64_t>& a_dims,
                 const std::vector<int64_t>& b_dims) {
  const int ranks[] = {static_cast<int>(c_dims.size()), static_cast<int>(a_dims.size()),
                       static_cast<int>(b_dims.size())};
  const int64_t* const dims[] = {c_dims.data(), a_dims.data(), b_dims.data()};
  Broadcast<3> shape;
  ASSERT_TRUE(broadcast_shape(ranks, dims, &shape));
  std::vector<uint8_t> c;
  std::vector<T> a, b;
  for (int64_t i = 0; i < volume(c_dims); ++i) c.push_back(static_cast<uint8_t>(i * 3 % 5 % 3));
  for (int64_t i = 0; i < volume(a_dims); ++i) a.push_back(static_cast<T>(i + 1));
  for (int64_t i = 0; i < volume(b_dims); ++i) b.push_back(static_cast<T>(200 - i));
  const int64_t count = shape.dims[0] * shape.dims[1];
  for (const Isa isa : available_isas()) {
    Buffer y(static_cast<size_t>(count) * sizeof(T));
    where(sizeof(T), shape, c.data(), a.data(), b.data(), y.data<T>(), make_parallel(2), isa);
    EXPECT_TRUE(y.intact());
    for (int64_t n = 0; n < count; ++n) {
      const int64_t row = n / shape.dims[1], column = n % shape.dims[1];
      const T expected = c[at(c_dims, row, column)] ? a[at(a_dims, row, column)] : b[at(b_dims, row, column)];
      ASSERT_EQ(y.data<T>()[n], expected) << n << " " << isa_name(isa);
    }
  }
}

TEST(Elementwise, Where) {
  const std::vector<int64_t> full = {4, 37}, line = {37}, column = {4, 1}, single = {1};
  for (const auto& c : {full, line, column, single}) {
    for (const auto& a : {full, line, column, single}) {
      for (const auto& b : {full, line, column, single}) {
        if (std::max({c.size(), a.size(), b.size()}) < 2) continue;
        check_where<uint8_t>(c, a, b);
        check_where<uint16_t>(c, a, b);
        check_where<uint32_t>(c, a, b);
        check_where<uint64_t>(c, a, b);
      }
    }
  }
}

}  // namespace
}  // namespace tenon::cpu
