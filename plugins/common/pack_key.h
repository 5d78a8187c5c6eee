// Keys for the sharing of packed constants: instances whose keys are equal have equal persistent bytes.
#ifndef TENON_PLUGINS_COMMON_PACK_KEY_H_
#define TENON_PLUGINS_COMMON_PACK_KEY_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <tenon/sdk/plugin_base.hpp>

namespace tenon::plugins {

// A 128-bit hash of everything that is added; not cryptographic. Two lanes of multiply-xorshift with the odd constants
// of splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
class PackKey {
 public:
  PackKey& add(const void* data, uint64_t size) {
    const char* bytes = static_cast<const char*>(data);
    for (uint64_t at = 0; at < size; at += 8) {
      uint64_t word = 0;
      std::memcpy(&word, bytes + at, size - at < 8 ? size - at : 8);
      lanes_[0] = mix(lanes_[0] ^ word, 0xBF58476D1CE4E5B9u);
      lanes_[1] = mix(lanes_[1] + word, 0x94D049BB133111EBu);
    }
    lanes_[0] = mix(lanes_[0] ^ size, 0x9E3779B97F4A7C15u);
    return *this;
  }
  PackKey& add(const std::string& text) { return add(text.data(), text.size()); }
  PackKey& add(const Tensor& tensor) {
    const Dims dims = tensor.dims();
    add(dims.d, sizeof dims.d);
    return add(tensor.data(), static_cast<uint64_t>(tensor.elements() * dtype_size(tensor.dtype())));
  }
  void store(Sizes* sizes) const {
    sizes->pack_key[0] = lanes_[0] | 1;  // never 0, which means "not shared"
    sizes->pack_key[1] = lanes_[1];
  }

 private:
  static uint64_t mix(uint64_t value, uint64_t factor) {
    value *= factor;
    return value ^ (value >> 29);
  }
  uint64_t lanes_[2] = {0x9E3779B97F4A7C15u, 0xD1B54A32D192ED03u};
};

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_PACK_KEY_H_
