// Looking at tensors while an engine runs: in shared memory, with varying dims, with sizes that data decide, in bf16;
// and what `tenon run --debug-output` and `tenon compare` make of it.
#include <cstring>
#include <map>
#include <random>

#include "pipeline/debug_tensors.h"
#include "pipeline/npy.h"
#include "tests/e2e/e2e_testing.h"

namespace tenon::e2e {
namespace {

using Dims = std::vector<std::int64_t>;
using Floats = std::vector<float>;

class DebugOutputs : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(library_.discover().ok());
    const std::string reason = why_not(library_, test_device());
    if (!reason.empty()) GTEST_SKIP() << reason;
  }

  TensorId op(const std::string& name, const std::string& op, const std::vector<TensorId>& inputs,
              const std::string& attrs = "{}") {
    return network_.add_layer("tenon." + op + "/1", name, inputs, attrs).value();
  }
  Engine build(const std::map<std::string, std::string>& options = {}) {
    BuilderConfig config = BuilderConfig::create().value();
    EXPECT_TRUE(config.set("device", test_device()).ok());
    for (const auto& [key, value] : options) EXPECT_TRUE(config.set(key, value).ok()) << key;
    const auto built = Builder(library_).build(network_, config);
    EXPECT_TRUE(built.ok()) << built.status().message();
    views_ = json::parse(built->report())["views"].size();
    return Runtime(library_, test_device()).create(built->data(), built->size()).value();
  }

  Library library_ = Library::create({}).value();
  Network network_ = Network::create(library_).value();
  std::size_t views_ = 0;
};

struct Shown {
  std::int32_t dtype = TN_DTYPE_NONE;
  Dims dims;
  std::vector<std::uint8_t> bytes;

  template <class T>
  std::vector<T> as() const {
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
};

/// What an observer was shown, by name.
class Record {
 public:
  explicit Record(ExecutionContext* context, const std::vector<std::string>& names = {}) {
    const Status status = context->set_observer(names, [this](const std::string& name, const TnTensor& tensor) {
      const std::size_t element = tensor.dtype == TN_I64 ? 8 : (tensor.dtype == TN_BOOL ? 1 : 4);
      Shown& shown = shown_[name];
      shown.dtype = tensor.dtype;
      shown.dims.assign(tensor.dims.d, tensor.dims.d + tensor.dims.rank);
      std::size_t bytes = element;
      for (const std::int64_t size : shown.dims) bytes *= static_cast<std::size_t>(size);
      const auto* data = static_cast<const std::uint8_t*>(tensor.data);
      shown.bytes.assign(data, data + bytes);
    });
    EXPECT_TRUE(status.ok()) << status.message();
  }
  const Shown& operator[](const std::string& name) const { return shown_.at(name); }

