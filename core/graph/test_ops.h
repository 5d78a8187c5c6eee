// A small OpSource for the tests of this folder: pointwise, convolution-like, variadic and misbehaving ops.
#pragma once

#include <tenon/plugin/all.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/failure.h"
#include "core/graph/attributes.h"
#include "core/graph/graph.h"

namespace tenon::test {

inline TnStatus host_fail(const TnHost*, TnStatus code, const char* where, const char* message) {
  record_failure(code, where, message);
  return code;
}

inline const TnHost& host() {
  static const TnHost table = [] {
    TnHost h{};
    h.struct_size = TN_HEADER(TnHost);
    h.name = "tenon";
    h.fail = host_fail;
    h.attrs = &attr_api();
    h.graph = &graph_api();
    return h;
  }();
  return table;
}

// --- shape rules ---

inline TnStatus infer_same(const TnHost*, const TnOp*, TnInfer* q) {
  q->outputs[0].dtype = q->inputs[0].dtype;
  q->outputs[0].dims = q->inputs[0].dims;
  return TN_OK;
}

/// Equal dims, or one operand of one element.
inline TnStatus infer_add(const TnHost* h, const TnOp*, TnInfer* q) {
  const TnTensor& a = q->inputs[0];
  const TnTensor& b = q->inputs[1];
  if (a.dtype != b.dtype) return TN_FAIL(h, TN_INVALID, "dtypes differ");
  const bool b_scalar = *element_count(b.dims) == 1;
  if (!same_dims(a.dims, b.dims) && !b_scalar && *element_count(a.dims) != 1) {
    return TN_FAIL(h, TN_INVALID, ("dims " + dims_text(a.dims) + " and " + dims_text(b.dims) + " differ").c_str());
  }
  q->outputs[0].dtype = a.dtype;
  q->outputs[0].dims = b_scalar ? a.dims : b.dims;
  return TN_OK;
}

/// x[n,c,h,w], w[k,c,r,s], stride, no padding.
inline TnStatus infer_conv(const TnHost* h, const TnOp*, TnInfer* q) {
  const TnDims& x = q->inputs[0].dims;
  const TnDims& w = q->inputs[1].dims;
  if (x.rank != 4 || w.rank != 4) return TN_FAIL(h, TN_INVALID, "x and w must have rank 4");
  if (x.d[1] != w.d[1]) return TN_FAIL(h, TN_INVALID, "channels of x and w differ");
  std::int64_t stride = 1;
  if (h->attrs->get_i64(q->attrs, "stride", &stride) != TN_OK) return TN_INTERNAL;
  q->outputs[0].dtype = q->inputs[0].dtype;
  q->outputs[0].dims = make_dims({x.d[0], w.d[0], (x.d[2] - w.d[2]) / stride + 1, (x.d[3] - w.d[3]) / stride + 1});
  return TN_OK;
}

inline TnStatus infer_matmul(const TnHost* h, const TnOp*, TnInfer* q) {
  const TnDims& a = q->inputs[0].dims;
  const TnDims& b = q->inputs[1].dims;
  if (a.rank != 2 || b.rank != 2 || a.d[1] != b.d[0]) return TN_FAIL(h, TN_INVALID, "inner extents differ");
  q->outputs[0].dtype = q->inputs[0].dtype;
  q->outputs[0].dims = make_dims({a.d[0], b.d[1]});
  return TN_OK;
}

/// Joins along axis 0.
inline TnStatus infer_concat(const TnHost*, const TnOp*, TnInfer* q) {
  q->outputs[0].dtype = q->inputs[0].dtype;
  q->outputs[0].dims = q->inputs[0].dims;
  for (std::uint32_t i = 1; i < q->num_inputs; ++i) q->outputs[0].dims.d[0] += q->inputs[i].dims.d[0];
  return TN_OK;
}

/// Cuts axis 0 into equal parts, as many as there are outputs.
inline TnStatus infer_split(const TnHost*, const TnOp*, TnInfer* q) {
  for (std::uint32_t i = 0; i < q->num_outputs; ++i) {
    q->outputs[i].dtype = q->inputs[0].dtype;
    q->outputs[i].dims = q->inputs[0].dims;
    q->outputs[i].dims.d[0] /= q->num_outputs;
  }
  return TN_OK;
}

/// Dims from the contents of the input.
inline TnStatus infer_fill(const TnHost* h, const TnOp*, TnInfer* q) {
  if (q->inputs[0].data == nullptr) return TN_FAIL(h, TN_INVALID, "the shape must be known");
  const auto* extents = static_cast<const std::int64_t*>(q->inputs[0].data);
  q->outputs[0].dtype = TN_F32;
  q->outputs[0].dims = make_dims({extents, extents + q->inputs[0].dims.d[0]});
  return TN_OK;
}

/// The dims of the input, whose contents do not matter.
inline TnStatus infer_shape(const TnHost*, const TnOp*, TnInfer* q) {
  q->outputs[0].dtype = TN_I64;
  q->outputs[0].dims = make_dims({q->inputs[0].dims.rank});
  return TN_OK;
}
inline TnStatus ref_shape(const TnHost*, const TnOp*, const TnReference* r) {
  const TnDims& dims = r->inputs[0].dims;
  std::copy_n(dims.d, dims.rank, static_cast<std::int64_t*>(r->outputs[0].data));
  return TN_OK;
}

/// Misbehaves as attribute "how" says.
inline TnStatus infer_bad(const TnHost* h, const TnOp*, TnInfer* q) {
  const char* how = "";
  if (h->attrs->get_str(q->attrs, "how", &how) != TN_OK) return TN_INTERNAL;
  const std::string text = how;
  clear_failure();
  q->outputs[0].dtype = TN_F32;
  if (text == "negative") q->outputs[0].dims = make_dims({2, -3});
  if (text == "rank") q->outputs[0].dims.rank = 9;
  if (text == "dtype") q->outputs[0].dtype = TN_DTYPE_NONE;
  if (text == "number") q->outputs[0].dtype = 77;
  if (text == "silent") return TN_INVALID;
  return TN_OK;
}

// --- references, f32 and i64 ---

template <class T, class F>
void map1(const TnReference* r, F f) {
  const auto* x = static_cast<const T*>(r->inputs[0].data);
  auto* y = static_cast<T*>(r->outputs[0].data);
  for (std::int64_t i = 0; i < *element_count(r->outputs[0].dims); ++i) y[i] = f(x[i]);
}

inline TnStatus ref_relu(const TnHost*, const TnOp*, const TnReference* r) {
  map1<float>(r, [](float x) { return x > 0 ? x : 0; });
  return TN_OK;
}

template <class T>
void add(const TnReference* r) {
  const bool a_scalar = *element_count(r->inputs[0].dims) == 1;
  const bool b_scalar = *element_count(r->inputs[1].dims) == 1;
  const auto* a = static_cast<const T*>(r->inputs[0].data);
  const auto* b = static_cast<const T*>(r->inputs[1].data);
  auto* y = static_cast<T*>(r->outputs[0].data);
  for (std::int64_t i = 0; i < *element_count(r->outputs[0].dims); ++i)
    y[i] = a[a_scalar ? 0 : i] + b[b_scalar ? 0 : i];
}

inline TnStatus ref_add(const TnHost* h, const TnOp*, const TnReference* r) {
  if (r->inputs[0].dtype == TN_F32) {
    add<float>(r);
  } else if (r->inputs[0].dtype == TN_I64) {
    add<std::int64_t>(r);
  } else {
    return TN_FAIL(h, TN_DECLINED, "f32 and i64 only");
  }
  return TN_OK;
}

inline TnStatus ref_fill(const TnHost*, const TnOp*, const TnReference* r) {
  auto* y = static_cast<float*>(r->outputs[0].data);
  std::fill_n(y, *element_count(r->outputs[0].dims), 1.5f);
  return TN_OK;
}

inline TnStatus ref_fails(const TnHost* h, const TnOp*, const TnReference*) {
  return TN_FAIL(h, TN_INVALID, "division by zero");
}

// --- expressions ---

inline std::int32_t put(TnExprSink* sink, std::int32_t primitive, std::int32_t a = 0, std::int32_t b = 0,
                        double value = 0, std::uint32_t operand = 0) {
  const TnExprInstr instr = {primitive, TN_F32, a, b, 0, operand, value};
  return sink->emit(sink, &instr);
}

inline TnStatus describe_relu(const TnHost*, const TnOp*, const TnAttrs*, const std::int32_t*, std::uint32_t,
                              TnExprSink* sink) {
  const auto x = put(sink, TN_EX_INPUT);
  const auto zero = put(sink, TN_EX_CONSTANT);
  put(sink, TN_EX_MAX, x, zero);
  return TN_OK;
}

inline TnStatus describe_leaky(const TnHost* h, const TnOp*, const TnAttrs* attrs, const std::int32_t*, std::uint32_t,
                               TnExprSink* sink) {
  double alpha = 0;
  if (h->attrs->get_f64(attrs, "alpha", &alpha) != TN_OK) return TN_INTERNAL;
  const auto x = put(sink, TN_EX_INPUT);
  const auto slope = put(sink, TN_EX_CONSTANT, 0, 0, alpha);
  put(sink, TN_EX_MAX, x, put(sink, TN_EX_MUL, x, slope));
  return TN_OK;
}

inline TnStatus describe_add(const TnHost*, const TnOp*, const TnAttrs*, const std::int32_t*, std::uint32_t,
                             TnExprSink* sink) {
  const auto a = put(sink, TN_EX_INPUT, 0, 0, 0, 0);
  const auto b = put(sink, TN_EX_INPUT, 0, 0, 0, 1);
  put(sink, TN_EX_ADD, a, b);
  return TN_OK;
}

inline const TnOpExpression kRelu = {TN_HEADER(TnOpExpression), 0, describe_relu};
inline const TnOpExpression kLeaky = {TN_HEADER(TnOpExpression), 0, describe_leaky};
inline const TnOpExpression kAdd = {TN_HEADER(TnOpExpression), 0, describe_add};

template <const TnOpExpression* kExpression>
const void* expression_of(const TnOp*, const char* id) {
  return std::string(id) == TN_IFACE_OP_EXPRESSION ? kExpression : nullptr;
}

// --- the ops ---

inline const TnPortSpec kX = {TN_HEADER(TnPortSpec), 0, "x", ""};
inline const TnPortSpec kY = {TN_HEADER(TnPortSpec), 0, "y", ""};
inline const TnPortSpec kWeights = {TN_HEADER(TnPortSpec), TN_PORT_CONST, "weights", ""};
inline const TnPortSpec kBias = {TN_HEADER(TnPortSpec), TN_PORT_CONST | TN_PORT_OPTIONAL, "bias", ""};
inline const TnPortSpec kMany = {TN_HEADER(TnPortSpec), TN_PORT_VARIADIC, "parts", ""};
inline const TnPortSpec kDims = {TN_HEADER(TnPortSpec), TN_PORT_DIMS_ONLY, "x", ""};
inline const TnPortSpec* const kOne[] = {&kX};
inline const TnPortSpec* const kDimsOf[] = {&kDims};
inline const TnPortSpec* const kTwo[] = {&kX, &kY};
inline const TnPortSpec* const kConvPorts[] = {&kX, &kWeights, &kBias};
inline const TnPortSpec* const kVariadic[] = {&kMany};

inline const TnParam kStride = {TN_HEADER(TnParam), TN_ATTR_I64, "stride", 0, "1", "[1,)", ""};
inline const TnParam kAlpha = {TN_HEADER(TnParam), TN_ATTR_F64, "alpha", 0, "0.1", "[0,1]", ""};
inline const TnParam kHow = {TN_HEADER(TnParam), TN_ATTR_STR, "how", 1, nullptr, nullptr, ""};
inline const TnParam* const kConvParams[] = {&kStride};
inline const TnParam* const kLeakyParams[] = {&kAlpha};
inline const TnParam* const kBadParams[] = {&kHow};

class Ops final : public OpSource {
 public:
  Ops() {
    constexpr std::uint32_t kPointwise = TN_OP_PURE | TN_OP_ELEMENTWISE;
    add_op("test.relu/1", kPointwise, kOne, 1, infer_same, ref_relu).get_interface = expression_of<&kRelu>;
    TnOp& leaky = add_op("test.leaky/1", kPointwise, kOne, 1, infer_same, nullptr);
    leaky.get_interface = expression_of<&kLeaky>;
    leaky.params = kLeakyParams;
    leaky.num_params = 1;
    add_op("test.add/1", kPointwise | TN_OP_COMMUTATIVE, kTwo, 2, infer_add, ref_add).get_interface =
        expression_of<&kAdd>;
    add_op("test.sub/1", kPointwise, kTwo, 2, infer_add, nullptr);
    for (const char* id : {"test.conv2d/1", "test.fused_conv2d/1"}) {
      TnOp& conv = add_op(id, TN_OP_PURE, kConvPorts, 3, infer_conv, nullptr);
      conv.params = kConvParams;
      conv.num_params = 1;
    }
    add_op("test.matmul/1", TN_OP_PURE, kTwo, 2, infer_matmul, nullptr);
    add_op("test.concat/1", TN_OP_PURE, kVariadic, 1, infer_concat, nullptr);
    add_op("test.split/1", TN_OP_PURE, kOne, 1, infer_split, nullptr).outputs = kVariadic;
    add_op("test.shape/1", TN_OP_PURE, kDimsOf, 1, infer_shape, ref_shape);
    add_op("test.fill/1", TN_OP_PURE, kOne, 1, infer_fill, ref_fill);
    add_op("test.random/1", TN_OP_PURE | TN_OP_RANDOM, kOne, 1, infer_same, ref_relu);
    add_op("test.fails/1", TN_OP_PURE, kOne, 1, infer_same, ref_fails);
    add_op("test.identity/1", TN_OP_PURE, kOne, 1, infer_same, nullptr);
    TnOp& bad = add_op("test.bad/1", TN_OP_PURE, kOne, 1, infer_bad, nullptr);
    bad.params = kBadParams;
    bad.num_params = 1;
  }

