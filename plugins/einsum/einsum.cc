// tenon.einsum/1: sums of products by an equation. Importers turn the usual equations into transposes and matmul; this
// is for the rest.
#include <tenon/sdk/plugin.hpp>
#include <type_traits>

#include "plugins/common/einsum_terms.h"
#include "plugins/common/tolerance.h"

namespace tenon::plugins {
namespace {

// For Infer and Reference.
template <class Question>
EinsumTerms terms_of(const Question& question) {
  std::vector<Dims> shapes;
  for (int n = 0; n < question.num_inputs(); ++n) shapes.push_back(question.input(n).dims());
  return EinsumTerms::make(question.attrs().str("equation"), shapes);
}

void einsum_infer(const Infer& question) {
  const int32_t dtype = question.input(0).dtype();
  for (int n = 1; n < question.num_inputs(); ++n) {
    if (question.input(n).dtype() != dtype) {
      throw Invalid(text("input ", n, ": expected dtype ", dtype_name(dtype), " as of input 0, found ",
                         dtype_name(question.input(n).dtype())));
    }
  }
  question.output(0, dtype, terms_of(question).output_dims());
}

template <class T>
void einsum_reference_of(const Reference& call) {
  using Sum = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;  // unsigned: integers wrap
  const EinsumTerms terms = terms_of(call);
  // How far each operand moves when a label's index grows by one; axes that share a label are walked together.
  struct Operand {
    const T* data;
    int64_t strides[EinsumTerms::kNumLabels];
  };
  std::vector<Operand> operands;
  bool summed[EinsumTerms::kNumLabels] = {};
  for (int n = 0; n < call.num_inputs(); ++n) {
    Operand operand = {call.input(n).data<T>(), {}};
    const Dims dims = call.input(n).dims();
    int64_t strides[TN_MAX_RANK] = {};
    row_strides(dims, strides);
    for (int axis = 0; axis < dims.rank; ++axis) {
      const int label = terms.operands[static_cast<size_t>(n)][static_cast<size_t>(axis)];
      operand.strides[label] += dims[axis] == 1 ? 0 : strides[axis];
      summed[label] = true;
    }
    operands.push_back(operand);
  }
  for (const int label : terms.output) summed[label] = false;
  std::vector<int> inner;
  int64_t count = 1;
  for (int label = 0; label < EinsumTerms::kNumLabels; ++label) {
    if (!summed[label]) continue;
    inner.push_back(label);
    count = terms.sizes[label] == 0 ? 0 : count;
  }
  std::vector<const T*> at(operands.size());
  std::vector<int64_t> position(inner.size());
  call.fill<T>(0, [&](const int64_t* index, int64_t) {
    for (size_t n = 0; n < operands.size(); ++n) {
      at[n] = operands[n].data;
      for (size_t axis = 0; axis < terms.output.size(); ++axis)
        at[n] += index[axis] * operands[n].strides[terms.output[axis]];
    }
    std::fill(position.begin(), position.end(), 0);
    Sum sum = 0;
    for (bool more = count != 0; more;) {
      Sum product = 1;
      for (const T* value : at) product *= static_cast<Sum>(*value);
      sum += product;
      more = false;
      for (size_t k = inner.size(); k-- > 0 && !more;) {
        const int label = inner[k];
        more = ++position[k] < terms.sizes[label];
        const int64_t step = more ? 1 : 1 - terms.sizes[label];
        if (!more) position[k] = 0;
        for (size_t n = 0; n < operands.size(); ++n) at[n] += step * operands[n].strides[label];
      }
    }
    return static_cast<T>(sum);
  });
}

void einsum_reference(const Reference& call) {
  visit_number(call.output(0).dtype(), [&](auto zero) { einsum_reference_of<decltype(zero)>(call); });
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.einsum", "1", "Apache-2.0",
             tenon::op("tenon.einsum/1")
                 .doc("Einstein summation. y[labels of the result] = sum over all other labels of the product of the "
                      "inputs, each read at its labels (ONNX Einsum-12; axes of size 1 are repeated as numpy does)")
                 .attr_str("equation", "'ij,jk->ik'; without '->' the result has the labels that occur once, sorted")
                 .required()
                 .input("x", "any number of tensors of one number type")
                 .variadic()
                 .output("y")
                 .infer(tenon::plugins::einsum_infer)
                 .reference(tenon::plugins::einsum_reference)
                 .tolerance([](const tenon::Attrs&, int32_t dtype) { return tenon::plugins::sum_tolerance(dtype); }))
