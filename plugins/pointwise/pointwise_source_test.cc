// The source for every primitive compiles, for every dtype; what it computes is tested on a GPU (pointwise_test.cc).
#include "plugins/pointwise/pointwise_source.h"

#include <gtest/gtest.h>

#include <functional>
#include <tenon/sdk/expression_text.hpp>

#include "plugins/pointwise/nvrtc.h"

namespace tenon::plugins {
namespace {

std::string all_primitives() {
  std::string text = "0.5";
  for (int32_t primitive = TN_EX_ADD; primitive < TN_EX_CAST; ++primitive) {
    const ExprPrimitive* known = find_primitive(primitive);
    const char* arguments[] = {"", "(x0)", "(x0,x1)", "(x0,x1,x2)"};
    text = "add(" + text + "," + known->name + arguments[known->arity] + ")";
  }
  for (const char* dtype : {"f16", "bf16", "f64", "bool", "u2", "i4", "u8", "i16", "u32", "i64"}) {
    text = "add(" + text + ",cast." + dtype + "(x1))";
  }
  return text;
}

TEST(PointwiseSource, Compiles) {
  for (const int32_t dtype : {TN_F32, TN_F16, TN_BF16}) {
    for (const int sm : {80, 90}) {
      const Cubin cubin = compile_cubin(pointwise_source(parse_expression(all_primitives()), 3, dtype), sm);
      const std::string code(cubin->begin(), cubin->end());
      EXPECT_EQ(code.substr(1, 3), "ELF");
      EXPECT_NE(code.find("pointwise_vector"), std::string::npos);
      EXPECT_NE(code.find("pointwise_single"), std::string::npos);
    }
  }
  const auto inf = parse_expression("select(less(x0,inf),div(x1,nan),mul(x7,-inf))");
  EXPECT_FALSE(compile_cubin(pointwise_source(inf, 8, TN_F32), 90)->empty());
}

// What the host writes has the size that the kernels read.
TEST(PointwiseSource, LaunchIsTheSameOnBothSides) {
  std::string source = pointwise_source(parse_expression("x0"), 1, TN_F32);
  source += "static_assert(sizeof(Launch) == " + std::to_string(sizeof(PointwiseLaunch)) + ", \"\");\n";
  EXPECT_FALSE(compile_cubin(source, 90)->empty());
}

std::string reason_of(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const Declined& declined) {
    return declined.what();
  }
  return "none";
}

TEST(PointwiseSource, DeclinesWithTheLog) {
  EXPECT_NE(reason_of([] { compile_cubin("nonsense", 90); }).find("nonsense"), std::string::npos);
  EXPECT_NE(reason_of([] { compile_cubin("", 12); }).find("sm_12"), std::string::npos);
  const auto steps = parse_expression("x0");
  EXPECT_EQ(reason_of([&] { pointwise_source(steps, 9, TN_F32); }), "it takes 1 to 8 operands, found 9");
  EXPECT_EQ(reason_of([&] { pointwise_source(steps, 1, TN_F64); }), "no code for f64");
}

TEST(PointwiseSource, EachIsCompiledOnce) {
  CubinCache cache;
  const std::string source = pointwise_source(parse_expression("neg(x0)"), 1, TN_F32);
  const Cubin first = cache.find(source, 90);
  EXPECT_EQ(cache.find(source, 90), first);
  EXPECT_NE(cache.find(source, 80), first);
}

}  // namespace
}  // namespace tenon::plugins
