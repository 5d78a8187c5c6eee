// test.double/1: y = 2 x for f32, f64 and integers, and kernels that are declined for one reason each, or do one thing
// wrong each; their names say which. test.plain/1 has a reference only, test.fusing/1 a kernel that applies relu
// itself.
#include <algorithm>
#include <cstring>
#include <tenon/sdk/plugin.hpp>

namespace tenon::site_test {
namespace {

void infer(const Infer& question) { question.output(0, question.input(0).dtype(), question.input(0).dims()); }

void reference(const Reference& call) {
  visit_number(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = call.input(0).data<T>();
    call.fill<T>(0, [&](const int64_t*, int64_t linear) { return static_cast<T>(2 * x[linear]); });
  });
}

/// Doubles every number in memory. params: "add=N" adds N to element 4, "skip=1" leaves out the last element, "dirty=1"
/// writes 7 into the fill of blocks.
class Double final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const auto number = [&](const char* key) { return config.params().has(key) ? config.params().i64(key) : 0; };
    add_ = number("add");
    skip_ = number("skip");
    dirty_ = number("dirty") != 0;
    format_ = config.combo().output(0).format;
  }
  void enqueue(const Exec&, const TnTensor* inputs, const TnTensor* outputs) const override {
    visit_number(outputs[0].dtype, [&](auto zero) {
      using T = decltype(zero);
      const int64_t count = physical_elements(format_, outputs[0].dims);
      T* y = static_cast<T*>(outputs[0].data);
      for (int64_t i = 0; i < count - skip_; ++i) {
        y[i] = static_cast<T>(2 * static_cast<const T*>(inputs[0].data)[i] + (i == 4 ? static_cast<T>(add_) : T()));
      }
      if (dirty_) y[count - 1] = static_cast<T>(7);  // the tests give dims whose last cell is fill
    });
  }

 private:
  int64_t add_ = 0, skip_ = 0;
  bool dirty_ = false;
  TnFormat format_{};
};

/// The same with tensors of bf16, where they may stand for f32. params: "coarse=1" is off by a quarter, "dirty=1" as
/// above.
class DoubleNarrow final : public IPlugin {
 public:
  void configure(const Config& config) override {
    format_ = config.combo().output(0).format;
    dirty_ = config.params().has("dirty");
    coarse_ = config.params().has("coarse");
  }
  void enqueue(const Exec&, const TnTensor* inputs, const TnTensor* outputs) const override {
    const int64_t count = physical_elements(format_, outputs[0].dims);
    uint16_t* y = static_cast<uint16_t*>(outputs[0].data);
    for (int64_t i = 0; i < count; ++i) {
      const uint32_t bits = static_cast<uint32_t>(static_cast<const uint16_t*>(inputs[0].data)[i]) << 16;
      float x = 0;
      std::memcpy(&x, &bits, sizeof x);
      x *= coarse_ ? 2.5f : 2.0f;
      uint32_t twice = 0;
      std::memcpy(&twice, &x, sizeof x);
      y[i] = static_cast<uint16_t>(twice >> 16);
    }
    if (dirty_) y[count - 1] = 1;
  }

 private:
  bool dirty_ = false, coarse_ = false;
  TnFormat format_{};
};

Kernel make(const char* name) { return kernel<Double>("test.double/1", name); }

Kernel with_tactics(const char* name, std::vector<std::string> all) {
  Kernel result = make(name);
  result.combo({f32_row()}, {f32_row()}).deterministic();
  result.tactics([all](const Site&, const Combo&, Tactics& tactics) {
    for (const std::string& params : all) tactics.add(params, params == "big=1" ? 1u << 20 : 0);
  });
  return result;
}

}  // namespace
}  // namespace tenon::site_test

namespace st = tenon::site_test;

TENON_LINKED_PLUGIN(
    test_plugin, "test.site", "1", "Apache-2.0",
    tenon::op("test.double/1")
        .input("x")
        .output("y")
        .attr_i64("depth")
        .default_value("0")
        .infer(st::infer)
        .reference(st::reference),
    tenon::op("test.fusing/1").input("x").output("y").infer(st::infer).reference(st::reference),
    tenon::kernel<st::Double>("test.fusing/1", "test.fusing.vendorlib.f32")
        .combo({tenon::f32_row()}, {tenon::f32_row()})
        .deterministic()
        .supports([](const tenon::Site& site) {
          if (site.dims(0).rank != 2) throw tenon::Declined("not of rank 2");
        })
        .epilogue([](const tenon::Site& site) {
          const auto steps = tenon::match_epilogue(site.epilogue(0));
          if (!steps || steps->size() != 1 || steps->front().activation.kind != tenon::ActivationKind::kRelu) {
            throw tenon::Declined("the epilogue is not relu");
          }
        }),
    tenon::op("test.plain/1").input("x").output("y").infer(st::infer).reference(st::reference),
    st::with_tactics("test.double.good.f32", {"tile=1", "tile=2", "big=1", "tile=1"}),
    st::with_tactics("test.double.wrong.f32", {"add=1", "skip=1"}), st::with_tactics("test.double.none.f32", {}),
    st::with_tactics("test.double.vendorlib.f32", {"tile=1"}),
    st::make("test.double.aligned.f32").combo({tenon::f32_row().aligned(64)}, {tenon::f32_row()}).deterministic(),
    st::make("test.double.in_place.f32").combo({tenon::f32_row()}, {tenon::f32_row()}).must_alias(0, 0).deterministic(),
    st::make("test.double.random.f32").combo({tenon::f32_row()}, {tenon::f32_row()}),
    st::make("test.double.refuses.f32")
        .combo({tenon::f32_row()}, {tenon::f32_row()})
        .deterministic()
        .supports([](const tenon::Site&) { throw tenon::Declined("not on a Sunday"); }),
    st::make("test.double.wide")
        .combo({tenon::row(TN_F64)}, {tenon::row(TN_F64)})
        .combo({tenon::row(TN_I64)}, {tenon::row(TN_I64)})
        .combo({tenon::row(TN_I32)}, {tenon::row(TN_I32)})
        .deterministic()
        .tactics([](const tenon::Site&, const tenon::Combo&, tenon::Tactics& tactics) {
          tactics.add("add=0");
          tactics.add("add=1");
        }),
    st::make("test.double.blocked.f32")
        .combo({tenon::f32_nchw8c()}, {tenon::f32_nchw8c()})
        .deterministic()
        .tactics([](const tenon::Site&, const tenon::Combo&, tenon::Tactics& tactics) {
          tactics.add("dirty=0");
          tactics.add("dirty=1");
        }),
    tenon::kernel<st::DoubleNarrow>("test.double/1", "test.double.narrow.bf16")
        .combo({tenon::row(TN_BF16)}, {tenon::row(TN_BF16)})
        .combo({tenon::nchw8c(TN_BF16)}, {tenon::nchw8c(TN_BF16)})
        .deterministic()
        .tactics([](const tenon::Site&, const tenon::Combo& combo, tenon::Tactics& tactics) {
          if (tenon::is_row(combo.input(0).format)) {
            tactics.add("tile=1");
            tactics.add("coarse=1");
          } else {
            tactics.add("tile=2");
            tactics.add("dirty=1");
          }
        }))

namespace tenon {

const TnPlugin* site_test_plugin() { return test_plugin(); }

}  // namespace tenon
