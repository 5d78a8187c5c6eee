#include "kernels/cuda/gemm.h"

#include "kernels/cuda/test_util.h"

namespace tenon::cuda {
namespace {

struct Case {
  int64_t m, n, k;
  bool trans_a = false, trans_b = false;
  int64_t pad = 0;  // added to every leading dimension
  BiasAxis bias = BiasAxis::kNone;
  bool residual = false;
  Epilogue epilogue = Epilogue::none();
  int64_t batches = 1;
  bool repeat_b = false;
  size_t shift = 0;  // bytes that every buffer is off its alignment
};

double activate(double x, const Epilogue& e) {
  switch (e.kind) {
    case UnaryKind::kRelu:
      return std::max(x, 0.0);
    case UnaryKind::kRelu6:
      return std::clamp(x, 0.0, 6.0);
    case UnaryKind::kLeakyRelu:
      return x > 0 ? x : e.alpha == 0 ? 0 : e.alpha * x;
    case UnaryKind::kClip:
      return std::min<double>(std::max<double>(x, e.alpha), e.beta);
    case UnaryKind::kTanh:
      return std::tanh(x);
    default:
      return x;
  }
}

bool runs_here(const GemmTactic& tactic) {
  int ordinal = 0;
  EXPECT_EQ(cudaGetDevice(&ordinal), cudaSuccess);
  return !tactic.cluster || tactic.split_k <= gemm_cluster_limit(ordinal);
}

class GemmTest : public CudaTest {
 protected:
  // Every supporting tactic.
  void check(const Case& c) {
    for (const ElementType type : {ElementType::kF32, ElementType::kF16}) {
      check(c, type);
      if (HasFailure()) return;
    }
  }

