// TensorProto to tensors of Tenon: every count, offset and size is checked before anything is copied.
#ifndef TENON_IMPORTERS_ONNX_TENSORS_H_
#define TENON_IMPORTERS_ONNX_TENSORS_H_

#include <string>
#include <tenon/sdk/importer.hpp>
#include <vector>

#include "importers/onnx/node.h"

namespace tenon::onnx {

namespace pb {
class TensorProto;
}  // namespace pb

/// A tensor whose data lies in the proto, in a file of the model, or in `converted`.
struct ReadTensor {
  TnTensor tensor{};
  std::vector<uint8_t> converted;
};

/// Whether Tenon has elements of this type: a TN_* number of a type of fixed size.
bool is_readable(int32_t dtype);

/// `source` opens external data; nullptr: there is none. Invalid names the tensor; Unsupported for strings.
ReadTensor read_tensor(const pb::TensorProto& proto, const Source* source);

/// Dims of a tensor or type; Invalid if one is negative, there are too many, or their product overflows.
template <class List>
Dims read_dims(const List& list, const std::string& owner) {
  if (list.size() > TN_MAX_RANK) {
    throw Invalid(text(owner, ": expected at most ", TN_MAX_RANK, " dims, found ", list.size()));
  }
  Dims dims;
  dims.rank = static_cast<int32_t>(list.size());
  int64_t count = 1;
  for (int n = 0; n < dims.rank; ++n) {
    const int64_t size = list[n];
    if (size < 0) throw Invalid(text(owner, ": dim ", n, " is negative: ", size));
    if (__builtin_mul_overflow(count, size == 0 ? 1 : size, &count) || count > int64_t{1} << 48) {
      throw Invalid(text(owner, ": the dims ask for more elements than fit in memory"));
    }
    dims.d[n] = size;
  }
  return dims;
}

}  // namespace tenon::onnx

#endif  // TENON_IMPORTERS_ONNX_TENSORS_H_
