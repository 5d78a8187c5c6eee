// Expected values: the same layers run by ONNX Runtime 1.32.0 in float32.
#include <gtest/gtest.h>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class RecurrentTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("recurrent")); }
  OpTester layer(const std::string& cell) { return OpTester(host_, "tenon." + cell + "/1"); }
  TestHost host_;
};

// Checks each output and all kernels on it.
void expect_outputs(OpTester tester, const std::string& cell, const std::vector<Dims>& dims,
                    const std::vector<std::vector<double>>& values) {
  const int count = static_cast<int>(values.size());
  for (int n = 0; n < count; ++n) {
    const auto at = static_cast<size_t>(n);
    tester.outputs(count, n).expect(dims[at], values[at], 2e-6).expect_kernels({"tenon." + cell + ".gemm.f32"});
  }
}

TEST_F(RecurrentTest, LstmBidirectionalWithLengthsAndPeepholes) {
  OpTester tester = layer("lstm");
  tester.attr("direction", std::string("bidirectional"))
      .input({2, 2, 2}, {-0.125, 0.5, -1, -0.375, -0.75, -0.875, -0.625, -0.25})
      .input({2, 8, 2}, {-0.25,  0.125,  -0.125, 0.375,  -0.625, 0.75,   -1,    0.375,  -0.125, 0.125,  -0.75,
                         -0.625, 0.625,  0.875,  -0.375, 0.375,  0.75,   0.75,  -0.875, -0.875, -0.625, 0.75,
                         -0.75,  -0.125, 0.875,  0.125,  0.375,  -0.375, 0.375, 0.625,  -1,     0.5})
      .constant()
      .input({2, 8, 2}, {1,     0.5,    -0.5,   0.625, -0.75,  -0.125, 0.875, -0.375, -0.375, -0.75, -1,
                         0.375, -0.625, -0.5,   -0.0f, -0.875, 0.125,  -0.75, 0.125,  0.375,  -0.75, -0.125,
                         0.375, -0.125, -0.875, 0.125, 0.375,  0,      0.875, 0.125,  0.75,   -0.75})
      .constant()
      .input({2, 16}, {-0.75,  0.625, -0.25, -0.625, 0.875, -0.25, 0.5,    0.5,   0.75,  0.25,   0.5,
                       -0.25,  -0.5,  0.75,  -0.125, 0.875, 0.375, 0.25,   -0.75, 0.875, -0.125, 0.125,
                       -0.125, -0.5,  0.75,  0.125,  -1,    0.25,  -0.375, 0,     0.75,  -0.25})
      .constant()
      .input({2}, std::vector<int32_t>{1, 2})
      .input({2, 2, 2}, {0.875, 0.25, -1, 0.875, 0.375, 1, -0.625, -0.75})
      .input({2, 2, 2}, {0.875, 0.375, -0.875, 0.5, 0.5, 0.875, 0.375, -0.75})
      .input({2, 6}, {-1, -1, -1, -0.5, 0.75, 0.125, 0.125, 0.625, -0.75, -0.5, 0.125, 1})
      .constant();
  expect_outputs(tester, "lstm", {{2, 2, 2, 2}, {2, 2, 2}, {2, 2, 2}},
                 {{0.1920011, 0.2616311, -0.4400457, 0.1161227, 0.05990029, 0.08861139, -0.01223091, 0.03957364, 0, 0,
                   -0.2196802, 0.166556, 0, 0, -0.04293728, -0.2368447},
                  {0.1920011, 0.2616311, -0.2196802, 0.166556, 0.05990029, 0.08861139, -0.01223091, 0.03957364},
                  {0.5983063, 0.6791897, -0.303863, 1.34432, 0.7628881, 0.1182829, -0.05724007, 0.04544946}});
}

