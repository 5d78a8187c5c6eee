// Expected values: the formulas by hand, and torch.nn.functional's documented ones at the points below.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class ActivationTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("activation")); }
  TestHost host_;
};

TEST_F(ActivationTest, PiecewiseLinear) {
  const std::vector<float> x = {-8, -1, 0, 2, 8};
  OpTester(host_, "tenon.linear/1").input({5}, x).expect({5}, {-8, -1, 0, 2, 8});
  OpTester(host_, "tenon.relu/1").input({5}, x).expect({5}, {0, 0, 0, 2, 8});
  OpTester(host_, "tenon.relu6/1").input({5}, x).expect({5}, {0, 0, 0, 2, 6});
  OpTester(host_, "tenon.leaky_relu/1").input({5}, x).expect({5}, {-0.08, -0.01, 0, 2, 8});
  OpTester(host_, "tenon.leaky_relu/1").attr("alpha", 0.1).input({5}, x).expect({5}, {-0.8, -0.1, 0, 2, 8});
  OpTester(host_, "tenon.hard_swish/1").input({5}, x).expect({5}, {0, -1.0 / 3, 0, 5.0 / 3, 8});
}

TEST_F(ActivationTest, Transcendental) {
  const std::vector<float> x = {-1, 0, 1};
  const double e = std::exp(1.0);
  OpTester(host_, "tenon.logistic/1").input({3}, x).expect({3}, {1 / (1 + e), 0.5, e / (1 + e)});
  OpTester(host_, "tenon.tanh/1").input({3}, x).expect({3}, {-0.7615941560, 0, 0.7615941560});
  OpTester(host_, "tenon.elu/1").input({3}, x).expect({3}, {1 / e - 1, 0, 1});
  OpTester(host_, "tenon.elu/1").attr("alpha", 0.5).input({3}, x).expect({3}, {0.5 / e - 0.5, 0, 1});
  OpTester(host_, "tenon.swish/1").input({3}, x).expect({3}, {-1 / (1 + e), 0, e / (1 + e)});
  OpTester(host_, "tenon.mish/1").input({3}, x).expect({3}, {-0.3034014613, 0, 0.8650983883});
}

TEST_F(ActivationTest, Extremes) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const char* op : {"relu", "leaky_relu", "logistic", "tanh", "elu", "mish", "swish", "hard_swish", "relu6"}) {
    OpTester tester(host_, std::string("tenon.") + op + "/1");
    tester.input({6}, std::vector<float>{-100, 100, 1e-30f, nan, -20, 20}).expect_kernels();
  }
  OpTester(host_, "tenon.logistic/1").input({2}, {-inf, inf}).expect({2}, {0, 1}).expect_kernels();
}

TEST_F(ActivationTest, EveryFormatAgrees) {
  for (const char* op :
       {"linear", "relu", "relu6", "leaky_relu", "logistic", "tanh", "elu", "mish", "swish", "hard_swish"}) {
    const std::string name = std::string("tenon.") + op;
    for (const Dims& dims : {Dims{2, 3, 5, 7}, Dims{1, 16, 4, 4}, Dims{1, 21, 3, 1}}) {
      OpTester(host_, name + "/1").random_input(dims, 3.0).expect_kernels({name + ".vector.f32"});
    }
  }
}

TEST_F(ActivationTest, MorePiecewise) {
  const std::vector<float> x = {-8, -1, 0, 2, 8};
  OpTester(host_, "tenon.hard_sigmoid/1").input({5}, x).expect({5}, {0, 0.3, 0.5, 0.9, 1}).expect_kernels();
  OpTester(host_, "tenon.hard_sigmoid/1")
      .attr("alpha", 0.5)
      .attr("beta", 0.25)
      .input({5}, x)
      .expect({5}, {0, 0, 0.25, 1, 1})
      .expect_kernels();
  OpTester(host_, "tenon.softsign/1").input({5}, x).expect({5}, {-8.0 / 9, -0.5, 0, 2.0 / 3, 8.0 / 9}).expect_kernels();
  OpTester(host_, "tenon.thresholded_relu/1").input({5}, x).expect({5}, {0, 0, 0, 2, 8}).expect_kernels();
  OpTester(host_, "tenon.thresholded_relu/1")
      .attr("alpha", 2.0)
      .input({5}, x)
      .expect({5}, {0, 0, 0, 0, 8})
      .expect_kernels();
  OpTester(host_, "tenon.shrink/1")
      .attr("threshold", 1.5)
      .attr("bias", 1.5)
      .input({5}, x)
      .expect({5}, {-6.5, 0, 0, 0.5, 6.5})
      .expect_kernels();
}

