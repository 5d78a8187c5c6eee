// The SDK's promises: exceptions end at the barrier, nothing is registered by static initialisers, structs are
// complete.
#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class Half final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Params params = config.params();
    if (params.i64("step") != 2) throw Declined("only step 2 is offered");
  }
  void enqueue(const Exec&, const TnTensor* inputs, const TnTensor* outputs) const override {
    const float* x = static_cast<const float*>(inputs[0].data);
    float* y = static_cast<float*>(outputs[0].data);
    for (int64_t n = 0; n < Tensor(inputs[0]).elements(); ++n) y[n] = x[n] / 2;
  }
  void serialize(const Writer& writer) const override { writer.value(int32_t{7}); }
  void deserialize(const Reader& reader, const Config& config) override {
    if (reader.value<int32_t>() != 7) throw Invalid("state: expected 7");
    configure(config);
  }
};

TENON_LINKED_PLUGIN(half_plugin, "test.half", "1.0", "Apache-2.0",
                    tenon::op("test.half/1")
                        .doc("y = x / 2")
                        .attr_i64("unused")
                        .default_value("3")
                        .input("x")
                        .output("y")
                        .elementwise()
                        .map([](double x) { return x / 2; }),
                    tenon::op("test.throws/1").input("x").output("y").infer([](const Infer& question) {
                      switch (question.input(0).rank()) {
                        case 1:
                          throw Invalid("rank 1");
                        case 2:
                          throw Declined("rank 2");
                        case 3:
                          throw std::runtime_error("rank 3");
                        case 4:
                          throw std::bad_alloc();
                        default:
                          throw 5;
                      }
                    }),
                    tenon::kernel<Half>("test.half/1", "test.half.scalar.f32")
                        .combo({f32_row()}, {f32_row()})
                        .may_alias(0, 0)
                        .deterministic()
                        .revision(4)
                        .tactics([](const Site&, const Combo&, Tactics& tactics) { tactics.add("step=2"); }))

class SdkTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(half_plugin()->load(host_.host()), TN_OK) << host_.take_failure(); }
  TestHost host_;
};

TEST_F(SdkTest, PluginSaysWhatItIs) {
  const TnPlugin* plugin = half_plugin();
  EXPECT_STREQ(plugin->id, "test.half");
  EXPECT_STREQ(plugin->version, "1.0");
  EXPECT_STREQ(plugin->license, "Apache-2.0");
  EXPECT_EQ(plugin->struct_size, sizeof(TnPlugin));
  const TnOp* op = host_.find_op("test.half/1");
  ASSERT_NE(op, nullptr);
  EXPECT_EQ(op->flags, static_cast<uint32_t>(TN_OP_PURE | TN_OP_ELEMENTWISE));
  ASSERT_EQ(op->num_params, 1u);
  EXPECT_STREQ(op->params[0]->default_text, "3");
  EXPECT_EQ(host_.kernels("test.half/1").at(0)->revision, 4u);
}

TEST_F(SdkTest, LoadsIntoSeveralHosts) {
  TestHost other;
  EXPECT_EQ(half_plugin()->load(other.host()), TN_OK);
  EXPECT_EQ(other.find_op("test.half/1"), host_.find_op("test.half/1"));
}

TEST_F(SdkTest, ReferenceAndKernelAgree) {
  OpTester(host_, "test.half/1")
      .input({3}, {1, -4, 0})
      .expect({3}, {0.5, -2, 0})
      .expect_kernels({"test.half.scalar.f32"});
}

TEST_F(SdkTest, ExceptionsBecomeStatuses) {
  const TnOp* op = host_.find_op("test.throws/1");
  const std::pair<int, std::pair<TnStatus, const char*>> cases[] = {
      {1, {TN_INVALID, "rank 1"}}, {2, {TN_DECLINED, "rank 2"}},    {3, {TN_INTERNAL, "rank 3"}},
      {4, {TN_NOMEM, "memory"}},   {5, {TN_INTERNAL, "exception"}},
  };
  for (const auto& [rank, want] : cases) {
    TnTensor x{};
    x.dtype = TN_F32;
    x.dims.rank = rank;
    TnTensor y{};
    TnInfer question = {TN_HEADER(TnInfer), 1, 1, 0, nullptr, &x, &y};
    EXPECT_EQ(op->infer(host_.host(), op, &question), want.first);
    EXPECT_NE(host_.take_failure().find(want.second), std::string::npos);
  }
}

