// What the steps of the generator are put together from: values of the pool, and pieces of networks over them.
#ifndef TENON_TESTS_FUSION_RANDOM_PIECES_H
#define TENON_TESTS_FUSION_RANDOM_PIECES_H

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/fusion/network_maker.h"
#include "tests/fusion/random_network.h"

namespace tenon::fusion {

class RandomPieces {
 protected:
  RandomPieces(const Library& library, std::uint64_t seed, std::int32_t dtype) : make_(library, dtype), random_(seed) {}

  // --- values ---

  void put(const Value& value) { pool_.push_back(value); }
  /// An inner value of a step: now and then something else reads it too, or it is an output.
  Value inner(const Value& value) {
    if (random_.chance(7)) put(value);
    if (random_.chance(3)) make_.output(value);
    return value;
  }
  /// A value of the pool, one of the latest most of the time.
  std::optional<Value> pick(const std::function<bool(const Value&)>& fits = nullptr) {
    std::vector<Value> found;
    for (const Value& value : pool_) {
      if (!fits || fits(value)) found.push_back(value);
    }
    if (found.empty()) return std::nullopt;
    const auto count = static_cast<std::int64_t>(found.size());
    const std::int64_t from = random_.chance(70) ? std::max<std::int64_t>(0, count - 3) : 0;
    return found[static_cast<std::size_t>(random_.between(from, count - 1))];
  }
  std::optional<Value> pick_rank(int rank) {
    return pick([&](const Value& value) { return value.rank() == rank; });
  }
  std::optional<Value> pick_like(const Value& other) {
    return pick([&](const Value& value) { return value.dims == other.dims && value.id != other.id; });
  }
  Value weights(const Dims& dims, std::int64_t fan_in) {
    const double bound = std::sqrt(3.0 / static_cast<double>(std::max<std::int64_t>(fan_in, 1)));
    return make_.constant(dims, random_.numbers(elements(dims), -bound, bound));
  }
  Value vector(std::int64_t count, double low, double high) {
    return make_.constant({count}, random_.numbers(count, low, high));
  }
  Value random_constant(const Dims& dims, double low, double high) {
    return make_.constant(dims, random_.numbers(elements(dims), low, high));
  }
  /// Dims of a constant that broadcasts to x: one number, one of each channel, of each column, of each element.
  Dims broadcast_dims(const Value& x) {
    switch (random_.below(7)) {
      case 0:
        return {};
      case 1:
        return Dims(static_cast<std::size_t>(random_.between(1, std::max(1, x.rank()))), 1);
      case 2:
      case 3:
        if (x.rank() >= 2) {
          Dims dims(static_cast<std::size_t>(random_.between(x.rank() - 1, x.rank())), 1);
          dims[dims.size() - static_cast<std::size_t>(x.rank() - 1)] = x.dims[1];
          return dims;
        }
        return {};
      case 4:
        return x.dims.empty() ? Dims{} : Dims{x.dims.back()};
      case 5:
        return varying_ ? Dims{} : x.dims;
      default:
        return random_.chance(20) && x.rank() < 5 && !varying_ ? Dims(static_cast<std::size_t>(x.rank() + 1), 1)
                                                               : Dims{1};
    }
  }

  // --- pieces of steps ---

