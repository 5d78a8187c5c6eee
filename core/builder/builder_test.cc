// The builder with a plugin that is linked into this program: what is chosen, recorded, reported and refused.
#include "core/builder/builder.h"

#include <gtest/gtest.h>

#include <tenon/plugin/ext/ids.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/plan/placement.h"
#include "core/plan/plan_file.h"
#include "core/runtime/engine.h"
#include "core/tuner/cache_test_util.h"
#include "core/tuner/code_store.h"

namespace tenon {

const TnPlugin* builder_test_plugin();  // testing/test_plugin.cc
const TnPlugin* builder_test_reformat_plugin();
const TnPlugin* builder_test_compiling_plugin();
int builder_test_compiled_pieces();

namespace {

std::shared_ptr<const HostTensor> floats(const std::vector<float>& values) {
  const TnDims dims = make_dims({static_cast<std::int64_t>(values.size())});
  return *HostTensor::create(TN_F32, dims, values.data(), values.size() * sizeof(float));
}

class BuilderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    registry_ = Registry::create(null_logger());
    ASSERT_TRUE(registry_->add_linked(builder_test_plugin()).ok());
    options_.device = make_cpu_device({.threads = 1});
    options_.registry = registry_;
    options_.cache = std::make_shared<TimingCache>(options_.device->info().signature);
  }

  /// x * w1 (weigh1), then * w2 (weigh2): two layers of equal shape.
  Graph network(bool relu = false) {
    Graph graph(registry_);
    ValueId x = *graph.add_input("x", TN_F32, make_dims({3}));
    const ValueId w1 = *graph.add_constant("w1", floats({1, 2, 3}));
    const ValueId w2 = *graph.add_constant("w2", floats({10, 20, 30}));
    for (const auto& [name, w] : {std::pair{"weigh1", w1}, std::pair{"weigh2", w2}}) {
      x = graph.node(*graph.add_node("test.weigh/1", name, {}, {x, w}, 1)).outputs[0];
    }
    if (relu) x = graph.node(*graph.add_node("test.relu/1", "relu", {}, {x}, 1)).outputs[0];
    EXPECT_TRUE(graph.add_output(x).ok());
    return graph;
  }

  std::vector<float> run(const Plan& plan, std::vector<float> x) {
    auto bytes = std::make_shared<std::vector<std::uint8_t>>(*write_plan(plan));
    auto engine = Engine::load(bytes->data(), bytes->size(), bytes, {options_.device, registry_});
    EXPECT_TRUE(engine.ok()) << engine.status().message();
    if (!engine.ok()) return {};
    auto context = *(*engine)->create_context();
    std::vector<float> y(x.size());
    EXPECT_TRUE(context->set_tensor((*engine)->inputs()[0].name, x.data()).ok());
    EXPECT_TRUE(context->set_tensor((*engine)->outputs()[0].name, y.data()).ok());
    EXPECT_TRUE(context->execute().ok());
    return y;
  }

  std::shared_ptr<Registry> registry_;
  BuildOptions options_;
};

TEST_F(BuilderTest, LayersOfEqualShapeShareOneRecordButNotTheirWeights) {
  for (const char* kernel : {"test.weigh.packed.f32", "test.weigh.plain.f32"}) {
    options_.layer_rules = {{"*", kernel, "", std::nullopt, std::nullopt}};
    options_.cache->reset();
    const auto output = build(network(), options_);
    ASSERT_TRUE(output.ok()) << output.status().message();
    EXPECT_EQ(output->counts.misses, 1);
    EXPECT_EQ(output->plan.nodes[0].key, output->plan.nodes[1].key);
    EXPECT_EQ(run(output->plan, {1, 1, -1}), (std::vector<float>{10, 40, -90})) << kernel;
  }
}

