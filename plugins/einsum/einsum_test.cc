// Expected values by hand.
#include <gtest/gtest.h>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class EinsumTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("einsum")); }
  OpTester einsum(const std::string& equation) {
    OpTester tester(host_, "tenon.einsum/1");
    tester.attr("equation", equation);
    return tester;
  }
  TestHost host_;
};

TEST_F(EinsumTest, OneOperand) {
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  einsum("ij->ji").input({2, 3}, x).expect({3, 2}, {1, 4, 2, 5, 3, 6});
  einsum("ij -> i").input({2, 3}, x).expect({2}, {6, 15});
  einsum("ij->").input({2, 3}, x).expect({}, {21});
  einsum("ii->i").input({2, 2}, {1, 2, 3, 4}).expect({2}, {1, 4});
  einsum("ii").input({2, 2}, {1, 2, 3, 4}).expect({}, {5});
  // Upper case sorts before lower case.
  einsum("aB").input({2, 3}, x).expect({3, 2}, {1, 4, 2, 5, 3, 6});
  einsum("...ii->...i").input({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}).expect({2, 2}, {1, 4, 5, 8});
  einsum("->").input({}, {7}).expect({}, {7});
}

TEST_F(EinsumTest, Products) {
  const std::vector<float> a = {1, 2, 3, 4, 5, 6};
  einsum("ij,jk").input({2, 3}, a).input({3, 1}, {1, 0, -1}).expect({2, 1}, {-2, -2});
  einsum("i,j->ij").input({2}, {1, 2}).input({3}, {3, 4, 5}).expect({2, 3}, {3, 4, 5, 6, 8, 10});
  einsum("i,i,i->").input({2}, {1, 2}).input({2}, {3, 4}).input({2}, {5, 6}).expect({}, {63});
  // 2^40 is exact in its own type only.
  einsum("i,i")
      .input({2}, std::vector<int64_t>{int64_t{1} << 40, 3})
      .input({2}, std::vector<int64_t>{2, 1})
      .expect({}, {2199023255555.0});
}

TEST_F(EinsumTest, EllipsisBroadcasts) {
  // [2,1] * [3] -> [2,3] after the sum over k.
  einsum("...k,...k->...")
      .input({2, 1, 2}, {1, 2, 3, 4})
      .input({3, 2}, {1, 0, 0, 1, 1, 1})
      .expect({2, 3}, {1, 2, 3, 3, 4, 7});
  // Implicit form: the axes of "..." come first.
  einsum("i...,j").input({2, 1}, {1, 2}).input({2}, {3, 4}).expect({1, 2, 2}, {3, 4, 6, 8});
}

TEST_F(EinsumTest, Empty) {
  einsum("ij->i").input({2, 0}, std::vector<float>{}).expect({2}, {0, 0});
  einsum("ij->j").input({2, 0}, std::vector<float>{}).expect({0}, {});
}

TEST_F(EinsumTest, Errors) {
  einsum("ij").random_input({2, 3, 4}).expect_invalid({"'ij'", "[2,3,4]"});
  einsum("ij,jk").random_input({2, 3}).expect_invalid({"2 terms", "1 inputs"});
  einsum("ij,jk").random_input({2, 3}).random_input({4, 5}).expect_invalid({"3", "4"});
  einsum("i->j").random_input({2}).expect_invalid({"label of the result"});
  einsum("i->ii").random_input({2}).expect_invalid({"repeated"});
  einsum("i1->i").random_input({2}).expect_invalid({"letters"});
  einsum("..i->i").random_input({2}).expect_invalid({"..."});
  einsum("...i->i").random_input({2, 2}).expect_invalid({"'...' in the result"});
  einsum("i").input({1}, std::vector<uint8_t>{1}).expect({1}, {1});
}

}  // namespace
}  // namespace tenon::testing
