#include "core/device/device.h"

#include <algorithm>
#include <utility>

namespace tenon {

Result<std::unique_ptr<Recording>> Device::record(Stream&, const std::function<Status()>&, std::unique_ptr<Recording>) {
  return Status(Code::kDeclined, "device " + info().name + " records no launches");
}

Status Device::apply_expression(const TnExpr&, float*, std::int64_t, void*) {
  return {Code::kDeclined, "device " + info().name + " leaves expressions to the host"};
}

std::vector<std::string> Device::under_way(const Activity* except) const {
  const std::lock_guard lock(activities_lock_);
  std::vector<std::string> texts;
  for (const Activity* activity : activities_) {
    if (activity != except && activity->under_way_.load(std::memory_order_relaxed)) texts.push_back(activity->text_);
  }
  return texts;
}

Activity::Activity(Device& device, std::string text) : device_(device), text_(std::move(text)) {
  const std::lock_guard lock(device_.activities_lock_);
  device_.activities_.push_back(this);
}

Activity::~Activity() {
  const std::lock_guard lock(device_.activities_lock_);
  std::erase(device_.activities_, this);
}

template <bool kStaging>
Result<OwnedMemory<kStaging>> OwnedMemory<kStaging>::allocate(std::shared_ptr<Device> device, std::size_t bytes) {
  OwnedMemory memory;
  if (bytes == 0) return memory;
  TENON_ASSIGN(memory.data_, kStaging ? device->allocate_staging(bytes) : device->allocate(bytes));
  memory.device_ = std::move(device);
  memory.size_ = bytes;
  return memory;
}

template <bool kStaging>
OwnedMemory<kStaging>::OwnedMemory(OwnedMemory&& other) noexcept
    : device_(std::move(other.device_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

template <bool kStaging>
OwnedMemory<kStaging>& OwnedMemory<kStaging>::operator=(OwnedMemory&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

template <bool kStaging>
OwnedMemory<kStaging>::~OwnedMemory() {
  if (data_ == nullptr) return;
  if (kStaging) {
    device_->free_staging(data_);
  } else {
    device_->free(data_);
  }
}

template class OwnedMemory<false>;
template class OwnedMemory<true>;

}  // namespace tenon
