// The CPU and a GPU side by side: the same models through the same plugins give the same results. Needs a GPU.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <thread>

#include "pipeline/builder.h"
#include "pipeline/runner.h"
#include "tests/e2e/e2e_testing.h"

namespace tenon::e2e {
namespace {

constexpr double kRelL2 = 1e-3, kScore = 1e-4, kPixels = 0.1;

/// Bytes of memory in use: resident on the host, and on the GPU by all processes.
struct MemoryUse {
  double host = 0, device = 0;
};

MemoryUse memory_use() {
  MemoryUse use;
  std::ifstream statm("/proc/self/statm");
  double pages = 0;
  statm >> pages >> pages;
  use.host = pages * 4096;
  const Outcome smi = run_program({"/usr/bin/nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"});
  use.device = std::atof(smi.out.c_str()) * (1 << 20);
  return use;
}

class Devices : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(library_.discover().ok());
    const std::string reason = why_not(library_, "cuda");
    if (!reason.empty()) GTEST_SKIP() << reason;
  }

  pipeline::BuildRequest request(const std::string& model, const std::string& device) {
    setenv("TENON_MODELS_DIR", tenon::testing::models_dir().c_str(), 1);
    const auto config = pipeline::load_config(tenon::testing::source_dir() / "configs" / (model + ".yaml")).value();
    pipeline::BuildRequest result = pipeline::request_of(config);
    result.metadata["pipeline"] = pipeline::settings_text(pipeline::settings_of(config).value());
    result.device = device;
    result.timing_cache = dir_->path() / "cache.yaml";
    // Which kernels the CPU takes does not matter here.
    if (device == "cpu") result.config.emplace_back("time_budget", "2");
    return result;
  }
  BuiltEngine build(const std::string& model, const std::string& device) {
    return pipeline::build_engine(library_, request(model, device), nullptr).value();
  }
  Engine load(const BuiltEngine& built, const std::string& device) {
    return Runtime(library_, device).create(built.data(), built.size()).value();
  }
  static fs::path scene() { return tenon::testing::source_dir() / "models/digits/scene.png"; }

  static void SetUpTestSuite() { dir_ = std::make_unique<TempDir>(); }
  static void TearDownTestSuite() { dir_.reset(); }

  static inline std::unique_ptr<TempDir> dir_;  // with one timing cache for all tests
  Library library_ = Library::create().value();
};

/// Relative l2 distance of two arrays of floats.
double distance(const pipeline::NpyArray& a, const pipeline::NpyArray& b) {
  EXPECT_EQ(a.dims, b.dims);
  double difference = 0, total = 0;
  for (std::size_t i = 0; i + sizeof(float) <= a.bytes.size(); i += sizeof(float)) {
    float x = 0, y = 0;
    std::memcpy(&x, a.bytes.data() + i, sizeof(float));
    std::memcpy(&y, b.bytes.data() + i, sizeof(float));
    difference += (double{x} - y) * (double{x} - y);
    total += double{x} * x;
  }
  return std::sqrt(difference / total);
}

struct ModelPicture {
  const char* model;
  const char* picture;  // of the images folder; "": the digits' scene
};

class ModelOnDevices : public Devices, public ::testing::WithParamInterface<ModelPicture> {};

