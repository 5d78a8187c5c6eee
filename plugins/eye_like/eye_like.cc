// tenon.eye_like/1: a matrix with ones on a diagonal.
#include <tenon/sdk/plugin.hpp>

namespace tenon::plugins {
namespace {

template <class Body>
void visit_with_bool(int32_t dtype, Body&& body) {
  if (dtype == TN_BOOL) return body(bool());
  visit_number(dtype, body);
}

void eye_like_infer(const Infer& question) {
  const Tensor x = question.input(0, 2);
  const int32_t dtype = question.attrs().dtype("dtype");
  visit_with_bool(dtype == TN_F16 || dtype == TN_BF16 ? TN_F32 : dtype, [](auto) {});
  question.output(0, dtype, x.dims());
}

void eye_like_reference(const Reference& call) {
  const int64_t k = call.attrs().i64("k");
  visit_with_bool(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    // As a difference of columns and rows, which cannot overflow.
    call.fill<T>(0, [&](const int64_t* index, int64_t) { return static_cast<T>(index[1] - index[0] == k ? 1 : 0); });
  });
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.eye_like", "1", "Apache-2.0",
             tenon::op("tenon.eye_like/1")
                 .doc("y[i][j] = 1 where j - i = k, else 0 (ONNX EyeLike-9)")
                 .attr_i64("k", "the diagonal; those above the main one are positive")
                 .default_value("0")
                 .attr_dtype("dtype", "dtype of the result")
                 .required()
                 .input("x", "rank 2: its dims are those of the result")
                 .dims_only()
                 .output("y")
                 .infer(tenon::plugins::eye_like_infer)
                 .reference(tenon::plugins::eye_like_reference)
                 .tolerance(0, 0))
