// tenon.rnn/1, tenon.gru/1, tenon.lstm/1: recurrent layers.
#include "plugins/recurrent/recurrent.h"

#include <algorithm>
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/tolerance.h"

namespace tenon::plugins {
namespace {

void recurrent_infer(CellKind kind, const Infer& question) {
  const RecurrentForm form(kind, question.attrs());
  const Dims x = question.input(kX, 3).dims(), recurrence = question.input(kRecurrence, 3).dims();
  const int32_t dtype = question.input(kX).dtype();
  if (!is_floating(dtype)) throw Invalid(text("input x: expected a floating dtype, found ", dtype_name(dtype)));
  const RecurrentGeometry g = RecurrentGeometry::make(x, recurrence);
  const int64_t d = form.directions, gates = gates_of(kind);
  if (g.hidden < 1 || g.gates / gates != g.hidden || g.gates % gates != 0) {
    throw Invalid(text("input recurrence: expected [", d, ",", gates, "*hidden,hidden], found ", to_text(recurrence)));
  }
  const auto expect = [&](int port, const char* name, const Dims& dims) {
    if (!question.has_input(port)) return;
    const Tensor found = question.input(port);
    if (found.dims() != dims) {
      throw Invalid(text("input ", name, ": expected ", to_text(dims), ", found ", to_text(found.dims())));
    }
    const bool number = port == kLengths ? found.dtype() == TN_I32 || found.dtype() == TN_I64 : found.dtype() == dtype;
    if (!number) {
      throw Invalid(text("input ", name, ": expected dtype ", port == kLengths ? "i32" : dtype_name(dtype), ", found ",
                         dtype_name(found.dtype())));
    }
  };
  expect(kWeights, "weights", {d, g.gates, g.inputs});
  expect(kRecurrence, "recurrence", {d, g.gates, g.hidden});
  expect(kBias, "bias", {d, 2 * g.gates});
  expect(kLengths, "lengths", {g.batch});
  expect(kInitialH, "initial_h", {d, g.batch, g.hidden});
  if (kind == CellKind::kLstm) {
    expect(kInitialC, "initial_c", {d, g.batch, g.hidden});
    expect(kPeepholes, "peepholes", {d, 3 * g.hidden});
  }
  question.output(0, dtype, {g.steps, d, g.batch, g.hidden});
  for (int n = 1; n < question.num_outputs(); ++n) question.output(n, dtype, {d, g.batch, g.hidden});
}

// One row of the batch in one direction. `input` and `recurrent` are the two products plus their biases.
class Cell {
 public:
  Cell(const RecurrentForm& form, int direction, int64_t hidden)
      : form_(form), direction_(direction), hidden_(hidden), reset_(static_cast<size_t>(hidden)) {}

  std::vector<double> h, c;
  const double* peepholes = nullptr;  // [3, hidden]: input, output, forget

  // `times_hidden(v, gate, unit)` is row `unit` of a gate's recurrence times v, with its bias.
  template <class Product>
  void step(const std::vector<double>& input, const Product& times_hidden) {
    const std::vector<double> last = h;
    if (form_.kind == CellKind::kRnn) {
      for (int64_t j = 0; j < hidden_; ++j) at(h, j) = apply(0, at(input, j) + times_hidden(last, 0, j));
    } else if (form_.kind == CellKind::kGru) {
      gru(input, last, times_hidden);
    } else {
      lstm(input, last, times_hidden);
    }
  }

 private:
  static double& at(std::vector<double>& list, int64_t n) { return list[static_cast<size_t>(n)]; }
  static double at(const std::vector<double>& list, int64_t n) { return list[static_cast<size_t>(n)]; }
  double apply(int function, double x) const {
    if (form_.clip > 0) x = std::min(std::max(x, -form_.clip), form_.clip);
    return form_.function(direction_, function)(x);
  }
  double peephole(int gate, int64_t j, double cell) const {
    return peepholes == nullptr ? 0.0 : peepholes[gate * hidden_ + j] * cell;
  }

  template <class Product>
  void gru(const std::vector<double>& input, const std::vector<double>& last, const Product& times_hidden) {
    const auto reset = [&](int64_t j) { return apply(0, at(input, hidden_ + j) + times_hidden(last, 1, j)); };
    if (!form_.linear_before_reset) {
      for (int64_t j = 0; j < hidden_; ++j) at(reset_, j) = reset(j) * at(last, j);
    }
    for (int64_t j = 0; j < hidden_; ++j) {
      const double update = apply(0, at(input, j) + times_hidden(last, 0, j));
      const double recurrent =
          form_.linear_before_reset ? reset(j) * times_hidden(last, 2, j) : times_hidden(reset_, 2, j);
      const double candidate = apply(1, at(input, 2 * hidden_ + j) + recurrent);
      at(h, j) = (1 - update) * candidate + update * at(last, j);
    }
  }

