// Activations that a model spells out become one layer, with the values of the formula.
#include <cmath>
#include <functional>

#include "tests/e2e/e2e_testing.h"

namespace tenon::e2e {
namespace {

const std::vector<float> kX = {-6, -2.5f, -1, -0.25f, 0, 0.5f, 1, 3, 7};

/// A network over x that adds layers by the names of their ops.
class Spelled {
 public:
  explicit Spelled(const Library& library) : network_(Network::create(library).value()) {
    x_ = network_.add_input("x", {static_cast<std::int64_t>(kX.size())}).value();
  }
  TensorId x() const { return x_; }
  TensorId number(float value, const std::vector<std::int64_t>& dims = {}) {
    return network_.add_constant("c" + std::to_string(++count_), dims, std::vector<float>{value}).value();
  }
  TensorId op(const std::string& name, const std::vector<TensorId>& inputs) {
    return network_.add_layer("tenon." + name + "/1", name + std::to_string(++count_), inputs).value();
  }
  const Network& finish(TensorId y) {
    EXPECT_TRUE(network_.rename(y, "y").ok());
    EXPECT_TRUE(network_.mark_output(y).ok());
    return network_;
  }

 private:
  Network network_;
  TensorId x_{};
  int count_ = 0;
};

class ActivationRules : public ::testing::Test {
 protected:
  void SetUp() override {
    library_ = Library::create({}).value();
    ASSERT_TRUE(library_->discover().ok());
  }

  /// The ops of the engine's layers; its output is compared with the formula.
  std::vector<std::string> ops(const std::function<TensorId(Spelled&)>& spell,
                               const std::function<double(double)>& formula) {
    Spelled spelled(*library_);
    const Network& network = spelled.finish(spell(spelled));
    BuilderConfig config = BuilderConfig::create().value();
    EXPECT_TRUE(config.set("device", "cpu").ok());
    EXPECT_TRUE(config.set("disable_rule", "tenon.core.pointwise/1").ok());  // it would hide what they leave
    const auto built = Builder(*library_).build(network, config);
    EXPECT_TRUE(built.ok()) << built.status().message();
    const auto engine = Runtime(*library_, "cpu").create(built->data(), built->size());
    EXPECT_TRUE(engine.ok()) << engine.status().message();
    auto context = ExecutionContext::create(*engine).value();
    std::vector<float> y(kX.size());
    EXPECT_TRUE(context.set_tensor("x", const_cast<float*>(kX.data())).ok());
    EXPECT_TRUE(context.set_tensor("y", y.data()).ok());
    EXPECT_TRUE(context.execute().ok());
    for (std::size_t n = 0; n < kX.size(); ++n) EXPECT_NEAR(y[n], formula(static_cast<double>(kX[n])), 2e-6) << kX[n];
    std::vector<std::string> result;
    const json report = parse_json(built->report());
    for (const json& layer : report["layers"]) result.push_back(layer["op"]);
    return result;
  }
  using Ops = std::vector<std::string>;

  std::optional<Library> library_;
};

double logistic(double x) { return 1 / (1 + std::exp(-x)); }
double gelu(double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); }
double hard_swish(double x) { return x * std::min(std::max(x + 3, 0.0), 6.0) / 6; }

TEST_F(ActivationRules, Swish) {
  const auto formula = [](double x) { return x * logistic(x); };
  EXPECT_EQ(ops(
                [](Spelled& s) {
                  return s.op("mul", {s.x(), s.op("logistic", {s.x()})});
                },
                formula),
            Ops{"tenon.swish/1"});
  EXPECT_EQ(ops(
                [](Spelled& s) {
                  return s.op("mul", {s.op("logistic", {s.x()}), s.x()});
                },
                formula),
            Ops{"tenon.swish/1"});
}

TEST_F(ActivationRules, Mish) {
  EXPECT_EQ(ops(
                [](Spelled& s) {
                  return s.op("mul", {s.x(), s.op("tanh", {s.op("softplus", {s.x()})})});
                },
                [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }),
            Ops{"tenon.mish/1"});
}

TEST_F(ActivationRules, HardSwish) {
  const auto gate = [](Spelled& s) {
    return s.op("clip", {s.op("add", {s.x(), s.number(3)}), s.number(0), s.number(6)});
  };
  EXPECT_EQ(ops(
                [&](Spelled& s) {
                  return s.op("div", {s.op("mul", {s.x(), gate(s)}), s.number(6)});
                },
                hard_swish),
            Ops{"tenon.hard_swish/1"});
  EXPECT_EQ(ops(
                [&](Spelled& s) {
                  return s.op("mul", {s.x(), s.op("div", {gate(s), s.number(6)})});
                },
                hard_swish),
            Ops{"tenon.hard_swish/1"});
}

TEST_F(ActivationRules, Gelu) {
  const auto gate = [](Spelled& s) {
    return s.op("add", {s.op("erf", {s.op("div", {s.x(), s.number(std::sqrt(2.0f))})}), s.number(1)});
  };
  EXPECT_EQ(ops(
                [&](Spelled& s) {
                  return s.op("mul", {s.op("mul", {s.x(), gate(s)}), s.number(0.5f)});
                },
                gelu),
            Ops{"tenon.gelu/1"});
  EXPECT_EQ(ops(
                [&](Spelled& s) {
                  return s.op("mul", {s.op("mul", {s.x(), s.number(0.5f)}), gate(s)});
                },
                gelu),
            Ops{"tenon.gelu/1"});
  EXPECT_EQ(ops(
                [&](Spelled& s) {
                  return s.op("mul", {s.x(), s.op("mul", {gate(s), s.number(0.5f)})});
                },
                gelu),
            Ops{"tenon.gelu/1"});
}

TEST_F(ActivationRules, OtherConstantsStay) {
  const auto found = ops(
      [](Spelled& s) {
        const TensorId gate = s.op("clip", {s.op("add", {s.x(), s.number(2)}), s.number(0), s.number(6)});
        return s.op("div", {s.op("mul", {s.x(), gate}), s.number(6)});
      },
      [](double x) { return x * std::min(std::max(x + 2, 0.0), 6.0) / 6; });
  EXPECT_EQ(std::count(found.begin(), found.end(), "tenon.hard_swish/1"), 0);
  EXPECT_EQ(found.size(), 4u);
}

// A constant of shape [1,1] makes the result a matrix, which the activation of x would not be.
TEST_F(ActivationRules, MoreDimsStay) {
  const auto found = ops(
      [](Spelled& s) {
        const TensorId gate = s.op("clip", {s.op("add", {s.x(), s.number(3)}), s.number(0), s.number(6)});
        return s.op("div", {s.op("mul", {s.x(), gate}), s.number(6, {1, 1})});
      },
      hard_swish);
  EXPECT_EQ(found.size(), 4u);
}

}  // namespace
}  // namespace tenon::e2e