  void check(const Case& c, ElementType type) {
    const bool half = type == ElementType::kF16;
    const auto random = [&](int64_t count, uint32_t seed) {
      const auto values = random_floats(count, seed);
      return half ? to_floats(to_half(values)) : values;
    };
    const auto upload = [&](const std::vector<float>& values) {
      return half ? Input(to_half(values), c.shift) : Input(values, c.shift);
    };
    GemmShape shape = GemmShape::dense(c.m, c.n, c.k, c.trans_a, c.trans_b, c.batches);
    shape.type = type;
    shape.lda += c.pad;
    shape.ldb += c.pad;
    shape.ldc += c.pad;
    shape.a_stride = (c.trans_a ? c.k : c.m) * shape.lda + c.pad;
    shape.b_stride = c.repeat_b ? 0 : (c.trans_b ? c.n : c.k) * shape.ldb + c.pad;
    shape.c_stride = c.m * shape.ldc + c.pad;
    const int64_t size = c.batches * shape.c_stride;
    const auto a = random(c.batches * shape.a_stride, 1);
    const auto b = random((c.repeat_b ? (c.trans_b ? c.n : c.k) * shape.ldb : c.batches * shape.b_stride), 2);
    const auto bias = random(c.bias == BiasAxis::kPerRow ? c.m : c.n, 3);
    const auto residual = random(size, 4);
    std::vector<double> expected(size, NAN);  // what lies between rows and batches keeps the poison
    for (int64_t batch = 0; batch < c.batches; ++batch) {
      for (int64_t i = 0; i < c.m; ++i) {
        for (int64_t j = 0; j < c.n; ++j) {
          double sum = 0;
          const float* pa = a.data() + batch * shape.a_stride;
          const float* pb = b.data() + batch * shape.b_stride;
          for (int64_t l = 0; l < c.k; ++l) {
            sum += static_cast<double>(pa[c.trans_a ? l * shape.lda + i : i * shape.lda + l]) *
                   pb[c.trans_b ? j * shape.ldb + l : l * shape.ldb + j];
          }
          if (c.bias == BiasAxis::kPerRow) sum += bias[i];
          if (c.bias == BiasAxis::kPerColumn) sum += bias[j];
          const int64_t at = batch * shape.c_stride + i * shape.ldc + j;
          if (c.residual) sum += residual[at];
          expected[at] = activate(sum, c.epilogue);
        }
      }
    }
    const Input da = upload(a), db = upload(b), dbias = upload(bias), dresidual = upload(residual);
    // A result in half precision is rounded once.
    const double tolerance = (half ? std::ldexp(1, -11) : 0) + 2e-6 * std::max<double>(1, std::sqrt(c.k));
    for (int i = 0; i <= gemm_tactic_count(); ++i) {
      const GemmTactic tactic = i < gemm_tactic_count() ? gemm_tactic(i) : gemm_default_tactic(shape);
      if (!gemm_supports(shape, tactic) || !runs_here(tactic)) continue;
      SCOPED_TRACE(testing::Message() << c.m << "x" << c.n << "x" << c.k << " ta " << c.trans_a << " tb " << c.trans_b
                                      << " pad " << c.pad << " batches " << c.batches << " shift " << c.shift
                                      << " tile " << static_cast<int>(tactic.tile) << " split " << tactic.split_k
                                      << " cluster " << tactic.cluster << " half " << half);
      const auto run = [&](const GemmTactic& with) {
        const Output result(size * element_type_size(type), c.shift);
        const Output workspace(gemm_workspace_bytes(shape, with));
        GemmOutput output;
        output.c = result.data();
        output.bias = dbias.data();
        output.bias_axis = c.bias;
        output.residual = c.residual ? dresidual.data() : nullptr;
        output.epilogue = c.epilogue;
        launch([&](cudaStream_t stream) {
          return gemm(shape, da.data(), db.data(), output, with, with.cluster ? nullptr : workspace.data(), stream);
        });
        workspace.get();
        return half ? to_floats(result.get<__half>()) : result.get();
      };
      const auto got = run(tactic);
      EXPECT_EQ(count_mismatches(got, expected, tolerance), 0);
      if (tactic.cluster && !half) {
        EXPECT_TRUE(same_bits(got, run({tactic.tile, tactic.split_k}))) << "unlike the two launches";
      }
      if (HasFailure()) return;
    }
  }
};

TEST_F(GemmTest, GradedSizes) {
  for (const int64_t m : {0, 1, 8, 33, 65}) {
    for (const int64_t n : {0, 1, 8, 63, 130}) {
      for (const int64_t k : {0, 1, 16, 39}) {
        Case c{m, n, k};
        c.pad = (m + n + k) % 3;
        check(c);
        if (HasFailure()) return;
      }
    }
  }
}

TEST_F(GemmTest, Transposed) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      for (const int64_t pad : {0, 3, 4}) {
        check({140, 132, 68, ta, tb, pad});
        check({37, 71, 130, ta, tb, pad});
        check({5, 300, 77, ta, tb, pad});
        check({2, 44, 600, ta, tb, pad});
        check({1, 40, 64, ta, tb, pad});
        check({90, 4, 520, ta, tb, pad});
        check({200, 1, 48, ta, tb, pad});
        if (HasFailure()) return;
      }
    }
  }
}

TEST_F(GemmTest, BiasResidualEpilogue) {
  Epilogue tanh;
  tanh.kind = UnaryKind::kTanh;
  Epilogue relu6;
  relu6.kind = UnaryKind::kRelu6;
  for (const BiasAxis axis : {BiasAxis::kNone, BiasAxis::kPerRow, BiasAxis::kPerColumn}) {
    for (const Epilogue& epilogue : {Epilogue::none(), Epilogue::relu(), relu6, Epilogue::leaky(0.1f),
                                     Epilogue::leaky(0.0f), Epilogue::clip(-0.3f, 6), tanh}) {
      for (const bool residual : {false, true}) {
        check({29, 44, 140, false, false, 0, axis, residual, epilogue});
        check({29, 43, 0, false, false, 1, axis, residual, epilogue});
        check({3, 43, 21, false, true, 1, axis, residual, epilogue});
        check({43, 3, 21, false, true, 1, axis, residual, epilogue});
        if (HasFailure()) return;
      }
    }
  }
}

TEST_F(GemmTest, BatchesAndAlignment) {
  for (const int64_t pad : {0, 1, 4}) {
    for (const size_t shift : {size_t{0}, size_t{4}}) {
      Case c{36, 40, 130, false, false, pad, BiasAxis::kPerRow, true};
      c.batches = 3;
      c.shift = shift;
      check(c);
      c.repeat_b = true;
      c.m = 4;
      check(c);
      c.trans_b = true;
      check(c);
      c.batches = 0;
      check(c);
    }
  }
}