 private:
  std::map<std::string, Shown> shown_;
};

void run(ExecutionContext* context) {
  const Status status = context->execute();
  ASSERT_TRUE(status.ok()) << status.message();
}

TEST_F(DebugOutputs, TensorsInsideOthers) {
  const TensorId x = network_.add_input("x", {1, 2, 1, 3}).value();
  const TensorId negative = op("negative", "neg", {x}), absolute = op("absolute", "abs", {x});
  const TensorId all = op("all", "concat", {negative, absolute}, R"({"axis": 1})");
  const TensorId middle = op("middle", "slice", {all}, R"({"starts": [1], "ends": [3], "axes": [1]})");
  const TensorId flat = op("flat", "reshape", {middle}, R"({"shape": [6]})");
  ASSERT_TRUE(network_.mark_output(op("y", "neg", {flat})).ok());
  const Engine engine = build();
  EXPECT_EQ(views_, 3u);  // all, middle and flat lie where negative and absolute were written
  ExecutionContext context = ExecutionContext::create(engine).value();
  const Record shown(&context);
  Floats given = {1, -2, 3, -4, 5, -6}, y(6);
  ASSERT_TRUE(context.set_tensor("x", given.data()).ok());
  ASSERT_TRUE(context.set_tensor("y", y.data()).ok());
  run(&context);
  EXPECT_EQ(shown["negative"].as<float>(), (Floats{-1, 2, -3, 4, -5, 6}));
  EXPECT_EQ(shown["absolute"].as<float>(), (Floats{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(shown["all"].as<float>(), (Floats{-1, 2, -3, 4, -5, 6, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(shown["middle"].as<float>(), (Floats{4, -5, 6, 1, 2, 3}));
  EXPECT_EQ(shown["middle"].dims, (Dims{1, 2, 1, 3}));
  EXPECT_EQ(shown["flat"].dims, Dims{6});
  EXPECT_EQ(shown["y"].as<float>(), y);
  EXPECT_EQ(y, (Floats{-4, 5, -6, -1, -2, -3}));
}

TEST_F(DebugOutputs, DimsThatVary) {
  const TensorId x = network_.add_input("x", {2, 3}).value();
  const TensorId shape = op("shape", "shape", {x});
  const TensorId inner = op("inner", "concat", {op("negative", "neg", {x}), x}, R"({"axis": 0})");
  const TensorId sum = op("sum", "cast", {shape}, R"({"to": "f32"})");
  ASSERT_TRUE(network_.mark_output(op("y", "abs", {inner})).ok());
  ASSERT_TRUE(network_.mark_output(op("z", "neg", {sum})).ok());
  ASSERT_TRUE(network_.set_profile("x", {1, 3}, {2, 3}, {4, 3}).ok());
  const Engine engine = build({{"on_fallback", "allow"}});
  ExecutionContext context = ExecutionContext::create(engine).value();
  const Record shown(&context);
  for (const std::int64_t rows : {2, 4, 1}) {
    Floats given(static_cast<std::size_t>(3 * rows), 2), y(2 * given.size()), z(2), expected = given;
    expected.insert(expected.begin(), given.size(), -2.f);
    ASSERT_TRUE(context.set_input_dims("x", {rows, 3}).ok());
    ASSERT_TRUE(context.set_tensor("x", given.data()).ok());
    ASSERT_TRUE(context.set_tensor("y", y.data()).ok());
    ASSERT_TRUE(context.set_tensor("z", z.data()).ok());
    run(&context);
    EXPECT_EQ(shown["inner"].dims, (Dims{2 * rows, 3}));
    EXPECT_EQ(shown["inner"].as<float>(), expected);
    EXPECT_EQ(shown["z"].as<float>(), (Floats{-static_cast<float>(rows), -3}));
  }
}

TEST_F(DebugOutputs, SizesThatDataDecide) {
  const TensorId x = network_.add_input("x", {2, 3}).value();
  const TensorId found = op("found", "non_zero", {op("negative", "neg", {x})});
  const TensorId rows = op("rows", "transpose", {found}, R"({"perm": [1, 0]})");
  const TensorId shape = op("shape", "shape", {found});
  const TensorId count = op("count", "slice", {shape}, R"({"starts": [1], "ends": [2], "axes": [0]})");
  ASSERT_TRUE(network_.mark_output(op("doubled", "add", {rows, rows})).ok());
  ASSERT_TRUE(network_.mark_output(op("number", "cast", {count}, R"({"to": "f32"})")).ok());
  const Engine engine = build({{"on_fallback", "allow"}});
  ExecutionContext context = ExecutionContext::create(engine).value();
  const Record shown(&context, {"negative", "found", "rows", "doubled"});
  std::vector<std::int64_t> doubled(12);
  float number = 0;
  Floats given(6);
  ASSERT_TRUE(context.set_tensor("x", given.data()).ok());
  ASSERT_TRUE(context.set_tensor("doubled", doubled.data()).ok());
  ASSERT_TRUE(context.set_tensor("number", &number).ok());
  using Ints = std::vector<std::int64_t>;
  given = {1, 0, 2, 0, 0, 3};
  run(&context);
  EXPECT_EQ(shown["negative"].as<float>()[5], -3);
  EXPECT_EQ(shown["found"].dims, (Dims{2, 3}));
  EXPECT_EQ(shown["found"].as<std::int64_t>(), (Ints{0, 0, 1, 0, 2, 2}));
  EXPECT_EQ(shown["rows"].as<std::int64_t>(), (Ints{0, 0, 0, 2, 1, 2}));
  EXPECT_EQ(shown["doubled"].as<std::int64_t>(), (Ints{0, 0, 0, 4, 2, 4}));
  given = {0, 0, 0, 0, 7, 0};
  run(&context);
  EXPECT_EQ(shown["found"].dims, (Dims{2, 1}));
  EXPECT_EQ(shown["found"].as<std::int64_t>(), (Ints{1, 1}));
  EXPECT_EQ(shown["doubled"].as<std::int64_t>(), (Ints{2, 2}));
  given.assign(6, 0);
  run(&context);
  EXPECT_EQ(shown["found"].dims, (Dims{2, 0}));
  EXPECT_TRUE(shown["rows"].bytes.empty());
}

// Where f32 tensors are kept in bf16 they come as f32 again: numbers that bf16 can hold, near those of the f32 engine.
TEST_F(DebugOutputs, TensorsKeptInBf16) {
  if (test_device() != "cpu") GTEST_SKIP() << "bf16 is for CPUs";
  if (library_.describe().value().find("tenon.conv2d.onednn.bf16") == std::string::npos) {
    GTEST_SKIP() << "built without oneDNN";
  }
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  const auto numbers = [&](std::size_t count, float scale) {
    Floats values(count);
    for (float& value : values) value = scale * normal(random);
    return values;
  };
  TensorId last = network_.add_input("x", {1, 64, 28, 28}).value();
  for (const std::string name : {"conv1", "conv2", "conv3"}) {
    const TensorId weights = network_.add_constant(name + ".w", {64, 64, 3, 3}, numbers(64 * 64 * 9, 0.04f)).value();
    const TensorId convolved = op(name, "conv2d", {last, weights}, R"({"pads": [1, 1, 1, 1]})");
    last = op(name + ".relu", "relu", {convolved});
  }
  ASSERT_TRUE(network_.mark_output(last).ok());
  BuilderConfig config = BuilderConfig::create().value();
  ASSERT_TRUE(config.set("device", "cpu").ok());
  ASSERT_TRUE(config.set("precision", "bf16").ok());
  ASSERT_TRUE(config.set("layer", R"({"match": "conv*", "kernel": "tenon.conv2d.onednn.bf16"})").ok());
  const auto built = Builder(library_).build(network_, config);
  if (!built.ok()) {
    ASSERT_NE(built.status().message().find("no bf16 instructions"), std::string::npos) << built.status().message();
    GTEST_SKIP() << built.status().message();
  }
  const Floats given = numbers(64 * 28 * 28, 1);
  const auto shown_by = [&](const Engine& engine, const std::string& name) {
    ExecutionContext context = ExecutionContext::create(engine).value();
    const Record shown(&context, {name});
    Floats y(64 * 28 * 28);
    EXPECT_TRUE(context.set_tensor("x", const_cast<float*>(given.data())).ok());
    EXPECT_TRUE(context.set_tensor("conv3.relu", y.data()).ok());
    run(&context);
    EXPECT_EQ(shown[name].dtype, TN_F32);
    EXPECT_EQ(shown[name].dims, (Dims{1, 64, 28, 28}));
    return shown[name].as<float>();
  };
  const Engine full = build(), short_floats = Runtime(library_, "cpu").create(built->data(), built->size()).value();
  const json described = json::parse(EngineInspector(short_floats).engine("tensors").value());
  int kept_short = 0;
  for (const json& tensor : described["tensors"]) {
    if (tensor["dtype"] != "bf16") continue;
    ++kept_short;
    const std::string name = tensor["name"];
    const Floats found = shown_by(short_floats, name);
    for (const float value : found) {
      std::uint32_t bits;
      std::memcpy(&bits, &value, sizeof(bits));
      ASSERT_EQ(bits & 0xffffu, 0u) << name;
    }
    // What a conversion gives is called as what it converts, with an ending.
    EXPECT_LT(distance(shown_by(full, name.substr(0, name.find(".reformat"))), found), 0.02) << name;
  }
  EXPECT_GE(kept_short, 3) << "the convolutions read nothing else: " << described;
}

constexpr char kCfg[] =
    "[net]\nwidth=8\nheight=8\nchannels=3\n"
    "[convolutional]\nbatch_normalize=1\nfilters=8\nsize=3\nstride=1\npad=1\nactivation=leaky\n"
    "[convolutional]\nbatch_normalize=1\nfilters=4\nsize=1\nstride=1\npad=0\nactivation=linear\n"
    "[avgpool]\n[softmax]\n";

/// A network of which fusion removes layer0.conv, layer0.bn and layer1.conv.
class DebugProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    const Library library = Library::create({}).value();
    const std::string reason = why_not(library, test_device());
    if (!reason.empty()) GTEST_SKIP() << reason;
    cfg_ = dir_.write("net.cfg", kCfg);
    pipeline::NpyArray x{pipeline::NpyType::kF4, {1, 3, 8, 8}, {}};
    Floats values(3 * 8 * 8);
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    for (float& value : values) value = normal(random);
    x = pipeline::npy_from_floats(x.dims, values);
    ASSERT_TRUE(pipeline::write_npy(at("x.npy"), x).ok());
  }
  std::string at(const std::string& name) const { return dir_.path() / name; }
  std::vector<std::string> with_model(std::vector<std::string> command, const std::vector<std::string>& more) const {
    for (const std::string& part : {cfg_, std::string("--import-option"), std::string("random_weights=1"),
                                    std::string("--device"), test_device(), std::string("--timing-cache"), at("c")}) {
      command.push_back(part);
    }
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }
  Floats floats(const std::string& file) const {
    const auto array = pipeline::read_npy(at(file));
    EXPECT_TRUE(array.ok()) << array.status().message();
    Floats values(array.ok() ? array->elements() : 0);
    if (array.ok()) std::memcpy(values.data(), array->bytes.data(), array->bytes.size());
    return values;
  }

  TempDir dir_;
  std::string cfg_;
};

TEST_F(DebugProgram, RunWritesAnyTensorAndChangesNothing) {
  const std::vector<std::string> feed = {"--tensor", "data=" + at("x.npy"), "--json", "-"};
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.end(), feed.begin(), feed.end());
    const Outcome outcome = tenon(with_model({"run"}, more));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return parse_json(outcome.out)["results"][0]["outputs"];
  };
  const json plain = run({"--dump-tensors", at("plain")});
  EXPECT_FALSE(plain[0].contains("debug"));
  const json debug = run({"--dump-tensors", at("debug"), "--debug-output", "layer0*", "--debug-output", "layer1",
                          "--debug-output", "layer3"});
  std::map<std::string, json> outputs;
  for (const json& output : debug) outputs[output["name"]] = output;
  ASSERT_EQ(outputs.size(), 5u) << debug.dump();
  for (const char* fused : {"layer0.conv", "layer0.bn"}) EXPECT_EQ(outputs[fused]["side_run"], true) << debug.dump();
  for (const char* held : {"layer0", "layer1", "layer3"}) EXPECT_EQ(outputs[held]["side_run"], false) << debug.dump();
  for (const auto& [name, output] : outputs) EXPECT_EQ(output["debug"], true) << name;
  EXPECT_EQ(outputs["layer0"]["dims"], json({1, 8, 8, 8}));
  EXPECT_EQ(listing(at("debug")),
            (std::vector<std::string>{"layer0.bn.npy", "layer0.conv.npy", "layer0.npy", "layer1.npy", "layer3.npy"}));
  EXPECT_EQ(read_text(at("debug/layer3.npy")), read_text(at("plain/layer3.npy")));
  // leaky: x, or 0.1 x below 0. The left side is of the plan, the right one of the side run.
  Floats expected = floats("debug/layer0.bn.npy");
  for (float& value : expected) value = value < 0 ? 0.1f * value : value;
  EXPECT_LT(distance(expected, floats("debug/layer0.npy")), 1e-5);

  // A build from the same cache afterwards is the same one.
  for (const char* engine : {"before.tenon", "after.tenon"}) {
    const Outcome built = tenon(with_model({"build"}, {"-o", at(engine), "--frozen-cache"}));
    ASSERT_EQ(built.status, 0) << built.err;
    run({"--dump-tensors", at("debug"), "--debug-output", "layer1.conv", "--frozen-cache"});
  }
  EXPECT_EQ(read_text(at("before.tenon")), read_text(at("after.tenon")));
}

TEST_F(DebugProgram, AnEngineFileTellsWhatItLacks) {
  ASSERT_EQ(tenon(with_model({"build"}, {"-o", at("e.tenon")})).status, 0);
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> command = {"run",         at("e.tenon"), "--device",
                                        test_device(), "--tensor",    "data=" + at("x.npy")};
    command.insert(command.end(), more.begin(), more.end());
    return tenon(command);
  };
  const auto fails = [&](int status, const std::vector<std::string>& more, const std::vector<std::string>& words) {
    const Outcome outcome = run(more);
    EXPECT_EQ(outcome.status, status) << outcome.err;
    for (const std::string& word : words) EXPECT_NE(outcome.err.find(word), std::string::npos) << outcome.err;
    EXPECT_FALSE(fs::exists(at("d")));
  };
  fails(1, {"--dump-tensors", at("d"), "--debug-output", "layer0.conv"},
        {"--debug-output", "layer0.conv", "fusion removed it", "side run", "--mark-output"});
  fails(1, {"--dump-tensors", at("d"), "--debug-output", "layr0"}, {"no tensor layr0", "did you mean layer0"});
  fails(1, {"--dump-tensors", at("d"), "--debug-output", "nothing*"}, {"no tensor nothing*"});
  fails(2, {"--debug-output", "layer0"}, {"--dump-tensors"});
  const Outcome some = run({"--dump-tensors", at("d"), "--debug-output", "layer0*"});
  EXPECT_EQ(some.status, 0) << some.err;
  EXPECT_NE(some.err.find("2 tensors that fit are left out"), std::string::npos) << some.err;
  EXPECT_EQ(listing(at("d")), (std::vector<std::string>{"layer0.npy", "layer3.npy"}));
  const Outcome unknown = tenon(with_model(
      {"run"}, {"--tensor", "data=" + at("x.npy"), "--dump-tensors", at("e"), "--debug-output", "layer0.con"}));
  EXPECT_EQ(unknown.status, 1);
  EXPECT_NE(unknown.err.find("did you mean layer0.conv"), std::string::npos) << unknown.err;
}

TEST_F(DebugProgram, CompareRunsThePlanAndLabelsTheRest) {
  const Outcome compared = tenon(with_model({"compare"}, {"--b", test_device(), "--json", "-"}));
  ASSERT_EQ(compared.status, 0) << compared.err;
  const json report = parse_json(compared.out);
  std::map<std::string, bool> side_run;
  for (const json& layer : report["layers"]) side_run[layer["name"]] = layer["side_run"];
  const std::map<std::string, bool> expected = {{"layer0", false}, {"layer0.bn", true},   {"layer0.conv", true},
                                                {"layer1", false}, {"layer1.conv", true}, {"layer2", false},
                                                {"layer3", false}};
  EXPECT_EQ(side_run, expected) << report.dump(2);
  EXPECT_EQ(report["side_run_tensors"], 3);
  const Outcome table = tenon(with_model({"compare"}, {"--b", test_device()}));
  EXPECT_NE(table.out.find("unfused, side run of b"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("Fusion removed 3 of 7 tensors"), std::string::npos) << table.out;
}

}  // namespace
}  // namespace tenon::e2e
