// tenon.and/1, or, xor and not on bool; bitwise_and, bitwise_or, bitwise_xor, bitwise_not and bit_shift on integers.
#include <memory>
#include <string>
#include <tenon/sdk/plugin.hpp>
#include <type_traits>

#include "plugins/common/booleans.h"

namespace tenon::plugins {
namespace {

struct LogicOp {
  const char* name;
  const char* doc;
  cpu::CompareKind kind;                        // on bool
  uint64_t (*bitwise)(uint64_t a, uint64_t b);  // on integers
};

const LogicOp kBinaryOps[] = {
    {"and", "a and b, with numpy's broadcasting", cpu::CompareKind::kAnd, [](uint64_t a, uint64_t b) { return a & b; }},
    {"or", "a or b, with numpy's broadcasting", cpu::CompareKind::kOr, [](uint64_t a, uint64_t b) { return a | b; }},
    {"xor", "either a or b, with numpy's broadcasting", cpu::CompareKind::kXor,
     [](uint64_t a, uint64_t b) { return a ^ b; }},
};

void require_integer(const Tensor& x, const char* name) {
  if (is_floating(x.dtype()) || x.dtype() == TN_BOOL || dtype_size(x.dtype()) == 0) {
    throw Invalid(text("input ", name, ": expected an integer dtype, found ", dtype_name(x.dtype())));
  }
}
void require_bool(const Tensor& x, const char* name) {
  if (x.dtype() != TN_BOOL) throw Invalid(text("input ", name, ": expected bool, found ", dtype_name(x.dtype())));
}

// Output element: function(a, b) of integers of the output's dtype.
template <class Function>
void integer_reference(const Reference& call, const Function& function) {
  const PairOffsets offsets(call);
  visit_number(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T>) {
      const T* a = call.input(0).data<T>();
      const T* b = call.input(1).data<T>();
      call.fill<T>(0,
                   [&](const int64_t* index, int64_t) { return function(a[offsets.a(index)], b[offsets.b(index)]); });
    }
  });
}

void logic_reference(cpu::CompareKind kind, const Reference& call) {
  const PairOffsets offsets(call);
  const uint8_t* a = bool_data(call.input(0));
  const uint8_t* b = bool_data(call.input(1));
  call.fill<bool>(0, [&](const int64_t* index, int64_t) {
    const bool x = a[offsets.a(index)] != 0;
    const bool y = b[offsets.b(index)] != 0;
    return kind == cpu::CompareKind::kAnd ? x && y : kind == cpu::CompareKind::kOr ? x || y : x != y;
  });
}

class LogicKernel final : public IPlugin {
 public:
  explicit LogicKernel(cpu::CompareKind kind) : kind_(kind) {}
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    run_compare(kind_, inputs[0], inputs[1], outputs[0], exec);
  }

 private:
  cpu::CompareKind kind_;
};

// not x: x xor true.
class NotKernel final : public IPlugin {
 public:
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    uint8_t truth = 1;
    TnTensor one = inputs[0];
    one.dims = Dims{};
    one.data = &truth;
    run_compare(cpu::CompareKind::kXor, inputs[0], one, outputs[0], exec);
  }
};

Definitions binary_definitions(const LogicOp& entry) {
  const LogicOp* op = &entry;
  const std::string base = std::string("tenon.") + op->name;
  Op logic(base + "/1");
  logic.doc(op->doc)
      .input("a", "any shape, bool")
      .input("b", "bool")
      .output("y", "the shape that both broadcast to")
      .elementwise()
      .commutative()
      .infer([](const Infer& question) {
        require_bool(question.input(0), "a");
        infer_broadcast(question);
      })
      .reference([op](const Reference& call) { logic_reference(op->kind, call); })
      .tolerance(0, 0);
  Kernel kernel(base + "/1", base + ".vector", [op] { return std::make_unique<LogicKernel>(op->kind); });
  kernel.combo({row(TN_BOOL), row(TN_BOOL)}, {row(TN_BOOL)});
  Op bitwise(std::string("tenon.bitwise_") + op->name + "/1");
  bitwise.doc(std::string("Bit by bit, ") + op->doc)
      .input("a", "any shape, integers")
      .input("b", "of a's dtype")
      .output("y", "the shape that both broadcast to")
      .elementwise()
      .commutative()
      .infer([](const Infer& question) {
        require_integer(question.input(0), "a");
        infer_broadcast(question);
      })
      .reference([op](const Reference& call) {
        integer_reference(call, [op](auto a, auto b) {
          return static_cast<decltype(a)>(op->bitwise(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
        });
      })
      .tolerance(0, 0);
  return {logic, kernel.deterministic(), bitwise};
}

Definitions not_definitions() {
  Op logic("tenon.not/1");
  logic.doc("y = not x")
      .input("x", "any shape, bool")
      .output("y", "as x")
      .elementwise()
      .infer([](const Infer& question) {
        require_bool(question.input(0), "x");
        infer_broadcast(question);
      })
      .reference([](const Reference& call) {
        const uint8_t* x = bool_data(call.input(0));
        call.fill<bool>(0, [&](const int64_t*, int64_t linear) { return x[linear] == 0; });
      })
      .tolerance(0, 0);
  Op bitwise("tenon.bitwise_not/1");
  bitwise.doc("Every bit inverted")
      .input("x", "any shape, integers")
      .output("y", "as x")
      .elementwise()
      .infer([](const Infer& question) {
        require_integer(question.input(0), "x");
        infer_broadcast(question);
      })
      .reference([](const Reference& call) {
        visit_number(call.output(0).dtype(), [&](auto zero) {
          using T = decltype(zero);
          if constexpr (std::is_integral_v<T>) {
            const T* x = call.input(0).data<T>();
            call.fill<T>(0, [&](const int64_t*, int64_t linear) { return static_cast<T>(~x[linear]); });
          }
        });
      })
      .tolerance(0, 0);
  Kernel definition = kernel<NotKernel>("tenon.not/1", "tenon.not.vector");
  definition.combo({row(TN_BOOL)}, {row(TN_BOOL)});
  return {logic, definition.deterministic(), bitwise};
}

template <class T>
T shifted(T value, T bits, bool left) {
  constexpr T width = sizeof(T) * 8;
  if (bits >= width) return 0;
  const auto wide = static_cast<uint64_t>(value);
  return static_cast<T>(left ? wide << bits : wide >> bits);
}

Op shift_definition() {
  Op definition("tenon.bit_shift/1");
  definition.doc("a's bits moved by b places, with numpy's broadcasting; moved by the width of a or more, 0")
      .attr_str("direction")
      .required()
      .range("left|right")
      .input("a", "any shape, unsigned integers")
      .input("b", "of a's dtype")
      .output("y", "the shape that both broadcast to")
      .elementwise()
      .infer([](const Infer& question) {
        const int32_t dtype = question.input(0).dtype();
        if (dtype != TN_U8 && dtype != TN_U16 && dtype != TN_U32 && dtype != TN_U64) {
          throw Invalid(text("input a: expected an unsigned integer dtype, found ", dtype_name(dtype)));
        }
        infer_broadcast(question);
      })
      .reference([](const Reference& call) {
        const bool left = call.attrs().str("direction") == "left";
        integer_reference(call, [left](auto a, auto b) { return shifted(a, b, left); });
      })
      .tolerance(0, 0);
  return definition;
}

Definitions all_definitions() {
  Definitions all;
  for (const LogicOp& op : kBinaryOps) all.add(binary_definitions(op));
  all.add(not_definitions());
  all.add(shift_definition());
  return all;
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.logic", "1", "Apache-2.0", tenon::plugins::all_definitions())
