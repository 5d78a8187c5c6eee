// tenon.linear_attention/1: attention without softmax, as a recurrence over a state of one matrix per head.
#include <algorithm>
#include <cmath>
#include <tenon/sdk/kernel.hpp>
#include <tenon/sdk/op.hpp>
#include <vector>

#include "plugins/attention/attention.h"
#include "plugins/common/parallel.h"
#include "plugins/common/tolerance.h"

namespace tenon::plugins {
namespace {

enum LinearPort { kLinearQuery, kLinearKey, kLinearValue, kState, kDecay, kBeta };

struct LinearGeometry {
  int64_t batch = 0, steps = 0, heads = 0, key_heads = 0, key_size = 0, value_size = 0;
  double scale = 0;
  bool gated = false, delta = false;
  bool decay_per_key = false;  // one decay for each of a head's key_size rows of the state
  bool beta_per_head = false;

  // For Infer, Reference and Site, which tells dims its own way. Invalid if the shapes do not fit together.
  template <class Question>
  static LinearGeometry make(const Question& question) {
    return make(question, [&](int port) { return question.input(port).dims(); });
  }
  template <class Question, class DimsOf>
  static LinearGeometry make(const Question& question, const DimsOf& dims) {
    LinearGeometry g;
    const Attrs attrs = question.attrs();
    const std::string rule = attrs.str("rule");
    g.gated = rule == "gated" || rule == "gated_delta";
    g.delta = rule == "delta" || rule == "gated_delta";
    g.heads = attrs.i64("heads");
    g.key_heads = attrs.i64("key_heads");
    const Dims q = dims(kLinearQuery), k = dims(kLinearKey), v = dims(kLinearValue);
    if (q.rank != 3 || k.rank != 3 || v.rank != 3) {
      throw Invalid(text("inputs: expected rank 3, found ", to_text(q), ", ", to_text(k), " and ", to_text(v)));
    }
    if (g.heads % g.key_heads != 0 || q[2] % g.heads != 0 || v[2] % g.key_heads != 0) {
      throw Invalid(text("expected ", g.heads, " heads that divide ", q[2], " and are a multiple of ", g.key_heads,
                         " key heads that divide ", v[2]));
    }
    g.batch = q[0], g.steps = q[1];
    g.key_size = q[2] / g.heads;
    g.value_size = v[2] / g.key_heads;
    const auto expect = [&](int port, const char* name, const Dims& wanted) {
      if (question.has_input(port) && dims(port) != wanted) {
        throw Invalid(text("input ", name, ": expected ", to_text(wanted), ", found ", to_text(dims(port))));
      }
    };
    expect(kLinearKey, "k", {g.batch, g.steps, g.key_heads * g.key_size});
    expect(kLinearValue, "v", {g.batch, g.steps, g.key_heads * g.value_size});
    expect(kState, "state", {g.batch, g.key_heads, g.key_size, g.value_size});
    if (g.gated) {
      if (!question.has_input(kDecay)) throw Invalid(text("input decay: rule ", rule, " needs it, found none"));
      g.decay_per_key = dims(kDecay) != Dims{g.batch, g.steps, g.key_heads};
      if (g.decay_per_key) expect(kDecay, "decay", {g.batch, g.steps, g.key_heads * g.key_size});
    }
    if (g.delta) {
      if (!question.has_input(kBeta)) throw Invalid(text("input beta: rule ", rule, " needs it, found none"));
      g.beta_per_head = dims(kBeta) != Dims{g.batch, g.steps, 1};
      if (g.beta_per_head) expect(kBeta, "beta", {g.batch, g.steps, g.key_heads});
    }
    g.scale = attrs.f64("scale");
    if (g.scale == 0) g.scale = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(g.key_size, 1)));
    return g;
  }
};

void linear_attention_infer(const Infer& question) {
  const LinearGeometry g = LinearGeometry::make(question);
  const int32_t dtype = question.input(kLinearQuery).dtype();
  for (int port = 0; port < question.num_inputs(); ++port) {
    const int32_t found = question.input(port).dtype();
    if (question.has_input(port) && (!is_floating(found) || (port != kState && found != dtype))) {
      throw Invalid(text("input ", port, ": expected ", is_floating(dtype) ? dtype_name(dtype) : "a floating dtype",
                         ", found ", dtype_name(found)));
    }
  }
  question.output(0, dtype, {g.batch, g.steps, g.heads * g.value_size});
  question.output(1, question.has_input(kState) ? question.input(kState).dtype() : dtype,
                  {g.batch, g.key_heads, g.key_size, g.value_size});
}

std::vector<double> contents(const Reference& call, int port) {
  std::vector<double> values;
  if (!call.has_input(port)) return values;
  visit_floating(call.input(port).dtype(), [&](auto zero) {
    const auto* data = call.input(port).data<decltype(zero)>();
    values.assign(data, data + call.input(port).elements());
  });
  return values;
}