TEST_F(RecurrentTest, LstmClipInputForgetAndActivations) {
  OpTester tester = layer("lstm");
  tester.attr("direction", std::string("reverse"))
      .attr("clip", 0.5)
      .attr("input_forget", int64_t{1})
      .attr("activations", std::string("HardSigmoid,Elu,ScaledTanh"))
      .attr("activation_alpha", std::vector<double>{0.3, 0.7, 1.5})
      .attr("activation_beta", std::vector<double>{0.4, 0.6})
      .input({2, 1, 2}, {-0.125, -1, 0.125, -0.125})
      .input({1, 8, 2},
             {-0.125, -0.375, -0.625, 0.25, -0.375, -0.5, 0.25, 0, -0.75, 0, -0.625, 0.625, 0.75, -0.0f, 0.75, -0.875})
      .constant()
      .input({1, 8, 2},
             {0, -0.875, -0.125, -0.75, -0.75, 0.25, -0.5, -0.75, -0.5, -0.25, -0.125, -0.625, 0.25, -0.0f, 0, -0.25})
      .constant()
      .input({1, 16}, {0.625, 0.125, -0.625, 0.375, 0.875, 0, 0.75, -0.375, 0.125, -0.125, -0.125, 0.5, 0.125, 0.875,
                       0.125, -0.875})
      .constant()
      .absent()
      .input({1, 1, 2}, {-0.25, 0.75})
      .input({1, 1, 2}, {-0.125, -1})
      .absent();
  expect_outputs(tester, "lstm", {{2, 1, 1, 2}, {1, 1, 2}, {1, 1, 2}},
                 {{0.09180582, -0.2677276, 0.03893153, -0.3691865}, {0.09180582, -0.2677276}, {0.3417969, -0.5611482}});
}

TEST_F(RecurrentTest, Gru) {
  OpTester tester = layer("gru");
  tester.input({2, 2, 1}, {0.125, 0.375, -0.375, 0})
      .input({1, 6, 1}, {0.75, 0.75, -0.75, -0.625, -0.875, -0.125})
      .constant()
      .input({1, 6, 2}, {-1, -0.125, 0.25, -0.5, 0.375, 0.125, -1, 0.125, -0.5, -0.125, -0.375, 0.375})
      .constant()
      .input({1, 12}, {-0.125, -0.625, 0.125, 0.5, -0.375, -0.5, -0.25, 0.875, 1, 0.375, 0.75, 0.75})
      .constant()
      .input({2}, std::vector<int32_t>{2, 1})
      .input({1, 2, 2}, {-0.25, -0.875, 0.25, 0.125});
  expect_outputs(tester, "gru", {{2, 1, 2, 2}, {1, 2, 2}},
                 {{0.06535599, -0.5674028, 0.07175972, 0.1387544, 0.4312971, -0.2686044, 0, 0},
                  {0.4312971, -0.2686044, 0.07175972, 0.1387544}});
}

TEST_F(RecurrentTest, GruLinearBeforeReset) {
  OpTester tester = layer("gru");
  tester.attr("direction", std::string("bidirectional"))
      .attr("linear_before_reset", int64_t{1})
      .input({2, 1, 2}, {0.875, 0.125, 1, 0.375})
      .input({2, 6, 2}, {0.375, -0.625, 1,      -1,    -0.5,   -0.125, 0.5,   -0.625, 0.75,   1,      -0.625, 0.25,
                         -1,    -0.25,  -0.875, 0.875, -0.125, 0.875,  0.625, 0.75,   -0.625, -0.875, 0.25,   -0.625})
      .constant()
      .input({2, 6, 2}, {0.5,   -0.125, 0,   0.875,  0,     -0.75, -0.625, 0.125, 0,     0.25, -0.25, 0.25,
                         -0.25, 0.25,   0.5, -0.625, -0.25, 0,     0.375,  -0.5,  0.125, 0.25, 0.75,  -0.25})
      .constant()
      .input({2, 12}, {0.25, -0.625, -0.0f, -0.625, 0.875, -0.125, 0.625, -0.125, 0.75, -0.25, -0.375, 0.125,
                       0.75, 0.75,   0.25,  -0.875, 0.25,  -0.5,   0.5,   0.75,   0,    0.25,  -0.875, 0.125})
      .constant()
      .absent()
      .input({2, 1, 2}, {-0.75, 0.25, -0.25, 0.5});
  expect_outputs(tester, "gru", {{2, 2, 1, 2}, {2, 1, 2}},
                 {{-0.2081697, -0.0510285, -0.5840659, -0.09140304, 0.1209241, -0.3121523, -0.4911749, 0.1189587},
                  {0.1209241, -0.3121523, -0.5840659, -0.09140304}});
}

