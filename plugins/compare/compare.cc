// tenon.equal/1, less, less_equal, is_nan and is_inf. a > b is less with the operands exchanged.
#include <cmath>
#include <memory>
#include <string>
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/booleans.h"

namespace tenon::plugins {
namespace {

struct CompareOp {
  const char* name;
  cpu::CompareKind kind;
  bool bools;
  const char* doc;
};

constexpr CompareOp kCompareOps[] = {
    {"equal", cpu::CompareKind::kEqual, true, "y = a == b with numpy's broadcasting; NaN equals nothing"},
    {"less", cpu::CompareKind::kLess, false, "y = a < b with numpy's broadcasting; false if either is NaN"},
    {"less_equal", cpu::CompareKind::kLessEqual, false, "y = a <= b with numpy's broadcasting; false if either is NaN"},
};

void compare_infer(const CompareOp& op, const Infer& question) {
  infer_broadcast(question);
  const int32_t dtype = question.input(0).dtype();
  if (dtype_size(dtype) == 0 || (dtype == TN_BOOL && !op.bools)) {
    throw Invalid(text("input a: expected a number dtype", op.bools ? " or bool" : "", ", found ", dtype_name(dtype)));
  }
  question.output(0, TN_BOOL, broadcast_dims(question.input(0).dims(), question.input(1).dims()));
}

template <class T>
bool holds(cpu::CompareKind kind, T a, T b) {
  if (kind == cpu::CompareKind::kEqual) return a == b;
  return kind == cpu::CompareKind::kLess ? a < b : a <= b;
}

void compare_reference(const CompareOp& op, const Reference& call) {
  const PairOffsets offsets(call);
  if (call.input(0).dtype() == TN_BOOL) {
    const uint8_t* a = bool_data(call.input(0));
    const uint8_t* b = bool_data(call.input(1));
    call.fill<bool>(0, [&](const int64_t* index, int64_t) {
      return holds<bool>(op.kind, a[offsets.a(index)] != 0, b[offsets.b(index)] != 0);
    });
    return;
  }
  visit_number(call.input(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* a = call.input(0).data<T>();
    const T* b = call.input(1).data<T>();
    call.fill<bool>(
        0, [&](const int64_t* index, int64_t) { return holds(op.kind, a[offsets.a(index)], b[offsets.b(index)]); });
  });
}

class CompareKernel final : public IPlugin {
 public:
  explicit CompareKernel(cpu::CompareKind kind) : kind_(kind) {}
  // is_nan compares its operand with itself.
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    run_compare(kind_, inputs[0], kind_ == cpu::CompareKind::kUnordered ? inputs[0] : inputs[1], outputs[0], exec);
  }

 private:
  cpu::CompareKind kind_;
};

// An op of one floating operand with a bool result.
Op classify(const char* id, const char* doc) {
  Op definition(id);
  definition.doc(doc).input("x", "any shape, floating").output("y", "x's shape, bool").elementwise().tolerance(0, 0);
  definition.infer([](const Infer& question) {
    const Tensor x = question.input(0);
    if (!is_floating(x.dtype())) {
      throw Invalid(text("input x: expected a floating dtype, found ", dtype_name(x.dtype())));
    }
    question.output(0, TN_BOOL, x.dims());
  });
  return definition;
}

template <class Predicate>
void classify_reference(const Reference& call, const Predicate& predicate) {
  visit_floating(call.input(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = call.input(0).data<T>();
    call.fill<bool>(0, [&](const int64_t*, int64_t linear) { return predicate(static_cast<double>(x[linear])); });
  });
}

Definitions all_definitions() {
  Definitions all;
  for (const CompareOp& entry : kCompareOps) {
    const CompareOp* op = &entry;
    const std::string base = std::string("tenon.") + op->name;
    Op definition(base + "/1");
    definition.doc(op->doc)
        .input("a", op->bools ? "any shape, numbers or bool" : "any shape, numbers")
        .input("b", "of a's dtype")
        .output("y", "the shape that both broadcast to, bool")
        .elementwise()
        .infer([op](const Infer& question) { compare_infer(*op, question); })
        .reference([op](const Reference& call) { compare_reference(*op, call); })
        .tolerance(0, 0);
    if (op->kind == cpu::CompareKind::kEqual) definition.commutative();
    Kernel kernel(base + "/1", base + ".vector", [op] { return std::make_unique<CompareKernel>(op->kind); });
    for (const ComparedType& type : kComparedTypes) {
      if (type.dtype == TN_BOOL && !op->bools) continue;
      kernel.combo({row(type.dtype), row(type.dtype)}, {row(TN_BOOL)});
    }
    all.add(definition);
    all.add(kernel.deterministic());
  }
  all.add(classify("tenon.is_nan/1", "Whether x is NaN").reference([](const Reference& call) {
    classify_reference(call, [](double x) { return std::isnan(x); });
  }));
  Kernel is_nan("tenon.is_nan/1", "tenon.is_nan.vector",
                [] { return std::make_unique<CompareKernel>(cpu::CompareKind::kUnordered); });
  for (const int32_t dtype : {TN_F32, TN_F64}) is_nan.combo({row(dtype)}, {row(TN_BOOL)});
  all.add(is_nan.deterministic());
  all.add(classify("tenon.is_inf/1", "Whether x is infinite")
              .attr_i64("negative", "whether -inf counts")
              .default_value("1")
              .range("[0,1]")
              .attr_i64("positive", "whether +inf counts")
              .default_value("1")
              .range("[0,1]")
              .reference([](const Reference& call) {
                const bool negative = call.attrs().i64("negative") != 0;
                const bool positive = call.attrs().i64("positive") != 0;
                classify_reference(call, [&](double x) { return std::isinf(x) && (x < 0 ? negative : positive); });
              }));
  return all;
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.compare", "1", "Apache-2.0", tenon::plugins::all_definitions())
