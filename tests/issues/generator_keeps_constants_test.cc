// The story: to time a layer the tuner asks its op for random inputs. Batch normalisation brings a generator of its own
// (variances must not be negative), and that filled the network's own constants, in place: the engine computed with
// random statistics, and differently each time a layer was tuned.
//
// A generator fills whatever it is given, so it must be given copies of constants; and tactics are checked and timed
// with the network's constants, whatever the generator wrote.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <tenon/sdk/plugin.hpp>
#include <tenon/tenon.hpp>

namespace tenon::issues {
namespace {

using Floats = std::vector<float>;

void infer(const Infer& question) { question.output(0, question.input(0).dtype(), question.input(0).dims()); }

// test.pick/1: y[i] = x[i] + table[index[i]]. An index from elsewhere than the network would read outside the table.
constexpr std::int64_t kTable = 4;

void pick_reference(const Reference& call) {
  const float* x = call.input(0).data<float>();
  const float* table = call.input(1).data<float>();
  const std::int64_t* index = call.input(2).data<std::int64_t>();
  call.fill<float>(0, [&](const int64_t*, int64_t i) {
    EXPECT_TRUE(index[i] >= 0 && index[i] < kTable) << "the check ran with an index that no one gave: " << index[i];
    return x[i] + table[std::clamp<std::int64_t>(index[i], 0, kTable - 1)];
  });
}

void scribble(const Generate& call) {
  for (std::uint32_t n = 0; n < call.num_inputs; ++n) {
    const TnTensor& tensor = call.inputs[n];
    const std::int64_t count = Dims(tensor.dims).elements();
    if (tensor.dtype == TN_F32) std::fill_n(static_cast<float*>(tensor.data), count, 1000.0f);
    if (tensor.dtype == TN_I64) std::fill_n(static_cast<std::int64_t*>(tensor.data), count, std::int64_t{1000});
  }
}

class Pick final : public IPlugin {
 public:
  void enqueue(const Exec&, const TnTensor* inputs, const TnTensor* outputs) const override {
    const auto* table = static_cast<const float*>(inputs[1].data);
    const auto* index = static_cast<const std::int64_t*>(inputs[2].data);
    const std::int64_t count = Dims(inputs[0].dims).elements();
    for (std::int64_t i = 0; i < count; ++i) {
      EXPECT_TRUE(index[i] >= 0 && index[i] < kTable) << "a tactic ran with an index that no one gave: " << index[i];
      static_cast<float*>(outputs[0].data)[i] =
          static_cast<const float*>(inputs[0].data)[i] + table[std::clamp<std::int64_t>(index[i], 0, kTable - 1)];
    }
  }
};

TENON_LINKED_PLUGIN(pick_plugin, "test.pick", "1", "Apache-2.0",
                    op("test.pick/1")
                        .input("x")
                        .input("table")
                        .input("index")
                        .output("y")
                        .infer(infer)
                        .reference(pick_reference)
                        .generate(scribble),
                    kernel<Pick>("test.pick/1", "test.pick.f32")
                        .combo({f32_row(), f32_row(), row(TN_I64)}, {f32_row()})
                        .deterministic())

class GeneratorKeepsConstants : public ::testing::Test {
 protected:
  void SetUp() override {
    library_ = Library::create().value();
    ASSERT_TRUE(library_->discover().ok());
    ASSERT_TRUE(library_->add_plugin(pick_plugin()).ok());
    network_ = Network::create(*library_).value();
  }

  /// Builds with a cold and then with a warm cache, and expects `y` of `x` from both.
  void expect_output(Floats x, const Floats& y) {
    const TimingCache cache = TimingCache::create(*library_).value();
    std::string first;
    for (const char* cache_is : {"cold", "warm", "warm again"}) {
      SCOPED_TRACE(cache_is);
      BuilderConfig config = BuilderConfig::create().value();
      ASSERT_TRUE(config.set("device", "cpu").ok());
      ASSERT_TRUE(config.set_cache(cache).ok());
      const auto built = Builder(*library_).build(*network_, config);
      ASSERT_TRUE(built.ok()) << built.status().message();
      if (first.empty()) first = built->bytes();
      EXPECT_TRUE(first == built->bytes()) << "the engine changed from build to build";
      const Engine engine = Runtime(*library_, "cpu").create(built->data(), built->size()).value();
      ExecutionContext context = ExecutionContext::create(engine).value();
      Floats found(y.size());
      ASSERT_TRUE(context.set_tensor("x", x.data()).ok());
      ASSERT_TRUE(context.set_tensor("y", found.data()).ok());
      ASSERT_TRUE(context.execute().ok());
      for (std::size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(found[i], y[i], 1e-5) << i;
    }
  }

  std::optional<Library> library_;
  std::optional<Network> network_;
};

TEST_F(GeneratorKeepsConstants, BatchNorm) {
  constexpr std::int64_t kChannels = 4, kPlane = 9;
  const Floats scale = {1, 2, 3, 4}, bias = {10, 20, 30, 40}, mean = {0.5, 1, 1.5, 2}, variance = {1, 4, 9, 16};
  const auto x = network_->add_input("x", {1, kChannels, 3, 3}).value();
  std::vector<TensorId> inputs = {x};
  for (const auto& [name, values] :
       {std::pair("scale", scale), {"bias", bias}, {"mean", mean}, {"variance", variance}}) {
    inputs.push_back(network_->add_constant(name, {kChannels}, values).value());
  }
  const auto y = network_->add_layer("tenon.batch_norm/1", "norm", inputs, R"({"epsilon": 0})");
  ASSERT_TRUE(y.ok()) << y.status().message();
  ASSERT_TRUE(network_->rename(*y, "y").ok());
  ASSERT_TRUE(network_->mark_output(*y).ok());
  Floats values(kChannels * kPlane), expected(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t c = i / kPlane;
    values[i] = static_cast<float>(i % 5);
    expected[i] = scale[c] * (values[i] - mean[c]) / std::sqrt(variance[c]) + bias[c];
  }
  expect_output(values, expected);
}

TEST_F(GeneratorKeepsConstants, AnOpWhoseGeneratorWritesEverywhere) {
  const std::int64_t index[] = {3, 2, 1, 0, 3, 3};
  const Floats table = {1, 10, 100, 1000};
  const auto x = network_->add_input("x", {6}).value();
  const auto constant = network_->add_constant("table", {kTable}, table).value();
  TnDims dims{};
  dims.rank = 1;
  dims.d[0] = 6;
  TensorId indices = TN_NO_TENSOR;
  ASSERT_EQ(tn_network_add_constant(network_->get(), "index", TN_I64, &dims, index, sizeof(index), &indices), TN_OK);
  const auto y = network_->add_layer("test.pick/1", "pick", {x, constant, indices});
  ASSERT_TRUE(y.ok()) << y.status().message();
  ASSERT_TRUE(network_->rename(*y, "y").ok());
  ASSERT_TRUE(network_->mark_output(*y).ok());
  expect_output({0, 1, 2, 3, 4, 5}, {1000, 101, 12, 4, 1004, 1005});
}

}  // namespace
}  // namespace tenon::issues