TEST_F(RecurrentTest, RnnBackwardsBeginsAtEachSequencesEnd) {
  OpTester tester = layer("rnn");
  tester.attr("direction", std::string("reverse"))
      .attr("activations", std::string("LeakyRelu"))
      .attr("activation_alpha", std::vector<double>{0.25})
      .input({2, 2, 1}, {-0.5, 0.75, -0.625, 0.875})
      .input({1, 2, 1}, {0, 0.25})
      .constant()
      .input({1, 2, 2}, {0.5, 0, -0.375, -0.625})
      .constant()
      .input({1, 4}, {-0.875, 0.5, -0.125, -0.625})
      .constant()
      .input({2}, std::vector<int32_t>{1, 2})
      .absent();
  expect_outputs(
      tester, "rnn", {{2, 1, 2, 2}, {1, 2, 2}},
      {{-0.25, -0.0625, -0.28125, 0.09765625, 0, 0, -0.25, 0.09375}, {-0.25, -0.0625, -0.28125, 0.09765625}});
}

TEST_F(RecurrentTest, KernelsAgree) {
  const std::pair<const char*, int64_t> cells[] = {{"rnn", 1}, {"gru", 3}, {"lstm", 4}};
  const char* activations[] = {"Softsign", "Sigmoid,Softplus", "ThresholdedRelu,Affine,Relu"};
  for (int cell = 0; cell < 3; ++cell) {
    const auto& [name, gates] = cells[cell];
    for (const int64_t batch : {1, 5}) {
      for (const bool special : {false, true}) {
        OpTester tester = layer(name);
        if (special) tester.attr("activations", std::string(activations[cell])).attr("clip", 1.0);
        tester.random_input({7, batch, 19})
            .random_input({1, gates * 33, 19}, 0.2)
            .constant()
            .random_input({1, gates * 33, 33}, 0.2)
            .constant();
        if (special) {
          tester.absent();
        } else {
          tester.random_input({1, 2 * gates * 33}).constant();
        }
        for (int output = 0; output < (cell == 2 ? 3 : 2); ++output) {
          tester.outputs(cell == 2 ? 3 : 2, output).expect_kernels({std::string("tenon.") + name + ".gemm.f32"});
        }
      }
    }
  }
}

// Weights that are computed, all inputs of one dtype; GPUs get them in f16 too.
TEST_F(RecurrentTest, ComputedWeights) {
  const struct {
    const char* name;
    int64_t gates;
    int outputs;
  } cells[] = {{"rnn", 1, 2}, {"gru", 3, 2}, {"lstm", 4, 3}};
  for (const auto& cell : cells) {
    for (int output = 0; output < cell.outputs; ++output) {
      OpTester tester = layer(cell.name);
      tester.random_input({3, 2, 5}).random_input({1, cell.gates * 4, 5}).random_input({1, cell.gates * 4, 4});
      tester.outputs(cell.outputs, output).expect_kernels();
    }
  }
}

TEST_F(RecurrentTest, Empty) {
  OpTester tester = layer("rnn");
  tester.input({0, 2, 1}, std::vector<float>{})
      .input({1, 1, 1}, {1})
      .constant()
      .input({1, 1, 1}, {1})
      .constant()
      .absent()
      .absent()
      .input({1, 2, 1}, {3, 4});
  tester.outputs(2, 0).expect({0, 1, 2, 1}, {}).expect_kernels();
  tester.outputs(2, 1).expect({1, 2, 1}, {3, 4}).expect_kernels();
}

TEST_F(RecurrentTest, Errors) {
  const auto lstm = [&](const Dims& x, const Dims& w, const Dims& r) {
    return layer("lstm").random_input(x).random_input(w).random_input(r).outputs(3, 0);
  };
  lstm({2, 1}, {1, 8, 3}, {1, 8, 2}).expect_invalid({"rank 3", "[2,1]"});
  lstm({2, 1, 3}, {1, 8, 3}, {1, 7, 2}).expect_invalid({"recurrence", "[1,7,2]"});
  lstm({2, 1, 3}, {1, 8, 4}, {1, 8, 2}).expect_invalid({"weights", "[1,8,3]", "[1,8,4]"});
  lstm({2, 1, 3}, {1, 8, 3}, {1, 8, 2}).random_input({1, 8}).expect_invalid({"bias", "[1,16]", "[1,8]"});
  lstm({2, 1, 3}, {1, 8, 3}, {1, 8, 2}).attr("activations", std::string("Tanh")).expect_invalid({"3", "1"});
  lstm({2, 1, 3}, {1, 8, 3}, {1, 8, 2})
      .attr("activations", std::string("Tanh,Tanh,Sine"))
      .expect_invalid({"activation", "sine"});
  lstm({2, 1, 3}, {1, 8, 3}, {1, 8, 2}).attr("direction", std::string("bidirectional")).expect_invalid({"[2,"});
}

}  // namespace
}  // namespace tenon::testing
