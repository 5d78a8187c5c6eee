// What test devices have in common: the host's processor, of which they change a few answers.
#pragma once

#include "core/device/device.h"

namespace tenon {

class ForwardingDevice : public Device {
 public:
  const DeviceInfo& info() const override { return cpu_->info(); }
  Result<void*> allocate(std::size_t bytes) override { return cpu_->allocate(bytes); }
  void free(void* memory) override { cpu_->free(memory); }
  Status copy_to_device(void* to, const void* from, std::size_t bytes, Stream& stream) override {
    return cpu_->copy_to_device(to, from, bytes, stream);
  }
  Status copy_to_host(void* to, const void* from, std::size_t bytes, Stream& stream) override {
    return cpu_->copy_to_host(to, from, bytes, stream);
  }
  Status fill(void* to, int byte, std::size_t bytes, Stream& stream) override {
    return cpu_->fill(to, byte, bytes, stream);
  }
  Result<std::unique_ptr<Stream>> create_stream() override { return cpu_->create_stream(); }
  Result<std::unique_ptr<Stream>> wrap_stream(void* handle) override { return cpu_->wrap_stream(handle); }
  Result<std::unique_ptr<Event>> create_event() override { return cpu_->create_event(); }
  bool reaches(const void* memory) const override { return cpu_->reaches(memory); }
  Status copy_strided(void* to, const std::int64_t* to_strides, const void* from, const std::int64_t* from_strides,
                      const TnDims& dims, std::size_t element_bytes, Stream& stream) override {
    return cpu_->copy_strided(to, to_strides, from, from_strides, dims, element_bytes, stream);
  }
  void prepare_exec(Stream& stream, TnExec* exec) override { cpu_->prepare_exec(stream, exec); }
  const TnDevice& abi() const override { return cpu_->abi(); }

 protected:
  std::shared_ptr<Device> cpu_ = make_cpu_device({.threads = 1});
};

}  // namespace tenon
