// The generator: a pool of values, and steps that read some of them and put others in. Each step has random numbers of
// its own, so a step that is left out changes nothing in the others but what they find in the pool.
#include "tests/fusion/random_network.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "tests/fusion/quantized_steps.h"
#include "tests/fusion/transformer_pieces.h"

namespace tenon::fusion {
namespace {

using nlohmann::json;

constexpr std::int64_t kMaxElements = 3000;

class Generator : private QuantizedSteps {
 public:
  Generator(const Library& library, const Recipe& recipe, std::int32_t dtype)
      : QuantizedSteps(library, recipe.seed, dtype), recipe_(recipe) {
    batch_ = random_.one_of<std::int64_t>({1, 1, 1, 2, 3});
    const std::int64_t channels = random_.one_of<std::int64_t>({1, 2, 3, 4, 6, 8, 8, 16});
    put_exact(make_.input({batch_, channels, random_.between(1, 9), random_.between(1, 9)}));
    varying_ = random_.chance(15);
    if (!varying_ && random_.chance(35)) put_exact(make_.input(pool_[0].dims));
    if (!varying_ && random_.chance(30)) put_exact(make_.input({batch_, random_.between(2, 12)}));
  }

  RandomNetwork run() {
    for (const int step : recipe_.steps) {
      random_ = Random(recipe_.seed * 1000003 + static_cast<std::uint64_t>(step) + 1);
      take_step();
    }
    random_ = Random(recipe_.seed * 1000003);
    for (const Value& value : pool_) {
      const bool is_input = value.id == pool_[0].id;
      if (make_.is_read(value) ? random_.chance(8) : !is_input && random_.chance(95)) make_.output(value);
    }
    if (make_.num_outputs() == 0) make_.output(pool_.back());
    RandomNetwork result{make_.network(), 1, 1};
    if (varying_) set_profile(&result);
    return result;
  }

 private:
  using Step = void (Generator::*)();

  void take_step() {
    static const std::vector<std::pair<Step, int>> kinds = {
        {&Generator::convolution, 26}, {&Generator::spelled, 12},       {&Generator::constants, 9},
        {&Generator::chain, 10},       {&Generator::two_values, 10},    {&Generator::siblings, 7},
        {&Generator::split, 7},        {&Generator::concatenation, 7},  {&Generator::moved, 9},
        {&Generator::pools, 5},        {&Generator::dense, 10},         {&Generator::products, 4},
        {&Generator::softmax, 4},      {&Generator::squeeze_excite, 4}, {&Generator::normalised, 4},
        {&Generator::folded, 5},       {&Generator::spelled_norm, 3},   {&Generator::bottleneck, 5},
        {&Generator::twins, 3},        {&Generator::attention, 7},      {&Generator::shuffle, 4},
        {&Generator::padded, 4},       {&Generator::quantized, 8},
    };
    int total = 0;
    for (const auto& [step, weight] : kinds) total += weight;
    std::int64_t at = random_.below(total);
    for (const auto& [step, weight] : kinds) {
      if ((at -= weight) < 0) return (this->*step)();
    }
  }

  // --- steps ---