TEST_F(GemmTest, LongSums) {
  check({17, 19, 2100});
  check({1, 9, 5000, false, true});
  check({1, 33, 3000});
}

// 33 steps of 16 in parts of 3: of 16 parts five are empty.
TEST_F(GemmTest, PartsOfManySizes) {
  for (const int64_t k : {512, 528, 541, 1023}) {
    for (const size_t shift : {size_t{0}, size_t{4}}) {
      Case c{129, 67, k, false, k % 2 == 1, 0, BiasAxis::kPerRow, true, Epilogue::relu()};
      c.shift = shift;
      check(c);
      c.m = 64;
      c.n = 128;
      c.batches = 3;
      c.bias = BiasAxis::kPerColumn;
      check(c);
      if (HasFailure()) return;
    }
  }
}

TEST_F(GemmTest, ClustersAddTheirPartsInOneLaunch) {
  const GemmShape shape = GemmShape::dense(70, 90, 600);
  const Input a(random_floats(70 * 600, 1));
  const Input b(random_floats(600 * 90, 2));
  const Output c(70 * 90 * sizeof(float));
  GemmOutput output;
  output.c = c.data();
  int ordinal = 0, major = 0;
  ASSERT_EQ(cudaGetDevice(&ordinal), cudaSuccess);
  ASSERT_EQ(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ordinal), cudaSuccess);
  const int limit = gemm_cluster_limit(ordinal);
  if (major < 9) {
    EXPECT_EQ(limit, 0);
  }
  for (const int parts : {2, 4, 8, 16}) {
    const GemmTactic tactic = {GemmTile::k64x64, parts, true};
    ASSERT_TRUE(gemm_supports(shape, tactic));
    cudaGraph_t graph = nullptr;
    size_t nodes = 0;
    ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    EXPECT_EQ(gemm(shape, a.data(), b.data(), output, tactic, nullptr, stream_),
              parts <= limit ? cudaSuccess : cudaErrorNotSupported);
    ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
    EXPECT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), cudaSuccess);
    EXPECT_EQ(nodes, parts <= limit ? 1u : 0u);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  }
}

TEST_F(GemmTest, TheSameBitsEveryTime) {
  const GemmShape shape = GemmShape::dense(70, 90, 600);
  const Input a(random_floats(70 * 600, 1));
  const Input b(random_floats(600 * 90, 2));
  for (int i = 0; i < gemm_tactic_count(); ++i) {
    const GemmTactic tactic = gemm_tactic(i);
    if (!gemm_supports(shape, tactic) || !runs_here(tactic)) continue;
    std::vector<float> first;
    for (int round = 0; round < 3; ++round) {
      const Output c(70 * 90 * sizeof(float));
      const Output workspace(gemm_workspace_bytes(shape, tactic));
      GemmOutput output;
      output.c = c.data();
      launch([&](cudaStream_t s) { return gemm(shape, a.data(), b.data(), output, tactic, workspace.data(), s); });
      if (round == 0) first = c.get();
      EXPECT_TRUE(same_bits(first, c.get()));
    }
  }
}

TEST_F(GemmTest, EpilogueKeepsNanAndReluOfMinusInfinityIsZero) {
  const Input a(std::vector<float>{NAN, -INFINITY, INFINITY, 1.0f});
  const Input b(std::vector<float>{1.0f});
  for (const GemmTile tile : {GemmTile::k32x32, GemmTile::k128x128, GemmTile::kSkinny}) {
    for (const Epilogue& relu : {Epilogue::relu(), Epilogue::leaky(0.0f)}) {
      const Output c(4 * sizeof(float));
      GemmOutput output;
      output.c = c.data();
      output.epilogue = relu;
      launch([&](cudaStream_t stream) {
        return gemm(GemmShape::dense(4, 1, 1), a.data(), b.data(), output, {tile, 1}, nullptr, stream);
      });
      const auto got = c.get();
      EXPECT_TRUE(std::isnan(got[0]));
      EXPECT_EQ(got[1], 0.0f);
      EXPECT_EQ(got[2], INFINITY);
      EXPECT_EQ(got[3], 1.0f);
    }
  }
}

