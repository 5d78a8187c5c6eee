#include "core/site/elements.h"

#include <vector>

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
  switch (dtype) {
    case TN_F32:
      return load<float>(data, index);
    case TN_F64:
      return load<double>(data, index);
    case TN_F16:
      return f16_to_f32(static_cast<const std::uint16_t*>(data)[index]);
    case TN_BF16:
      return bf16_to_f32(static_cast<const std::uint16_t*>(data)[index]);
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
  switch (dtype) {
    case TN_F32:
      store<float>(data, index, value);
      break;
    case TN_F64:
      store<double>(data, index, value);
      break;
    case TN_F16:
      static_cast<std::uint16_t*>(data)[index] = f32_to_f16(static_cast<float>(value));
      break;
    case TN_BF16:
      static_cast<std::uint16_t*>(data)[index] = f32_to_bf16(static_cast<float>(value));
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

std::int32_t widened_dtype(std::int32_t dtype) {
  return dtype == TN_F16 || dtype == TN_BF16 ? static_cast<std::int32_t>(TN_F32) : dtype;
}

Result<std::shared_ptr<const HostTensor>> widen_for_reference(const std::shared_ptr<const HostTensor>& tensor) {
  if (widened_dtype(tensor->dtype()) == tensor->dtype()) return tensor;
  TENON_ASSIGN(const std::int64_t count, element_count(tensor->dims()));
  std::vector<float> values(static_cast<std::size_t>(count));
  widen_to_f32(tensor->dtype(), tensor->data(), values.data(), count);
  return HostTensor::create(TN_F32, tensor->dims(), values.data(), values.size() * sizeof(float));
}

}  // namespace tenon
