#include "core/graph/passes.h"

#include <gtest/gtest.h>

#include "core/graph/convert.h"
#include "core/graph/test_ops.h"

namespace tenon {
namespace {

using test::f32_tensor;
using Tensors = std::vector<std::shared_ptr<const HostTensor>>;

std::shared_ptr<const HostTensor> f16_tensor(const std::vector<float>& values) {
  std::vector<std::uint16_t> bits;
  for (const float value : values) bits.push_back(f32_to_f16(value));
  return *HostTensor::create(TN_F16, make_dims({static_cast<std::int64_t>(bits.size())}), bits.data(), bits.size() * 2);
}

TEST(EvaluateReference, AppliesEpilogues) {
  Graph graph = test::empty_graph();
  const ValueId x = *graph.add_input("x", TN_F32, make_dims({3}));
  test::node(&graph, "test.add/1", "add", {x, x});
  graph.node(0).epilogues = {Expression({{TN_EX_INPUT, TN_F32, 0, 0, 0, 0, 0}, {TN_EX_NEG, TN_F32, 0, 0, 0, 0, 0}})};
  const auto tensor = f32_tensor({3}, {1, -2, 3});
  const auto outputs = evaluate_reference(graph, 0, {tensor, tensor});
  ASSERT_TRUE(outputs.ok()) << outputs.status().message();
  EXPECT_EQ(test::floats(*(*outputs)[0]), (std::vector<float>{-2, 4, -6}));
}

TEST(EvaluateReference, HalfGoesThroughF32) {
  Graph graph = test::empty_graph();
  const ValueId x = *graph.add_input("x", TN_F16, make_dims({2}));
  test::node(&graph, "test.add/1", "add", {x, x});
  const auto outputs = evaluate_reference(graph, 0, {f16_tensor({1, 2048}), f16_tensor({0.5f, 1})});
  ASSERT_TRUE(outputs.ok()) << outputs.status().message();
  EXPECT_EQ((*outputs)[0]->dtype(), TN_F16);
  EXPECT_EQ((*outputs)[0]->bytes(), 4u);
  const auto* bits = static_cast<const std::uint16_t*>((*outputs)[0]->data());
  EXPECT_EQ(f16_to_f32(bits[0]), 1.5f);
  EXPECT_EQ(f16_to_f32(bits[1]), 2048.0f);  // 2049 is a tie, to even
}

// f8e4m3fn: 0x38 is 1, 0x7E is 448, its largest number; f4e2m1: the codes 0 to 7 are 0, 0.5, 1, 1.5, 2, 3, 4, 6.
TEST(EvaluateReference, SmallDtypesAreWidenedAndRoundedOnce) {
  const auto sum = [](std::int32_t dtype, std::int64_t count, const std::vector<std::uint8_t>& bytes) {
    Graph graph = test::empty_graph();
    const ValueId x = *graph.add_input("x", dtype, make_dims({count}));
    test::node(&graph, "test.add/1", "add", {x, x});
    const auto tensor = *HostTensor::create(dtype, make_dims({count}), bytes.data(), bytes.size());
    const auto outputs = evaluate_reference(graph, 0, {tensor, tensor});
    EXPECT_TRUE(outputs.ok()) << outputs.status().message();
    EXPECT_EQ((*outputs)[0]->dtype(), dtype);
    const auto* data = static_cast<const std::uint8_t*>((*outputs)[0]->data());
    return std::vector<std::uint8_t>(data, data + (*outputs)[0]->bytes());
  };
  EXPECT_EQ(sum(TN_F8E4M3FN, 2, {0x38, 0x7E}), (std::vector<std::uint8_t>{0x40, 0x7F}));
  EXPECT_EQ(sum(TN_F4E2M1, 3, {0x52, 0x0F}), (std::vector<std::uint8_t>{0x74, 0x0F}));
  EXPECT_EQ(sum(TN_F16, 1, {0x00, 0x7C}), (std::vector<std::uint8_t>{0x00, 0x7C}));
}

TEST(EvaluateReference, Errors) {
  Graph graph = test::empty_graph();
  const ValueId x = *graph.add_input("x", TN_F32, make_dims({2}));
  test::node(&graph, "test.relu/1", "relu", {x});
  test::node(&graph, "test.identity/1", "id", {x});
  const auto message = [&](NodeId node, const Tensors& inputs) {
    return evaluate_reference(graph, node, inputs).status().message();
  };
  EXPECT_EQ(message(0, {}), "node \"relu\" (test.relu/1): 0 tensors for 1 inputs");
  EXPECT_EQ(message(0, {nullptr}), "node \"relu\" (test.relu/1): the tensor of input 0 is missing");
  EXPECT_EQ(message(0, {f32_tensor({1}, {1})}),
            "node \"relu\" (test.relu/1): input 0 (\"x\") is f32[2], but the tensor is f32[1]");
  EXPECT_EQ(message(1, {f32_tensor({2}, {1, 2})}), "node \"id\" (test.identity/1): the op has no reference");
}

TEST(FoldConstants, FoldsChainsAndKeepsTheRest) {
  Graph graph = test::empty_graph();
  const ValueId x = *graph.add_input("x", TN_F32, make_dims({2}));
  const ValueId a = *graph.add_constant("a", f32_tensor({2}, {1, -5}));
  const ValueId sum = test::node(&graph, "test.add/1", "sum", {a, a});
  const ValueId positive = test::node(&graph, "test.relu/1", "positive", {sum});
  const ValueId noise = test::node(&graph, "test.random/1", "noise", {a});
  const ValueId kept = test::node(&graph, "test.identity/1", "kept", {a});
  const ValueId y = test::node(&graph, "test.add/1", "y", {x, positive});
  // What the graph gives has to be computed by something.
  const ValueId given = test::node(&graph, "test.relu/1", "given", {sum});
  for (const ValueId value : {y, noise, kept, given}) ASSERT_TRUE(graph.add_output(value).ok());
  const Result<int> folded = fold_constants(&graph);
  ASSERT_TRUE(folded.ok()) << folded.status().message();
  EXPECT_EQ(*folded, 2);
  ASSERT_NE(graph.value(positive).constant, nullptr);
  EXPECT_EQ(test::floats(*graph.value(positive).constant), (std::vector<float>{2, 0}));
  EXPECT_EQ(graph.value(noise).constant, nullptr);
  EXPECT_EQ(graph.value(kept).constant, nullptr);
  EXPECT_NE(graph.value(given).producer, kNoId);
  graph.remove_dead();
  EXPECT_TRUE(graph.verify().ok()) << graph.verify().message();
  EXPECT_EQ(*fold_constants(&graph), 0);
}

TEST(FoldConstants, RespectsTheLimitAndIntegers) {
  Graph graph = test::empty_graph();
  const ValueId shape = *graph.add_constant("shape", test::i64_tensor({2, 3}));
  const ValueId more = test::node(&graph, "test.add/1", "more", {shape, shape});
  const ValueId y = test::node(&graph, "test.fill/1", "filled", {more});
  EXPECT_EQ(dims_text(graph.value(y).dims), "[4,6]");
  EXPECT_EQ(*fold_constants(&graph, 95), 1);  // the shape
  EXPECT_EQ(*fold_constants(&graph, 96), 1);
}

TEST(FoldConstants, AFailingReferenceIsAnError) {
  Graph graph = test::empty_graph();
  const ValueId a = *graph.add_constant("a", f32_tensor({1}, {1}));
  test::node(&graph, "test.fails/1", "n", {a});
  EXPECT_EQ(fold_constants(&graph).status().message(),
            "folding constants: node \"n\" (test.fails/1): reference: division by zero");
}

}  // namespace
}  // namespace tenon
