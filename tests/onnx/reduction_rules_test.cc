// The softmax family before opset 13 (all axes from `axis` on are one) and since (a single axis), and normalisation
// where a rule does more than name an op. Expected values: zeros give equal shares; the others by hand.
#include <cmath>

#include "tests/onnx/model_tester.h"

namespace tenon::testing {
namespace {

std::vector<float> zeros(std::size_t count) { return std::vector<float>(count); }
std::vector<double> all(std::size_t count, double value) { return std::vector<double>(count, value); }

TEST(SoftmaxRules, AllAxesFromOneOnUpToOpset12) {
  for (const int opset : {7, 11, 12}) {
    ModelTester("Softmax", opset).attr("axis", 1).input({1, 2, 1, 2}, zeros(4)).expect({1, 2, 1, 2}, all(4, 0.25));
    ModelTester("Softmax", opset).input({1, 2, 1, 2}, zeros(4)).expect({1, 2, 1, 2}, all(4, 0.25));
    ModelTester("Softmax", opset).input({2, 3, 4}, zeros(24)).expect({2, 3, 4}, all(24, 1.0 / 12));
    ModelTester("Softmax", opset).attr("axis", -1).input({2, 3, 4}, zeros(24)).expect({2, 3, 4}, all(24, 0.25));
    ModelTester("Softmax", opset).attr("axis", 0).input({2, 3, 4}, zeros(24)).expect({2, 3, 4}, all(24, 1.0 / 24));
    ModelTester("LogSoftmax", opset).input({2, 3, 4}, zeros(24)).expect({2, 3, 4}, all(24, -std::log(12.0)));
    ModelTester("Hardmax", opset).input({1, 2, 1, 2}, {1, 2, 3, 3}).expect({1, 2, 1, 2}, {0, 0, 1, 0});
  }
}

TEST(SoftmaxRules, OneAxisSinceOpset13) {
  for (const int opset : {13, 22}) {
    ModelTester("Softmax", opset).attr("axis", 1).input({1, 2, 1, 2}, zeros(4)).expect({1, 2, 1, 2}, all(4, 0.5));
    ModelTester("Softmax", opset).input({1, 2, 1, 2}, zeros(4)).expect({1, 2, 1, 2}, all(4, 0.5));
    ModelTester("Softmax", opset).input({2, 3, 4}, zeros(24)).expect({2, 3, 4}, all(24, 0.25));
    ModelTester("Softmax", opset).attr("axis", -2).input({1, 1023}, zeros(1023)).expect({1, 1023}, all(1023, 1));
    ModelTester("LogSoftmax", opset)
        .attr("axis", 1)
        .input({2, 3, 4}, zeros(24))
        .expect({2, 3, 4}, all(24, -std::log(3.0)));
    ModelTester("Hardmax", opset).input({1, 2, 1, 2}, {1, 2, 3, 3}).expect({1, 2, 1, 2}, {0, 1, 1, 0});
    ModelTester("Hardmax", opset).attr("axis", 1).input({1, 2, 1, 2}, {1, 2, 3, 1}).expect({1, 2, 1, 2}, {0, 1, 1, 0});
  }
}

TEST(SoftmaxRules, WrongAxis) {
  ModelTester("Softmax", 11).attr("axis", 2).input({2, 3}, zeros(6)).expect_error("-2 to 1");
  ModelTester("Softmax", 13).attr("axis", -3).input({2, 3}, zeros(6)).expect_error("-2 to 1");
}

TEST(BatchNormalizationRule, StatisticsOfEachPosition) {
  // Without `spatial`: one scale, bias, mean and variance for each of the four numbers of an image.
  ModelTester norm("BatchNormalization", 7);
  norm.attr("spatial", 0).input({1, 2, 2}, {1, 2, 3, 4}).input({2, 2}, {1, 1, 2, 2}).input({2, 2}, {0, 1, 0, 1});
  norm.input({2, 2}, {1, 1, 1, 1}).input({2, 2}, {1, 1, 1, 1}).expect({1, 2, 2}, {0, 2, 4, 7}, 1e-4);
}

TEST(BatchNormalizationRule, Rank1HasOneChannel) {
  ModelTester norm("BatchNormalization", 9);
  norm.input({3}, {1, 2, 3}).input({1}, {2}).input({1}, {1}).input({1}, {2}).input({1}, {1});
  norm.expect({3}, {-1, 1, 3}, 1e-4);
}

TEST(BatchNormalizationRule, TrainingIsDeclined) {
  ModelTester norm("BatchNormalization", 15);
  norm.attr("training_mode", 1).input({1, 1}, {1}).input({1}, {2}).input({1}, {1}).input({1}, {2}).input({1}, {1});
  norm.expect_error("training_mode");
}

TEST(GroupNormalizationRule, ScaleOfGroupsThenOfChannels) {
  const std::vector<float> x = {1, 5, 3, 11};  // means 3 and 7, deviations 2 and 4
  ModelTester("GroupNormalization", 18)
      .attr("num_groups", 2)
      .input({1, 4}, x)
      .input({2}, {1, 2})
      .input({2}, {0, 10})
      .expect({1, 4}, {-1, 1, 8, 12}, 1e-4);
  ModelTester("GroupNormalization", 21)
      .attr("num_groups", 2)
      .input({1, 4}, x)
      .input({4}, {1, 2, 3, 4})
      .input({4}, {0, 0, 0, 1})
      .expect({1, 4}, {-1, 2, -3, 5}, 1e-4);
  ModelTester("GroupNormalization", 21)
      .attr("num_groups", 2)
      .input({1, 4}, x)
      .input({2}, {1, 2})
      .input({2}, {0, 10})
      .expect_error("expected [4], found [2]");
}

TEST(WrongModels, AbsentInputsAndBadAttributes) {
  ModelTester("HannWindow", 17).expect_error("required");
  ModelTester("If", 13).expect_error("required");
  ModelTester("Softmax", 13).expect_error("required");
  ModelTester("BatchNormalization", 15).input({1, 1}, {1}).expect_error("required");
  ModelTester("GroupNormalization", 21).input({1, 4}, zeros(4)).expect_error("num_groups");
  ModelTester("LRN", 13).attr("size", 0).input({1, 4}, zeros(4)).expect_error("size");
  ModelTester("LpNormalization", 22).attr("p", 3).input({1, 4}, zeros(4)).expect_error("outside [1,2]");
  ModelTester("LayerNormalization", 17).attr("axis", 2).input({1, 4}, zeros(4)).expect_error("axis");
  ModelTester("MeanVarianceNormalization", 13).input({1, 4}, zeros(4)).expect_error("axes");
  ModelTester("TfIdfVectorizer", 9).attr("pool_strings", 1).input({4}, zeros(4)).expect_error("pool_strings");
}

}  // namespace
}  // namespace tenon::testing
