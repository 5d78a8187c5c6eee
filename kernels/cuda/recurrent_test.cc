#include "kernels/cuda/recurrent.h"

#include <functional>

#include "kernels/cuda/test_util.h"

namespace tenon::cuda {
namespace {

using Kind = GateFunction::Kind;

double apply(const GateFunction& f, double x) {
  switch (f.kind) {
    case Kind::kRelu:
      return std::max(x, 0.0);
    case Kind::kTanh:
      return std::tanh(x);
    case Kind::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Kind::kAffine:
      return f.alpha * x + f.beta;
    case Kind::kLeakyRelu:
      return x < 0 ? f.alpha * x : x;
    case Kind::kThresholdedRelu:
      return x >= f.alpha ? x : 0;
    case Kind::kScaledTanh:
      return f.alpha * std::tanh(f.beta * x);
    case Kind::kHardSigmoid:
      return std::min(std::max(f.alpha * x + f.beta, 0.0), 1.0);
    case Kind::kElu:
      return x < 0 ? f.alpha * (std::exp(x) - 1) : x;
    case Kind::kSoftsign:
      return x / (1 + std::abs(x));
    case Kind::kSoftplus:
      return std::log(1 + std::exp(x));
  }
  return NAN;
}

struct Layer {
  RecurrentShape shape;
  std::vector<float> x, weights, recurrence, bias, initial_h, initial_c, peepholes;
  std::vector<int64_t> lengths;
};

struct Results {
  std::vector<double> y, h, c;
};

// The equations of ONNX, one number at a time.
Results expect(const Layer& l) {
  const RecurrentShape& s = l.shape;
  const int64_t H = s.hidden, G = s.gates(), states = s.batch * H;
  Results result;
  result.y.resize(s.steps * s.directions * states);
  result.h.resize(s.directions * states);
  result.c.resize(s.directions * states);
  for (int d = 0; d < s.directions; ++d) {
    const auto function = [&](int n, double x) { return apply(s.functions[d][n], x); };
    const auto gate = [&](int n, double x) {
      return function(n, s.clip > 0 ? std::min<double>(std::max<double>(x, -s.clip), s.clip) : x);
    };
    for (int64_t b = 0; b < s.batch; ++b) {
      std::vector<double> h(H), c(H);
      for (int64_t j = 0; j < H; ++j) {
        if (!l.initial_h.empty()) h[j] = l.initial_h[d * states + b * H + j];
        if (!l.initial_c.empty()) c[j] = l.initial_c[d * states + b * H + j];
      }
      for (int64_t n = 0; n < s.steps; ++n) {
        const int64_t t = d == 1 || s.reverse ? s.steps - 1 - n : n;
        if (!l.lengths.empty() && t >= l.lengths[b]) continue;
        const auto input = [&](int64_t row) {
          double sum = l.bias.empty() ? 0 : l.bias[d * 2 * G + row];
          for (int64_t k = 0; k < s.inputs; ++k) {
            sum += static_cast<double>(l.weights[(d * G + row) * s.inputs + k]) * l.x[(t * s.batch + b) * s.inputs + k];
          }
          return sum;
        };
        const auto product = [&](int64_t row, const std::vector<double>& v) {
          double sum = l.bias.empty() ? 0 : l.bias[d * 2 * G + G + row];
          for (int64_t k = 0; k < H; ++k) sum += l.recurrence[(d * G + row) * H + k] * v[k];
          return sum;
        };
        const auto peephole = [&](int g, int64_t j) {
          return l.peepholes.empty() ? 0.0 : l.peepholes[(d * 3 + g) * H + j] * c[j];
        };
        const std::vector<double> last = h;
        std::vector<double> reset(H);
        for (int64_t j = 0; j < H && s.kind == CellKind::kGru; ++j) {
          reset[j] = gate(0, input(H + j) + product(H + j, last));
        }
        std::vector<double> reset_h(H);
        for (int64_t j = 0; j < H; ++j) reset_h[j] = reset[j] * last[j];
        for (int64_t j = 0; j < H; ++j) {
          if (s.kind == CellKind::kRnn) {
            h[j] = gate(0, input(j) + product(j, last));
          } else if (s.kind == CellKind::kGru) {
            const double z = gate(0, input(j) + product(j, last));
            const double candidate =
                gate(1, input(2 * H + j) + (s.linear_before_reset ? reset[j] * product(2 * H + j, last)
                                                                  : product(2 * H + j, reset_h)));
            h[j] = (1 - z) * candidate + z * last[j];
          } else {
            const double i = gate(0, input(j) + product(j, last) + peephole(0, j));
            const double f =
                s.input_forget ? 1 - i : gate(0, input(2 * H + j) + product(2 * H + j, last) + peephole(2, j));
            c[j] = f * c[j] + i * gate(1, input(3 * H + j) + product(3 * H + j, last));
            h[j] = gate(0, input(H + j) + product(H + j, last) + peephole(1, j)) * function(2, c[j]);
          }
          result.y[(t * s.directions + d) * states + b * H + j] = h[j];
        }
      }
      for (int64_t j = 0; j < H; ++j) {
        result.h[d * states + b * H + j] = h[j];
        result.c[d * states + b * H + j] = c[j];
      }
    }
  }
  return result;
}

class RecurrentTest : public CudaTest {
 protected:
  static Layer layer(CellKind kind, int directions, int64_t steps, int64_t batch, int64_t inputs, int64_t hidden) {
    Layer l;
    RecurrentShape& s = l.shape;
    s.kind = kind, s.directions = directions;
    s.steps = steps, s.batch = batch, s.inputs = inputs, s.hidden = hidden;
    for (auto& functions : s.functions) {
      for (auto& function : functions) function.kind = Kind::kTanh;
      if (kind != CellKind::kRnn) functions[0].kind = Kind::kSigmoid;
    }
    const float size = 1.0f / std::sqrt(static_cast<float>(hidden));
    // Values of half precision, so that both types get the same.
    const auto values = [](int64_t count, uint32_t seed, float limit) {
      return to_floats(to_half(random_floats(count, seed, -limit, limit)));
    };
    l.x = values(steps * batch * inputs, 1, 1);
    l.weights = values(directions * s.gates() * inputs, 2, size);
    l.recurrence = values(directions * s.gates() * hidden, 3, size);
    l.bias = values(directions * 2 * s.gates(), 4, 0.5f);
    l.initial_h = values(directions * batch * hidden, 5, 1);
    if (kind == CellKind::kLstm) {
      l.initial_c = values(directions * batch * hidden, 6, 1);
      l.peepholes = values(directions * 3 * hidden, 7, 0.5f);
    }
    for (int64_t b = 0; b < batch; ++b) l.lengths.push_back((b * 3 + 2) % (steps + 1));
    return l;
  }
  // Without all that may be absent.
  static Layer plain(Layer l) {
    l.bias = l.initial_h = l.initial_c = l.peepholes = {};
    l.lengths.clear();
    return l;
  }