TEST_F(BuilderTest, TacticsWithFewerLaunchesAreTakenWhereTheyAreForced) {
  const auto first = build(network(), options_);
  ASSERT_TRUE(first.ok()) << first.status().message();
  const auto measured = std::make_shared<TimingCache>(options_.device->info().signature);
  for (CacheMeasurement line : options_.cache->measurements(first->plan.nodes[0].key)) {
    const bool packed = line.kernel == "test.weigh.packed.f32";
    line.ms = packed ? 1 : 2;
    line.launches = packed ? 3 : 1;
    measured->record(line);
  }
  const std::string text = measured->serialize();
  for (const bool forced : {false, true}) {
    if (forced) options_.forced_rules = {kFewestLaunchesRule};
    options_.cache = *TimingCache::parse(text, options_.device->info().signature, null_logger());
    const auto output = build(network(), options_);
    ASSERT_TRUE(output.ok()) << output.status().message();
    EXPECT_EQ(output->counts.measured, 0);
    EXPECT_EQ(output->plan.nodes[0].kernel, forced ? "test.weigh.plain.f32" : "test.weigh.packed.f32");
    ASSERT_EQ(output->alternatives.size(), 1u);
    EXPECT_EQ(output->alternatives[0].rule, kFewestLaunchesRule);
    EXPECT_EQ(output->alternatives[0].taken, forced);
    for (const char* part : {"4.000000 ms in 2 launches", "2.000000 ms in 6 launches"}) {
      EXPECT_NE(output->alternatives[0].reason.find(part), std::string::npos) << output->alternatives[0].reason;
    }
  }
}

TEST_F(BuilderTest, EditableCachesKeepARecordForEachLayer) {
  options_.editable = true;
  const auto output = build(network(), options_);
  ASSERT_TRUE(output.ok()) << output.status().message();
  EXPECT_EQ(output->counts.misses, 2);
  EXPECT_EQ(options_.cache->choices_of_layer("weigh1").size(), 1u);
  EXPECT_EQ(options_.cache->choices_of_layer("weigh2").size(), 1u);
}

TEST_F(BuilderTest, ASecondBuildMeasuresNothingAndGivesTheSameBytes) {
  const Graph graph = network(true);
  const std::string before = graph.dump();
  const auto first = build(graph, options_);
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_GT(first->counts.measured, 0);
  options_.frozen = true;
  for (int i = 0; i < 5; ++i) {
    const auto again = build(graph, options_);
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(again->counts.measured, 0);
    EXPECT_EQ(*write_plan(again->plan), *write_plan(first->plan));
  }
  EXPECT_EQ(graph.dump(), before) << "building must not change the network";
}

TEST_F(BuilderTest, FrozenWithoutARecordNamesLayerAndKey) {
  options_.frozen = true;
  options_.editable = true;
  const auto output = build(network(), options_);
  ASSERT_FALSE(output.ok());
  EXPECT_NE(output.status().message().find("weigh1"), std::string::npos) << output.status().message();
  EXPECT_NE(output.status().message().find("0x"), std::string::npos);
}

TEST_F(BuilderTest, NondeterministicKernelsTakePartOnlyWhenAllowed) {
  const auto strict = build(network(), options_);
  ASSERT_TRUE(strict.ok());
  const auto explained = *explain_json(*strict, "weigh1");
  bool declined = false;
  for (const auto& candidate : explained["candidates"]) {
    declined = declined || (candidate["kernel"] == "test.weigh.random.f32" && candidate["status"] == "declined");
  }
  EXPECT_TRUE(declined) << explained.dump(1);
  options_.allow_nondeterministic = true;
  options_.layer_rules = {{"*", "test.weigh.random.f32", "", std::nullopt, std::nullopt}};
  EXPECT_TRUE(build(network(), options_).ok());
}

TEST_F(BuilderTest, ARuleThatNoKernelFitsListsTheValidTactics) {
  options_.layer_rules = {{"weigh2", "vendor.weigh.magic.f32", "", std::nullopt, std::nullopt}};
  const auto output = build(network(), options_);
  ASSERT_FALSE(output.ok());
  for (const char* word : {"weigh2", "vendor.weigh.magic.f32", "test.weigh.packed.f32"}) {
    EXPECT_NE(output.status().message().find(word), std::string::npos) << output.status().message();
  }
}