TEST_P(ModelOnDevices, GiveTheSameHeadsAndDetections) {
  const std::string model = GetParam().model, picture = GetParam().picture;
  const fs::path image = picture.empty() ? scene() : tenon::testing::images_dir() / picture;
  TENON_NEED_DATA(image);
  if (!picture.empty()) TENON_NEED_DATA(tenon::testing::models_dir() / model / "README.md");
  std::map<std::string, pipeline::InputResult> results;
  std::map<std::string, std::map<std::string, pipeline::NpyArray>> outputs;
  for (const std::string device : {"cpu", "cuda"}) {
    const Engine engine = load(build(model, device), device);
    pipeline::Runner runner = pipeline::Runner::create(engine).value();
    const auto result = runner.run_image(image, nullptr);
    ASSERT_TRUE(result.ok()) << device << ": " << result.status().message();
    results[device] = *result;
    outputs[device] = runner.outputs().value();
  }
  for (const auto& [name, array] : outputs["cpu"]) {
    const double found = distance(array, outputs["cuda"].at(name));
    EXPECT_LT(found, kRelL2) << name;
    RecordProperty(name, std::to_string(found));
  }
  const auto& cpu = results["cpu"].detections;
  const auto& cuda = results["cuda"].detections;
  ASSERT_EQ(cpu.size(), cuda.size());
  for (std::size_t i = 0; i < cpu.size(); ++i) {
    EXPECT_EQ(cpu[i].class_id, cuda[i].class_id) << i;
    EXPECT_NEAR(cpu[i].score, cuda[i].score, kScore) << i;
    EXPECT_NEAR(cpu[i].box.left, cuda[i].box.left, kPixels) << i;
    EXPECT_NEAR(cpu[i].box.top, cuda[i].box.top, kPixels) << i;
    EXPECT_NEAR(cpu[i].box.width, cuda[i].box.width, kPixels) << i;
    EXPECT_NEAR(cpu[i].box.height, cuda[i].box.height, kPixels) << i;
  }
  ASSERT_EQ(results["cpu"].classes.size(), results["cuda"].classes.size());
  for (std::size_t i = 0; i < results["cpu"].classes.size(); ++i) {
    EXPECT_EQ(results["cpu"].classes[i].class_id, results["cuda"].classes[i].class_id);
    EXPECT_NEAR(results["cpu"].classes[i].score, results["cuda"].classes[i].score, kScore);
  }
  EXPECT_FALSE(cpu.empty() && results["cpu"].classes.empty()) << "nothing was compared";
}

INSTANTIATE_TEST_SUITE_P(All, ModelOnDevices,
                         ::testing::Values(ModelPicture{"digits", ""}, ModelPicture{"darknet-tiny-imagenet", "dog.jpg"},
                                           ModelPicture{"face-tiny-region", "astronaut.png"},
                                           ModelPicture{"mobilenetv2-yolo-fastest-voc", "dog.jpg"},
                                           ModelPicture{"mobilenetv2-yolov3-nano-coco", "dog.jpg"},
                                           ModelPicture{"yolo-fastest-1.1-body", "person.jpg"},
                                           ModelPicture{"yolo-fastest-1.1-coco", "dog.jpg"},
                                           ModelPicture{"yolo-fastest-1.1-xl-coco", "dog.jpg"}),
                         [](const ::testing::TestParamInfo<ModelPicture>& entry) {
                           std::string name = entry.param.model;
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return c == '-' || c == '.'; }, '_');
                           return name;
                         });

TEST_F(Devices, AFullCacheGivesTheSameBytes) {
  build("digits", "cuda");
  pipeline::BuildRequest frozen = request("digits", "cuda");
  frozen.frozen = true;
  const BuiltEngine first = pipeline::build_engine(library_, frozen, nullptr).value();
  for (int i = 0; i < 2; ++i) {
    const BuiltEngine again = pipeline::build_engine(library_, frozen, nullptr).value();
    ASSERT_EQ(first.size(), again.size());
    EXPECT_EQ(std::memcmp(first.data(), again.data(), first.size()), 0);
  }
}