  template <class T>
  void check_as(ElementType type, const Layer& l, bool wide, double tolerance,
                const std::function<std::vector<T>(const std::vector<float>&)>& as) {
    const RecurrentShape& s = l.shape;
    const int64_t states = s.directions * s.batch * s.hidden;
    const Input x(as(l.x)), weights(as(l.weights)), recurrence(as(l.recurrence)), bias(as(l.bias)),
        initial_h(as(l.initial_h)), initial_c(as(l.initial_c)), peepholes(as(l.peepholes)), lengths64(l.lengths),
        lengths32(std::vector<int32_t>(l.lengths.begin(), l.lengths.end()));
    const Output y(s.steps * states * sizeof(T), sizeof(T)), y_h(states * sizeof(T), sizeof(T)),
        y_c(states * sizeof(T), sizeof(T)), workspace(recurrent_workspace_bytes(type, s));
    RecurrentBuffers b;
    const auto given = [](const Input& input, const std::vector<float>& list) -> const void* {
      return list.empty() ? nullptr : input.data();
    };
    b.x = x.data(), b.weights = weights.data(), b.recurrence = recurrence.data();
    b.bias = given(bias, l.bias);
    b.initial_h = given(initial_h, l.initial_h), b.initial_c = given(initial_c, l.initial_c);
    b.peepholes = given(peepholes, l.peepholes);
    if (!l.lengths.empty()) {
      b.lengths32 = wide ? nullptr : lengths32.data<int32_t>();
      b.lengths64 = wide ? lengths64.data<int64_t>() : nullptr;
    }
    b.y = y.data(), b.y_h = y_h.data(), b.y_c = y_c.data(), b.workspace = workspace.data();
    launch([&](cudaStream_t stream) { return recurrent(type, s, b, stream); });
    workspace.get();
    const Results expected = expect(l);
    const auto floats = [](const Output& output) {
      if constexpr (std::is_same_v<T, float>) {
        return output.get<float>();
      } else {
        return to_floats(output.get<__half>());
      }
    };
    EXPECT_EQ(count_mismatches(floats(y), expected.y, tolerance), 0);
    EXPECT_EQ(count_mismatches(floats(y_h), expected.h, tolerance), 0);
    if (s.kind != CellKind::kLstm) return;
    EXPECT_EQ(count_mismatches(floats(y_c), expected.c, tolerance), 0);
  }
  void check(const Layer& l) {
    check_as<float>(ElementType::kF32, l, false, 1e-5, [](const std::vector<float>& list) { return list; });
    check_as<__half>(ElementType::kF16, l, true, 5e-3, [](const std::vector<float>& list) { return to_half(list); });
  }
};

TEST_F(RecurrentTest, Cells) {
  for (const CellKind kind : {CellKind::kRnn, CellKind::kGru, CellKind::kLstm}) {
    for (const int64_t hidden : {1, 5, 32, 70}) {
      for (const int64_t batch : {1, 3, 6}) {
        Layer l = layer(kind, 2, 5, batch, 7, hidden);
        check(l);
        check(plain(l));
        l.shape.input_forget = l.shape.linear_before_reset = true;
        l.shape.clip = 0.4f;
        check(l);
        if (HasFailure()) FAIL() << "kind " << static_cast<int>(kind) << " hidden " << hidden << " batch " << batch;
      }
    }
    Layer reverse = layer(kind, 1, 6, 2, 3, 8);
    reverse.shape.reverse = true;
    check(reverse);
    check(layer(kind, 1, 20, 2, 130, 100));
  }
}

TEST_F(RecurrentTest, EveryFunction) {
  for (int n = 0; n <= static_cast<int>(Kind::kSoftplus); ++n) {
    Layer l = layer(CellKind::kRnn, 1, 3, 2, 4, 6);
    l.shape.functions[0][0] = {static_cast<Kind>(n), 0.6f, 0.3f};
    check(l);
    if (HasFailure()) FAIL() << "function " << n;
  }
}

TEST_F(RecurrentTest, NoSteps) {
  Layer l = layer(CellKind::kLstm, 2, 0, 2, 3, 4);
  l.lengths.clear();
  check(l);
}

}  // namespace
}  // namespace tenon::cuda
