// Expected values by hand, or from the reference implementation of the ONNX project where a comment says so.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
const std::vector<std::string> kKernel = {"tenon.attention.blocked.f32"};

class AttentionTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("attention")); }
  OpTester attention(double scale = 1) {
    OpTester tester(host_, "tenon.attention/1");
    tester.attr("scale", scale);
    return tester;
  }
  OpTester scores(const std::string& stage) {
    OpTester tester(host_, "tenon.attention_scores/1");
    tester.attr("scale", 1.0).attr("stage", stage);
    return tester;
  }
  // Two queries, three keys; the weights of equal scores are equal.
  static OpTester& two_by_three(OpTester& tester) {
    return tester.input({1, 1, 2, 1}, {0, 0}).input({1, 1, 3, 1}, {1, 2, 3}).input({1, 1, 3, 1}, {3, 6, 12});
  }
  TestHost host_;
};

TEST_F(AttentionTest, Values) {
  const double e = std::exp(1.0);
  // Scores ln 3 apart weigh 1/4 and 3/4.
  attention(std::log(3.0))
      .input({1, 1, 1, 1}, {1})
      .input({1, 1, 2, 1}, {0, 1})
      .input({1, 1, 2, 2}, {0, 8, 4, 0})
      .expect({1, 1, 1, 2}, {3, 2})
      .expect_kernels(kKernel);
  attention()
      .attr("softcap", 1.0)
      .input({1, 1, 1, 1}, {1e4f})
      .input({1, 1, 2, 1}, {0, 1})
      .input({1, 1, 2, 1}, {0, 1})
      .expect({1, 1, 1, 1}, {e / (1 + e)})
      .expect_kernels(kKernel);
}

TEST_F(AttentionTest, CausalPastAndWindows) {
  OpTester tester = attention();
  two_by_three(tester).attr("causal", int64_t{1}).expect({1, 1, 2, 1}, {3, 4.5}).expect_kernels(kKernel);
  tester.attr("past", int64_t{1}).expect({1, 1, 2, 1}, {4.5, 7}).expect_kernels(kKernel);
  tester.attr("left_window", int64_t{0}).expect({1, 1, 2, 1}, {6, 12}).expect_kernels(kKernel);
  tester.attr("causal", int64_t{0}).attr("right_window", int64_t{1}).attr("past", int64_t{0});
  tester.expect({1, 1, 2, 1}, {4.5, 9}).expect_kernels(kKernel);
  tester.attr("past", std::numeric_limits<int64_t>::max()).expect({1, 1, 2, 1}, {0, 0}).expect_kernels(kKernel);
}

TEST_F(AttentionTest, MasksAndEmptyRows) {
  OpTester tester = attention();
  two_by_three(tester).input({2, 3}, std::vector<float>{0, -kInf, 0, -kInf, -kInf, -kInf});
  tester.expect({1, 1, 2, 1}, {7.5, 0}).expect_kernels(kKernel);
  // A mask that ends early hides the keys behind it.
  OpTester shorter = attention();
  two_by_three(shorter).input({1, 1, 1, 2}, std::vector<float>{0, static_cast<float>(std::log(2.0))});
  shorter.expect({1, 1, 2, 1}, {5, 5}).expect_kernels(kKernel);
  OpTester flags = attention();
  flags.input({1, 1, 2, 1}, {0, 0}).input({1, 1, 3, 1}, {1, 2, 3}).input({1, 1, 3, 1}, {3, 6, 12});
  flags.bools({2, 3}, {1, 0, 1, 0, 1, 1});
  flags.expect({1, 1, 2, 1}, {7.5, 9}).expect_kernels(kKernel);
}

TEST_F(AttentionTest, Lengths) {
  // The queries are the last of the valid keys; behind these may be anything.
  attention()
      .attr("causal", int64_t{1})
      .input({3, 1, 2, 1}, {0, 0, 0, 0, 0, 0})
      .input({3, 1, 3, 1}, {1, 2, kNaN, 1, 2, 3, kNaN, kNaN, kNaN})
      .input({3, 1, 3, 1}, {3, 6, kNaN, 3, 6, 12, kNaN, kNaN, kNaN})
      .absent()
      .input({3}, std::vector<int64_t>{2, 3, -5})
      .expect({3, 1, 2, 1}, {3, 4.5, 4.5, 7, 0, 0})
      .expect_kernels(kKernel);
}