  void convolution() {
    const std::optional<Value> x = pick_rank(4);
    if (!x) return;
    const std::int64_t channels = x->dims[1];
    const std::int64_t groups = random_.chance(55)   ? 1
                                : random_.chance(60) ? channels
                                                     : random_.one_of(divisors(channels));
    const std::int64_t filters = groups * random_.between(1, groups == 1 ? 12 : 2);
    Value y = conv(*x, geometry(*x), groups, filters, 50);
    if (random_.chance(45)) y = batch_norm(inner(y));
    put(tail(y, 1));
  }
  /// Two convolutions of which the second reads the first, with the input added at the end.
  void bottleneck() {
    const std::optional<Value> x = pick_rank(4);
    if (!x) return;
    const Value narrow = activation(inner(batch_norm(pointwise_conv(*x, random_.between(1, 6)))));
    const Geometry three = {{3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}};
    Value y = conv(inner(narrow), three, 1, x->dims[1], 50);
    if (random_.chance(60)) y = batch_norm(inner(y));
    if (random_.chance(30)) y = activation(inner(y));
    y = joined(inner(y), *x);
    put(random_.chance(60) ? activation(inner(y)) : y);
  }
  void spelled() {
    const std::optional<Value> x = pick();
    if (x) put(spelled_activation(*x));
  }
  void constants() {
    std::optional<Value> x = pick();
    for (std::int64_t n = random_.between(1, 3); x && n > 0; --n) x = with_constant(inner(*x));
    if (x && elements(x->dims) <= kMaxElements) put(*x);
  }
  void chain() {
    std::optional<Value> x = pick();
    if (!x) return;
    Value y = *x;
    for (std::int64_t n = random_.between(1, 4); n > 0; --n) {
      y = random_.chance(60) ? unary(inner(y)) : with_constant(inner(y));
    }
    if (elements(y.dims) <= kMaxElements) put(y);
  }
  void two_values() {
    const std::optional<Value> a = pick();
    if (!a) return;
    const std::optional<Value> b = random_.chance(25) ? a : pick_like(*a);
    if (!b) return;
    Value y = joined(random_.chance(30) ? unary(*a) : *a, random_.chance(30) ? unary(*b) : *b);
    put(random_.chance(50) ? activation(inner(y)) : y);
  }
  /// Layers of one kind that read the same value.
  void siblings() {
    const bool image = random_.chance(65);
    const std::optional<Value> x = pick_rank(image ? 4 : 2);
    if (!x) return;
    const Geometry g = image ? geometry(*x) : Geometry{};
    const std::string common = random_.chance(50) ? "relu" : "tanh";
    std::vector<Value> all;
    for (std::int64_t n = random_.between(2, 3); n > 0; --n) {
      Value y;
      if (image) {
        y = conv(*x, random_.chance(75) ? g : geometry(*x), 1, random_.between(1, 6), random_.chance(85) ? 100 : 0);
        if (random_.chance(30)) y = batch_norm(inner(y));
      } else {
        y = linear(*x, random_.between(1, 6));
      }
      all.push_back(random_.chance(60) ? make_.op(common, {inner(y)}) : random_.chance(40) ? activation(inner(y)) : y);
      if (random_.chance(25)) all.back() = make_.op("softmax", {all.back()}, {{"axis", 1}});
    }
    const auto fits = [&](const Value& y) {
      return y.dims[0] == all[0].dims[0] &&
             Dims(y.dims.begin() + 2, y.dims.end()) == Dims(all[0].dims.begin() + 2, all[0].dims.end());
    };
    if (random_.chance(50) && std::all_of(all.begin(), all.end(), fits))
      return put(make_.op("concat", all, {{"axis", 1}}));
    for (const Value& y : all) put(y);
  }
  /// Parts along an axis, something done to some of them, and all put together again.
  void split() {
    const std::optional<Value> x = pick([](const Value& v) { return v.rank() >= 2; });
    if (!x) return;
    const int axis = random_.chance(65) ? 1 : static_cast<int>(random_.between(varying_ ? 1 : 0, x->rank() - 1));
    const std::int64_t size = x->dims[static_cast<std::size_t>(axis)];
    if (size < 2) return;
    if (random_.chance(20)) {
      if (random_.chance(50)) return put(slice(*x, axis, -1, -size - 1, -1));
      return put(slice(*x, axis, random_.below(2), size, 2));
    }
    const std::int64_t cut = random_.between(1, size - 1);
    std::vector<Value> parts = {slice(*x, axis, 0, cut), slice(*x, axis, cut, size)};
    for (Value& part : parts) {
      if (random_.chance(45)) part = unary(inner(part));
    }
    if (random_.chance(25)) std::swap(parts[0], parts[1]);
    if (random_.chance(65)) return put(make_.op("concat", {inner(parts[0]), inner(parts[1])}, {{"axis", axis}}));
    for (const Value& part : parts) put(part);
  }
  void concatenation() {
    const std::optional<Value> x =
        pick([](const Value& v) { return v.rank() >= 1 && elements(v.dims) <= kMaxElements / 3; });
    if (!x) return;
    const int axis = random_.chance(65) && x->rank() > 1 ? 1 : static_cast<int>(random_.below(x->rank()));
    if (varying_ && axis == 0) return;
    std::vector<Value> all = {*x};
    for (std::int64_t n = random_.between(1, 2); n > 0; --n) {
      const std::optional<Value> other = pick([&](const Value& v) {
        Dims dims = v.dims;
        if (dims.size() != x->dims.size()) return false;
        dims[static_cast<std::size_t>(axis)] = x->dims[static_cast<std::size_t>(axis)];
        return dims == x->dims && elements(v.dims) <= kMaxElements / 3;
      });
      if (random_.chance(12) && !varying_) {
        all.push_back(random_constant(x->dims, -1, 1));
      } else {
        all.push_back(random_.chance(30) ? unary(*other) : *other);
      }
    }
    const Value y = make_.op("concat", all, {{"axis", random_.chance(20) ? axis - x->rank() : axis}});
    put(random_.chance(30) ? unary(inner(y)) : y);
  }
  /// Reshapes and transposes, alone and one after the other.
  void moved() {
    const std::optional<Value> x = pick([](const Value& v) { return v.rank() >= 1; });
    if (!x) return;
    Value y = *x;
    for (std::int64_t n = random_.between(1, 3); n > 0; --n) {
      y = random_.chance(50) ? reshaped(y) : transposed(y);
      if (random_.chance(15)) y = unary(inner(y));
      y = inner(y);
    }
    put(y);
  }
  Value reshaped(const Value& x) {
    const std::int64_t rest = elements(x.dims) / std::max<std::int64_t>(x.dims[0], 1);
    const std::int64_t first = random_.one_of(divisors(rest));
    const std::int64_t second = random_.one_of(divisors(rest / first));
    const std::vector<Dims> shapes = {
        {0, -1}, {0, first, -1}, {0, first, second, -1}, {0, first, rest / first}, {0, -1, first, second}};
    const Dims& shape = random_.one_of(shapes);
    if (random_.chance(30)) return make_.op("reshape", {x, make_.integers(shape)});
    return make_.op("reshape", {x}, {{"shape", shape}});
  }
  Value transposed(const Value& x) {
    std::vector<std::int64_t> perm;
    for (int n = 0; n < x.rank(); ++n) perm.push_back(n);
    const std::int64_t from = varying_ ? 1 : 0;
    for (std::int64_t n = x.rank() - 1; n > from; --n) {
      std::swap(perm[static_cast<std::size_t>(n)], perm[static_cast<std::size_t>(random_.between(from, n))]);
    }
    const Value y = make_.op("transpose", {x}, {{"perm", perm}});
    if (!random_.chance(45)) return y;
    std::vector<std::int64_t> back(perm.size());
    for (std::size_t n = 0; n < perm.size(); ++n)
      back[static_cast<std::size_t>(perm[n])] = static_cast<std::int64_t>(n);
    Value between = inner(y);
    switch (random_.below(5)) {
      case 0:
      case 1:
        between = unary(between);
        break;
      case 2:
        between = with_constant(between);
        break;
      case 3:
        between = joined(between, make_.op("transpose", {pick_like(x).value_or(unary(x))}, {{"perm", perm}}));
        break;
      default:
        break;
    }
    if (between.rank() != x.rank()) return between;
    return make_.op("transpose", {inner(between)}, {{"perm", back}});
  }
  /// Channels of groups in turns, spelled as networks do, or nearly so.
  void shuffle() {
    std::optional<Value> x = pick_rank(4);
    if (!x) return;
    if (random_.chance(40)) x = pointwise_conv(*x, 2 * random_.between(1, 6));
    if (random_.chance(60)) x = random_.chance(50) ? make_.op("relu", {inner(*x)}) : unary(inner(*x));
    const std::int64_t channels = x->dims[1], groups = random_.one_of(divisors(channels));
    const std::int64_t batch = random_.chance(50) ? 0 : -1;
    Value y = make_.op("reshape", {*x}, {{"shape", {batch, groups, channels / groups, x->dims[2], x->dims[3]}}});
    const bool other = random_.chance(12) && !varying_;
    y = make_.op("transpose", {inner(y)}, {{"perm", other ? json{0, 2, 1, 4, 3} : json{0, 2, 1, 3, 4}}});
    y = make_.op("reshape", {inner(y)}, {{"shape", {batch, channels, x->dims[2], x->dims[3]}}});
    if (random_.chance(50)) y = conv(inner(y), geometry(y), channels, channels, 50);
    put(tail(y, 1));
  }
  /// An image with something around it under a window.
  void padded() {
    const std::optional<Value> x = pick_rank(4);
    if (!x) return;
    Geometry g = geometry(*x);
    Dims pads(8, 0);
    for (const std::size_t at : {2, 3, 6, 7}) {
      const std::int64_t reach = g.dilation[at % 2] * (g.kernel[at % 2] - 1);
      pads[at] = std::max<std::int64_t>(0, random_.between(-1, reach));
    }
    const std::int64_t kind = random_.below(3);
    const bool usual = random_.chance(80);
    const double lowest = -std::numeric_limits<double>::infinity();
    std::vector<Value> inputs = {*x, make_.integers(pads)};
    if (kind == 1 ? usual : !usual) inputs.push_back(make_.number(kind == 1 ? lowest : 0.5));
    const Value y = make_.op("pad", inputs, {{"mode", random_.chance(85) ? "constant" : "edge"}});
    if (elements(y.dims) > kMaxElements) return;
    if (kind == 0) {
      const std::int64_t groups = random_.chance(60) ? 1 : x->dims[1];
      return put(tail(conv(inner(y), g, groups, groups * random_.between(1, 4), 50), 1));
    }
    for (int n = 0; n < 2; ++n) {
      if (y.dims[static_cast<std::size_t>(2 + n)] <= g.dilation[n] * (g.kernel[n] - 1)) return;
    }
    json attrs = {{"kernel", {g.kernel[0], g.kernel[1]}},
                  {"strides", {g.stride[0], g.stride[1]}},
                  {"dilations", {g.dilation[0], g.dilation[1]}},
                  {"rounding", random_.chance(85) ? "floor" : "ceil"}};
    if (kind == 2) attrs["count_include_pad"] = random_.below(2);
    // What is around the image stays inside the step where it is infinite.
    put(make_.op(kind == 1 ? "max_pool" : "avg_pool", {kind == 1 ? y : inner(y)}, attrs));
  }
  void pools() {
    const std::optional<Value> x = pick_rank(4);
    if (!x) return;
    if (random_.chance(30)) return put(tail(make_.op("global_avg_pool", {*x}), 1));
    if (random_.chance(20)) {
      if (elements(x->dims) * 4 <= kMaxElements) put(make_.op("upsample", {*x}, {{"factors", {2, 2}}}));
      return;
    }
    json attrs = {{"kernel", {1, 1}}, {"pads", {0, 0, 0, 0}}, {"strides", {1, 1}}};
    for (int n = 0; n < 2; ++n) {
      const std::int64_t kernel =
          random_.between(1, std::min<std::int64_t>(3, x->dims[static_cast<std::size_t>(2 + n)]));
      attrs["kernel"][n] = kernel;
      attrs["strides"][n] = random_.between(1, 2);
      attrs["pads"][n] = attrs["pads"][n + 2] = random_.between(0, kernel / 2);
    }
    const Value y = make_.op(random_.chance(50) ? "max_pool" : "avg_pool", {*x}, attrs);
    put(random_.chance(40) ? unary(inner(y)) : y);
  }
  /// A product with constant weights, of [..., k].
  Value linear(const Value& x, std::int64_t columns) {
    const std::int64_t depth = x.dims.back();
    if (x.rank() == 2 && random_.chance(45)) {
      std::vector<Value> inputs = {x, weights({columns, depth}, depth)};
      if (random_.chance(60)) inputs.push_back(vector(columns, -1, 1));
      return make_.op("fully_connected", inputs);
    }
    const bool transposed_weights = random_.chance(35);
    Value w = weights(transposed_weights ? Dims{columns, depth} : Dims{depth, columns}, depth);
    if (random_.chance(12)) w = computed(w);
    Value y = make_.op("matmul", {x, w}, {{"transpose_b", transposed_weights ? 1 : 0}});
    if (random_.chance(60)) {
      const Value bias = vector(columns, -1, 1);
      y = random_.chance(70) ? make_.op("add", {inner(y), bias}) : make_.op("add", {bias, inner(y)});
    }
    return y;
  }
  void dense() {
    const std::optional<Value> x = pick([](const Value& v) { return v.rank() >= 2; });
    if (!x) return;
    const Value y = linear(*x, random_.between(1, 12));
    put(tail(y, y.rank() - 1));
  }
  /// Products of two values, and attention as published networks spell it.
  void products() {
    const std::optional<Value> x =
        pick([&](const Value& v) { return v.rank() >= (varying_ ? 3 : 2) && elements(v.dims) <= 400; });
    if (!x) return;
    Value y;
    bool turned_first = false;
    if (random_.chance(50)) {
      y = make_.op("matmul", {*x, random_.chance(40) ? unary(*x) : *x}, {{"transpose_b", 1}});
    } else {
      Dims swap;
      for (int axis = 0; axis < x->rank(); ++axis) swap.push_back(axis);
      std::swap(swap[swap.size() - 1], swap[swap.size() - 2]);
      const Value turned = inner(make_.op("transpose", {*x}, {{"perm", swap}}));
      turned_first = random_.chance(50);
      y = turned_first ? make_.op("matmul", {turned, *x}) : make_.op("matmul", {*x, turned});
    }
    y = make_.op("mul", {inner(y), make_.number(1 / std::sqrt(static_cast<double>(x->dims.back())))});
    if (elements(y.dims) > kMaxElements) return put(make_.op("reduce_mean", {y}));
    y = make_.op("softmax", {inner(y)}, {{"axis", -1}});
    if (random_.chance(30)) return put(y);
    put(turned_first ? make_.op("matmul", {*x, inner(y)}) : make_.op("matmul", {inner(y), *x}));
  }
  void softmax() {
    const std::optional<Value> x = pick([](const Value& v) { return v.rank() >= 1; });
    if (!x) return;
    const std::int64_t axis = random_.between(-1, x->rank() - 1);
    const Value y = random_.chance(30) ? spell_softmax(make_, *x, axis, random_.chance(70))
                                       : make_.op("softmax", {*x}, {{"axis", axis}});
    put(random_.chance(40) ? with_constant(inner(y)) : y);
  }
  void squeeze_excite() {
    const std::optional<Value> x = pick_rank(4);
    if (!x) return;
    Value gate = activation(pointwise_conv(make_.op("global_avg_pool", {*x}), random_.between(1, 4)));
    gate = make_.op(random_.chance(50) ? "logistic" : "hard_sigmoid", {inner(pointwise_conv(gate, x->dims[1]))});
    put(random_.chance(50) ? make_.op("mul", {*x, inner(gate)}) : make_.op("mul", {inner(gate), *x}));
  }
  void normalised() {
    const std::optional<Value> x = pick([](const Value& v) { return v.rank() >= 2; });
    if (!x) return;
    const Value y = batch_norm(*x);
    put(random_.chance(60) ? activation(inner(y)) : y);
  }
  /// A normalisation of rows, spelled out, with the factors behind it.
  void spelled_norm() {
    const std::optional<Value> x = pick([](const Value& v) { return v.rank() >= 2 && v.dims.back() > 1; });
    if (!x) return;
    const int axes = x->rank() > 2 && random_.chance(25) ? 2 : 1;
    const Dims row(x->dims.end() - axes, x->dims.end());
    const Value scale = random_constant(row, 0.3, 1.5), bias = random_constant(row, -1, 1);
    const std::string& form = random_.one_of(norm_forms());
    Value y = spell_norm(make_, form, *x, 0.1, scale, bias, axes, random_.chance(10) ? 2 : 0);
    if (form == "layer_norm_inverse") return put(y);
    if (random_.chance(80)) y = make_.op("mul", {inner(y), random_.chance(85) ? scale : make_.number(0.7)});
    if (random_.chance(80)) y = make_.op("add", {inner(y), random_.chance(85) ? bias : make_.number(0.7)});
    put(y);
  }
  /// Attention of heads, its inputs made by products or not, of one value or of several.
  void attention() {
    std::optional<Value> x = pick_rank(3);
    if (!x || random_.chance(30)) {
      x = pick_rank(4);
      if (x) x = make_.op("reshape", {*x}, {{"shape", {0, x->dims[1], -1}}});
    }
    if (!x || elements(x->dims) > 600 || x->dims[2] == 0) return;
    const std::int64_t heads = random_.between(1, 3), shared = random_.chance(20) ? 1 : heads;
    const std::int64_t size = random_.between(1, 5), value_size = random_.chance(75) ? size : random_.between(1, 5);
    const auto projected = [&](std::int64_t columns) {
      const Value w = weights({x->dims[2], columns}, x->dims[2]);
      const Value y = make_.op("matmul", {*x, w});
      return random_.chance(70) ? make_.op("add", {inner(y), vector(columns, -1, 1)}) : y;
    };
    const Value rows[] = {projected(heads * size), projected(shared * size), projected(shared * value_size)};
    Value y;
    if (shared != heads || random_.chance(25)) {
      json attrs = {
          {"scale", random_.number(0.2, 1)}, {"causal", random_.below(2)}, {"heads", heads}, {"key_heads", shared}};
      const bool split = random_.chance(50);
      y = make_.op("attention", {split ? split_heads(make_, rows[0], heads) : rows[0], rows[1], rows[2]}, attrs);
    } else {
      AttentionSpelling spelling;
      spelling.scale = random_.chance(70) ? random_.number(0.2, 0.9) : 1;
      spelling.divides = random_.chance(50);
      spelling.scales_q = random_.chance(30);
      spelling.transposed_b = random_.chance(30);
      const std::int64_t steps = x->dims[1];
      const std::vector<Dims> masks = {{steps}, {1, 1, steps}, {steps, steps}, {heads, steps, steps}, {steps, 1}, {1}};
      if (random_.chance(50)) spelling.mask = random_constant(random_.one_of(masks), -2, 2);
      const Value q = inner(split_heads(make_, rows[0], heads)), k = inner(split_heads(make_, rows[1], heads));
      y = spell_attention(make_, q, k, split_heads(make_, rows[2], heads), spelling);
    }
    put(random_.chance(80) ? tail(linear(merge_heads(make_, inner(y)), random_.between(1, 6)), 2) : y);
  }
  /// The same thing computed twice.
  void twins() {
    const std::optional<Value> x = pick([](const Value&) { return true; });
    if (!x) return;
    const Value first = make_.op("tanh", {*x}), second = make_.op("tanh", {*x});
    put(make_.op("mul", {first, inner(unary(second))}));
  }
  /// Constants that other constants give, then read by something that varies.
  void folded() {
    const std::optional<Value> x = pick([](const Value& v) { return v.rank() >= 2; });
    if (!x) return;
    const std::int64_t size = x->dims.back();
    Value c = random_constant({2, size}, -1, 1);
    c = random_.chance(50) ? make_.op("reshape", {c}, {{"shape", {size, 2}}}) : make_.op("transpose", {c});
    if (random_.chance(50)) c = unary(c);
    if (random_.chance(10)) make_.output(c);
    if (random_.chance(50)) return put(make_.op("matmul", {*x, c}));
    c = make_.op("reshape", {slice(c, 1, 0, 1)}, {{"shape", {-1}}});
    put(make_.op(random_.chance(50) ? "add" : "mul", {*x, c}));
  }

  void set_profile(RandomNetwork* result) {
    Dims min = pool_[0].dims, max = min;
    min[0] = 1;
    max[0] = batch_ + 2;
    // Some networks are others with another batch, say those with weights of its size; they stay as they are.
    if (result->network.set_profile("x0", min, pool_[0].dims, max).ok()) result->max_batch = max[0];
  }

  const Recipe& recipe_;
};

}  // namespace

Recipe recipe_of(std::uint64_t seed) {
  Recipe recipe{seed, {}};
  const std::int64_t count = Random(seed ^ 0x5851F42D4C957F2Dull).between(2, 9);
  for (int step = 0; step < count; ++step) recipe.steps.push_back(step);
  return recipe;
}

RandomNetwork make_random_network(const Library& library, const Recipe& recipe, std::int32_t dtype) {
  return Generator(library, recipe, dtype).run();
}

}  // namespace tenon::fusion
