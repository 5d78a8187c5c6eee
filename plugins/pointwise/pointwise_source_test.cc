// The source for every primitive compiles, for every dtype; what it computes is tested on a GPU (pointwise_test.cc).
#include "plugins/pointwise/pointwise_source.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
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

// A host that keeps code, or none.
class CodeHost {
 public:
  explicit CodeHost(bool keeps) {
    host_.impl = this;
    host_.fail = [](const TnHost*, TnStatus code, const char*, const char*) { return code; };
    host_.get_interface = keeps ? interface_of : [](const TnHost*, const char*) -> const void* { return nullptr; };
  }
  const TnHost* host() const { return &host_; }
  std::map<std::string, std::string> kept;

 private:
  static CodeHost& from(const TnHost* host) { return *static_cast<CodeHost*>(host->impl); }
  static const void* interface_of(const TnHost*, const char* id) {
    static const TnCode code = {TN_HEADER(TnCode), 0, find, put};
    return std::string(id) == "tenon.code/1" ? &code : nullptr;
  }
  static TnStatus find(const TnHost* host, const char* key, TnWriter* out) {
    const auto& kept = from(host).kept;
    const auto known = kept.find(key);
    if (known == kept.end()) return host->fail(host, TN_NOTFOUND, "", "");
    const auto size = static_cast<int64_t>(known->second.size());
    return out->write(out, known->second.data(), known->second.size()) == size ? TN_OK : TN_IO;
  }
  static TnStatus put(const TnHost* host, const char* key, const void* code, uint64_t size) {
    from(host).kept[key].assign(static_cast<const char*>(code), size);
    return TN_OK;
  }
  TnHost host_{};
};

TEST(PointwiseSource, EachIsCompiledOnce) {
  CodeHost without(false);
  CubinCache cache;
  const std::string source = pointwise_source(parse_expression("neg(x0)"), 1, TN_F32);
  const Cubin first = cache.find(without.host(), source, 90);
  EXPECT_EQ(cache.find(without.host(), source, 90), first);
  EXPECT_NE(cache.find(without.host(), source, 80), first);
}

TEST(PointwiseSource, TheNextProcessTakesWhatTheHostKept) {
  CodeHost host(true);
  CubinCache first, second;
  const std::string source = pointwise_source(parse_expression("neg(x0)"), 1, TN_F32);
  const Cubin compiled = first.find(host.host(), source, 90);
  ASSERT_EQ(host.kept.size(), 1u);
  auto& [key, code] = *host.kept.begin();
  EXPECT_EQ(code, std::string(compiled->begin(), compiled->end()));
  EXPECT_EQ(key.substr(0, 6), "nvrtc ");
  EXPECT_NE(key.find("sm_90"), std::string::npos);
  EXPECT_EQ(key.substr(key.size() - source.size()), source);
  code = "what no compiler gives";
  EXPECT_EQ(*second.find(host.host(), source, 90), std::vector<char>(code.begin(), code.end()));
  // Another timing cache gets what this process knows already; other architectures and sources share nothing.
  CodeHost other(true);
  EXPECT_EQ(first.find(other.host(), source, 90), compiled);
  EXPECT_EQ(other.kept.count(key), 1u);
  second.find(host.host(), source, 80);
  second.find(host.host(), source + "\n", 90);
  EXPECT_EQ(host.kept.size(), 3u);
}

}  // namespace
}  // namespace tenon::plugins
