// Tensors that are kept in other formats and dtypes, as an observer sees them. The kernels here have one format each,
// so the builder has no choice, and write it by loops of their own.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <tenon/sdk/plugin.hpp>
#include <tenon/tenon.hpp>
#include <vector>

namespace {

using Floats = std::vector<float>;

constexpr std::int64_t kChannels = 3, kPixels = 4;  // x is [1,3,2,2]

/// f32 row-major to blocks of 8 channels, the last five of which are fill.
struct Spread final : tenon::IPlugin {
  void enqueue(const tenon::Exec&, const TnTensor* inputs, const TnTensor* outputs) const override {
    const auto* x = static_cast<const float*>(inputs[0].data);
    auto* y = static_cast<float*>(outputs[0].data);
    for (std::int64_t p = 0; p < kPixels; ++p) {
      for (std::int64_t c = 0; c < 8; ++c) y[8 * p + c] = c < kChannels ? x[c * kPixels + p] : 0;
    }
  }
};

/// Back from blocks, plus 1.
struct Gather final : tenon::IPlugin {
  void enqueue(const tenon::Exec&, const TnTensor* inputs, const TnTensor* outputs) const override {
    const auto* x = static_cast<const float*>(inputs[0].data);
    auto* y = static_cast<float*>(outputs[0].data);
    for (std::int64_t p = 0; p < kPixels; ++p) {
      for (std::int64_t c = 0; c < kChannels; ++c) y[c * kPixels + p] = x[8 * p + c] + 1;
    }
  }
};

/// f32 row-major to bf16 with the channels last; exact for numbers of few digits.
struct Shorten final : tenon::IPlugin {
  void enqueue(const tenon::Exec&, const TnTensor* inputs, const TnTensor* outputs) const override {
    const auto* x = static_cast<const float*>(inputs[0].data);
    auto* y = static_cast<std::uint16_t*>(outputs[0].data);
    for (std::int64_t p = 0; p < kPixels; ++p) {
      for (std::int64_t c = 0; c < kChannels; ++c) {
        std::uint32_t bits;
        std::memcpy(&bits, &x[c * kPixels + p], sizeof(bits));
        y[kChannels * p + c] = static_cast<std::uint16_t>(bits >> 16);
      }
    }
  }
};

/// Back from bf16.
struct Lengthen final : tenon::IPlugin {
  void enqueue(const tenon::Exec&, const TnTensor* inputs, const TnTensor* outputs) const override {
    const auto* x = static_cast<const std::uint16_t*>(inputs[0].data);
    auto* y = static_cast<float*>(outputs[0].data);
    for (std::int64_t p = 0; p < kPixels; ++p) {
      for (std::int64_t c = 0; c < kChannels; ++c) {
        const std::uint32_t bits = std::uint32_t{x[kChannels * p + c]} << 16;
        std::memcpy(&y[c * kPixels + p], &bits, sizeof(bits));
      }
    }
  }
};

template <int kAdded>
auto shape_keeper(const char* id, std::int32_t dtype) {
  return tenon::op(id)
      .doc("for tests")
      .input("x", "[1,3,2,2]")
      .output("y", "as x")
      .infer([dtype](const tenon::Infer& question) { question.output(0, dtype, question.input(0).dims()); })
      .reference([](const tenon::Reference& call) {
        const auto* x = call.input(0).data<float>();
        call.fill<float>(0, [&](const int64_t*, int64_t linear) { return x[linear] + kAdded; });
      });
}

TENON_LINKED_PLUGIN(formats_plugin, "test.formats", "1", "Apache-2.0", shape_keeper<0>("test.spread/1", TN_F32),
                    shape_keeper<1>("test.gather/1", TN_F32), shape_keeper<0>("test.shorten/1", TN_BF16),
                    shape_keeper<0>("test.lengthen/1", TN_F32),
                    tenon::kernel<Spread>("test.spread/1", "test.spread.nchw8c")
                        .combo({tenon::f32_row()}, {tenon::f32_nchw8c()})
                        .deterministic(),
                    tenon::kernel<Gather>("test.gather/1", "test.gather.nchw8c")
                        .combo({tenon::f32_nchw8c()}, {tenon::f32_row()})
                        .deterministic(),
                    tenon::kernel<Shorten>("test.shorten/1", "test.shorten.nhwc")
                        .combo({tenon::f32_row()}, {tenon::nhwc(TN_BF16)})
                        .deterministic(),
                    tenon::kernel<Lengthen>("test.lengthen/1", "test.lengthen.nhwc")
                        .combo({tenon::nhwc(TN_BF16)}, {tenon::f32_row()})
                        .deterministic())

class ObserveFormats : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(library_.add_plugin(formats_plugin()).ok());
    network_.emplace(tenon::Network::create(library_).value());
    const auto x = network_->add_input("x", {1, kChannels, 2, 2}).value();
    const auto blocked = layer("spread", "blocked", x), gathered = layer("gather", "gathered", blocked);
    const auto y = layer("lengthen", "y", layer("shorten", "short", gathered));
    const auto same = layer("spread", "same_as_blocked", x);
    ASSERT_TRUE(network_->mark_output(y).ok());
    ASSERT_TRUE(network_->mark_output(layer("gather", "z", same)).ok());
  }
  tenon::TensorId layer(const std::string& op, const std::string& name, tenon::TensorId input) {
    return network_->add_layer("test." + op + "/1", name, {input}).value();
  }
  tenon::Engine engine(const std::string& verbosity = "detailed") {
    auto config = tenon::BuilderConfig::create().value();
    EXPECT_TRUE(config.set("device", "cpu").ok());
    EXPECT_TRUE(config.set("threads", "1").ok());
    EXPECT_TRUE(config.set("verbosity", verbosity).ok());
    const auto built = tenon::Builder(library_).build(*network_, config);
    EXPECT_TRUE(built.ok()) << built.status().message();
    return tenon::Runtime(library_, "cpu", 1).create(built->data(), built->size()).value();
  }

  tenon::Library library_ = tenon::Library::create().value();
  std::optional<tenon::Network> network_;
  Floats x_ = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, plus_1_ = {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
};

