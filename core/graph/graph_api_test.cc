#include <gtest/gtest.h>

#include "core/base/failure.h"
#include "core/graph/passes.h"
#include "core/graph/test_ops.h"

namespace tenon {
namespace {

class GraphApi : public testing::Test {
 protected:
  const TnGraphApi& api_ = graph_api();
  Graph graph_ = test::empty_graph();
  TnGraph* g_ = graph_.handle();
  TnDims dims_ = make_dims({2});
  std::string failure(TnStatus code) { return take_failure(code, "call").message(); }
};

TEST_F(GraphApi, BuildsAndReads) {
  TnValueId x = kNoId;
  ASSERT_EQ(api_.new_input(g_, "x", TN_F32, &dims_, &x), TN_OK);
  float data[2] = {1, 2};
  const TnTensor tensor = tensor_view(data, TN_F32, dims_, row_format(), TN_MEMORY_HOST);
  TnValueId c = kNoId;
  ASSERT_EQ(api_.new_const(g_, nullptr, &tensor, &c), TN_OK);
  data[0] = 9;
  TnAttrs* attrs = attr_api().create(nullptr);
  ASSERT_EQ(attr_api().set_f64(attrs, "alpha", 0.25), TN_OK);
  const char* names[] = {"out"};
  TnValueId y = kNoId;
  TnNodeId node = kNoId;
  ASSERT_EQ(api_.new_node(g_, "test.leaky/1", nullptr, attrs, &x, 1, names, &y, 1, &node), TN_OK);
  attr_api().destroy(attrs);
  EXPECT_STREQ(api_.node_name(g_, node), "leaky_out");
  EXPECT_STREQ(api_.node_op(g_, node), "test.leaky/1");
  double alpha = 0;
  EXPECT_EQ(attr_api().get_f64(api_.node_attrs(g_, node), "alpha", &alpha), TN_OK);
  EXPECT_EQ(alpha, 0.25);
  const TnValueId operands[] = {y, c};
  TnValueId sum = kNoId;
  ASSERT_EQ(api_.new_node(g_, "test.add/1", "sum", nullptr, operands, 2, nullptr, &sum, 1, nullptr), TN_OK);
  EXPECT_EQ(api_.node_num_inputs(g_, 1), 2u);
  EXPECT_EQ(api_.node_num_outputs(g_, 1), 1u);
  EXPECT_EQ(api_.node_input(g_, 1, 0), y);
  EXPECT_EQ(api_.node_input(g_, 1, 7), kNoId);
  EXPECT_EQ(api_.node_output(g_, 1, 0), sum);
  EXPECT_STREQ(api_.value_name(g_, sum), "sum");
  TnTensor desc{};
  ASSERT_EQ(api_.value_desc(g_, sum, &desc), TN_OK);
  EXPECT_EQ(desc.data, nullptr);
  EXPECT_EQ(desc.dims.d[0], 2);
  ASSERT_EQ(api_.value_const(g_, c, &desc), TN_OK);
  EXPECT_EQ(static_cast<float*>(desc.data)[0], 1);
  ASSERT_EQ(api_.add_output(g_, sum), TN_OK);
  ASSERT_EQ(api_.set_metadata(g_, "labels", "[]"), TN_OK);
  ASSERT_EQ(api_.replace(g_, sum, y), TN_OK);
  EXPECT_STREQ(api_.value_name(g_, y), "sum");
  EXPECT_TRUE(graph_.verify().ok());
}

TEST_F(GraphApi, FailuresHaveText) {
  TnValueId x = kNoId;
  ASSERT_EQ(api_.new_input(g_, "x", TN_F32, &dims_, &x), TN_OK);
  const std::string before = graph_.dump();
  TnTensor out{};
  TnValueId y = kNoId;
  EXPECT_EQ(api_.new_input(g_, "x", TN_F32, &dims_, &x), TN_CONFLICT);
  EXPECT_EQ(failure(TN_CONFLICT), "call: graph input \"x\": a value with this name exists already");
  EXPECT_EQ(api_.new_input(nullptr, "x", TN_F32, &dims_, &x), TN_INVALID);
  EXPECT_EQ(api_.new_node(g_, "test.rely/1", "n", nullptr, &x, 1, nullptr, &y, 1, nullptr), TN_NOTFOUND);
  EXPECT_EQ(failure(TN_NOTFOUND),
            "call: node \"n\" (test.rely/1): no loaded plugin has this op; did you mean test.relu/1?");
  EXPECT_EQ(api_.new_node(g_, "test.relu/1", "n", nullptr, nullptr, 1, nullptr, &y, 1, nullptr), TN_INVALID);
  EXPECT_EQ(failure(TN_INVALID), "call: new_node of test.relu/1: inputs or outputs is NULL");
  EXPECT_EQ(api_.value_const(g_, x, &out), TN_NOTFOUND);
  EXPECT_EQ(failure(TN_NOTFOUND), "call: value \"x\" is not constant");
  EXPECT_EQ(api_.value_desc(g_, 42, &out), TN_INVALID);
  EXPECT_EQ(failure(TN_INVALID), "call: graph: there is no value 42");
  EXPECT_EQ(api_.replace(g_, x, 42), TN_INVALID);
  EXPECT_EQ(api_.add_output(g_, 42), TN_INVALID);
  EXPECT_EQ(api_.set_metadata(g_, nullptr, ""), TN_INVALID);
  const TnTensor tensor = tensor_view(nullptr, TN_F32, dims_, row_format(), TN_MEMORY_HOST);
  EXPECT_EQ(api_.new_const(g_, "c", &tensor, &y), TN_INVALID);
  EXPECT_EQ(failure(TN_INVALID), "call: constant \"c\": a constant needs contents, but its data is NULL");
  EXPECT_STREQ(api_.node_name(g_, 5), "");
  EXPECT_EQ(failure(TN_INVALID), "call: graph: there is no node 5");
  EXPECT_STREQ(api_.node_op(g_, 5), "");
  EXPECT_STREQ(api_.value_name(nullptr, 5), "");
  EXPECT_EQ(api_.node_num_inputs(g_, 5), 0u);
  EXPECT_NE(api_.node_attrs(g_, 5), nullptr);
  EXPECT_EQ(graph_.dump(), before);
}

TEST_F(GraphApi, Matches) {
  Match match;
  match.nodes = {3};
  match.values["x"] = 8;
  EXPECT_EQ(api_.match_node(match.handle(), 0), 3u);
  EXPECT_EQ(api_.match_value(match.handle(), "x"), 8u);
  EXPECT_EQ(api_.match_value(match.handle(), "$x"), 8u);
  EXPECT_EQ(api_.match_node(match.handle(), 1), kNoId);
  EXPECT_EQ(failure(TN_NOTFOUND), "call: match: the pattern has no op number 1");
  EXPECT_EQ(api_.match_value(match.handle(), "y"), kNoId);
  EXPECT_EQ(failure(TN_NOTFOUND), "call: match: the pattern binds no $y");
}

}  // namespace
}  // namespace tenon
