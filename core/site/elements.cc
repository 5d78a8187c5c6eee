#include "core/site/elements.h"

#include <algorithm>

#include "core/graph/convert.h"

namespace tenon {
namespace {

template <class T>
double load(const void* data, std::int64_t index) {
  return static_cast<double>(static_cast<const T*>(data)[index]);
}
template <class T>
void store(void* data, std::int64_t index, double value) {
  static_cast<T*>(data)[index] = static_cast<T>(value);
}

}  // namespace

double load_element(const void* data, std::int32_t dtype, std::int64_t index) {
  if (const std::int32_t wide = reference_dtype(dtype); wide != dtype) {
    const std::uint32_t bits = load_bits(data, dtype_bits(dtype), index);
    if (wide == TN_F32) return small_float_to_f32(dtype, bits);
    std::int8_t value;
    widen(dtype, &bits, &value, 1);
    return wide == TN_I8 ? value : static_cast<std::uint8_t>(value);
  }
  switch (dtype) {
    case TN_F32:
      return load<float>(data, index);
    case TN_F64:
      return load<double>(data, index);
    case TN_I8:
      return load<std::int8_t>(data, index);
    case TN_U8:
    case TN_BOOL:
      return load<std::uint8_t>(data, index);
    case TN_I16:
      return load<std::int16_t>(data, index);
    case TN_U16:
      return load<std::uint16_t>(data, index);
    case TN_I32:
      return load<std::int32_t>(data, index);
    case TN_U32:
      return load<std::uint32_t>(data, index);
    case TN_I64:
      return load<std::int64_t>(data, index);
    case TN_U64:
      return load<std::uint64_t>(data, index);
    default:
      return 0;
  }
}

void store_element(void* data, std::int32_t dtype, std::int64_t index, double value) {
  if (reference_dtype(dtype) != dtype) {
    return store_bits(data, dtype_bits(dtype), index,
                      is_small_float(dtype) ? f32_to_small_float(dtype, static_cast<float>(value))
                                            : static_cast<std::uint32_t>(static_cast<std::int32_t>(value)));
  }
  switch (dtype) {
    case TN_F32:
      store<float>(data, index, value);
      break;
    case TN_F64:
      store<double>(data, index, value);
      break;
    case TN_I8:
      store<std::int8_t>(data, index, value);
      break;
    case TN_U8:
      store<std::uint8_t>(data, index, value);
      break;
    case TN_BOOL:
      static_cast<std::uint8_t*>(data)[index] = value != 0 ? 1 : 0;
      break;
    case TN_I16:
      store<std::int16_t>(data, index, value);
      break;
    case TN_U16:
      store<std::uint16_t>(data, index, value);
      break;
    case TN_I32:
      store<std::int32_t>(data, index, value);
      break;
    case TN_U32:
      store<std::uint32_t>(data, index, value);
      break;
    case TN_I64:
      store<std::int64_t>(data, index, value);
      break;
    case TN_U64:
      store<std::uint64_t>(data, index, value);
      break;
    default:
      break;
  }
}

Result<std::shared_ptr<const HostTensor>> widen_for_reference(const std::shared_ptr<const HostTensor>& tensor) {
  const std::int32_t wide = reference_dtype(tensor->dtype());
  if (wide == tensor->dtype()) return tensor;
  TENON_ASSIGN(const std::int64_t count, element_count(tensor->dims()));
  TENON_ASSIGN(const std::uint64_t bytes, tensor_bytes(wide, tensor->dims(), row_format()));
  const std::shared_ptr<unsigned char[]> values(new unsigned char[std::max<std::uint64_t>(bytes, 1)]);
  widen(tensor->dtype(), tensor->data(), values.get(), count);
  return HostTensor::borrow(wide, tensor->dims(), values.get(), values);
}

}  // namespace tenon
