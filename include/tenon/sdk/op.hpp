/// op(): describes an operator.
///   tenon::op("acme.swish/1").doc("y = x / (1 + exp(-x))").input("x").output("y").elementwise()
///       .map([](double x) { return x / (1 + std::exp(-x)); })
/// Callbacks may throw; see error.hpp.
#ifndef TENON_SDK_OP_HPP
#define TENON_SDK_OP_HPP

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "../plugin/ext/ids.h"
#include "box.hpp"
#include "definition.hpp"
#include "expressions.hpp"
#include "questions.hpp"

namespace tenon {
inline namespace sdk {

/// The storage behind a registered TnOp.
class OpDefinition final : public Definition, public TnOp {
 public:
  explicit OpDefinition(const std::string& op_id) : TnOp{} {
    struct_size = TN_HEADER(TnOp);
    id = keep(op_id);
    doc = "";
    TnOp::infer = [](const TnHost* host, const TnOp* op, TnInfer* question) {
      return guard(host, [&] { self(op).on_infer(Infer(host, question)); });
    };
    get_interface = [](const TnOp* op, const char* name) -> const void* {
      if (self(op).on_expression && std::string(name) == TN_IFACE_OP_EXPRESSION) return &self(op).expression_;
      if (self(op).on_placement && std::string(name) == TN_IFACE_OP_PLACEMENT) return &self(op).placement_;
      if (self(op).on_siblings && std::string(name) == TN_IFACE_OP_SIBLINGS) return &self(op).siblings_;
      return nullptr;
    };
    siblings_ = {TN_HEADER(TnOpSiblings), 0,
                 [](const TnHost* host, const TnOp* op, const TnInfer* inferred, TnSiblings* out) {
                   return guard(host, [&] {
                     TnInfer answered = *inferred;
                     const Siblings siblings = self(op).on_siblings(Infer(host, &answered));
                     if (siblings.input_axes.size() > TN_SIBLING_INPUTS) throw Invalid("siblings: too many inputs");
                     *out = {siblings.output_axis, static_cast<uint32_t>(siblings.input_axes.size()), {}};
                     std::copy(siblings.input_axes.begin(), siblings.input_axes.end(), out->input_axes);
                   });
                 }};
    placement_ = {TN_HEADER(TnOpPlacement), 0,
                  [](const TnHost* host, const TnOp* op, const TnInfer* inferred, TnPlacementSink* sink) {
                    return guard(host, [&] {
                      TnInfer answered = *inferred;
                      self(op).on_placement(Infer(host, &answered), Placements(sink));
                    });
                  }};
    expression_ = {TN_HEADER(TnOpExpression), 0,
                   [](const TnHost* host, const TnOp* op, const TnAttrs* attrs, const int32_t* dtypes, uint32_t count,
                      TnExprSink* sink) {
                     return guard(host, [&] {
                       ExprBuilder builder(sink, static_cast<int>(count), dtypes);
                       self(op).on_expression(builder, Attrs(host, attrs));
                     });
                   }};
    on_infer = infer_broadcast;
  }
  TnStatus add_to(const TnHost* host) const override { return host->register_op(host, this); }

  void add_param(int32_t type, const std::string& name, const std::string& text) {
    schema.add(type, name, text, [this](const std::string& value) { return keep(value); });
    params = schema.data();
    num_params = schema.size();
  }
  void add_port(bool input, const std::string& name, const std::string& text) {
    ports_.push_back(TnPortSpec{TN_HEADER(TnPortSpec), 0, keep(name), keep(text)});
    auto& list = input ? input_ports_ : output_ports_;
    list.push_back(&ports_.back());
    inputs = input_ports_.data();
    outputs = output_ports_.data();
    num_inputs = static_cast<uint32_t>(input_ports_.size());
    num_outputs = static_cast<uint32_t>(output_ports_.size());
  }
  void flag_port(uint32_t port_flag) {
    if (ports_.empty()) throw Invalid("optional, variadic, constant, host_value and dims_only follow their port");
    ports_.back().flags |= port_flag;
  }
  void set_doc(const std::string& text) { doc = keep(text); }
  static const OpDefinition& self(const TnOp* op) { return *static_cast<const OpDefinition*>(op); }

  Schema schema;
  std::function<void(Infer)> on_infer;
  std::function<void(Infer)> on_infer_bound;
  std::function<void(Reference)> on_reference;
  std::function<void(Generate)> on_generate;
  std::function<TnTolerance(Attrs, int32_t dtype)> on_tolerance;
  std::function<void(ExprBuilder&, Attrs)> on_expression;
  std::function<void(Infer, Placements)> on_placement;
  std::function<Siblings(Infer)> on_siblings;

 private:
  std::deque<TnPortSpec> ports_;
  std::vector<const TnPortSpec*> input_ports_;
  std::vector<const TnPortSpec*> output_ports_;
  TnOpExpression expression_{};
  TnOpPlacement placement_{};
  TnOpSiblings siblings_{};
};

/// The builder. attr_* and input/output take an optional doc; default_value, range and required belong to the attribute
/// before them, optional, variadic, constant, host_value and dims_only to the port before them.
class Op {
 public:
  explicit Op(const std::string& id) : op_(new OpDefinition(id)) { op_->flags = TN_OP_PURE; }

  Op& doc(const std::string& text) { return op_->set_doc(text), *this; }
  Op& attr_i64(const std::string& name, const std::string& doc = "") { return attr(TN_ATTR_I64, name, doc); }
  Op& attr_f64(const std::string& name, const std::string& doc = "") { return attr(TN_ATTR_F64, name, doc); }
  Op& attr_str(const std::string& name, const std::string& doc = "") { return attr(TN_ATTR_STR, name, doc); }
  Op& attr_i64s(const std::string& name, const std::string& doc = "") { return attr(TN_ATTR_I64S, name, doc); }
  Op& attr_f64s(const std::string& name, const std::string& doc = "") { return attr(TN_ATTR_F64S, name, doc); }
  Op& attr_strs(const std::string& name, const std::string& doc = "") { return attr(TN_ATTR_STRS, name, doc); }
  Op& attr_dtype(const std::string& name, const std::string& doc = "") { return attr(TN_ATTR_DTYPE, name, doc); }
  Op& attr_tensor(const std::string& name, const std::string& doc = "") { return attr(TN_ATTR_TENSOR, name, doc); }
  /// In text form: "1", "0.1", "floor", "1,1".
  Op& default_value(const std::string& value) { return op_->schema.last().default_text = op_->keep(value), *this; }
  /// "[0,1]", "[1,)" or "a|b|c".
  Op& range(const std::string& value) { return op_->schema.last().range = op_->keep(value), *this; }
  Op& required() { return op_->schema.last().required = 1, *this; }

  Op& input(const std::string& name, const std::string& doc = "") { return op_->add_port(true, name, doc), *this; }
  Op& output(const std::string& name, const std::string& doc = "") { return op_->add_port(false, name, doc), *this; }
  Op& optional() { return op_->flag_port(TN_PORT_OPTIONAL), *this; }
  Op& variadic() { return op_->flag_port(TN_PORT_VARIADIC), *this; }
  Op& constant() { return op_->flag_port(TN_PORT_CONST), *this; }
  Op& host_value() { return op_->flag_port(TN_PORT_HOST_VALUE), *this; }
  Op& dims_only() { return op_->flag_port(TN_PORT_DIMS_ONLY), *this; }

  /// Ops are pure unless they are random or stateful.
  Op& elementwise() { return op_->flags |= TN_OP_ELEMENTWISE, *this; }
  Op& commutative() { return op_->flags |= TN_OP_COMMUTATIVE, *this; }
  Op& random() { return impure(TN_OP_RANDOM); }
  Op& stateful() { return impure(TN_OP_STATEFUL); }

  /// Default: every output has the shape that all inputs broadcast to, and the dtype of the first.
  Op& infer(std::function<void(Infer)> fn) { return op_->on_infer = std::move(fn), *this; }
  Op& infer_bound(std::function<void(Infer)> fn);
  Op& reference(std::function<void(Reference)> fn);
  /// The reference of a unary elementwise op: y[i] = fn(x[i]), computed in double.
  Op& map(std::function<double(double)> fn);
  Op& generate(std::function<void(Generate)> fn);
  Op& tolerance(std::function<TnTolerance(Attrs, int32_t)> fn);
  /// One tolerance for every dtype and attribute.
  Op& tolerance(double absolute, double relative) {
    return tolerance([=](const Attrs&, int32_t) { return TnTolerance{absolute, relative}; });
  }
  /// What a pointwise op computes; see expressions.hpp. Exactly the last value that fn emits is the result.
  Op& expression(std::function<void(ExprBuilder&, Attrs)> fn) { return op_->on_expression = std::move(fn), *this; }

  /// For ops that only move tensors: which lies where in which (plugin/ext/placement.h). fn throws Declined where more
  /// is to do. The outputs of its question are inferred.
  Op& placement(std::function<void(Infer, Placements)> fn) { return op_->on_placement = std::move(fn), *this; }

  /// For ops whose nodes can be joined where they read the same input (plugin/ext/siblings.h). fn throws Declined where
  /// a node cannot be.
  Op& siblings(std::function<Siblings(Infer)> fn) { return op_->on_siblings = std::move(fn), *this; }

  std::shared_ptr<OpDefinition> definition() const { return op_; }

 private:
  Op& attr(int32_t type, const std::string& name, const std::string& doc) {
    return op_->add_param(type, name, doc), *this;
  }
  Op& impure(uint32_t flag) {
    op_->flags = (op_->flags & ~static_cast<uint32_t>(TN_OP_PURE)) | flag;
    return *this;
  }
  std::shared_ptr<OpDefinition> op_;
};

/// "vendor.name/1"; the number is the semantic version.
inline Op op(const std::string& id) { return Op(id); }

inline Op& Op::infer_bound(std::function<void(Infer)> fn) {
  op_->on_infer_bound = std::move(fn);
  op_->TnOp::infer_bound = [](const TnHost* host, const TnOp* op, TnInfer* question) {
    return guard(host, [&] { OpDefinition::self(op).on_infer_bound(Infer(host, question)); });
  };
  return *this;
}

inline Op& Op::reference(std::function<void(Reference)> fn) {
  op_->on_reference = std::move(fn);
  op_->TnOp::reference = [](const TnHost* host, const TnOp* op, const TnReference* call) {
    return guard(host, [&] { OpDefinition::self(op).on_reference(Reference(host, call)); });
  };
  return *this;
}

inline Op& Op::map(std::function<double(double)> fn) {
  return reference([fn = std::move(fn)](const Reference& call) {
    visit_floating(call.output(0).dtype(), [&](auto zero) {
      using T = decltype(zero);
      const T* x = call.input(0).data<T>();
      call.fill<T>(0,
                   [&](const int64_t*, int64_t linear) { return static_cast<T>(fn(static_cast<double>(x[linear]))); });
    });
  });
}

inline Op& Op::generate(std::function<void(Generate)> fn) {
  op_->on_generate = std::move(fn);
  op_->TnOp::generate = [](const TnHost* host, const TnOp* op, const TnAttrs* attrs, uint64_t seed, TnTensor* inputs,
                           uint32_t count) {
    return guard(host, [&] { OpDefinition::self(op).on_generate(Generate{Attrs(host, attrs), seed, inputs, count}); });
  };
  return *this;
}

inline Op& Op::tolerance(std::function<TnTolerance(Attrs, int32_t)> fn) {
  op_->on_tolerance = std::move(fn);
  op_->TnOp::tolerance = [](const TnHost* host, const TnOp* op, const TnAttrs* attrs, int32_t dtype, TnTolerance* out) {
    return guard(host, [&] { *out = OpDefinition::self(op).on_tolerance(Attrs(host, attrs), dtype); });
  };
  return *this;
}

}  // namespace sdk
}  // namespace tenon

#endif  // TENON_SDK_OP_HPP
