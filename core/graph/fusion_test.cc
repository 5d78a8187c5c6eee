#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/graph/passes.h"
#include "core/graph/test_ops.h"

namespace tenon {
namespace {

using Call = TnStatus (*)(const TnHost*, const TnFusion*, TnGraph*, const TnMatch*);

class Log final : public Logger {
 public:
  void log(Severity severity, const std::string& message) override {
    (severity == Severity::kWarning ? warnings : verbose) += message + "\n";
  }
  std::string warnings;
  std::string verbose;
};

/// One node of `op` over the bound $x (and $y, $w, $b if the pattern has them) in place of the root.
TnStatus put_in_place(const TnHost* h, TnGraph* graph, const TnMatch* match, const char* op, const char* name,
                      std::vector<const char*> inputs) {
  std::vector<TnValueId> values;
  for (const char* input : inputs) values.push_back(h->graph->match_value(match, input));
  TnValueId output = kNoId;
  const TnStatus status = h->graph->new_node(graph, op, name, nullptr, values.data(),
                                             static_cast<std::uint32_t>(values.size()), nullptr, &output, 1, nullptr);
  if (status != TN_OK) return status;
  const TnValueId old_value = h->graph->node_output(graph, h->graph->match_node(match, 0), 0);
  return h->graph->replace(graph, old_value, output);
}

TnStatus conv_add(const TnHost* h, const TnFusion*, TnGraph* graph, const TnMatch* match) {
  return put_in_place(h, graph, match, "test.fused_conv2d/1", nullptr, {"x", "w", "b"});
}
TnStatus conv_add_named_as_root(const TnHost* h, const TnFusion*, TnGraph* graph, const TnMatch* match) {
  const std::string name = h->graph->node_name(graph, h->graph->match_node(match, 0));
  return put_in_place(h, graph, match, "test.fused_conv2d/1", name.c_str(), {"x", "w", "b"});
}
TnStatus conv_add_own_name(const TnHost* h, const TnFusion*, TnGraph* graph, const TnMatch* match) {
  return put_in_place(h, graph, match, "test.fused_conv2d/1", "mine", {"x", "w", "b"});
}
TnStatus to_leaky(const TnHost* h, const TnFusion*, TnGraph* graph, const TnMatch* match) {
  return put_in_place(h, graph, match, "test.leaky/1", nullptr, {"x"});
}
TnStatus to_relu(const TnHost* h, const TnFusion*, TnGraph* graph, const TnMatch* match) {
  return put_in_place(h, graph, match, "test.relu/1", nullptr, {"x"});
}
TnStatus bypass(const TnHost* h, const TnFusion*, TnGraph* graph, const TnMatch* match) {
  return h->graph->replace(graph, h->graph->node_output(graph, h->graph->match_node(match, 0), 0),
                           h->graph->match_value(match, "x"));
}
TnStatus drop_root(const TnHost* h, const TnFusion*, TnGraph* graph, const TnMatch* match) {
  return h->graph->replace(graph, h->graph->node_output(graph, h->graph->match_node(match, 0), 0),
                           h->graph->node_output(graph, h->graph->match_node(match, 1), 0));
}
TnStatus half_done(const TnHost* h, const TnFusion*, TnGraph* graph, const TnMatch* match) {
  const TnStatus status = put_in_place(h, graph, match, "test.leaky/1", nullptr, {"x"});
  return status != TN_OK ? status : TN_FAIL(h, TN_INVALID, "changed my mind");
}
TnStatus other_dims(const TnHost* h, const TnFusion*, TnGraph* graph, const TnMatch* match) {
  return put_in_place(h, graph, match, "test.concat/1", nullptr, {"x", "x"});
}
/// The two matched nodes in the other order, the first one with the name that the inner one had.
TnStatus swap_order(const TnHost* h, const TnFusion*, TnGraph* graph, const TnMatch* match) {
  const std::string name = h->graph->node_name(graph, h->graph->match_node(match, 1));
  TnValueId value = h->graph->match_value(match, "x"), inner = kNoId, output = kNoId;
  TnStatus status =
      h->graph->new_node(graph, "test.relu/1", name.c_str(), nullptr, &value, 1, nullptr, &inner, 1, nullptr);
  if (status != TN_OK) return status;
  status = h->graph->new_node(graph, "test.leaky/1", nullptr, nullptr, &inner, 1, nullptr, &output, 1, nullptr);
  if (status != TN_OK) return status;
  return h->graph->replace(graph, h->graph->node_output(graph, h->graph->match_node(match, 0), 0), output);
}
TnStatus nothing(const TnHost*, const TnFusion*, TnGraph*, const TnMatch*) { return TN_OK; }
TnStatus more_outputs(const TnHost* h, const TnFusion*, TnGraph* graph, const TnMatch* match) {
  const TnStatus status = put_in_place(h, graph, match, "test.leaky/1", nullptr, {"x"});
  return status != TN_OK ? status : h->graph->add_output(graph, h->graph->match_value(match, "x"));
}
TnStatus never(const TnHost* h, const TnFusion*, const TnGraph*, const TnMatch*) {
  return TN_FAIL(h, TN_DECLINED, "not today");
}

class Fusion : public testing::Test {
 protected:
  Fusion() { rules_.reserve(16); }

