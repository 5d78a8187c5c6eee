/// What an op is asked: shapes (Infer), plain evaluation (Reference), random inputs (Generate). Views of call
/// arguments, valid during the call.
#ifndef TENON_SDK_QUESTIONS_HPP
#define TENON_SDK_QUESTIONS_HPP

#include <cstdint>

#include "../plugin/ext/placement.h"
#include "../plugin/ext/siblings.h"

#include "attrs.hpp"
#include "box.hpp"

namespace tenon {
inline namespace sdk {

/// The shape question.
class Infer {
 public:
  Infer(const TnHost* host, TnInfer* question) : host_(host), question_(question) {}
  Attrs attrs() const { return {host_, question_->attrs}; }
  int num_inputs() const { return static_cast<int>(question_->num_inputs); }
  int num_outputs() const { return static_cast<int>(question_->num_outputs); }
  /// False for an optional input that is not there.
  bool has_input(int n) const { return n < num_inputs() && input(n).present(); }
  /// Dims and dtype; data too when the contents are known.
  Tensor input(int n) const { return Tensor(question_->inputs[n]); }
  /// Invalid unless input n has `rank` dims.
  Tensor input(int n, int rank) const {
    if (input(n).rank() != rank) {
      throw Invalid(text("input ", n, ": expected rank ", rank, ", found shape ", to_text(input(n).dims())));
    }
    return input(n);
  }
  /// What was answered, once it was.
  Tensor output(int n) const { return Tensor(question_->outputs[n]); }
  void output(int n, int32_t dtype, const Dims& dims) const {
    question_->outputs[n].dtype = dtype;
    question_->outputs[n].dims = dims;
  }

 private:
  const TnHost* host_;
  TnInfer* question_;
};

/// Receives the answer of Op::placement.
class Placements {
 public:
  explicit Placements(TnPlacementSink* sink) : sink_(sink) {}
  /// Input `input` fills the box of output 0 that begins at `start`.
  void input_in_output(int input, const Dims& start) { add(TN_INPUT_IN_OUTPUT, input, start); }
  /// Output 0 is the box of input 0 that begins at `start`.
  void output_in_input(const Dims& start) { add(TN_OUTPUT_IN_INPUT, 0, start); }
  /// Output 0 has the elements of input 0 in the same row-major order.
  void same_elements() { add(TN_SAME_ELEMENTS, 0, Dims()); }

 private:
  void add(int32_t kind, int input, const Dims& start) {
    TnPlacement placement = {static_cast<uint32_t>(input), 0, kind, 0, {}};
    for (int axis = 0; axis < start.rank; ++axis) placement.start[axis] = start[axis];
    check_host(sink_->add(sink_, &placement));
  }
  TnPlacementSink* sink_;
};

/// The answer of Op::siblings.
struct Siblings {
  int output_axis = 0;
  std::vector<int> input_axes;  ///< of each input: its constants are joined along it; TN_SAME_VALUE: all read the same
};

/// Every output: the shape that all inputs broadcast to, and the dtype of the first, which all must have.
inline void infer_broadcast(const Infer& question) {
  if (question.num_inputs() == 0) throw Invalid("an op without inputs needs its own infer");
  Dims dims = question.input(0).dims();
  const int32_t dtype = question.input(0).dtype();
  for (int n = 1; n < question.num_inputs(); ++n) {
    if (!question.has_input(n)) continue;
    if (question.input(n).dtype() != dtype) {
      throw Invalid(text("input ", n, ": expected dtype ", dtype_name(dtype), " as of input 0, found ",
                         dtype_name(question.input(n).dtype())));
    }
    dims = broadcast_dims(dims, question.input(n).dims());
  }
  for (int n = 0; n < question.num_outputs(); ++n) question.output(n, dtype, dims);
}

/// One evaluation. Inputs are whole and row-major on the host; of an output only a box is asked for.
class Reference {
 public:
  Reference(const TnHost* host, const TnReference* call) : host_(host), call_(call) {}
  Attrs attrs() const { return {host_, call_->attrs}; }
  int num_inputs() const { return static_cast<int>(call_->num_inputs); }
  int num_outputs() const { return static_cast<int>(call_->num_outputs); }
  bool has_input(int n) const { return n < num_inputs() && input(n).present(); }
  Tensor input(int n) const { return Tensor(call_->inputs[n]); }
  /// dims() are those of the whole output; data() is the packed box alone.
  Tensor output(int n) const { return Tensor(call_->outputs[n]); }
  const TnBox& box(int n) const { return call_->boxes[n]; }
  bool wants(int n) const { return output(n).rank() == 0 || !box_is_empty(call_->outputs[n].dims, box(n)); }

  /// Output n: value(index, linear) for every element of its box; index has one number per axis of the whole output,
  /// linear is the row-major number there.
  template <class T, class Value>
  void fill(int n, Value&& value) const {
    T* out = output(n).data<T>();
    for_each_in_box(call_->outputs[n].dims, box(n),
                    [&](const int64_t* index, int64_t linear, int64_t packed) { out[packed] = value(index, linear); });
  }

 private:
  const TnHost* host_;
  const TnReference* call_;
};

/// Asks for valid random contents of all inputs; those with dtype TN_DTYPE_NONE are absent.
struct Generate {
  Attrs attrs;
  uint64_t seed;
  TnTensor* inputs;
  uint32_t num_inputs;
};

}  // namespace sdk
}  // namespace tenon

#endif  // TENON_SDK_QUESTIONS_HPP