// selu's constants are those of Klambauer et al.; gelu(1) = Phi(1), the normal distribution's table.
TEST_F(ActivationTest, MoreTranscendental) {
  const std::vector<float> x = {-1, 0, 1};
  const double e = std::exp(1.0);
  OpTester(host_, "tenon.softplus/1").input({3}, x).expect({3}, {0.3132616875, 0.6931471806, 1.3132616875});
  OpTester(host_, "tenon.selu/1").input({3}, x).expect({3}, {-1.1113307, 0, 1.0507009873});
  OpTester(host_, "tenon.selu/1")
      .attr("alpha", 2.0)
      .attr("gamma", 3.0)
      .input({3}, x)
      .expect({3}, {6 * (1 / e - 1), 0, 3})
      .expect_kernels();
  OpTester(host_, "tenon.celu/1").attr("alpha", 2.0).input({3}, x).expect({3}, {2 * (std::exp(-0.5) - 1), 0, 1});
  OpTester(host_, "tenon.gelu/1").input({3}, x).expect({3}, {-0.1586552539, 0, 0.8413447461});
  OpTester(host_, "tenon.gelu_tanh/1").input({3}, x).expect({3}, {-0.1588080094, 0, 0.8411919906});
  OpTester(host_, "tenon.softplus/1").input({2}, {-200, 200}).expect({2}, {0, 200}).expect_kernels();
}

TEST_F(ActivationTest, MoreExtremes) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const char* op :
       {"hard_sigmoid", "softplus", "softsign", "selu", "celu", "gelu", "gelu_tanh", "thresholded_relu", "shrink"}) {
    const std::string id = std::string("tenon.") + op + "/1";
    OpTester(host_, id).input({6}, {-inf, -1e4f, nan, -0.0f, 1e4f, inf}).expect_kernels();
    for (const Dims& dims : {Dims{2, 3, 5, 7}, Dims{1, 21, 3, 1}}) {
      OpTester(host_, id).random_input(dims, 3.0).expect_kernels({std::string("tenon.") + op + ".vector.f32"});
    }
  }
  OpTester(host_, "tenon.gelu/1").input({2}, {-inf, inf}).expect({2}, {0, inf}).expect_kernels();
  OpTester(host_, "tenon.softsign/1").input({2}, {-inf, inf}).expect({2}, {-1, 1}).expect_kernels();
}

TEST_F(ActivationTest, EmptyAndIntegers) {
  OpTester(host_, "tenon.gelu/1").input({2}, std::vector<int32_t>{1, 2}).expect_invalid({"floating", "i32"});
  OpTester(host_, "tenon.relu/1").input({0, 3}, std::vector<float>{}).expect({0, 3}, {});
  OpTester(host_, "tenon.relu/1").input({2}, std::vector<int32_t>{1, 2}).expect_invalid({"floating", "i32"});
}

TEST(ExpressionTest, CanonicalFormsAreRecognised) {
  for (const Activation& activation : {Activation{ActivationKind::kRelu, 0, 0},
                                       {ActivationKind::kClip, 0, 6},
                                       {ActivationKind::kLeaky, 0.1, 0},
                                       {ActivationKind::kLogistic, 0, 0},
                                       {ActivationKind::kTanh, 0, 0},
                                       {ActivationKind::kSwish, 0, 0},
                                       {ActivationKind::kElu, 0.7, 0},
                                       {ActivationKind::kMish, 0, 0},
                                       {ActivationKind::kHardSwish, 0, 0},
                                       {ActivationKind::kGelu, 0, 0},
                                       {ActivationKind::kGeluTanh, 0, 0}}) {
    const ExprText text([&](ExprBuilder& e) { emit_activation(e, activation, e.input()); });
    const TnExpr expr = text.expr();
    const auto found = match_activation(&expr);
    ASSERT_TRUE(found) << static_cast<int>(activation.kind);
    EXPECT_EQ(found->kind, activation.kind);
    EXPECT_EQ(found->alpha, activation.alpha);
    EXPECT_EQ(found->beta, activation.beta);
  }
  EXPECT_EQ(match_activation(nullptr)->kind, ActivationKind::kIdentity);
}

TEST(ExpressionTest, ChainsAreTakenApart) {
  // swish(leaky(x) + operand 2) * operand 1
  const ExprText text([&](ExprBuilder& e) {
    const int32_t sum = e.add(emit_activation(e, {ActivationKind::kLeaky, 0.1, 0}, e.input()), e.input(2));
    e.mul(e.input(1), emit_activation(e, {ActivationKind::kSwish, 0, 0}, sum));
  });
  const TnExpr expr = text.expr();
  const auto steps = match_epilogue(&expr);
  ASSERT_TRUE(steps);
  ASSERT_EQ(steps->size(), 4u);
  EXPECT_EQ((*steps)[0].activation.kind, ActivationKind::kLeaky);
  EXPECT_EQ((*steps)[1].kind, EpilogueStep::Kind::kAdd);
  EXPECT_EQ((*steps)[1].operand, 2u);
  EXPECT_EQ((*steps)[2].activation.kind, ActivationKind::kSwish);
  EXPECT_EQ((*steps)[3].kind, EpilogueStep::Kind::kMul);
  EXPECT_EQ((*steps)[3].operand, 1u);
}

TEST(ExpressionTest, OtherFormsAreNot) {
  const ExprText other([](ExprBuilder& e) { e.unary(TN_EX_SIN, e.input()); });
  const ExprText mixed([](ExprBuilder& e) { e.mul(e.input(), e.tanh(e.add(e.input(), e.constant(1.0)))); });
  for (const ExprText* text : {&other, &mixed}) {
    const TnExpr expr = text->expr();
    EXPECT_FALSE(match_epilogue(&expr));
  }
}

}  // namespace
}  // namespace tenon::testing