TEST_F(Devices, ContextsOnFourThreadsAndTheCpuBesideThemAgree) {
  const BuiltEngine on_gpu = build("digits", "cuda"), on_cpu = build("digits", "cpu");
  const Engine gpu = load(on_gpu, "cuda"), cpu = load(on_cpu, "cpu");
  std::vector<std::map<std::string, pipeline::NpyArray>> outputs(5);
  std::vector<std::string> failures(outputs.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    threads.emplace_back([&, i] {
      pipeline::Runner runner = pipeline::Runner::create(i == 4 ? cpu : gpu).value();
      for (int run = 0; run < 20; ++run) {
        const auto result = runner.run_image(scene(), nullptr);
        if (!result.ok()) failures[i] = result.status().message();
      }
      outputs[i] = runner.outputs().value();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    ASSERT_EQ(failures[i], "") << "thread " << i;
    for (const auto& [name, array] : outputs[0]) {
      if (i < 4) {
        EXPECT_EQ(array.bytes, outputs[i].at(name).bytes) << "thread " << i << ", " << name;
      } else {
        EXPECT_LT(distance(array, outputs[i].at(name)), kRelL2) << name;
      }
    }
  }
}

TEST_F(Devices, DeviceMemoryStridesAndTheGraphGiveTheSameValues) {
  const Engine engine = load(build("digits", "cuda"), "cuda");
  const TensorInfo input = engine.inputs()[0], output = engine.outputs()[0];
  std::size_t count = 1, results = 1;
  for (const std::int64_t size : input.dims) count *= static_cast<std::size_t>(size);
  for (const std::int64_t size : output.dims) results *= static_cast<std::size_t>(size);
  std::vector<float> x(count), by_host(results), by_device(results), layer_by_layer(results);
  for (std::size_t i = 0; i < count; ++i) x[i] = static_cast<float>(i % 251) / 251;

  ExecutionContext host = ExecutionContext::create(engine).value();
  ASSERT_TRUE(host.set_tensor(input.name, x.data()).ok());
  ASSERT_TRUE(host.set_tensor(output.name, by_host.data()).ok());
  ASSERT_TRUE(host.execute().ok());

  // On the device, and the input with its columns two apart.
  ExecutionContext device = ExecutionContext::create(engine).value();
  std::vector<float> wide(2 * count);
  for (std::size_t i = 0; i < count; ++i) wide[2 * i] = x[i];
  const auto x_memory = engine.allocate(wide.size() * sizeof(float)).value();
  const auto y_memory = engine.allocate(results * sizeof(float)).value();
  ASSERT_TRUE(engine.upload(x_memory.get(), wide.data(), wide.size() * sizeof(float)).ok());
  std::vector<std::int64_t> strides(input.dims.size(), 2);
  for (std::size_t axis = strides.size() - 1; axis-- > 0;) strides[axis] = strides[axis + 1] * input.dims[axis + 1];
  ASSERT_TRUE(device.set_tensor(input.name, x_memory.get(), strides.data()).ok());
  ASSERT_TRUE(device.set_tensor(output.name, y_memory.get()).ok());
  ASSERT_TRUE(device.execute().ok());
  ASSERT_TRUE(engine.download(by_device.data(), y_memory.get(), results * sizeof(float)).ok());
  EXPECT_EQ(by_device, by_host);

  ASSERT_TRUE(device.use_graph(false).ok());
  ASSERT_TRUE(device.execute().ok());
  ASSERT_TRUE(engine.download(layer_by_layer.data(), y_memory.get(), results * sizeof(float)).ok());
  EXPECT_EQ(layer_by_layer, by_host);

  // Another address after the graph was recorded.
  const auto other = engine.allocate(results * sizeof(float)).value();
  ASSERT_TRUE(host.set_tensor(output.name, other.get()).ok());
  ASSERT_TRUE(host.execute().ok());
  ASSERT_TRUE(engine.download(by_device.data(), other.get(), results * sizeof(float)).ok());
  EXPECT_EQ(by_device, by_host);

  // An input on the host may change as soon as enqueue returns, though the run before is still under way.
  std::vector<float> noise(count, 0.5f), values = noise;
  ASSERT_TRUE(host.set_tensor(input.name, values.data()).ok());
  for (int run = 0; run < 50; ++run) {
    values = run % 2 == 0 ? noise : x;
    ASSERT_TRUE(host.enqueue().ok());
  }
  ASSERT_TRUE(host.execute().ok());
  ASSERT_TRUE(engine.download(by_device.data(), other.get(), results * sizeof(float)).ok());
  EXPECT_EQ(by_device, by_host);
  ExecutionContext bare = ExecutionContext::create(engine, false).value();
  EXPECT_FALSE(bare.set_scratch(x.data(), engine.scratch_bytes()).ok()) << "scratch on the host";
}

TEST_F(Devices, ASecondGpuBesideTheFirstGivesTheSameValues) {
  const std::string reason = why_not(library_, "cuda:1");
  if (!reason.empty()) GTEST_SKIP() << reason;
  const BuiltEngine first = build("digits", "cuda:0"), second = build("digits", "cuda:1");
  pipeline::Runner on_first = pipeline::Runner::create(load(first, "cuda:0")).value();
  pipeline::Runner on_second = pipeline::Runner::create(load(second, "cuda:1")).value();
  std::string failure;
  std::thread other([&] {
    for (int run = 0; run < 20; ++run) {
      const auto result = on_second.run_image(scene(), nullptr);
      if (!result.ok()) failure = result.status().message();
    }
  });
  for (int run = 0; run < 20; ++run) EXPECT_TRUE(on_first.run_image(scene(), nullptr).ok());
  other.join();
  ASSERT_EQ(failure, "");
  const auto expected = on_first.outputs().value(), found = on_second.outputs().value();
  ASSERT_FALSE(expected.empty());
  for (const auto& [name, array] : found) {
    EXPECT_LT(distance(expected.at(name), array), kRelL2) << name;
  }
}

TEST_F(Devices, AKernelThatBreaksTheGpuIsQuarantinedByNameInTheNextProcess) {
  const std::string cache = dir_->path() / "broken.yaml";
  const std::vector<std::string> command = {program("tenon"),
                                            "build",
                                            (tenon::testing::source_dir() / "configs/digits.yaml").string(),
                                            "--device",
                                            "cuda",
                                            "--plugin",
                                            (build_dir() / "tests/plugins/breaks_gpu.tnp.so").string(),
                                            "--timing-cache",
                                            cache,
                                            "--output",
                                            (dir_->path() / "broken.tenon").string()};
  const Outcome broken = run_program(command);
  EXPECT_EQ(broken.status, 1) << broken.out << broken.err;
  for (const char* part : {"layer", "acme.max_pool.broken.f32.cuda", "illegal memory access", "quarantined"}) {
    EXPECT_NE(broken.err.find(part), std::string::npos) << part << ": " << broken.err;
  }
  EXPECT_FALSE(fs::exists(dir_->path() / "broken.tenon"));
  const Outcome next = run_program(command);
  EXPECT_EQ(next.status, 0) << next.out << next.err;
  EXPECT_TRUE(fs::exists(dir_->path() / "broken.tenon"));
  EXPECT_NE(read_text(cache).find("quarantined"), std::string::npos);
}

TEST_F(Devices, AHundredRoundsUseNoMoreMemoryThanTen) {
  build("digits", "cuda");
  pipeline::BuildRequest frozen = request("digits", "cuda");
  frozen.frozen = true;
  MemoryUse after_ten;
  for (int round = 1; round <= 100; ++round) {
    const BuiltEngine built = pipeline::build_engine(library_, frozen, nullptr).value();
    pipeline::Runner runner = pipeline::Runner::create(load(built, "cuda")).value();
    ASSERT_TRUE(runner.run_image(scene(), nullptr).ok());
    if (round == 10) after_ten = memory_use();
  }
  const MemoryUse last = memory_use();
  EXPECT_LE(last.device, after_ten.device + (1 << 20));
  EXPECT_LE(last.host, after_ten.host * 1.02);
}

}  // namespace
}  // namespace tenon::e2e