  OpRef find_op(std::string_view id) const override {
    const auto found = ops_.find(std::string(id));
    return found != ops_.end() ? OpRef{found->second.get(), &host(), nullptr} : OpRef{};
  }

  std::vector<std::string> op_ids() const override {
    std::vector<std::string> ids;
    for (const auto& [id, op] : ops_) ids.push_back(id);
    return ids;
  }

 private:
  TnOp& add_op(const char* id, std::uint32_t flags, const TnPortSpec* const* inputs, std::uint32_t num_inputs,
               decltype(TnOp::infer) infer, decltype(TnOp::reference) reference) {
    auto op = std::make_unique<TnOp>();
    op->struct_size = TN_HEADER(TnOp);
    op->flags = flags;
    op->id = id;
    op->doc = "";
    op->inputs = inputs;
    op->num_inputs = num_inputs;
    op->outputs = kOne;
    op->num_outputs = 1;
    op->infer = infer;
    op->reference = reference;
    return *(ops_[id] = std::move(op));
  }

  std::map<std::string, std::unique_ptr<TnOp>> ops_;
};

inline Graph empty_graph() { return Graph(std::make_shared<const Ops>()); }

inline std::shared_ptr<const HostTensor> f32_tensor(const std::vector<std::int64_t>& dims,
                                                    const std::vector<float>& values) {
  return *HostTensor::create(TN_F32, make_dims(dims), values.data(), values.size() * sizeof(float));
}

inline std::shared_ptr<const HostTensor> i64_tensor(const std::vector<std::int64_t>& values) {
  return *HostTensor::create(TN_I64, make_dims({static_cast<std::int64_t>(values.size())}), values.data(),
                             values.size() * sizeof(std::int64_t));
}

inline std::vector<float> floats(const HostTensor& tensor) {
  const auto* data = static_cast<const float*>(tensor.data());
  return {data, data + tensor.bytes() / sizeof(float)};
}

/// Adds a node with one output and returns that output's id.
inline ValueId node(Graph* graph, const char* op, const std::string& name, std::vector<ValueId> inputs,
                    Attrs attrs = {}) {
  const Result<NodeId> id = graph->add_node(op, name, std::move(attrs), std::move(inputs), 1);
  return id.ok() ? graph->node(*id).outputs[0] : kNoId;
}

}  // namespace tenon::test
