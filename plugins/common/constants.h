// Constants of a graph as fusion rules read them.
#ifndef TENON_PLUGINS_COMMON_CONSTANTS_H_
#define TENON_PLUGINS_COMMON_CONSTANTS_H_

#include <cstring>
#include <optional>
#include <tenon/sdk/graph_view.hpp>
#include <vector>

#include "plugins/common/small_float.h"

namespace tenon::plugins {

// The number in a constant of one element that is f32, f64 or f16.
inline std::optional<double> scalar_constant(const GraphView& graph, TnValueId value) {
  const std::optional<TnTensor> tensor = graph.value_const(value);
  if (!tensor || Dims(tensor->dims).elements() != 1) return std::nullopt;
  if (tensor->dtype == TN_F32) return static_cast<double>(*static_cast<const float*>(tensor->data));
  if (tensor->dtype == TN_F64) return *static_cast<const double*>(tensor->data);
  if (tensor->dtype != TN_F16) return std::nullopt;
  uint16_t bits;
  std::memcpy(&bits, tensor->data, sizeof bits);
  return static_cast<double>(small_float_value(TN_F16, bits));
}

inline bool is_float_or_half(int32_t dtype) { return dtype == TN_F32 || dtype == TN_F16; }

// The elements of a matrix of f32 or f16, column after column.
inline std::vector<char> transposed_matrix(const TnTensor& matrix) {
  const int64_t rows = matrix.dims.d[0], columns = matrix.dims.d[1], size = dtype_size(matrix.dtype);
  std::vector<char> result(static_cast<size_t>(rows * columns * size));
  const auto transpose = [&](auto element) {
    const auto* from = static_cast<const decltype(element)*>(matrix.data);
    auto* to = reinterpret_cast<decltype(element)*>(result.data());
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t r = 0; r < rows; ++r) to[c * rows + r] = from[r * columns + c];
    }
  };
  size == 4 ? transpose(uint32_t{}) : transpose(uint16_t{});
  return result;
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_CONSTANTS_H_