TEST_F(SdkTest, TacticThatIsNotOfferedIsDeclined) {
  const TnKernel* kernel = host_.kernels("test.half/1").at(0);
  for (const char* params : {"step=3", "", "step=two", "stride=2"}) {
    const TnTactic tactic = {TN_HEADER(TnTactic), 0, params, nullptr, 0};
    const TnConfig config = {TN_HEADER(TnConfig), 4, nullptr, nullptr, &tactic};
    TnInst* inst = nullptr;
    EXPECT_EQ(kernel->configure(host_.host(), kernel, &config, &inst), TN_DECLINED) << params;
    EXPECT_FALSE(host_.take_failure().empty());
  }
}

TEST_F(SdkTest, StateSurvivesAndTruncationIsNoticed) {
  const TnKernel* kernel = host_.kernels("test.half/1").at(0);
  const TnTactic tactic = {TN_HEADER(TnTactic), 0, "step=2", nullptr, 0};
  const TnConfig config = {TN_HEADER(TnConfig), 4, nullptr, nullptr, &tactic};
  TnInst* inst = nullptr;
  ASSERT_EQ(kernel->configure(host_.host(), kernel, &config, &inst), TN_OK);
  std::string bytes;
  TnWriter writer = {TN_HEADER(TnWriter), &bytes, [](TnWriter* self, const void* data, uint64_t size) {
                       static_cast<std::string*>(self->context)->append(static_cast<const char*>(data), size);
                       return static_cast<int64_t>(size);
                     }};
  EXPECT_EQ(kernel->serialize(host_.host(), inst, &writer), TN_OK);
  kernel->destroy(host_.host(), inst);
  for (size_t length = 0; length <= bytes.size(); ++length) {
    std::string left = bytes.substr(0, length);
    TnReader reader = {TN_HEADER(TnReader), &left, [](TnReader* self, void* data, uint64_t size) {
                         auto& text = *static_cast<std::string*>(self->context);
                         const size_t count = text.size() < size ? text.size() : static_cast<size_t>(size);
                         std::memcpy(data, text.data(), count);
                         text.erase(0, count);
                         return static_cast<int64_t>(count);
                       }};
    inst = nullptr;
    const TnStatus status = kernel->deserialize(host_.host(), kernel, &reader, &config, &inst);
    EXPECT_EQ(status, length == bytes.size() ? TN_OK : TN_INVALID);
    if (inst) kernel->destroy(host_.host(), inst);
  }
}

TEST(BoxTest, WalksInRowMajorOrder) {
  TnBox box{};
  box.start[0] = 1;
  box.start[1] = 0;
  box.size[0] = 2;
  box.size[1] = 2;
  std::string seen;
  for_each_in_box(Dims{3, 4}, box, [&](const int64_t* index, int64_t linear, int64_t packed) {
    seen += text(index[0], index[1], ":", linear, ":", packed, " ");
  });
  EXPECT_EQ(seen, "10:4:0 11:5:1 20:8:2 21:9:3 ");
  int count = 0;
  for_each_in_box(Dims{}, TnBox{}, [&](const int64_t*, int64_t, int64_t) { ++count; });
  EXPECT_EQ(count, 1) << "a scalar has one element";
  for_each_in_box(Dims{2}, TnBox{}, [&](const int64_t*, int64_t, int64_t) { ++count; });
  EXPECT_EQ(count, 1) << "an empty box asks for nothing";
}

TEST(FormatTest, CountsFilling) {
  EXPECT_EQ(physical_elements(nchw_blocked_format(16), Dims{2, 3, 5, 5}), 2 * 16 * 25);
  EXPECT_EQ(physical_elements(row_format(), Dims{2, 3}), 6);
  EXPECT_EQ(channel_block(nchw_blocked_format(8)), 8);
  EXPECT_EQ(channel_block(nhwc_format()), 0);
  EXPECT_TRUE(is_nhwc(nhwc_format()));
  EXPECT_FALSE(same_format(nchw_blocked_format(8), nchw_blocked_format(16)));
}

}  // namespace
}  // namespace tenon::testing