TEST_F(BuilderTest, ARuleThatMatchesNoLayerIsAWarning) {
  RecordingLogger logger;
  options_.logger = &logger;
  options_.layer_rules = {{"weigh*", "test.weigh.plain.f32", "", std::nullopt, std::nullopt},
                          {"wiegh1", "test.weigh.plain.f32", "", std::nullopt, std::nullopt}};
  ASSERT_TRUE(build(network(), options_).ok());
  const std::vector<std::string> warnings = logger.of(Severity::kWarning);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("\"wiegh1\" matches no layer"), std::string::npos) << warnings[0];
}

TEST_F(BuilderTest, ARuleForOneOfTwoIdenticalLayersHoldsForThatOneAlone) {
  for (const bool editable : {false, true}) {
    options_.editable = editable;
    options_.frozen = false;
    options_.cache->reset();
    options_.layer_rules = {{"weigh1", "test.weigh.plain.f32", "", std::nullopt, std::nullopt},
                            {"weigh2", "test.weigh.packed.f32", "", std::nullopt, std::nullopt}};
    const auto first = build(network(), options_);
    ASSERT_TRUE(first.ok()) << first.status().message();
    EXPECT_EQ(first->plan.nodes[0].kernel, "test.weigh.plain.f32");
    EXPECT_EQ(first->plan.nodes[1].kernel, "test.weigh.packed.f32");
    EXPECT_EQ(run(first->plan, {1, 1, -1}), (std::vector<float>{10, 40, -90}));
    options_.frozen = true;
    const auto again = build(network(), options_);
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(*write_plan(again->plan), *write_plan(first->plan));
  }
}

TEST_F(BuilderTest, ARuleAgainstAPinIsAnErrorAndLeavesThePin) {
  options_.editable = true;
  options_.layer_rules = {{"weigh1", "test.weigh.plain.f32", "", std::nullopt, std::nullopt}};
  ASSERT_TRUE(build(network(), options_).ok());
  CacheChoice pinned = options_.cache->choices_of_layer("weigh1").front();
  pinned.pinned = true;
  options_.cache->insert(pinned);
  options_.layer_rules[0].kernel = "test.weigh.packed.f32";
  const auto output = build(network(), options_);
  ASSERT_FALSE(output.ok());
  for (const char* word : {"weigh1", "pins", "test.weigh.plain.f32", "test.weigh.packed.f32"}) {
    EXPECT_NE(output.status().message().find(word), std::string::npos) << output.status().message();
  }
  EXPECT_EQ(options_.cache->choices_of_layer("weigh1").front().kernel, "test.weigh.plain.f32");
}

TEST_F(BuilderTest, ALayersPrecisionTakesThePlaceOfTheBuilds) {
  options_.precision = Precision::kTf32;
  options_.layer_rules = {{"weigh2", "", "", std::nullopt, Precision::kF32}};
  const auto output = build(network(), options_);
  ASSERT_TRUE(output.ok()) << output.status().message();
  EXPECT_NE(output->plan.nodes[0].site_flags & TN_SITE_ALLOW_TF32, 0u);
  EXPECT_EQ(output->plan.nodes[1].site_flags & TN_SITE_ALLOW_TF32, 0u);
}

