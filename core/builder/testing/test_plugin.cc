// test.weigh/1: y = x * w, w constant. One kernel packs w into persistent memory that may travel in an engine, one
// reads it where it lies, one has x and y in bf16; test.relu/1 is pointwise, so that it may become an epilogue. A
// second plugin converts between f32 and bf16, a third has test.twice/1, y = 2 * x, whose kernel compiles.
#include <algorithm>
#include <cstring>

#include <tenon/sdk/code.hpp>
#include <tenon/sdk/plugin.hpp>

namespace tenon::builder_test {
namespace {

int compiled_pieces = 0;

void infer(const Infer& question) { question.output(0, question.input(0).dtype(), question.input(0).dims()); }

void reference(const Reference& call) {
  const float* x = call.input(0).data<float>();
  const float* w = call.input(1).data<float>();
  call.fill<float>(0, [&](const int64_t*, int64_t linear) { return x[linear] * w[linear]; });
}

class Packed final : public IPlugin {
 public:
  void configure(const Config& config) override {
    count_ = config.site().dims(0).elements();
    sizes_.persistent = static_cast<uint64_t>(count_) * sizeof(float);
  }
  Sizes sizes() const override { return sizes_; }
  void initialize(const Init& init) override {
    packed_ = init.persistent<float>();
    if (!init.filled()) std::copy_n(init.constant(1).data<float>(), count_, packed_);
  }
  void enqueue(const Exec&, const TnTensor* inputs, const TnTensor* outputs) const override {
    const float* x = static_cast<const float*>(inputs[0].data);
    for (int64_t i = 0; i < count_; ++i) static_cast<float*>(outputs[0].data)[i] = x[i] * packed_[i];
  }

 private:
  int64_t count_ = 0;
  float* packed_ = nullptr;
  Sizes sizes_;
};

class Plain final : public IPlugin {
 public:
  void configure(const Config& config) override { count_ = config.site().dims(0).elements(); }
  void enqueue(const Exec&, const TnTensor* inputs, const TnTensor* outputs) const override {
    const float* x = static_cast<const float*>(inputs[0].data);
    const float* w = static_cast<const float*>(inputs[1].data);
    for (int64_t i = 0; i < count_; ++i) static_cast<float*>(outputs[0].data)[i] = x[i] * w[i];
  }