TEST(Gemm, SupportsWhatTheHeaderPromises) {
  EXPECT_TRUE(gemm_supports(GemmShape::dense(100, 100, 100), {GemmTile::k64x64, 1}));
  EXPECT_FALSE(gemm_supports(GemmShape::dense(100, 100, 100), {GemmTile::k64x64, 4}));
  EXPECT_TRUE(gemm_supports(GemmShape::dense(100, 100, 128), {GemmTile::k64x64, 4}));
  EXPECT_FALSE(gemm_supports(GemmShape::dense(9, 9, 100), {GemmTile::kSkinny, 1}));
  EXPECT_TRUE(gemm_supports(GemmShape::dense(8, 9, 100), {GemmTile::kSkinny, 1}));
  EXPECT_FALSE(gemm_supports(GemmShape::dense(int64_t{1} << 31, 9, 100), {GemmTile::k64x64, 1}));
  const GemmShape half = GemmShape::dense(100, 8, 128, false, false, 1, ElementType::kF16);
  EXPECT_TRUE(gemm_supports(half, {GemmTile::k64x64, 1}));
  EXPECT_TRUE(gemm_supports(half, gemm_default_tactic(half)));
  EXPECT_FALSE(gemm_supports(half, {GemmTile::k64x64, 4}));
  EXPECT_TRUE(gemm_supports(half, {GemmTile::k64x64, 4, true}));
  EXPECT_FALSE(gemm_supports(half, {GemmTile::k32x32, 4, true}));
  EXPECT_FALSE(gemm_supports(half, {GemmTile::k32x32, 1}));
  EXPECT_FALSE(gemm_supports(half, {GemmTile::kSkinny, 1}));
  EXPECT_FALSE(gemm_supports(GemmShape::dense(9, 9, 9, false, false, 1, ElementType::kI32), {GemmTile::k64x64, 1}));
  EXPECT_EQ(gemm_workspace_bytes(GemmShape::dense(10, 20, 128), {GemmTile::k32x32, 4}), 4u * 200 * sizeof(float));
  EXPECT_EQ(gemm_workspace_bytes(GemmShape::dense(10, 20, 128), {GemmTile::k32x32, 1}), 0u);
}

TEST(Gemm, ClusterTactics) {
  const GemmShape shape = GemmShape::dense(100, 100, 4096);
  for (const int parts : {2, 4, 8, 16}) {
    EXPECT_TRUE(gemm_supports(shape, {GemmTile::k64x64, parts, true}));
    EXPECT_EQ(gemm_workspace_bytes(shape, {GemmTile::k64x64, parts, true}), 0u);
  }
  for (const int parts : {0, 1, 3, 32}) EXPECT_FALSE(gemm_supports(shape, {GemmTile::k64x64, parts, true}));
  EXPECT_FALSE(gemm_supports(shape, {GemmTile::k128x128, 4, true}));
  EXPECT_FALSE(gemm_supports(GemmShape::dense(8, 100, 4096), {GemmTile::kSkinny, 1, true}));
  EXPECT_FALSE(gemm_supports(GemmShape::dense(100, 100, 100), {GemmTile::k64x64, 4, true}));  // parts of 25
  EXPECT_FALSE(gemm_supports(GemmShape::dense(100, 100, 7), {GemmTile::k32x32, 8, true}));

  const GemmTactic one = {GemmTile::k32x32, 1}, two_launches = {GemmTile::k32x32, 4};
  const GemmTactic cluster = {GemmTile::k32x32, 4, true};
  EXPECT_TRUE(gemm_tactic_suits(one, 0) && gemm_tactic_suits(one, 16));
  EXPECT_TRUE(gemm_tactic_suits(two_launches, 0));
  EXPECT_FALSE(gemm_tactic_suits(two_launches, 8));
  EXPECT_FALSE(gemm_tactic_suits(cluster, 0));
  EXPECT_TRUE(gemm_tactic_suits(cluster, 8));
  EXPECT_TRUE(gemm_tactic_suits({GemmTile::k128x128, 4}, 16));
  EXPECT_FALSE(gemm_tactic_suits({GemmTile::k64x64, 16, true}, 8));
  EXPECT_TRUE(gemm_tactic_suits({GemmTile::k64x64, 16, true}, 16) && gemm_tactic_suits({GemmTile::k64x64, 16}, 16));
}

}  // namespace
}  // namespace tenon::cuda