// Between two layers in bf16 nothing is converted. 1 + 2^-9 is rounded to 1 on the way in.
TEST_F(BuilderTest, LayersInBf16HaveTensorsOfBf16BetweenThem) {
  ASSERT_TRUE(registry_->add_linked(builder_test_reformat_plugin()).ok());
  const auto narrow = [](const std::string& match) {
    return LayerRule{match, "test.weigh.narrow.bf16", "", std::nullopt, Precision::kBf16};
  };
  const std::vector<float> x = {1.001953125f, 1.5f, -1};
  const auto built_with = [&](Precision precision, std::vector<LayerRule> rules) {
    options_.precision = precision;
    options_.layer_rules = std::move(rules);
    auto output = build(network(), options_);
    EXPECT_TRUE(output.ok()) << output.status().message();
    return output;
  };
  const auto both = built_with(Precision::kBf16, {narrow("*")});
  std::vector<std::string> combos;
  for (const PlanNode& node : both->plan.nodes) combos.push_back(node.combo.text());
  EXPECT_EQ(combos, (std::vector<std::string>{"f32:row>bf16:row", "bf16:row,f32:row>bf16:row",
                                              "bf16:row,f32:row>bf16:row", "bf16:row>f32:row"}));
  EXPECT_EQ(run(both->plan, x), (std::vector<float>{10, 60, -90}));

  const auto second = built_with(Precision::kF32, {narrow("weigh2")});
  EXPECT_EQ(second->plan.nodes.size(), 4u);
  EXPECT_EQ(run(second->plan, x), (std::vector<float>{10, 60, -90}));

  const auto none = built_with(Precision::kF32, {});
  EXPECT_EQ(none->plan.nodes.size(), 2u);
  EXPECT_EQ(run(none->plan, x), (std::vector<float>{10.01953125f, 60, -90}));
}

TEST_F(BuilderTest, APinOnALayerThatIsGoneIsAnError) {
  options_.editable = true;
  ASSERT_TRUE(build(network(), options_).ok());
  CacheChoice choice = options_.cache->choices_of_layer("weigh1").front();
  choice.layer = "weigh3";
  choice.pinned = true;
  options_.cache->insert(choice);
  const auto output = build(network(), options_);
  ASSERT_FALSE(output.ok());
  EXPECT_NE(output.status().message().find("weigh3"), std::string::npos) << output.status().message();
}

TEST_F(BuilderTest, NetworksWithoutOutputOrKernelAreRefused) {
  Graph empty(registry_);
  EXPECT_EQ(build(empty, options_).status().code(), Code::kInvalid);
  Graph passed(registry_);
  ASSERT_TRUE(passed.add_output(*passed.add_input("x", TN_F32, make_dims({1}))).ok());
  const auto output = build(passed, options_);
  ASSERT_FALSE(output.ok()) << "copying an input needs tenon.reformat/1, which is not loaded here";
  EXPECT_NE(output.status().message().find("tenon.reformat/1"), std::string::npos);
}

TEST_F(BuilderTest, TheReferenceRunsWhereNoKernelDoes) {
  const auto output = build(network(true), options_);
  ASSERT_TRUE(output.ok()) << output.status().message();
  EXPECT_EQ(output->plan.nodes.back().kernel, "test.relu.reference");
  EXPECT_EQ(run(output->plan, {1, 1, -1}), (std::vector<float>{10, 40, 0}));
  options_.on_fallback = OnFallback::kForbid;
  const auto forbidden = build(network(true), options_);
  ASSERT_FALSE(forbidden.ok());
  for (const char* word : {"relu", "test.relu/1", "on_fallback"}) {
    EXPECT_NE(forbidden.status().message().find(word), std::string::npos) << forbidden.status().message();
  }
  EXPECT_TRUE(build(network(), options_).ok()) << "every layer of this one has a kernel";
}

TEST_F(BuilderTest, ReportSaysWhatWasBuilt) {
  const auto output = build(network(true), options_);
  ASSERT_TRUE(output.ok());
  const auto report = report_json(*output);
  ASSERT_EQ(report["layers"].size(), 3u);
  EXPECT_EQ(report["layers"][0]["name"], "weigh1");
  EXPECT_EQ(report["layers"][0]["fused_from"][0], "weigh1");
  EXPECT_EQ(report["cache"]["misses"], 2);
  // The bound again, from the lifetimes: most bytes alive at any one step, in pieces of 256.
  std::uint64_t bound = 0;
  for (int step = 0; step < 3; ++step) {
    std::uint64_t alive = 0;
    for (const auto& value : report["values"]) {
      if (value["first_use"] <= step && step <= value["last_use"])
        alive += (value["bytes"].get<std::uint64_t>() + 255) / 256 * 256;
    }
    bound = std::max(bound, alive);
  }
  EXPECT_EQ(report["memory"]["activation_lower_bound"], bound);
  EXPECT_EQ(report["memory"]["alignment"], 256);
  EXPECT_EQ(report["layers"][0]["inputs"], (std::vector<std::string>{"x", "w1"}));
  EXPECT_EQ(report["layers"][1]["inputs"][0], report["layers"][0]["outputs"][0]);
  EXPECT_EQ(report["layers"][1]["outputs"][0], report["values"][1]["name"]);
  EXPECT_TRUE(report["layers"][1]["shares"].empty());
  EXPECT_FALSE(explain_json(*output, "weigh9").ok());
  EXPECT_NE(explain_json(*output, "weigh9").status().message().find("weigh"), std::string::npos);
}