void linear_attention_reference(const Reference& call) {
  const LinearGeometry g = LinearGeometry::make(call);
  const std::vector<double> q = contents(call, kLinearQuery), k = contents(call, kLinearKey),
                            v = contents(call, kLinearValue), decay = contents(call, kDecay),
                            beta = contents(call, kBeta);
  std::vector<double> state = contents(call, kState);
  const int64_t matrix = g.key_size * g.value_size, shared = g.heads / g.key_heads;
  state.resize(static_cast<size_t>(g.batch * g.key_heads * matrix));
  std::vector<double> y(static_cast<size_t>(g.batch * g.steps * g.heads * g.value_size));
  std::vector<double> update(static_cast<size_t>(g.value_size));
  for (int64_t b = 0; b < g.batch; ++b) {
    for (int64_t h = 0; h < g.key_heads; ++h) {
      double* s = state.data() + (b * g.key_heads + h) * matrix;
      for (int64_t t = 0; t < g.steps; ++t) {
        const int64_t at = (b * g.steps + t) * g.key_heads + h;
        const double* key = k.data() + at * g.key_size;
        for (int64_t n = 0; g.gated && n < g.key_size; ++n) {
          const double factor = std::exp(decay[static_cast<size_t>(g.decay_per_key ? at * g.key_size + n : at)]);
          for (int64_t m = 0; m < g.value_size; ++m) s[n * g.value_size + m] *= factor;
        }
        for (int64_t m = 0; m < g.value_size; ++m) {
          double value = v[static_cast<size_t>(at * g.value_size + m)];
          if (g.delta) {
            for (int64_t n = 0; n < g.key_size; ++n) value -= s[n * g.value_size + m] * key[n];
            value *= beta[static_cast<size_t>(g.beta_per_head ? at : b * g.steps + t)];
          }
          update[static_cast<size_t>(m)] = value;
        }
        for (int64_t n = 0; n < g.key_size; ++n) {
          for (int64_t m = 0; m < g.value_size; ++m) s[n * g.value_size + m] += key[n] * update[static_cast<size_t>(m)];
        }
        for (int64_t head = h * shared; head < (h + 1) * shared; ++head) {
          const int64_t row = (b * g.steps + t) * g.heads + head;
          for (int64_t m = 0; m < g.value_size; ++m) {
            double sum = 0;
            for (int64_t n = 0; n < g.key_size; ++n) {
              sum += q[static_cast<size_t>(row * g.key_size + n)] * s[n * g.value_size + m];
            }
            y[static_cast<size_t>(row * g.value_size + m)] = g.scale * sum;
          }
        }
      }
    }
  }
  const std::vector<double>* results[] = {&y, &state};
  for (int n = 0; n < 2; ++n) {
    visit_floating(call.output(n).dtype(), [&](auto zero) {
      using T = decltype(zero);
      call.fill<T>(n, [&](const int64_t*, int64_t linear) {
        return static_cast<T>((*results[n])[static_cast<size_t>(linear)]);
      });
    });
  }
}