 private:
  int64_t count_ = 0;
};

float wide(uint16_t bits) {
  const uint32_t word = static_cast<uint32_t>(bits) << 16;
  float value = 0;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

/// Of numbers between those of bf16 the one towards 0.
uint16_t narrow(float value) {
  uint32_t word = 0;
  std::memcpy(&word, &value, sizeof word);
  return static_cast<uint16_t>(word >> 16);
}

class Narrow final : public IPlugin {
 public:
  void configure(const Config& config) override { count_ = config.site().dims(0).elements(); }
  void enqueue(const Exec&, const TnTensor* inputs, const TnTensor* outputs) const override {
    const uint16_t* x = static_cast<const uint16_t*>(inputs[0].data);
    const float* w = static_cast<const float*>(inputs[1].data);
    for (int64_t i = 0; i < count_; ++i) static_cast<uint16_t*>(outputs[0].data)[i] = narrow(wide(x[i]) * w[i]);
  }

 private:
  int64_t count_ = 0;
};

class Reformat final : public IPlugin {
 public:
  void configure(const Config& config) override {
    count_ = config.site().dims(0).elements();
    narrows_ = config.combo().output(0).dtype == TN_BF16;
  }
  void enqueue(const Exec&, const TnTensor* inputs, const TnTensor* outputs) const override {
    for (int64_t i = 0; i < count_; ++i) {
      if (narrows_) {
        static_cast<uint16_t*>(outputs[0].data)[i] = narrow(static_cast<const float*>(inputs[0].data)[i]);
      } else {
        static_cast<float*>(outputs[0].data)[i] = wide(static_cast<const uint16_t*>(inputs[0].data)[i]);
      }
    }
  }

 private:
  int64_t count_ = 0;
  bool narrows_ = false;
};

/// Its code is compiled: text that names the site, written backwards.
class Compiled final : public IPlugin {
 public:
  void configure(const Config& config) override {
    count_ = config.site().dims(0).elements();
    const std::string source = text("twice ", count_);
    const auto kept = find_code(config.host(), source);
    code_ = kept ? *kept : std::vector<char>(source.rbegin(), source.rend());
    if (!kept) ++compiled_pieces;
    if (!kept) keep_code(config.host(), source, code_);
  }
  void serialize(const Writer& writer) const override { writer.bytes(code_.data(), code_.size()); }
  void deserialize(const Reader& reader, const Config& config) override {
    count_ = config.site().dims(0).elements();
    code_.resize(text("twice ", count_).size());
    reader.bytes(code_.data(), code_.size());
  }
  void enqueue(const Exec&, const TnTensor* inputs, const TnTensor* outputs) const override {
    const float* x = static_cast<const float*>(inputs[0].data);
    for (int64_t i = 0; i < count_; ++i) static_cast<float*>(outputs[0].data)[i] = 2 * x[i];
  }

 private:
  int64_t count_ = 0;
  std::vector<char> code_;
};

void twice(const Reference& call) {
  const float* x = call.input(0).data<float>();
  call.fill<float>(0, [&](const int64_t*, int64_t linear) { return 2 * x[linear]; });
}

void reformat_combos(const Site& site, Combos& combos) {
  const auto port = [&](const char* attribute) {
    return row(site.attrs().str(attribute) == "bf16:row" ? TN_BF16 : TN_F32);
  };
  combos.add(ComboSpec({port("from")}, {port("to")}));
}

void copy(const Reference& call) {
  const float* x = call.input(0).data<float>();
  call.fill<float>(0, [&](const int64_t*, int64_t linear) { return x[linear]; });
}

}  // namespace
}  // namespace tenon::builder_test

TENON_LINKED_PLUGIN(test_plugin, "test.builder", "1", "Apache-2.0",
                    tenon::op("test.weigh/1")
                        .input("x")
                        .input("w")
                        .output("y")
                        .infer(tenon::builder_test::infer)
                        .reference(tenon::builder_test::reference),
                    tenon::op("test.relu/1")
                        .input("x")
                        .output("y")
                        .elementwise()
                        .map([](double x) { return std::max(x, 0.0); })
                        .expression([](tenon::ExprBuilder& e, const tenon::Attrs&) {
                          tenon::emit_activation(e, {tenon::ActivationKind::kRelu, 0, 0}, e.input());
                        }),
                    tenon::kernel<tenon::builder_test::Packed>("test.weigh/1", "test.weigh.packed.f32")
                        .combo({tenon::f32_row(), tenon::f32_row()}, {tenon::f32_row()})
                        .deterministic()
                        .relocatable()
                        .supports([](const tenon::Site& site) {
                          if (!site.is_constant(1)) throw tenon::Declined("w is not constant");
                        }),
                    tenon::kernel<tenon::builder_test::Plain>("test.weigh/1", "test.weigh.plain.f32")
                        .combo({tenon::f32_row(), tenon::f32_row()}, {tenon::f32_row()})
                        .deterministic(),
                    tenon::kernel<tenon::builder_test::Narrow>("test.weigh/1", "test.weigh.narrow.bf16")
                        .combo({tenon::row(TN_BF16), tenon::f32_row()}, {tenon::row(TN_BF16)})
                        .deterministic(),
                    tenon::kernel<tenon::builder_test::Plain>("test.weigh/1", "test.weigh.random.f32")
                        .combo({tenon::f32_row(), tenon::f32_row()}, {tenon::f32_row()}))

TENON_LINKED_PLUGIN(compiling_plugin, "test.compiling", "1", "Apache-2.0",
                    tenon::op("test.twice/1")
                        .input("x")
                        .output("y")
                        .infer(tenon::builder_test::infer)
                        .reference(tenon::builder_test::twice),
                    tenon::kernel<tenon::builder_test::Compiled>("test.twice/1", "test.twice.compiled.f32")
                        .combo({tenon::f32_row()}, {tenon::f32_row()})
                        .deterministic())

TENON_LINKED_PLUGIN(reformat_plugin, "test.reformat", "1", "Apache-2.0",
                    tenon::op("tenon.reformat/1")
                        .attr_str("from", "form of x")
                        .attr_str("to", "form of y")
                        .input("x")
                        .output("y")
                        .infer(tenon::builder_test::infer)
                        .reference(tenon::builder_test::copy),
                    tenon::kernel<tenon::builder_test::Reformat>("tenon.reformat/1", "test.reformat.copy")
                        .deterministic()
                        .more_combos(tenon::builder_test::reformat_combos))

namespace tenon {

const TnPlugin* builder_test_plugin() { return test_plugin(); }
const TnPlugin* builder_test_compiling_plugin() { return compiling_plugin(); }
int builder_test_compiled_pieces() { return builder_test::compiled_pieces; }
const TnPlugin* builder_test_reformat_plugin() { return reformat_plugin(); }

}  // namespace tenon