  TnFusion& rule(const char* id, const char* pattern, Call rewrite, int priority = 0) {
    fusions_.push_back(std::make_unique<TnFusion>(
        TnFusion{TN_HEADER(TnFusion), TN_FUSION_ALWAYS, id, "", pattern, priority, 0, nullptr, rewrite}));
    rules_.push_back({fusions_.back().get(), &test::host(), *Pattern::parse(pattern), nullptr});
    return *fusions_.back();
  }
  std::map<std::string, int> run() {
    const auto counts = apply_always_rules(&graph_, rules_, options_, log_);
    EXPECT_TRUE(counts.ok()) << counts.status().message();
    EXPECT_TRUE(graph_.verify().ok()) << graph_.verify().message();
    return counts.ok() ? *counts : std::map<std::string, int>{};
  }
  /// conv -> add -> relu, the relu being the output.
  void conv_add_relu() {
    const ValueId x = *graph_.add_input("x", TN_F32, make_dims({1, 1, 4, 4}));
    const ValueId w = *graph_.add_constant("w", test::f32_tensor({1, 1, 1, 1}, {2}));
    const ValueId b = *graph_.add_constant("b", test::f32_tensor({1}, {3}));
    const ValueId conv = test::node(&graph_, "test.conv2d/1", "conv", {x, w});
    const ValueId add = test::node(&graph_, "test.add/1", "add", {conv, b});
    ASSERT_TRUE(graph_.add_output(test::node(&graph_, "test.relu/1", "relu", {add})).ok());
  }
  void chain(const std::vector<const char*>& ops) {
    ValueId value = *graph_.add_input("x", TN_F32, make_dims({2}));
    int number = 0;
    for (const char* op : ops) value = test::node(&graph_, op, "n" + std::to_string(number++), {value});
    ASSERT_TRUE(graph_.add_output(value).ok());
  }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    const std::vector<NodeId> order = *graph_.topological_order();
    for (const NodeId id : order) out.push_back(graph_.node(id).name);
    return out;
  }

