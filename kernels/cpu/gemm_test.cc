#include "kernels/cpu/gemm.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/test_util.h"

namespace tenon::cpu {
namespace {

enum class Route { kPacked, kDirect, kPrepackedA, kPrepackedB };

struct Case {
  int64_t m, n, k;
  bool trans_a = false, trans_b = false;
  int64_t pad = 0;  // added to every leading dimension
  BiasAxis bias = BiasAxis::kNone;
  bool residual = false;
  Epilogue epilogue = Epilogue::none();
};

double activate(double x, const Epilogue& e) {
  if (e.kind == Epilogue::Kind::kLeaky) return x > 0 ? x : e.alpha == 0 ? 0 : e.alpha * x;
  if (e.kind == Epilogue::Kind::kClip) return std::min<double>(std::max<double>(x, e.lo), e.hi);
  if (e.kind == Epilogue::Kind::kLogistic) return 1 / (1 + std::exp(-x));
  if (e.kind == Epilogue::Kind::kSwish) return x / (1 + std::exp(-x));
  if (e.kind == Epilogue::Kind::kGelu) return x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
  if (e.kind == Epilogue::Kind::kGeluTanh) {
    return x / 2 * (1 + std::tanh(0.7978845608 * (x + 0.044715 * x * x * x)));
  }
  return x;
}

void check(const Case& c, Route route, const GemmTactic& tactic, int threads, Isa isa) {
  SCOPED_TRACE(testing::Message() << c.m << "x" << c.n << "x" << c.k << " ta " << c.trans_a << " tb " << c.trans_b
                                  << " route " << static_cast<int>(route) << " threads " << threads << " "
                                  << isa_name(isa) << " mc " << tactic.mc << " nc " << tactic.nc << " kc "
                                  << tactic.kc);
  GemmShape shape = GemmShape::dense(c.m, c.n, c.k, c.trans_a, c.trans_b);
  shape.lda += c.pad;
  shape.ldb += c.pad;
  shape.ldc += c.pad;
  const Guarded a(random_floats((c.trans_a ? c.k : c.m) * shape.lda, 1));
  const Guarded b(random_floats((c.trans_b ? c.n : c.k) * shape.ldb, 2));
  const Guarded bias(random_floats(std::max(c.m, c.n), 3));
  const Guarded residual(random_floats(c.m * shape.ldc, 4));
  Buffer result(c.m * shape.ldc * sizeof(float), 4);
  GemmOutput output;
  output.c = result.data();
  output.bias = bias.data();
  output.bias_axis = c.bias;
  output.residual = c.residual ? residual.data() : nullptr;
  output.epilogue = c.epilogue;
  const Parallel parallel = make_parallel(threads);
  if (route == Route::kPacked) {
    Buffer workspace(gemm_workspace_bytes(shape, tactic, threads, isa));
    gemm(shape, a.data(), b.data(), output, tactic, workspace.data(), parallel, isa);
    EXPECT_TRUE(workspace.intact());
  } else if (route == Route::kDirect) {
    gemm_direct(shape, a.data(), b.data(), output, parallel, isa);
  } else if (route == Route::kPrepackedA) {
    Buffer packed(gemm_packed_a_bytes(c.m, c.k, isa));
    Buffer workspace(gemm_prepacked_a_workspace_bytes(shape, tactic, threads, isa));
    gemm_pack_a(shape, a.data(), packed.data(), parallel, isa);
    gemm_prepacked_a(shape, packed.data(), b.data(), output, tactic, workspace.data(), parallel, isa);
    EXPECT_TRUE(packed.intact() && workspace.intact());
  } else {
    Buffer packed(gemm_packed_b_bytes(c.k, c.n, isa));
    Buffer workspace(gemm_prepacked_b_workspace_bytes(shape, tactic, threads, isa));
    gemm_pack_b(shape, b.data(), packed.data(), parallel, isa);
    gemm_prepacked_b(shape, a.data(), packed.data(), output, tactic, workspace.data(), parallel, isa);
    EXPECT_TRUE(packed.intact() && workspace.intact());
  }
  EXPECT_TRUE(result.intact());
  std::vector<double> expected(c.m * shape.ldc, NAN);  // columns between rows keep the poison
  for (int64_t i = 0; i < c.m; ++i) {
    for (int64_t j = 0; j < c.n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < c.k; ++l) {
        sum += static_cast<double>(a[c.trans_a ? l * shape.lda + i : i * shape.lda + l]) *
               b[c.trans_b ? j * shape.ldb + l : l * shape.ldb + j];
      }
      if (c.bias == BiasAxis::kPerRow) sum += bias[i];
      if (c.bias == BiasAxis::kPerColumn) sum += bias[j];
      if (c.residual) sum += residual[i * shape.ldc + j];
      expected[i * shape.ldc + j] = activate(sum, c.epilogue);
    }
  }
  EXPECT_EQ(count_mismatches(result.data(), expected, 2e-6 * std::max<double>(1, std::sqrt(c.k))), 0);
}

void check_everywhere(const Case& c, const std::vector<int>& threads, bool small_blocks) {
  for (const Isa isa : available_isas()) {
    for (const int t : threads) {
      const GemmTactic tactic = small_blocks ? GemmTactic{5, 7, 9} : gemm_tactic(0, isa);
      for (const Route route : {Route::kPacked, Route::kDirect, Route::kPrepackedA, Route::kPrepackedB}) {
        if (route == Route::kDirect && c.trans_b) continue;
        check(c, route, tactic, t, isa);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(Gemm, GradedSizes) {
  for (const int64_t m : {0, 1, 2, 5, 6, 13, 14, 15, 30}) {
    for (const int64_t n : {0, 1, 3, 8, 15, 16, 17, 31, 33, 65}) {
      for (const int64_t k : {0, 1, 7, 40}) {
        Case c{m, n, k};
        c.pad = (m + n + k) % 3;
        check_everywhere(c, {1}, (m + n) % 2);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(Gemm, EveryRowCount) {
  for (int64_t m = 1; m <= 29; ++m) check_everywhere({m, 37, 11}, {1}, false);
}

TEST(Gemm, Transposed) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      Case c{37, 71, 130, ta, tb, 3};
      check_everywhere(c, {1, 2, 3}, true);
      check_everywhere(c, {1, 2, 3}, false);
    }
  }
}

TEST(Gemm, BiasResidualEpilogue) {
  for (const BiasAxis axis : {BiasAxis::kNone, BiasAxis::kPerRow, BiasAxis::kPerColumn}) {
    for (const Epilogue& epilogue :
         {Epilogue::none(), Epilogue::relu(), Epilogue::leaky(0.1f), Epilogue::leaky(0.0f), Epilogue::clip(-0.3f, 6),
          Epilogue::of(Epilogue::Kind::kLogistic), Epilogue::of(Epilogue::Kind::kSwish),
          Epilogue::of(Epilogue::Kind::kGelu), Epilogue::of(Epilogue::Kind::kGeluTanh)}) {
      for (const bool residual : {false, true}) {
        Case c{29, 43, 21, false, false, 1, axis, residual, epilogue};
        check_everywhere(c, {1, 2}, true);
        c.k = 0;
        check_everywhere(c, {1}, false);
      }
    }
  }
}

TEST(Gemm, LargeAndVectorShapes) {
  check_everywhere({250, 260, 300}, {1, 3}, false);
  check_everywhere({1, 1000, 513}, {2}, false);
  check_everywhere({1000, 1, 65}, {2}, false);
}

TEST(Gemm, BitsDoNotDependOnThreadsRouteOrBlocking) {
  const GemmShape shape = GemmShape::dense(61, 90, 200);
  const auto a = random_floats(61 * 200, 1);
  const auto b = random_floats(200 * 90, 2);
  for (const Isa isa : available_isas()) {
    std::vector<float> first(61 * 90);
    GemmOutput output;
    output.c = first.data();
    gemm_direct(shape, a.data(), b.data(), output, Parallel{}, isa);
    for (int threads = 1; threads <= 3; ++threads) {
      for (int i = 0; i < gemm_tactic_count(); ++i) {
        const GemmTactic tactic = i == 0 ? GemmTactic{1, 1, 17} : gemm_tactic(i, isa);
        std::vector<float> other(first.size());
        output.c = other.data();
        Buffer workspace(gemm_workspace_bytes(shape, tactic, threads, isa));
        gemm(shape, a.data(), b.data(), output, tactic, workspace.data(), make_parallel(threads), isa);
        EXPECT_EQ(std::memcmp(first.data(), other.data(), first.size() * sizeof(float)), 0);
      }
    }
  }
}

TEST(Gemm, EpilogueKeepsNanAndReluOfMinusInfinityIsZero) {
  const float inf = INFINITY;
  const std::vector<float> a = {NAN, -inf, inf, 1.0f};
  const float b = 1.0f;
  for (const Isa isa : available_isas()) {
    std::vector<float> c(4);
    GemmOutput output;
    output.c = c.data();
    for (const Epilogue& relu : {Epilogue::relu(), Epilogue::leaky(0.0f)}) {
      output.epilogue = relu;
      gemm_direct(GemmShape::dense(4, 1, 1), a.data(), &b, output, Parallel{}, isa);
      EXPECT_TRUE(std::isnan(c[0]));
      EXPECT_EQ(c[1], 0.0f);
      EXPECT_EQ(c[2], inf);
      EXPECT_EQ(c[3], 1.0f);
    }
  }
}

}  // namespace
}  // namespace tenon::cpu
