// tenon.add/1, sub, mul, div, min, max and prelu: arithmetic with numpy's broadcasting.
#include "plugins/binary/binary.h"

#include <memory>
#include <string>
#include <tenon/sdk/plugin.hpp>
#include <type_traits>

#include "kernels/cpu/elementwise.h"
#include "plugins/common/layout.h"
#include "plugins/common/parallel.h"
#include "plugins/common/tolerance.h"

namespace tenon::plugins {
namespace {

struct BinaryOp {
  const char* name;
  cpu::BinaryKind kind;
  int32_t primitive;  // 0: none is enough
  bool commutative;
  const char* doc;
};

constexpr BinaryOp kBinaryOps[] = {
    {"add", cpu::BinaryKind::kAdd, TN_EX_ADD, true, "Sum with numpy's broadcasting. y = a + b; integers wrap"},
    {"sub", cpu::BinaryKind::kSub, TN_EX_SUB, false, "Difference with numpy's broadcasting. y = a - b; integers wrap"},
    {"mul", cpu::BinaryKind::kMul, TN_EX_MUL, true, "Product with numpy's broadcasting. y = a * b; integers wrap"},
    {"div", cpu::BinaryKind::kDiv, TN_EX_DIV, false,
     "Quotient with numpy's broadcasting. y = a / b; integers are truncated, and dividing them by 0 is an error"},
    {"min", cpu::BinaryKind::kMin, TN_EX_MIN, true,
     "The smaller of two with numpy's broadcasting. NaN if either is NaN"},
    {"max", cpu::BinaryKind::kMax, TN_EX_MAX, true,
     "The larger of two with numpy's broadcasting. NaN if either is NaN"},
    {"prelu", cpu::BinaryKind::kPRelu, 0, false,
     "Relu with a learned slope below zero. y = a < 0 ? a * b : a; b broadcasts to a (He et al. 2015)"},
};

template <class T>
T evaluate(cpu::BinaryKind kind, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    // Unsigned arithmetic of at least 32 bits wraps; signed would overflow.
    using U = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
    const U x = static_cast<U>(a);
    const U y = static_cast<U>(b);
    switch (kind) {
      case cpu::BinaryKind::kAdd:
        return static_cast<T>(x + y);
      case cpu::BinaryKind::kSub:
        return static_cast<T>(x - y);
      case cpu::BinaryKind::kMul:
        return static_cast<T>(x * y);
      case cpu::BinaryKind::kMin:
        return b < a ? b : a;
      case cpu::BinaryKind::kMax:
        return b > a ? b : a;
      case cpu::BinaryKind::kPRelu:
        return a < 0 ? static_cast<T>(x * y) : a;
      case cpu::BinaryKind::kDiv:
        if (b == 0) throw Invalid("division of an integer by 0");
        if constexpr (std::is_signed_v<T>) {
          if (b == -1) return static_cast<T>(U{0} - x);
        }
        return static_cast<T>(a / b);
    }
    return a;
  } else {
    switch (kind) {
      case cpu::BinaryKind::kAdd:
        return a + b;
      case cpu::BinaryKind::kSub:
        return a - b;
      case cpu::BinaryKind::kMul:
        return a * b;
      case cpu::BinaryKind::kDiv:
        return a / b;
      case cpu::BinaryKind::kMin:
        return b < a || b != b ? b : a;
      case cpu::BinaryKind::kMax:
        return b > a || b != b ? b : a;
      case cpu::BinaryKind::kPRelu:
        return a < 0 ? a * b : a;
    }
    return a;
  }
}

void binary_reference(const BinaryOp& op, const Reference& call) {
  const Dims dims = call.output(0).dims();
  int64_t a_strides[TN_MAX_RANK] = {};
  int64_t b_strides[TN_MAX_RANK] = {};
  broadcast_strides(call.input(0).dims(), dims, a_strides);
  broadcast_strides(call.input(1).dims(), dims, b_strides);
  visit_number(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* a = call.input(0).data<T>();
    const T* b = call.input(1).data<T>();
    call.fill<T>(0, [&](const int64_t* index, int64_t) {
      return evaluate(op.kind, a[offset_of(index, a_strides, dims.rank)], b[offset_of(index, b_strides, dims.rank)]);
    });
  });
}

class BinaryKernel final : public IPlugin {
 public:
  explicit BinaryKernel(const BinaryOp& op) : op_(op) {}

  void configure(const Config& config) override {
    shapes_ = BinaryShapes(config.combo());
    dtype_ = config.combo().output(0).dtype;
  }

  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const cpu::BroadcastShape shape = shapes_.shape(inputs[0].dims, inputs[1].dims);
    if (dtype_ != TN_F32) {
      const auto type = dtype_ == TN_I32 ? cpu::ElementType::kI32 : cpu::ElementType::kI64;
      cpu::integer_binary(op_.kind, type, shape, inputs[0].data, inputs[1].data, outputs[0].data, to_parallel(exec),
                          cpu::detect_isa());
      return;
    }
    float* y = static_cast<float*>(outputs[0].data);
    cpu::pointwise_binary(op_.kind, shape, static_cast<const float*>(inputs[0].data),
                          static_cast<const float*>(inputs[1].data), y, to_parallel(exec), cpu::detect_isa());
    // 0 / 0 there
    if (op_.kind == cpu::BinaryKind::kDiv || shapes_.single()) zero_filling(shapes_.output(), outputs[0].dims, y);
  }

 private:
  const BinaryOp& op_;
  BinaryShapes shapes_;
  int32_t dtype_ = TN_F32;
};

}  // namespace

