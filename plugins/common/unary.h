// Unary functions from a table: the op's definition with its expression, and its f32 kernel on kernels/cpu.
#ifndef TENON_PLUGINS_COMMON_UNARY_H_
#define TENON_PLUGINS_COMMON_UNARY_H_

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <tenon/sdk/kernel.hpp>
#include <tenon/sdk/op.hpp>
#include <type_traits>

#include "kernels/cpu/pointwise.h"
#include "plugins/common/layout.h"
#include "plugins/common/parallel.h"
#include "plugins/common/tolerance.h"

namespace tenon::plugins {

struct UnaryAttr {
  const char* name = nullptr;  // NULL: there is none
  const char* default_value = nullptr;
  const char* doc = nullptr;
};

// Numbers of an op's attributes, or 0.
struct UnaryParams {
  double alpha = 0.0;
  double beta = 0.0;
};

struct UnaryOp {
  const char* name;  // "floor": op tenon.floor/1
  const char* doc;
  double (*value)(double x, UnaryParams params);
  // The expression; NULL if the language has no primitives for it, or loses too much.
  int32_t (*emit)(ExprBuilder& e, int32_t x, UnaryParams params) = nullptr;
  // Kernel tenon.<name>.vector.f32, or tenon.<name>.scalar.f32 of `scalar`.
  std::optional<cpu::UnaryKind> vector;
  float (*scalar)(float) = nullptr;
  // Integers, as two's complement of 64 bits; NULL if they are refused.
  uint64_t (*integer)(uint64_t x, bool negative) = nullptr;
  UnaryAttr alpha = {};
  UnaryAttr beta = {};
};

inline UnaryParams unary_params(const UnaryOp& op, const Attrs& attrs) {
  return {op.alpha.name ? attrs.f64(op.alpha.name) : 0.0, op.beta.name ? attrs.f64(op.beta.name) : 0.0};
}

class UnaryKernel final : public IPlugin {
 public:
  explicit UnaryKernel(const UnaryOp& op) : op_(op) {}

  void configure(const Config& config) override {
    params_ = unary_params(op_, config.site().attrs());
    format_ = config.combo().input(0).format;
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const float* x = static_cast<const float*>(inputs[0].data);
    float* y = static_cast<float*>(outputs[0].data);
    const int64_t count = physical_elements(format_, inputs[0].dims);
    if (op_.vector) {
      cpu::pointwise_unary(*op_.vector, static_cast<float>(params_.alpha), static_cast<float>(params_.beta), count, x,
                           y, to_parallel(exec), cpu::detect_isa());
    } else {
      cpu::pointwise_map(op_.scalar, count, x, y, to_parallel(exec));
    }
    const double at_zero = op_.value(0.0, params_);
    if (at_zero != 0.0 || std::signbit(at_zero)) zero_filling(format_, inputs[0].dims, y);
  }

 private:
  const UnaryOp& op_;
  UnaryParams params_;
  TnFormat format_ = row_format();
};

inline void unary_reference(const UnaryOp& op, const Reference& call) {
  const UnaryParams params = unary_params(op, call.attrs());
  visit_number(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = call.input(0).data<T>();
    call.fill<T>(0, [&](const int64_t*, int64_t linear) {
      if constexpr (std::is_integral_v<T>) {
        return static_cast<T>(op.integer(static_cast<uint64_t>(x[linear]), x[linear] < 0));
      } else {
        return static_cast<T>(op.value(static_cast<double>(x[linear]), params));
      }
    });
  });
}

// `entry` must outlive the definitions.
inline Definitions unary_definitions(const UnaryOp& entry) {
  const UnaryOp* op = &entry;
  const std::string base = std::string("tenon.") + op->name;
  Op definition(base + "/1");
  definition.doc(op->doc)
      .input("x", op->integer ? "any shape, numbers" : "any shape, floating")
      .output("y", "as x")
      .elementwise();
  for (const UnaryAttr* attr : {&op->alpha, &op->beta}) {
    if (attr->name) definition.attr_f64(attr->name, attr->doc).default_value(attr->default_value);
  }
  definition
      .infer([op](const Infer& question) {
        const Tensor x = question.input(0);
        const bool number = op->integer && x.dtype() != TN_BOOL && dtype_size(x.dtype()) > 0;
        if (!is_floating(x.dtype()) && !number) {
          throw Invalid(text("input x: expected a ", op->integer ? "number" : "floating", " dtype, found ",
                             dtype_name(x.dtype())));
        }
        question.output(0, x.dtype(), x.dims());
      })
      .reference([op](const Reference& call) { unary_reference(*op, call); })
      .tolerance([](const Attrs&, int32_t dtype) { return pointwise_tolerance(dtype); });
  if (op->emit) {
    definition.expression([op](ExprBuilder& e, const Attrs& attrs) {
      if (!is_floating(e.dtype())) throw Declined("integers are not computed in expressions");
      op->emit(e, e.input(), unary_params(*op, attrs));
    });
  }
  Kernel kernel(base + "/1", base + (op->vector ? ".vector.f32" : ".scalar.f32"),
                [op] { return std::make_unique<UnaryKernel>(*op); });
  for (auto port : image_ports()) kernel.combo({port(TN_F32)}, {port(TN_F32)}).may_alias(0, 0);
  return {definition, kernel.deterministic()};
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_UNARY_H_