TEST_F(AttentionTest, HeadsThatFollowEachOtherShareKeys) {
  attention()
      .input({1, 4, 1, 1}, {0, 0, 0, 0})
      .input({1, 2, 1, 1}, {1, 1})
      .input({1, 2, 1, 1}, {5, 7})
      .expect({1, 4, 1, 1}, {5, 5, 7, 7})
      .expect_kernels(kKernel);
}

// Two queries of two heads of size 1: the heads of a row are neighbours. Equal scores, so y is the mean of the values
// that the causal queries see.
TEST_F(AttentionTest, HeadsOfRowsOfRankThree) {
  const std::vector<float> zeros(4, 0), v = {1, 10, 3, 30};
  OpTester tester = attention();
  tester.attr("heads", int64_t{2}).attr("causal", int64_t{1});
  tester.input({1, 2, 2}, zeros).input({1, 2, 2}, zeros).input({1, 2, 2}, v);
  tester.expect({1, 2, 2, 1}, {1, 2, 10, 20}).expect_kernels(kKernel);
  tester.attr("merge_heads", int64_t{1}).expect({1, 2, 2}, {1, 10, 2, 20}).expect_kernels(kKernel);
  // Of q, k and v each its own way.
  attention()
      .attr("key_heads", int64_t{2})
      .attr("causal", int64_t{1})
      .input({1, 2, 2, 1}, zeros)
      .input({1, 2, 2, 1}, zeros)
      .input({1, 2, 2}, v)
      .expect({1, 2, 2, 1}, {1, 2, 10, 20})
      .expect_kernels(kKernel);
}

TEST_F(AttentionTest, PackedInOneTensor) {
  // Rows hold q, q, k, v: two heads that share one key head.
  OpTester tester = attention();
  tester.attr("heads", int64_t{2}).attr("key_heads", int64_t{1}).attr("merge_heads", int64_t{1});
  tester.input({1, 2, 4}, {0, 1, 0, 5, 0, 0, static_cast<float>(std::log(3.0)), 9});
  tester.expect({1, 2, 2}, {7, 8, 7, 7}).expect_kernels(kKernel);
}

TEST_F(AttentionTest, Stages) {
  const auto given = [](OpTester tester) {
    tester.attr("softcap", 2.0)
        .input({1, 1, 1, 1}, {2})
        .input({1, 1, 2, 1}, {1, 0})
        .input({1, 1, 2, 1}, {0, 0})
        .input({2}, std::vector<float>{-kInf, 1});
    return tester;
  };
  given(scores("product")).expect({1, 1, 1, 2}, {2, 0});
  given(scores("softcap")).expect({1, 1, 1, 2}, {2 * std::tanh(1.0), 0});
  given(scores("mask")).expect({1, 1, 1, 2}, {-static_cast<double>(kInf), 1});
  given(scores("weights")).expect({1, 1, 1, 2}, {0, 1});
}

TEST_F(AttentionTest, KernelsAgree) {
  for (const auto& [queries, keys] : {std::pair<int64_t, int64_t>{1, 300}, {70, 70}, {33, 129}}) {
    for (const bool causal : {false, true}) {
      attention(0.2)
          .attr("causal", int64_t{causal})
          .attr("past", keys - queries)
          .random_input({2, 6, queries, 24})
          .random_input({2, 2, keys, 24})
          .random_input({2, 2, keys, 40})
          .random_input({2, 1, 1, keys})
          .expect_kernels(kKernel);
      attention(0.2)
          .attr("causal", int64_t{causal})
          .attr("heads", int64_t{6})
          .attr("key_heads", int64_t{2})
          .attr("merge_heads", int64_t{causal})
          .random_input({2, queries, 6 * 24})
          .random_input({2, keys, 2 * 24})
          .random_input({2, 2, keys, 40})
          .expect_kernels(kKernel);
    }
  }
  for (const int64_t key_heads : {0, 3, 1}) {
    for (const int64_t merge : {0, 1}) {
      attention(0.3)
          .attr("heads", int64_t{3})
          .attr("key_heads", key_heads)
          .attr("merge_heads", merge)
          .random_input({2, 90, (3 + 2 * (key_heads == 0 ? 3 : key_heads)) * 20})
          .absent()
          .absent()
          .random_input({90, 90})
          .expect_kernels(kKernel);
    }
  }
}