void add_binary_combos(Kernel* kernel) {
  for (auto port : image_ports()) {
    kernel->combo({port(TN_F32), port(TN_F32)}, {port(TN_F32)}).may_alias(0, 0).may_alias(0, 1);
    if (is_row(port(TN_F32).format)) continue;
    kernel->combo({port(TN_F32), f32_row()}, {port(TN_F32)}).may_alias(0, 0);
    kernel->combo({f32_row(), port(TN_F32)}, {port(TN_F32)}).may_alias(0, 1);
  }
}

// In nhwc and blocked formats broadcasting needs equal ranks, and a filled-up block of channels cannot be repeated.
void binary_tactics(const Site& site, const Combo& combo, Tactics& tactics) {
  const TnFormat& format = combo.output(0).format;
  if (!is_row(format)) {
    const Dims a = site.dims(0);
    const Dims b = site.dims(1);
    const bool a_single = is_row(combo.input(0).format);
    const bool b_single = is_row(combo.input(1).format);
    if (a_single || b_single) {
      if ((a_single ? a : b).elements() != 1 || (a_single ? b : a).rank != 4) {
        throw Declined("beside image formats the other operand has one element");
      }
    } else {
      if (a.rank != 4 || b.rank != 4) throw Declined("image formats need two operands of rank 4");
      if (channel_block(format) > 0 && a[1] != b[1])
        throw Declined("blocked formats need operands with equal channels");
    }
  }
  tactics.add("");
}

cpu::BroadcastShape BinaryShapes::shape(const TnDims& a_dims, const TnDims& b_dims) const {
  const auto physical = [&](const TnFormat& format, const TnDims& dims) {
    return same_format(format, y_) ? physical_dims(format, dims) : Dims{};
  };
  const Dims a = physical(a_, a_dims);
  const Dims b = physical(b_, b_dims);
  cpu::BroadcastShape shape;
  if (!cpu::broadcast_shape(a.rank, a.d, b.rank, b.d, &shape)) {
    throw Invalid(text("shapes ", to_text(a), " and ", to_text(b), " do not broadcast"));
  }
  return shape;
}

namespace {

void binary_infer(const Infer& question) {
  infer_broadcast(question);
  const int32_t dtype = question.input(0).dtype();
  if (dtype == TN_BOOL || dtype_size(dtype) == 0) {
    throw Invalid(text("input a: expected a number dtype, found ", dtype_name(dtype)));
  }
}

void prelu_infer(const Infer& question) {
  binary_infer(question);
  const Dims a = question.input(0).dims();
  const Dims b = question.input(1).dims();
  if (broadcast_dims(a, b) != a)
    throw Invalid(text("input b: expected a shape that broadcasts to ", to_text(a), ", found ", to_text(b)));
}

void emit_binary(const BinaryOp& op, ExprBuilder& e) {
  if (!is_floating(e.dtype())) throw Declined("integers are not computed in expressions");
  const int32_t a = e.input(0);
  const int32_t b = e.input(1);
  if (op.primitive != 0) {
    e.binary(op.primitive, a, b);
  } else {
    e.select(e.less(e.constant(0.0), a), a, e.mul(a, b));  // prelu, in the canonical form of leaky relu
  }
}

Definitions binary_definitions() {
  Definitions all;
  for (const BinaryOp& entry : kBinaryOps) {
    const BinaryOp* op = &entry;
    const std::string base = std::string("tenon.") + op->name;
    Op definition(base + "/1");
    definition.doc(op->doc)
        .input("a", "any shape")
        .input("b", "of a's dtype")
        .output("y", "the shape that both broadcast to")
        .elementwise()
        .infer(binary_infer)
        .reference([op](const Reference& call) { binary_reference(*op, call); })
        .expression([op](ExprBuilder& e, const Attrs&) { emit_binary(*op, e); })
        .tolerance([](const Attrs&, int32_t dtype) { return pointwise_tolerance(dtype); });
    if (op->commutative) definition.commutative();
    if (op->kind == cpu::BinaryKind::kPRelu) definition.infer(prelu_infer);
    if (op->kind == cpu::BinaryKind::kDiv) definition.generate(generate_divisors);
    Kernel kernel(base + "/1", base + ".vector.f32", [op] { return std::make_unique<BinaryKernel>(*op); });
    add_binary_combos(&kernel);
    kernel.deterministic().tactics(binary_tactics);
    all.add(definition);
    all.add(kernel);
    if (op->kind == cpu::BinaryKind::kDiv) continue;  // it may fail, which threads cannot say
    Kernel integers(base + "/1", base + ".vector.int", [op] { return std::make_unique<BinaryKernel>(*op); });
    for (const int32_t dtype : {TN_I32, TN_I64}) integers.combo({row(dtype), row(dtype)}, {row(dtype)});
    all.add(integers.deterministic());
  }
  all.add(pow_definitions());
  all.add(mod_definitions());
  return all;
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.binary", "1", "Apache-2.0", tenon::plugins::binary_definitions())
