#include "core/device/device.h"

#include <utility>

namespace tenon {

Result<DeviceBuffer> DeviceBuffer::allocate(std::shared_ptr<Device> device, std::size_t bytes) {
  DeviceBuffer buffer;
  if (bytes == 0) return buffer;
  TENON_ASSIGN(buffer.data_, device->allocate(bytes));
  buffer.device_ = std::move(device);
  buffer.size_ = bytes;
  return buffer;
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : device_(std::move(other.device_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

DeviceBuffer::~DeviceBuffer() {
  if (data_ != nullptr) device_->free(data_);
}

}  // namespace tenon
