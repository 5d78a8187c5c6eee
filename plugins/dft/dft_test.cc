// Expected values by hand: transforms of lengths 1 to 4, whose roots of unity are simple numbers.
#include <gtest/gtest.h>

#include <cmath>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class DftTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("dft")); }
  OpTester dft(int64_t inverse, int64_t onesided) {
    OpTester tester(host_, "tenon.dft/1");
    tester.attr("inverse", inverse).attr("onesided", onesided);
    return tester;
  }
  OpTester stft(int64_t onesided) {
    OpTester tester(host_, "tenon.stft/1");
    tester.attr("onesided", onesided);
    return tester;
  }
  TestHost host_;
};

TEST_F(DftTest, Forward) {
  dft(0, 0).input({4, 1}, {1, 2, 3, 4}).expect({4, 2}, {10, 0, -2, 2, -2, 0, -2, -2});
  dft(0, 1).input({4, 1}, {1, 2, 3, 4}).expect({3, 2}, {10, 0, -2, 2, -2, 0});
  const double root = std::sqrt(3.0) / 2;
  dft(0, 1).input({3, 1}, {1, 2, 3}).expect({2, 2}, {6, 0, -1.5, root});
  // i times the numbers above.
  dft(0, 0).input({4, 2}, {0, 1, 0, 2, 0, 3, 0, 4}).expect({4, 2}, {0, 10, -2, -2, 0, -2, 2, -2});
}

TEST_F(DftTest, Inverse) {
  dft(1, 0).input({4, 2}, {10, 0, -2, 2, -2, 0, -2, -2}).expect({4, 2}, {1, 0, 2, 0, 3, 0, 4, 0});
  dft(1, 1).input({3, 2}, {10, 0, -2, 2, -2, 0}).expect({4, 1}, {1, 2, 3, 4});
  // Of an odd length nothing lies in the middle.
  dft(1, 1)
      .input({2, 2}, {6, 0, -1.5, static_cast<float>(std::sqrt(3.0) / 2)})
      .input<int64_t>({}, {3})
      .constant()
      .expect({3, 1}, {1, 2, 3});
}

TEST_F(DftTest, LengthAndAxis) {
  const auto length = [](OpTester tester, int64_t n) { return tester.input<int64_t>({}, {n}).constant(); };
  length(dft(0, 0).input({3, 1}, {1, 2, 9}), 2).expect({2, 2}, {3, 0, -1, 0});
  length(dft(0, 0).input({2, 1}, {1, 2}), 4).expect({4, 2}, {3, 0, 1, -2, -1, 0, 1, 2});
  // Pairs along the first axis.
  dft(0, 0)
      .input({2, 2, 1}, {1, 2, 3, 5})
      .absent()
      .input<int64_t>({1}, {0})
      .constant()
      .expect({2, 2, 2}, {4, 0, 7, 0, -2, 0, -3, 0});
}

TEST_F(DftTest, ShortTime) {
  const std::vector<float> x = {1, 2, 3, 4, 5};
  const auto step = [](OpTester tester, int64_t n) { return tester.input<int64_t>({}, {n}).constant(); };
  step(stft(1).input({1, 5, 1}, x), 2)
      .absent()
      .input<int64_t>({}, {2})
      .constant()
      .expect({1, 2, 2, 2}, {3, 0, -1, 0, 7, 0, -1, 0});
  step(stft(0).input({1, 5, 1}, x), 3).input({2}, {1, 10}).expect({1, 2, 2, 2}, {21, 0, -19, 0, 54, 0, -46, 0});
  step(stft(1).input({1, 5, 1}, {1, 1, 1, 1, 1}), 1).expect({1, 1, 3, 2}, {5, 0, 0, 0, 0, 0});
}

TEST_F(DftTest, WrongInputs) {
  dft(0, 0).random_input({4, 3}).expect_invalid({"last axis", "[4,3]"});
  dft(0, 1).random_input({4, 2}).expect_invalid({"one-sided", "[4,2]"});
  dft(1, 1).random_input({4, 1}).expect_invalid({"one-sided", "[4,1]"});
  dft(1, 1).random_input({1, 2}).expect_invalid({"at least 1"});
  dft(0, 0).random_input({4, 1}).absent().input<int64_t>({}, {1}).constant().expect_invalid(
      {"axis", "before the last"});
  dft(0, 0).random_input({4, 1}).absent().input<int64_t>({}, {2}).constant().expect_invalid({"axis", "-2 to 1"});
  dft(0, 0).random_input({4, 1}).input<int64_t>({}, {INT64_MAX}).constant().expect_invalid({"dft_length"});
  dft(0, 0).random_input({4, 1}).input<int64_t>({}, {4}).expect_invalid({"dft_length", "known"});
  stft(1).random_input({1, 4, 1}).input<int64_t>({}, {0}).constant().expect_invalid({"frame_step", "0"});
  stft(1).random_input({1, 4, 1}).input<int64_t>({}, {1}).constant().random_input({5}).expect_invalid({"frame_length"});
  stft(1).random_input({1, 4, 2}).input<int64_t>({}, {1}).constant().expect_invalid({"one-sided"});
}

}  // namespace
}  // namespace tenon::testing