TEST_F(BuilderTest, ReportSaysWhatRunsInPlace) {
  auto output = build(network(true), options_);
  ASSERT_TRUE(output.ok());
  output->plan.nodes[1].combo.aliases = {{0, 0, TN_MAY_ALIAS, 0}};
  ASSERT_TRUE(place_tensors(&output->plan).ok());
  const auto report = report_json(*output);
  EXPECT_TRUE(report["layers"][0]["shares"].empty());
  ASSERT_EQ(report["layers"][1]["shares"].size(), 1u);
  const auto& share = report["layers"][1]["shares"][0];
  EXPECT_EQ(share["output"], report["values"][1]["name"]);
  EXPECT_EQ(share["input"], report["values"][0]["name"]);
  EXPECT_EQ(share["in_place"], true);
  EXPECT_EQ(report["values"][0]["offset"], report["values"][1]["offset"]);
  EXPECT_EQ(report["memory"]["activation_lower_bound"], 256) << "two tensors of 12 bytes in one buffer";
}

TEST_F(BuilderTest, CodeThatWasCompiledLiesBesideTheCache) {
  registry_ = Registry::create(null_logger(), {{TN_IFACE_CODE, code_interface()}});
  ASSERT_TRUE(registry_->add_linked(builder_test_compiling_plugin()).ok());
  options_.registry = registry_;
  Graph graph(registry_);
  ValueId x = *graph.add_input("x", TN_F32, make_dims({3}));
  x = graph.node(*graph.add_node("test.twice/1", "twice", {}, {x}, 1)).outputs[0];
  ASSERT_TRUE(graph.add_output(x).ok());
  const TemporaryFolder folder;
  const auto path = folder / "f";
  const auto build_with_file = [&](bool frozen) {
    options_.frozen = frozen;
    options_.cache = *TimingCache::load(path, options_.device->info().signature, null_logger(), frozen);
    const auto output = build(graph, options_);
    ASSERT_TRUE(output.ok()) << output.status().message();
    EXPECT_EQ(run(output->plan, {1, 2, 3}), (std::vector<float>{2, 4, 6}));
    if (frozen) return;
    ASSERT_TRUE(options_.cache->save(path, null_logger()).ok());
  };
  const int before = builder_test_compiled_pieces();
  build_with_file(false);
  EXPECT_EQ(builder_test_compiled_pieces(), before + 1) << "in one build each once";
  ASSERT_NE(options_.cache->code().find("twice 3"), nullptr);
  EXPECT_EQ(*options_.cache->code().find("twice 3"), "3 eciwt");
  build_with_file(false);
  build_with_file(true);
  EXPECT_EQ(builder_test_compiled_pieces(), before + 1);
  std::filesystem::remove(folder / "f.code");
  build_with_file(true);
  EXPECT_EQ(builder_test_compiled_pieces(), before + 2);
}

TEST_F(BuilderTest, SeveralBuildersShareOneCache) {
  std::vector<std::thread> threads;
  std::vector<std::string> failures(4);
  for (std::size_t i = 0; i < failures.size(); ++i) {
    threads.emplace_back([&, i] {
      const auto output = build(network(i % 2 == 0), options_);
      if (!output.ok()) failures[i] = output.status().message();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
}

}  // namespace
}  // namespace tenon