// One task for each batch and key head: its state stays in the output `present` from step to step.
class LinearAttentionKernel final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Site site = config.site();
    g_ = LinearGeometry::make(site, [&](int port) { return site.dims(port); });
    for (int port = 0; port < 6; ++port) has_[port] = site.has_input(port);
    row_bytes_ = (static_cast<uint64_t>(g_.value_size) * sizeof(float) + 63) / 64 * 64;
    sizes_.workspace = row_bytes_ * static_cast<uint64_t>(site.threads());
  }
  static void tactics(const Site& site, const Combo&, Tactics& tactics) {
    const LinearGeometry g = LinearGeometry::make(site, [&](int port) { return site.dims(port); });
    tactics.add("", (static_cast<uint64_t>(g.value_size) * sizeof(float) + 63) / 64 * 64 *
                        static_cast<uint64_t>(site.threads()));
  }
  Sizes sizes() const override { return sizes_; }

  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    char* memory = exec.workspace<char>();
    cpu::parallel_tasks(to_parallel(exec), g_.batch * g_.key_heads, [&](int64_t thread, int64_t task) {
      head(task / g_.key_heads, task % g_.key_heads, inputs, static_cast<float*>(outputs[0].data),
           static_cast<float*>(outputs[1].data),
           reinterpret_cast<float*>(memory + static_cast<uint64_t>(thread) * row_bytes_));
    });
  }

 private:
  void head(int64_t b, int64_t h, const TnTensor* inputs, float* outputs, float* present, float* update) const {
    const LinearGeometry& g = g_;
    const auto data = [&](int port) { return has_[port] ? static_cast<const float*>(inputs[port].data) : nullptr; };
    const float *q = data(kLinearQuery), *k = data(kLinearKey), *v = data(kLinearValue), *state = data(kState),
                *decay = data(kDecay), *beta = data(kBeta);
    const int64_t matrix = g.key_size * g.value_size, shared = g.heads / g.key_heads, size = g.value_size;
    float* s = present + (b * g.key_heads + h) * matrix;
    if (state != nullptr) {
      std::copy_n(state + (b * g.key_heads + h) * matrix, matrix, s);
    } else {
      std::fill_n(s, matrix, 0.0f);
    }
    for (int64_t t = 0; t < g.steps; ++t) {
      const int64_t at = (b * g.steps + t) * g.key_heads + h;
      const float* key = k + at * g.key_size;
      std::copy_n(v + at * size, size, update);
      for (int64_t n = 0; n < g.key_size; ++n) {
        float* row = s + n * size;
        if (g.gated) {
          const float factor = std::exp(decay[g.decay_per_key ? at * g.key_size + n : at]);
          for (int64_t m = 0; m < size; ++m) row[m] *= factor;
        }
        for (int64_t m = 0; g.delta && m < size; ++m) update[m] -= row[m] * key[n];
      }
      const float rate = g.delta ? beta[g.beta_per_head ? at : b * g.steps + t] : 1.0f;
      for (int64_t m = 0; m < size; ++m) update[m] *= rate;
      float* y = outputs + ((b * g.steps + t) * g.heads + h * shared) * size;
      const float* query = q + ((b * g.steps + t) * g.heads + h * shared) * g.key_size;
      std::fill_n(y, shared * size, 0.0f);
      for (int64_t n = 0; n < g.key_size; ++n) {
        float* row = s + n * size;
        for (int64_t m = 0; m < size; ++m) row[m] += key[n] * update[m];
        for (int64_t own = 0; own < shared; ++own) {
          const float factor = static_cast<float>(g.scale) * query[own * g.key_size + n];
          for (int64_t m = 0; m < size; ++m) y[own * size + m] += factor * row[m];
        }
      }
    }
  }

  LinearGeometry g_;
  bool has_[6] = {};
  uint64_t row_bytes_ = 0;
  Sizes sizes_;
};

void linear_attention_combos(const Site& site, Combos& combos) {
  if (!site.is_static()) throw Declined("shapes vary");
  std::vector<Port> inputs;
  for (int port = 0; port < 6; ++port) inputs.push_back(site.has_input(port) ? f32_row() : any_constant());
  combos.add(ComboSpec(inputs, {f32_row(), f32_row()}));
}

// Decays grow no state.
void linear_attention_inputs(const Generate& call) {
  if (call.num_inputs <= kDecay || call.inputs[kDecay].dtype != TN_F32) return;
  float* decay = static_cast<float*>(call.inputs[kDecay].data);
  for (int64_t n = 0; n < Dims(call.inputs[kDecay].dims).elements(); ++n) decay[n] = -std::abs(decay[n]);
}

}  // namespace

Definitions linear_attention_definitions() {
  Definitions all;
  all.add(
      op("tenon.linear_attention/1")
          .doc("Linear attention as a recurrence. S = exp(decay) S + k (x) u, y = scale * q S; u = v, or with a delta "
               "rule beta * (v - k exp(decay) S) (Katharopoulos et al. 2020, Yang et al. 2024; ONNX "
               "LinearAttention-27)")
          .attr_i64("heads", "of q")
          .required()
          .range("[1,)")
          .attr_i64("key_heads", "of k and v; each is shared by heads that follow each other")
          .required()
          .range("[1,)")
          .attr_str("rule", "linear and delta have no decay, linear and gated no beta")
          .default_value("gated_delta")
          .range("linear|gated|delta|gated_delta")
          .attr_f64("scale", "0: 1 / sqrt(size of a key)")
          .default_value("0")
          .input("q", "[batch, steps, heads*size], floating")
          .input("k", "[batch, steps, key heads*size]")
          .input("v", "[batch, steps, key heads*value size]")
          .input("state", "S before the first step, [batch, key heads, size, value size]; default: 0")
          .optional()
          .input("decay", "[batch, steps, key heads] or one for each row of S: [batch, steps, key heads*size]")
          .optional()
          .input("beta", "[batch, steps, key heads] or [batch, steps, 1]")
          .optional()
          .output("y", "[batch, steps, heads*value size]")
          .output("present", "S after the last step")
          .infer(linear_attention_infer)
          .reference(linear_attention_reference)
          .generate(linear_attention_inputs)
          .tolerance([](const Attrs&, int32_t dtype) { return sum_tolerance(dtype); }));
  all.add(kernel<LinearAttentionKernel>("tenon.linear_attention/1", "tenon.linear_attention.recurrent.f32")
              .more_combos(linear_attention_combos)
              .tactics(LinearAttentionKernel::tactics)
              .deterministic());
  return all;
}

}  // namespace tenon::plugins
