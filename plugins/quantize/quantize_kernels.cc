// tenon.quantize/1 and tenon.dequantize/1 between f32 and integers of whole bytes.
#include "plugins/common/parallel.h"
#include "plugins/quantize/quantize.h"

namespace tenon::plugins {

cpu::QuantizeShape quantize_shape(const Attrs& attrs, const Dims& x, const Dims& scale) {
  if (attrs.i64("block_size") != 0) throw Declined("scales of blocks are left to the reference");
  if (scale.elements() == 1) return {1, 1, x.elements()};
  const int axis = normalize_axis(attrs.i64("axis"), x.rank);
  return {x.product(0, axis), x[axis], x.product(axis + 1, x.rank)};
}

namespace {

void supports(const Site& site) {
  quantize_shape(site.attrs(), site.dims(kQuantizeX), site.dims(kQuantizeScale));
  if (site.op_id() == "tenon.quantize/1" && site.attrs().dtype("precision") != TN_F32) {
    throw Declined("it divides in f32 only");
  }
}

// What both kernels have.
template <class T>
class Scaled : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Site site = config.site();
    shape_ = quantize_shape(site.attrs(), site.max_dims(kQuantizeX), site.max_dims(kQuantizeScale));
    has_zero_points_ = site.has_input(kQuantizeZeroPoint);
  }

 protected:
  const T* zero_points(const TnTensor* inputs) const {
    return has_zero_points_ ? static_cast<const T*>(inputs[kQuantizeZeroPoint].data) : nullptr;
  }
  cpu::QuantizeShape shape_;

 private:
  bool has_zero_points_ = false;
};

template <class T>
class QuantizeKernel final : public Scaled<T> {
 public:
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    cpu::quantize(this->shape_, static_cast<const float*>(inputs[kQuantizeX].data),
                  static_cast<const float*>(inputs[kQuantizeScale].data), this->zero_points(inputs),
                  static_cast<T*>(outputs[0].data), to_parallel(exec));
  }
};

template <class T>
class DequantizeKernel final : public Scaled<T> {
 public:
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    cpu::dequantize(this->shape_, static_cast<const T*>(inputs[kQuantizeX].data),
                    static_cast<const float*>(inputs[kQuantizeScale].data), this->zero_points(inputs),
                    static_cast<float*>(outputs[0].data), to_parallel(exec));
  }
};

template <class Instance>
Kernel make(const std::string& name, int32_t x, int32_t y, int32_t zero_point) {
  return kernel<Instance>(text("tenon.", name, "/1"), text("tenon.", name, ".vector.", dtype_name(zero_point)))
      .combo({row(x), f32_row(), row(zero_point)}, {row(y)})
      .supports(supports)
      .deterministic();
}

template <class T>
void add_both(Definitions* all) {
  const int32_t dtype = dtype_of<T>();
  all->add(make<QuantizeKernel<T>>("quantize", TN_F32, dtype, dtype));
  all->add(make<DequantizeKernel<T>>("dequantize", dtype, TN_F32, dtype));
}

}  // namespace

Definitions quantize_kernels() {
  Definitions all;
  add_both<uint8_t>(&all);
  add_both<int8_t>(&all);
  add_both<uint16_t>(&all);
  add_both<int16_t>(&all);
  all.add(make<DequantizeKernel<int32_t>>("dequantize", TN_I32, TN_F32, TN_I32));
  return all;
}

}  // namespace tenon::plugins