  const char* kConvAdd = "test.add/1($b:const,test.conv2d/1($x,$w:const))";
  Graph graph_ = test::empty_graph();
  std::vector<std::unique_ptr<TnFusion>> fusions_;
  std::vector<FusionRef> rules_;
  FusionOptions options_;
  Log log_;
};

TEST_F(Fusion, NamesTheNewNodeByItsMembers) {
  conv_add_relu();
  rule("test.conv_add/1", kConvAdd, conv_add);
  EXPECT_EQ(run(), (std::map<std::string, int>{{"test.conv_add/1", 1}}));
  EXPECT_EQ(names(), (std::vector<std::string>{"conv+add", "relu"}));
  const Node& fused = graph_.node(graph_.find_node("conv+add"));
  EXPECT_EQ(fused.members, (std::vector<std::string>{"conv", "add"}));
  EXPECT_EQ(graph_.value(fused.outputs[0]).name, "add");
  EXPECT_EQ(log_.warnings, "");
}

TEST_F(Fusion, TheRootsNameIsNoNameOfItsOwn) {
  conv_add_relu();
  rule("test.conv_add/1", kConvAdd, conv_add_named_as_root);
  run();
  EXPECT_EQ(names(), (std::vector<std::string>{"conv+add", "relu"}));
}

// Whoever asks for a tensor by its name in the network must not get another one.
TEST_F(Fusion, AValueHasAMatchedOnesNameOnlyIfItReplacesIt) {
  chain({"test.leaky/1", "test.relu/1", "test.leaky/1"});
  rule("test.swap_order/1", "test.relu/1(test.leaky/1($x))", swap_order);
  EXPECT_EQ(run().at("test.swap_order/1"), 1);
  EXPECT_EQ(graph_.find_value("n0"), kNoId);
  const ValueId replaced = graph_.find_value("n1");
  ASSERT_NE(replaced, kNoId);
  EXPECT_EQ(graph_.node(graph_.value(replaced).producer).op_id(), "test.leaky/1");
}

TEST_F(Fusion, AnOwnNameStays) {
  conv_add_relu();
  rule("test.conv_add/1", kConvAdd, conv_add_own_name);
  run();
  EXPECT_EQ(names(), (std::vector<std::string>{"mine", "relu"}));
  EXPECT_EQ(graph_.node(graph_.find_node("mine")).members, (std::vector<std::string>{"conv", "add"}));
}

TEST_F(Fusion, OutputsKeepTheirNames) {
  chain({"test.identity/1", "test.relu/1", "test.identity/1"});
  rule("test.no_identity/1", "test.identity/1($x)", bypass);
  EXPECT_EQ(run().at("test.no_identity/1"), 2);
  EXPECT_EQ(names(), std::vector<std::string>{"n1"});
  EXPECT_EQ(graph_.value(graph_.outputs()[0]).name, "n2");
}

TEST_F(Fusion, AnIdentityBetweenInputAndOutputStays) {
  chain({"test.identity/1"});
  rule("test.no_identity/1", "test.identity/1($x)", bypass);
  EXPECT_TRUE(run().empty());
  EXPECT_NE(log_.warnings.find("fusion rule test.no_identity/1 at node \"n0\": rewrite: replace \"n0\" by \"x\""),
            std::string::npos);
}

TEST_F(Fusion, PriorityThenId) {
  chain({"test.identity/1"});
  rule("test.a/1", "test.identity/1($x)", to_relu);
  rule("test.b/1", "test.identity/1($x)", to_leaky, 5);
  run();
  EXPECT_NE(graph_.dump().find("test.leaky/1"), std::string::npos);
  options_.disabled = {"test.b/1"};
  graph_ = test::empty_graph();
  chain({"test.identity/1"});
  run();
  EXPECT_NE(graph_.dump().find("test.relu/1"), std::string::npos);
}

TEST_F(Fusion, CandidateRulesAndDeclinedChecksDoNothing) {
  chain({"test.identity/1"});
  rule("test.candidate/1", "test.identity/1($x)", to_relu).mode = TN_FUSION_CANDIDATE;
  rule("test.never/1", "test.identity/1($x)", to_relu).check = never;
  EXPECT_TRUE(run().empty());
  EXPECT_EQ(log_.warnings, "");
  EXPECT_NE(log_.verbose.find("fusion rule test.never/1 at node \"n0\": check: not today"), std::string::npos);
}

TEST_F(Fusion, CandidateRulesApplyWhereTheChooserSaysSo) {
  chain({"test.identity/1", "test.relu/1", "test.identity/1"});
  rule("test.candidate/1", "test.identity/1($x)", to_relu).mode = TN_FUSION_CANDIDATE;
  rule("test.always/1", "test.relu/1(test.relu/1($x))", drop_root);
  const std::string before = graph_.dump();
  std::vector<std::string> asked;
  const auto choose = [&](bool first, bool second) {
    asked.clear();
    return [&, first, second](const TnFusion& of, const std::string& layer, const std::vector<NodeId>& matched,
                              const Graph& without, const Graph& with) -> Result<bool> {
      asked.push_back(fmt::format("{} {} {} {}>{}", of.id, layer, without.node(matched[0]).name,
                                  without.topological_order()->size(), with.topological_order()->size()));
      return asked.size() == 1 ? first : second;
    };
  };
  Graph graph = graph_;
  auto counts = apply_candidate_rules(&graph, rules_, options_, choose(false, false), log_);
  ASSERT_TRUE(counts.ok()) << counts.status().message();
  EXPECT_TRUE(counts->empty());
  EXPECT_EQ(graph.dump(), before);
  // The ALWAYS rule follows at once: what it makes of the rewritten graph is what is compared.
  EXPECT_EQ(asked, (std::vector<std::string>{"test.candidate/1 n0 n0 3>2", "test.candidate/1 n2 n2 3>2"}));

  counts = apply_candidate_rules(&graph, rules_, options_, choose(false, true), log_);
  ASSERT_TRUE(counts.ok()) << counts.status().message();
  EXPECT_EQ(*counts, (std::map<std::string, int>{{"test.candidate/1", 1}, {"test.always/1", 1}}));
  EXPECT_TRUE(graph.verify().ok());
  EXPECT_NE(graph.find_node("n0"), kNoId) << "the first was not wanted";

  graph = graph_;
  options_.disabled = {"test.candidate/1"};
  EXPECT_TRUE(apply_candidate_rules(&graph, rules_, options_, choose(true, true), log_)->empty());
  EXPECT_TRUE(asked.empty());
}

TEST_F(Fusion, AnErrorOfTheChooserEndsIt) {
  chain({"test.identity/1"});
  rule("test.candidate/1", "test.identity/1($x)", to_relu).mode = TN_FUSION_CANDIDATE;
  const auto cancelled = [](const TnFusion&, const std::string&, const std::vector<NodeId>&, const Graph&,
                            const Graph&) -> Result<bool> { return Status(Code::kCancelled, "enough"); };
  const auto counts = apply_candidate_rules(&graph_, rules_, options_, cancelled, log_);
  EXPECT_EQ(counts.status().code(), Code::kCancelled);
}

TEST_F(Fusion, FailuresAreRolledBackAndLogged) {
  const struct {
    Call rewrite;
    const char* message;
  } cases[] = {
      {half_done, "rewrite: changed my mind"},
      {other_dims, "rewrite: replace \"n0\" by \"concat_2\": expected f32[2], found f32[4]"},
      {nothing, "the rewrite did not replace the root's output \"n0\""},
      {more_outputs, "it changed the inputs or outputs of the graph"},
  };
  for (const auto& item : cases) {
    graph_ = test::empty_graph();
    rules_.clear();
    log_.warnings.clear();
    chain({"test.relu/1", "test.identity/1"});
    const std::string before = graph_.dump();
    rule("test.wrong/1", "test.relu/1($x)", item.rewrite);
    EXPECT_TRUE(run().empty());
    EXPECT_EQ(graph_.dump(), before);
    EXPECT_EQ(log_.warnings,
              std::string("fusion rule test.wrong/1 at node \"n0\": ") + item.message + "; the graph is as before\n");
  }
}

TEST_F(Fusion, CyclesNameBothRules) {
  chain({"test.relu/1", "test.relu/1"});
  rule("test.forth/1", "test.relu/1($x)", to_leaky);
  rule("test.back/1", "test.leaky/1($x)", to_relu);
  const auto counts = apply_always_rules(&graph_, rules_, options_, log_);
  ASSERT_FALSE(counts.ok());
  EXPECT_EQ(counts.status().code(), Code::kConflict);
  EXPECT_NE(counts.status().message().find("test.forth/1"), std::string::npos) << counts.status().message();
  EXPECT_NE(counts.status().message().find("test.back/1"), std::string::npos) << counts.status().message();
  EXPECT_TRUE(graph_.verify().ok());
}

TEST_F(Fusion, ARuleThatMatchesItsOwnResultIsACycle) {
  chain({"test.relu/1"});
  rule("test.again/1", "test.relu/1($x)", to_relu);
  const auto counts = apply_always_rules(&graph_, rules_, options_, log_);
  ASSERT_FALSE(counts.ok());
  EXPECT_NE(counts.status().message().find("the rule applies to its own result"), std::string::npos);
}

TEST_F(Fusion, LongChainsAreNoCycle) {
  chain(std::vector<const char*>(200, "test.relu/1"));
  rule("test.merge/1", "test.relu/1(test.relu/1($x))", to_relu);
  EXPECT_EQ(run().at("test.merge/1"), 199);
  EXPECT_EQ(graph_.node(*graph_.topological_order()->begin()).members.size(), 200u);
}

TEST_F(Fusion, MaxApplications) {
  chain(std::vector<const char*>(10, "test.relu/1"));
  rule("test.merge/1", "test.relu/1(test.relu/1($x))", to_relu);
  options_.max_applications = 3;
  EXPECT_FALSE(apply_always_rules(&graph_, rules_, options_, log_).ok());
}

TEST_F(Fusion, KeepsChoicesApart) {
  const auto build = [&] {
    graph_ = test::empty_graph();
    const ValueId x = *graph_.add_input("x", TN_F32, make_dims({2, 2}));
    const ValueId first = test::node(&graph_, "test.matmul/1", "first", {x, x});
    ASSERT_TRUE(graph_.add_output(test::node(&graph_, "test.matmul/1", "second", {first, x})).ok());
  };
  rule("test.two/1", "test.matmul/1(test.matmul/1($x,$x),$x)", to_relu);
  build();
  options_.keep_choices_apart = true;
  EXPECT_TRUE(run().empty());
  build();
  options_.keep_choices_apart = false;
  EXPECT_EQ(run().size(), 1u);
  graph_ = test::empty_graph();
  rules_.clear();
  conv_add_relu();
  options_.keep_choices_apart = true;
  rule("test.conv_add/1", kConvAdd, conv_add);
  EXPECT_EQ(run().size(), 1u);
}

TEST_F(Fusion, ASharedInnerNodeLivesOn) {
  const ValueId x = *graph_.add_input("x", TN_F32, make_dims({2}));
  const ValueId a = test::node(&graph_, "test.identity/1", "a", {x});
  ASSERT_TRUE(graph_.add_output(test::node(&graph_, "test.relu/1", "b", {a})).ok());
  ASSERT_TRUE(graph_.add_output(test::node(&graph_, "test.leaky/1", "c", {a})).ok());
  rule("test.through/1", "test.relu/1(test.identity/1($x)*)", to_leaky);
  EXPECT_EQ(run().size(), 1u);
  EXPECT_EQ(names(), (std::vector<std::string>{"a", "c", "a+b"}));
}

}  // namespace
}  // namespace tenon