  template <class Product>
  void lstm(const std::vector<double>& input, const std::vector<double>& last, const Product& times_hidden) {
    for (int64_t j = 0; j < hidden_; ++j) {
      const auto gate = [&](int n) { return at(input, n * hidden_ + j) + times_hidden(last, n, j); };
      double& cell = at(c, j);
      const double in = apply(0, gate(0) + peephole(0, j, cell));
      const double forget = form_.input_forget ? 1 - in : apply(0, gate(2) + peephole(2, j, cell));
      cell = forget * cell + in * apply(1, gate(3));
      at(h, j) = apply(0, gate(1) + peephole(1, j, cell)) * form_.function(direction_, 2)(cell);
    }
  }

  const RecurrentForm& form_;
  int direction_;
  int64_t hidden_;
  std::vector<double> reset_;
};

// Which rows of [directions, batch] the boxes that are asked for need: verification asks for small parts.
std::vector<char> needed_rows(const Reference& call, int directions, int64_t batch) {
  std::vector<char> needed(static_cast<size_t>(directions * batch));
  for (int n = 0; n < call.num_outputs(); ++n) {
    if (!call.wants(n)) continue;
    const TnBox& box = call.box(n);
    const int axis = n == 0 ? 1 : 0;  // the direction's
    for (int64_t d = box.start[axis]; d < box.start[axis] + box.size[axis]; ++d) {
      for (int64_t b = box.start[axis + 1]; b < box.start[axis + 1] + box.size[axis + 1]; ++b) {
        needed[static_cast<size_t>(d * batch + b)] = 1;
      }
    }
  }
  return needed;
}

template <class T>
void recurrent_reference_of(CellKind kind, const Reference& call) {
  const RecurrentForm form(kind, call.attrs());
  const RecurrentGeometry g = RecurrentGeometry::make(call.input(kX).dims(), call.input(kRecurrence).dims());
  const auto data = [&](int port) -> const T* { return call.has_input(port) ? call.input(port).data<T>() : nullptr; };
  const T *x = data(kX), *weights = data(kWeights), *recurrence = data(kRecurrence), *bias = data(kBias),
          *initial_h = data(kInitialH);
  const bool lstm = kind == CellKind::kLstm;
  const T *initial_c = lstm ? data(kInitialC) : nullptr, *peepholes = lstm ? data(kPeepholes) : nullptr;
  const auto states = static_cast<size_t>(form.directions * g.batch * g.hidden);
  std::vector<T> y(static_cast<size_t>(g.steps) * states), last_h(states), last_c(states);
  std::vector<double> input(static_cast<size_t>(g.gates)), peephole_row;
  const std::vector<char> needed = needed_rows(call, form.directions, g.batch);
  for (int d = 0; d < form.directions; ++d) {
    const T* own_recurrence = recurrence + d * g.gates * g.hidden;
    const T* own_bias = bias == nullptr ? nullptr : bias + d * 2 * g.gates;
    if (peepholes != nullptr) peephole_row.assign(peepholes + d * 3 * g.hidden, peepholes + (d + 1) * 3 * g.hidden);
    const auto times_hidden = [&](const std::vector<double>& v, int gate, int64_t unit) {
      const int64_t row = gate * g.hidden + unit;
      double sum = own_bias == nullptr ? 0.0 : static_cast<double>(own_bias[g.gates + row]);
      for (int64_t k = 0; k < g.hidden; ++k) {
        sum += static_cast<double>(own_recurrence[row * g.hidden + k]) * v[static_cast<size_t>(k)];
      }
      return sum;
    };
    for (int64_t b = 0; b < g.batch; ++b) {
      if (needed[static_cast<size_t>(d * g.batch + b)] == 0) continue;
      const int64_t state = (d * g.batch + b) * g.hidden;
      Cell cell(form, d, g.hidden);
      cell.h.assign(static_cast<size_t>(g.hidden), 0.0);
      cell.c = cell.h;
      if (initial_h != nullptr) cell.h.assign(initial_h + state, initial_h + state + g.hidden);
      if (initial_c != nullptr) cell.c.assign(initial_c + state, initial_c + state + g.hidden);
      if (peepholes != nullptr) cell.peepholes = peephole_row.data();
      const int64_t length = call.has_input(kLengths) ? call.input(kLengths).integer(b) : g.steps;
      // Behind a sequence's end y is 0 and the state stays, so that backwards each sequence begins with its own end.
      for (int64_t s = 0; s < g.steps; ++s) {
        const int64_t t = form.backward(d) ? g.steps - 1 - s : s;
        if (t >= length) continue;
        const T* row = x + (t * g.batch + b) * g.inputs;
        for (int64_t n = 0; n < g.gates; ++n) {
          double sum = own_bias == nullptr ? 0.0 : static_cast<double>(own_bias[n]);
          const T* w = weights + (d * g.gates + n) * g.inputs;
          for (int64_t k = 0; k < g.inputs; ++k) sum += static_cast<double>(w[k]) * static_cast<double>(row[k]);
          input[static_cast<size_t>(n)] = sum;
        }
        cell.step(input, times_hidden);
        for (int64_t j = 0; j < g.hidden; ++j) {
          y[static_cast<size_t>(((t * form.directions + d) * g.batch + b) * g.hidden + j)] =
              static_cast<T>(cell.h[static_cast<size_t>(j)]);
        }
      }
      for (int64_t j = 0; j < g.hidden; ++j) {
        last_h[static_cast<size_t>(state + j)] = static_cast<T>(cell.h[static_cast<size_t>(j)]);
        last_c[static_cast<size_t>(state + j)] = static_cast<T>(cell.c[static_cast<size_t>(j)]);
      }
    }
  }
  const std::vector<T>* results[] = {&y, &last_h, &last_c};
  for (int n = 0; n < call.num_outputs(); ++n) {
    call.fill<T>(n, [&](const int64_t*, int64_t linear) { return (*results[n])[static_cast<size_t>(linear)]; });
  }
}

Op recurrent_op(CellKind kind, const char* id, const char* doc, const char* gates) {
  Op op(id);
  op.doc(doc)
      .attr_str("direction", "of time; bidirectional: both, each with its own weights")
      .default_value("forward")
      .range("forward|reverse|bidirectional")
      .attr_str("activations", "names with commas between, for each direction; default: those of the formula")
      .default_value("")
      .attr_f64s("activation_alpha", "for those activations that take one, in order")
      .attr_f64s("activation_beta", "as activation_alpha")
      .attr_f64("clip", "the sums of gates are clipped to [-clip, clip]; 0: not. LSTM's c is not, as in ONNX Runtime")
      .default_value("0")
      .range("[0,)");
  if (kind == CellKind::kGru) {
    op.attr_i64("linear_before_reset", "1: the reset gate acts on the product with R_h")
        .default_value("0")
        .range("0|1");
  }
  if (kind == CellKind::kLstm) {
    op.attr_i64("input_forget", "1: f = 1 - i").default_value("0").range("0|1");
  }
  op.input("x", "[steps, batch, features], floating")
      .input("weights", text("W, [directions, gates*hidden, features], gates ", gates))
      .input("recurrence", "R, [directions, gates*hidden, hidden]")
      .input("bias", "[directions, 2*gates*hidden]: Wb, then Rb")
      .optional()
      .input("lengths", "i32 [batch]: steps of each sequence; behind its end y is 0 and the state stays")
      .optional()
      .input("initial_h", "[directions, batch, hidden]; default: 0")
      .optional();
  if (kind == CellKind::kLstm) {
    op.input("initial_c", "as initial_h").optional();
    op.input("peepholes", "P, [directions, 3*hidden]: i, o, f").optional();
  }
  op.output("y", "[steps, directions, batch, hidden]: h after each step").output("y_h", "the last h");
  if (kind == CellKind::kLstm) op.output("y_c", "the last c");
  op.infer([kind](const Infer& question) { recurrent_infer(kind, question); })
      .reference([kind](const Reference& call) {
        visit_floating(call.output(0).dtype(), [&](auto zero) { recurrent_reference_of<decltype(zero)>(kind, call); });
      })
      .tolerance([](const Attrs&, int32_t dtype) { return sum_tolerance(dtype); });
  return op;
}

Definitions recurrent_ops() {
  Definitions all;
  all.add(recurrent_op(CellKind::kRnn, "tenon.rnn/1",
                       "A simple recurrent layer. h = tanh(x W' + h R' + Wb + Rb) (ONNX RNN-22)", "1"));
  all.add(
      recurrent_op(CellKind::kGru, "tenon.gru/1",
                   "A layer of gated recurrent units. z, r = sigmoid(x W' + h R' + Wb + Rb); h~ = tanh(x Wh' + Wbh + "
                   "(r*h) Rh' + Rbh); h = (1 - z)*h~ + z*h (ONNX GRU-22)",
                   "z, r, h"));
  all.add(
      recurrent_op(CellKind::kLstm, "tenon.lstm/1",
                   "A layer of long short-term memory. i, o, f = sigmoid(x W' + h R' + P*c + Wb + Rb), o with the new "
                   "c; c~ = tanh(x Wc' + h Rc' + Wbc + Rbc); c = f*c + i*c~; h = o*tanh(c) (ONNX LSTM-22)",
                   "i, o, f, c"));
  return all;
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.recurrent", "1", "Apache-2.0", tenon::plugins::recurrent_ops(), tenon::plugins::recurrent_kernels())