TEST_F(AttentionTest, Empty) {
  attention()
      .input({1, 1, 2, 1}, {0, 0})
      .input({1, 1, 0, 1}, std::vector<float>{})
      .input({1, 1, 0, 2}, std::vector<float>{})
      .expect({1, 1, 2, 2}, {0, 0, 0, 0})
      .expect_kernels();
  attention()
      .input({0, 1, 2, 1}, std::vector<float>{})
      .input({0, 1, 3, 1}, std::vector<float>{})
      .input({0, 1, 3, 1}, std::vector<float>{})
      .expect({0, 1, 2, 1}, {})
      .expect_kernels();
}

TEST_F(AttentionTest, Errors) {
  const auto shapes = [&](const Dims& q, const Dims& k, const Dims& v) {
    return attention().random_input(q).random_input(k).random_input(v);
  };
  shapes({3, 4}, {1, 1, 1, 1}, {1, 1, 1, 1}).expect_invalid({"rank 3 or 4", "[3,4]"});
  shapes({2, 3, 4}, {1, 1, 1, 1}, {1, 1, 1, 1}).expect_invalid({"heads", "4", "0"});
  shapes({2, 3, 4}, {2, 3, 4}, {2, 3, 4}).attr("heads", int64_t{3}).expect_invalid({"heads", "4", "3"});
  attention().random_input({2, 3, 4}).random_input({2, 3, 4}).attr("heads", int64_t{1}).expect_invalid({"both"});
  attention().random_input({2, 3, 8}).attr("heads", int64_t{3}).expect_invalid({"3 heads", "[2,3,8]"});
  attention().random_input({2, 3, 8}).attr("heads", std::numeric_limits<int64_t>::max()).expect_invalid({"[2,3,8]"});
  shapes({1, 2, 3, 4}, {1, 2, 3, 5}, {1, 2, 3, 4}).expect_invalid({"4", "[1,2,3,5]"});
  shapes({1, 3, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}).expect_invalid({"multiple", "3", "2"});
  shapes({1, 3, 3, 4}, {1, 0, 3, 4}, {1, 0, 3, 4}).expect_invalid({"multiple", "3", "0"});
  shapes({1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}).random_input({2, 9}).expect_invalid({"mask", "[2,9]"});
  shapes({1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 4})
      .absent()
      .input({2}, std::vector<int64_t>{1, 1})
      .expect_invalid({"lengths", "[1]", "[2]"});
}

class RotaryEmbeddingTest : public AttentionTest {
 protected:
  OpTester rotary() { return OpTester(host_, "tenon.rotary_embedding/1"); }
  const std::vector<std::string> kernel_ = {"tenon.rotary_embedding.rows.f32"};
};

TEST_F(RotaryEmbeddingTest, Values) {
  // Row 1 turns by a quarter, (a, b) to (-b, a); row 0 leaves all as it is.
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8};
  rotary()
      .input({1, 1, 2, 4}, x)
      .input({2, 2}, {1, 1, 0, 0})
      .input({2, 2}, {0, 0, 1, 1})
      .input({1, 2}, std::vector<int64_t>{1, 0})
      .expect({1, 1, 2, 4}, {-3, -4, 1, 2, 5, 6, 7, 8})
      .expect_kernels(kernel_);
  rotary()
      .attr("interleaved", int64_t{1})
      .input({1, 1, 2, 4}, x)
      .input({1, 2, 2}, {1, 1, 0, 0})
      .input({1, 2, 2}, {0, 0, 1, 1})
      .expect({1, 1, 2, 4}, {1, 2, 3, 4, -6, 5, -8, 7})
      .expect_kernels(kernel_);
  // Two heads of rank 3; only the first two numbers of each turn.
  rotary()
      .attr("num_heads", int64_t{2})
      .attr("rotary_size", int64_t{2})
      .input({1, 1, 8}, x)
      .input({1, 1, 1}, {0})
      .input({1, 1, 1}, {1})
      .expect({1, 1, 8}, {-2, 1, 3, 4, -6, 5, 7, 8})
      .expect_kernels(kernel_);
}

TEST_F(RotaryEmbeddingTest, KernelsAgree) {
  for (const int64_t interleaved : {0, 1}) {
    rotary()
        .attr("interleaved", interleaved)
        .attr("rotary_size", int64_t{24})
        .random_input({2, 3, 50, 30})
        .random_input({2, 50, 12})
        .random_input({2, 50, 12})
        .expect_kernels(kernel_);
  }
}