TEST_F(ObserveFormats, BlocksAndSmallFloatsComeRowMajorInF32) {
  const tenon::Engine built = engine();
  const std::string tensors = tenon::EngineInspector(built).engine("tensors").value();
  for (const char* format : {"\"nchw8c\"", "\"nhwc\"", "\"bf16\""}) {
    EXPECT_NE(tensors.find(format), std::string::npos) << tensors;
  }
  auto context = tenon::ExecutionContext::create(built).value();
  Floats y(12), z(12);
  ASSERT_TRUE(context.set_tensor("x", x_.data()).ok());
  ASSERT_TRUE(context.set_tensor("y", y.data()).ok());
  ASSERT_TRUE(context.set_tensor("z", z.data()).ok());
  std::map<std::string, Floats> shown;
  const auto record = [&](const std::string& name, const TnTensor& tensor) {
    EXPECT_EQ(tensor.dtype, TN_F32);
    EXPECT_EQ(tensor.dims.rank, 4);
    EXPECT_EQ(tensor.dims.d[1], kChannels);
    const auto* data = static_cast<const float*>(tensor.data);
    EXPECT_TRUE(shown.emplace(name, Floats(data, data + 12)).second) << name << " came twice";
  };
  ASSERT_TRUE(context.set_observer({}, record).ok());
  ASSERT_TRUE(context.execute().ok());
  EXPECT_EQ(y, plus_1_);
  EXPECT_EQ(z, plus_1_);
  EXPECT_EQ(shown.at("blocked"), x_);
  EXPECT_EQ(shown.at("short"), plus_1_);
  EXPECT_EQ(shown.at("y"), plus_1_);
  EXPECT_EQ(shown.at("z"), plus_1_);
}

TEST_F(ObserveFormats, WhatWasMergedAwayIsKnownByName) {
  const tenon::Engine built = engine();
  auto context = tenon::ExecutionContext::create(built).value();
  const auto ignore = [](const std::string&, const TnTensor&) {};
  // Both spreads are one node now, and so are both gathers: the output has kept its name, the other tensor has not.
  for (const char* name : {"same_as_blocked", "gathered"}) {
    const tenon::Status status = context.set_observer({name}, ignore);
    EXPECT_EQ(status.code(), tenon::Code::kDeclined) << status.message();
    EXPECT_NE(status.message().find(name), std::string::npos) << status.message();
  }
  EXPECT_EQ(context.set_observer({"blokked"}, ignore).code(), tenon::Code::kNotFound);
}

TEST_F(ObserveFormats, WithoutNamesThereIsNothingToObserve) {
  auto context = tenon::ExecutionContext::create(engine("none")).value();
  const tenon::Status status = context.set_observer({}, [](const std::string&, const TnTensor&) {});
  EXPECT_EQ(status.code(), tenon::Code::kInvalid);
  EXPECT_NE(status.message().find("keeps no names"), std::string::npos) << status.message();
}

}  // namespace