  /// x and a constant, in either order.
  Value with_constant(const Value& x) {
    static const std::vector<std::string> ops = {"add", "mul", "add", "mul", "sub", "div", "min", "max", "prelu"};
    const std::string op = random_.one_of(ops);
    const Dims dims = op == "prelu" && x.rank() < 2 ? Dims{} : broadcast_dims(x);
    if (op == "prelu" && dims.size() > x.dims.size()) return x;
    const bool positive = op == "mul" || op == "div";
    Value constant = random_constant(dims, positive ? 0.3 : -1.5, 1.5);
    if (random_.chance(15)) constant = computed(constant);
    if (op == "div" || op == "prelu") return make_.op(op, {x, constant});
    return random_.chance(35) ? make_.op(op, {constant, x}) : make_.op(op, {x, constant});
  }
  /// The same dims, computed from constants.
  Value computed(const Value& constant) {
    if (random_.chance(40)) return make_.op("neg", {make_.op("abs", {constant})});
    return make_.op(random_.chance(50) ? "mul" : "add", {constant, make_.number(random_.number(0.5, 1.5))});
  }
  Value unary(const Value& x) {
    static const std::vector<std::string> plain = {"relu", "relu",     "relu6",      "logistic", "tanh",
                                                   "mish", "swish",    "hard_swish", "linear",   "hard_sigmoid",
                                                   "gelu", "softplus", "softsign",   "selu",     "gelu_tanh",
                                                   "abs",  "neg",      "sin",        "cos",      "erf"};
    static const std::vector<std::string> sloped = {"leaky_relu", "elu", "celu"};
    switch (random_.below(9)) {
      case 0:
        return make_.op(random_.one_of(sloped), {x}, {{"alpha", random_.number(0.05, 1.5)}});
      case 1: {
        const Value low = make_.number(random_.number(-1, 0)), high = make_.number(random_.number(0.2, 2));
        const std::vector<Value> bounds[] = {{x, low, high}, {x, low}, {x, Value(), high}};
        return make_.op("clip", bounds[random_.below(3)]);
      }
      case 2: {  // of positive numbers
        static const std::vector<std::string> ops = {"sqrt", "log", "reciprocal"};
        const Value positive = make_.op("add", {make_.op("abs", {x}), make_.number(random_.number(0.5, 1.5))});
        return make_.op(random_.one_of(ops), {inner(positive)});
      }
      case 3:
        return make_.op("exp", {make_.op("tanh", {x})});
      default:
        return make_.op(random_.one_of(plain), {x});
    }
  }
  Value spelled_activation(const Value& x) {
    const std::string& form = random_.one_of(spelled_forms());
    const double off = random_.chance(15) ? random_.one_of<double>({0.5, -0.25, 1e-3}) : 0;
    const std::optional<Value> other = random_.chance(8) ? pick_like(x) : std::nullopt;
    return spell(make_, form, x, off, other.value_or(x));
  }
  Value activation(const Value& x) { return random_.chance(30) ? spelled_activation(x) : unary(x); }
  /// What follows a linear layer in published networks, in any order.
  Value tail(Value y, std::int64_t channel_axis) {
    const std::int64_t channels = y.dims[static_cast<std::size_t>(channel_axis)];
    Dims per_channel(static_cast<std::size_t>(y.rank() - channel_axis), 1);
    per_channel[0] = channels;
    if (random_.chance(15)) y = make_.op("mul", {inner(y), random_constant(per_channel, 0.3, 1.5)});
    if (random_.chance(15)) y = make_.op("add", {inner(y), random_constant(per_channel, -1, 1)});
    if (random_.chance(18)) y = make_.op("mul", {inner(y), make_.number(random_.number(0.2, 1.5))});
    if (random_.chance(12)) y = with_constant(inner(y));
    if (random_.chance(18)) {
      if (const std::optional<Value> other = pick_like(y)) y = joined(inner(y), *other);
    }
    if (random_.chance(60)) y = activation(inner(y));
    if (random_.chance(12)) {
      if (const std::optional<Value> other = pick_like(y)) y = joined(inner(y), *other);
    }
    if (random_.chance(12)) y = unary(inner(y));
    return y;
  }
  Value joined(const Value& a, const Value& b) {
    static const std::vector<std::string> ops = {"add", "add", "add", "sub", "mul", "min", "max"};
    const std::string& op = random_.one_of(ops);
    return random_.chance(50) ? make_.op(op, {a, b}) : make_.op(op, {b, a});
  }
  Value batch_norm(const Value& x) {
    const std::int64_t channels = x.dims[1];
    const double epsilon = random_.one_of<double>({1e-5, 1e-3, 0.1});
    nlohmann::json attrs = {{"epsilon", epsilon}};
    if (random_.chance(25)) attrs["epsilon_place"] = "outside";
    return make_.op(
        "batch_norm",
        {x, vector(channels, -1.5, 1.5), vector(channels, -1, 1), vector(channels, -1, 1), vector(channels, 0.01, 1.5)},
        attrs);
  }
  struct Geometry {
    std::int64_t kernel[2], stride[2], dilation[2], pads[4];
  };
  Geometry geometry(const Value& x) {
    Geometry g{};
    const bool square = random_.chance(80);
    for (int n = 0; n < 2; ++n) {
      g.kernel[n] = n == 1 && square ? g.kernel[0] : random_.one_of<std::int64_t>({1, 1, 3, 3, 2, 5});
      g.stride[n] = n == 1 && square ? g.stride[0] : random_.one_of<std::int64_t>({1, 1, 1, 2});
      g.dilation[n] = random_.one_of<std::int64_t>({1, 1, 1, 1, 2});
      const bool same = random_.chance(60);
      g.pads[n] = same ? g.kernel[n] / 2 : random_.between(0, g.kernel[n] - 1);
      g.pads[n + 2] = same ? g.kernel[n] / 2 : random_.between(0, g.kernel[n] - 1);
    }
    for (int n = 0; n < 2; ++n) {
      if (x.dims[static_cast<std::size_t>(2 + n)] + g.pads[n] + g.pads[n + 2] > g.dilation[n] * (g.kernel[n] - 1))
        continue;
      g.kernel[n] = g.dilation[n] = 1;
      g.pads[n] = g.pads[n + 2] = 0;
    }
    return g;
  }
  Value conv(const Value& x, const Geometry& g, std::int64_t groups, std::int64_t filters, int bias_percent) {
    const std::int64_t depth = x.dims[1] / groups;
    Value w = weights({filters, depth, g.kernel[0], g.kernel[1]}, depth * g.kernel[0] * g.kernel[1]);
    if (random_.chance(5)) w = computed(w);
    std::vector<Value> inputs = {x, w};
    if (random_.chance(bias_percent)) inputs.push_back(vector(filters, -1, 1));
    return make_.op("conv2d", inputs,
                    {{"strides", {g.stride[0], g.stride[1]}},
                     {"dilations", {g.dilation[0], g.dilation[1]}},
                     {"pads", {g.pads[0], g.pads[1], g.pads[2], g.pads[3]}},
                     {"groups", groups}});
  }
  std::vector<std::int64_t> divisors(std::int64_t number) {
    std::vector<std::int64_t> all;
    for (std::int64_t n = 1; n <= number; ++n) {
      if (number % n == 0) all.push_back(n);
    }
    return all;
  }
  Value pointwise_conv(const Value& x, std::int64_t filters) {
    return conv(x, {{1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}}, 1, filters, 50);
  }
  Value slice(const Value& x, int axis, std::int64_t from, std::int64_t to, std::int64_t step = 1) {
    nlohmann::json attrs = {{"starts", {from}}, {"ends", {to}}, {"axes", {axis}}};
    if (step != 1) attrs["steps"] = {step};
    return make_.op("slice", {x}, attrs);
  }

  NetworkMaker make_;
  Random random_;
  std::vector<Value> pool_;
  std::int64_t batch_ = 1;
  bool varying_ = false;
};

}  // namespace tenon::fusion

#endif  // TENON_TESTS_FUSION_RANDOM_PIECES_H