TEST_F(RotaryEmbeddingTest, Errors) {
  rotary().random_input({1, 1, 8}).random_input({1, 1, 4}).random_input({1, 1, 4}).expect_invalid({"num_heads", "8"});
  rotary().random_input({1, 1, 2, 3}).random_input({1, 2, 1}).random_input({1, 2, 1}).expect_invalid({"even", "3"});
  rotary().random_input({1, 1, 2, 4}).random_input({1, 2, 1}).random_input({1, 2, 2}).expect_invalid({"[1,2,2]"});
}

const std::vector<std::string> kRecurrent = {"tenon.linear_attention.recurrent.f32"};

class LinearAttentionTest : public AttentionTest {
 protected:
  // Keys and values of size 1, so that the state is a number; two steps.
  OpTester linear(const std::string& rule) {
    OpTester tester(host_, "tenon.linear_attention/1");
    tester.attr("heads", int64_t{1}).attr("key_heads", int64_t{1}).attr("rule", rule);
    tester.input({1, 2, 1}, {1, 2}).input({1, 2, 1}, {3, 4}).input({1, 2, 1}, {5, 6}).input({1, 1, 1, 1}, {10});
    return tester;
  }
};

TEST_F(LinearAttentionTest, Rules) {
  const float half = static_cast<float>(std::log(0.5));
  const auto expect = [](OpTester tester, double first, double second) {
    tester.outputs(2, 0).expect({1, 2, 1}, {first, 2 * second}, 1e-4).expect_kernels(kRecurrent);
    tester.outputs(2, 1).expect({1, 1, 1, 1}, {second}, 1e-4).expect_kernels(kRecurrent);
  };
  expect(linear("linear"), 10 + 15, 25 + 24);
  expect(linear("gated").input({1, 2, 1}, {half, half}), 5 + 15, 10 + 24);
  // 10 + 0.1 * 3 * (5 - 30) = 2.5; 2.5 + 0.1 * 4 * (6 - 10) = 0.9
  expect(linear("delta").absent().input({1, 2, 1}, {0.1f, 0.1f}), 2.5, 0.9);
  // 5 + 0.1 * 3 * (5 - 15) = 2; 1 + 0.1 * 4 * (6 - 4) = 1.8
  expect(linear("gated_delta").input({1, 2, 1}, {half, half}).input({1, 2, 1}, {0.1f, 0.1f}), 2, 1.8);
}

TEST_F(LinearAttentionTest, HeadsSizesAndScale) {
  // One key head of size 2 with values of size 1 and two heads of q; no state before.
  OpTester tester(host_, "tenon.linear_attention/1");
  tester.attr("heads", int64_t{2}).attr("key_heads", int64_t{1}).attr("rule", std::string("gated")).attr("scale", 10.0);
  tester.input({1, 2, 4}, {1, 0, 0, 1, 1, 1, 1, -1})
      .input({1, 2, 2}, {1, 2, 3, 4})
      .input({1, 2, 1}, {1, 1})
      .absent()
      .input({1, 2, 2}, {0, 0, static_cast<float>(std::log(0.5)), 0});
  // S = [1, 2], then [0.5 + 3, 2 + 4].
  tester.outputs(2, 0).expect({1, 2, 2}, {10, 20, 95, -25}, 1e-4).expect_kernels(kRecurrent);
  tester.outputs(2, 1).expect({1, 1, 2, 1}, {3.5, 6}, 1e-5).expect_kernels(kRecurrent);
}

TEST_F(LinearAttentionTest, KernelsAgree) {
  for (const char* rule : {"linear", "delta"}) {
    OpTester tester(host_, "tenon.linear_attention/1");
    tester.attr("heads", int64_t{4}).attr("key_heads", int64_t{2}).attr("rule", std::string(rule));
    tester.random_input({3, 7, 4 * 12}).random_input({3, 7, 2 * 12}, 0.2).random_input({3, 7, 2 * 20});
    tester.random_input({3, 2, 12, 20}).absent().random_input({3, 7, 1}, 0.5);
    for (const int output : {0, 1}) tester.outputs(2, output).expect_kernels(kRecurrent);
  }
}

TEST_F(LinearAttentionTest, Errors) {
  linear("gated").outputs(2, 0).expect_invalid({"decay", "gated"});
  linear("delta").outputs(2, 0).expect_invalid({"beta", "delta"});
  linear("gated").random_input({1, 2, 3}).outputs(2, 0).expect_invalid({"decay", "[1,2,3]"});
}

}  // namespace
}  // namespace tenon::testing
