// Other people's plugins: a kernel that is added to a full timing cache, one that is fast and wrong, one that crashes,
// and engines whose plugins are not there.
#include <dlfcn.h>

#include <csignal>
#include <cstring>
#include <optional>
#include <set>
#include <tenon/tenon.hpp>

#include "tests/e2e/e2e_testing.h"

namespace tenon::e2e {
namespace {

constexpr int kSize = 4;  // small enough that plain loops may win

std::string ours(const char* plugin) {
  return (build_dir() / "lib/tenon/plugins" / (std::string(plugin) + ".tnp.so")).string();
}

struct Logged {
  std::string text;
  std::optional<Library> library;
};

/// A library with all of our plugins and those named.
std::unique_ptr<Logged> open(const std::vector<std::string>& plugins) {
  auto logged = std::make_unique<Logged>();
  LibraryOptions options;
  options.log_threshold = TN_LOG_VERBOSE;
  options.log = [raw = logged.get()](int, const std::string& message) { raw->text += message + "\n"; };
  logged->library = Library::create(options).value();
  EXPECT_TRUE(logged->library->discover().ok());
  for (const std::string& plugin : plugins) {
    const Status loaded = logged->library->load_plugin(plugin);
    EXPECT_TRUE(loaded.ok()) << loaded.message();
  }
  return logged;
}

std::vector<float> numbers(int first) {
  std::vector<float> values(kSize * kSize);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>((first + static_cast<int>(i) * 7) % 5) - 2;
  return values;
}

Network product(const Library& library) {
  Network network = Network::create(library).value();
  const auto x = network.add_input("x", {kSize, kSize}).value();
  const auto w = network.add_constant("w", {kSize, kSize}, numbers(3)).value();
  const auto y = network.add_layer("tenon.matmul/1", "product", {x, w}).value();
  EXPECT_TRUE(network.rename(y, "y").ok());
  EXPECT_TRUE(network.mark_output(y).ok());
  return network;
}

Result<BuilderConfig> config_for(const TimingCache& cache, const std::string& file) {
  TENON_ASSIGN(BuilderConfig config, BuilderConfig::create());
  TENON_RETURN_IF_ERROR(config.set("device", "cpu"));
  TENON_RETURN_IF_ERROR(config.set("journal", file + ".journal"));
  TENON_RETURN_IF_ERROR(config.set_cache(cache));
  return config;
}

struct Built {
  json report;
  std::string bytes;
};

/// Builds the product with the timing cache of a file, which is saved.
Result<Built> build(const Library& library, const std::string& file) {
  TENON_ASSIGN(TimingCache cache, TimingCache::load(library, file));
  TENON_ASSIGN(const BuilderConfig config, config_for(cache, file));
  TENON_ASSIGN(const BuiltEngine built, Builder(library).build(product(library), config));
  TENON_RETURN_IF_ERROR(cache.save(file));
  return Built{json::parse(built.report()), built.bytes()};
}

json explain(const Library& library, const std::string& file) {
  const TimingCache cache = TimingCache::load(library, file).value();
  const BuilderConfig config = config_for(cache, file).value();
  return parse_json(Builder(library).explain(product(library), config, "product").value())["candidates"];
}

json measurements(const Library& library, const std::string& file) {
  return parse_json(TimingCache::load(library, file).value().describe().value())["measured"];
}

void expect_correct(const Library& library, const std::string& bytes) {
  const Engine engine = Runtime(library, "cpu").create(bytes.data(), bytes.size()).value();
  ExecutionContext context = ExecutionContext::create(engine).value();
  std::vector<float> x = numbers(1), w = numbers(3), y(kSize * kSize);
  ASSERT_TRUE(context.set_tensor("x", x.data()).ok());
  ASSERT_TRUE(context.set_tensor("y", y.data()).ok());
  ASSERT_TRUE(context.execute().ok());
  for (int m = 0; m < kSize; ++m) {
    for (int n = 0; n < kSize; ++n) {
      float sum = 0;
      for (int k = 0; k < kSize; ++k) sum += x[m * kSize + k] * w[k * kSize + n];
      EXPECT_EQ(y[m * kSize + n], sum);  // small integers: exact in any order
    }
  }
}

class Plugins : public ::testing::Test {
 protected:
  void SetUp() override {
    file_ = dir_.path() / "cache.yaml";
    const auto before = open({});
    const auto built = build(*before->library, file_);
    ASSERT_TRUE(built.ok()) << built.status().message();
    for (const json& m : measurements(*before->library, file_)) known_.insert(m["kernel"]);
    ASSERT_FALSE(known_.empty());
  }

  TempDir dir_;
  std::string file_;
  std::set<std::string> known_;
};

TEST_F(Plugins, ANewKernelIsTheOnlyOneMeasuredAndWinsIfFaster) {
  const auto logged = open({matmul_plugin("plain")});
  const auto built = build(*logged->library, file_);
  ASSERT_TRUE(built.ok()) << built.status().message();
  EXPECT_EQ(built->report["cache"]["measured"], 1) << logged->text;

  double fastest = 1e9, acme = -1;
  std::string chosen;
  std::set<std::string> seen;
  for (const json& c : explain(*logged->library, file_)) {
    const std::string kernel = c["kernel"], status = c["status"];
    seen.insert(kernel);
    if (status == "chosen") chosen = kernel;
    if (status != "chosen" && status != "measured") {
      EXPECT_FALSE(c["reason"].get<std::string>().empty()) << kernel << " is " << status << " without a reason";
      continue;
    }
    const double ms = c["ms"];
    if (kernel == "acme.matmul.plain.f32") {
      acme = ms;
    } else {
      fastest = std::min(fastest, ms);
    }
  }
  EXPECT_TRUE(seen.count("acme.matmul.plain.f32"));
  for (const std::string& kernel : known_) EXPECT_TRUE(seen.count(kernel)) << kernel;
  EXPECT_GT(acme, 0);
  EXPECT_EQ(chosen == "acme.matmul.plain.f32", acme < fastest) << acme << " against " << fastest;
  EXPECT_EQ(built->report["layers"][0]["kernel"], chosen);
  expect_correct(*logged->library, built->bytes);

  const auto again = build(*logged->library, file_);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->report["cache"]["measured"], 0);
}

// Some kernels take longer to list their tactics than all the rest of a build from a full cache.
TEST_F(Plugins, AKernelInAFullCacheIsNotAskedForItsTacticsAgain) {
  const auto logged = open({matmul_plugin("plain")});
  void* const handle = dlopen(matmul_plugin("plain").c_str(), RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(handle, nullptr) << dlerror();
  const auto listings = reinterpret_cast<int (*)()>(dlsym(handle, "acme_listings"));
  ASSERT_NE(listings, nullptr);
  ASSERT_TRUE(build(*logged->library, file_).ok());
  const int asked = listings();
  EXPECT_GT(asked, 0);
  const auto again = build(*logged->library, file_);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(listings(), asked);
  EXPECT_EQ(again->report["cache"]["measured"], 0);
  bool seen = false;
  for (const json& c : explain(*logged->library, file_)) seen |= c["kernel"] == "acme.matmul.plain.f32";
  EXPECT_TRUE(seen);
  EXPECT_EQ(listings(), asked);

  // Another library file may list others.
  std::string text = read_text(file_);
  for (std::size_t at = 0; (at = text.find("build: \"0x", at)) != std::string::npos;) {
    at += 10;
    text.replace(at, 32, std::string(32, '0'));
  }
  write_text(file_, text);
  const auto rebuilt = build(*logged->library, file_);
  ASSERT_TRUE(rebuilt.ok()) << rebuilt.status().message();
  EXPECT_GT(listings(), asked);
  EXPECT_EQ(rebuilt->report["cache"]["measured"], 0) << "times hold until the revision changes";
  EXPECT_EQ(rebuilt->bytes, again->bytes);
  dlclose(handle);
}

TEST_F(Plugins, AFasterKernelWins) {
  // The recorded times of all others are made a million times worse in the file, so that the new one is the fastest.
  std::string text = read_text(file_);
  for (std::size_t at = 0; (at = text.find(", ms: ", at)) != std::string::npos;) {
    at += 6;
    text.replace(at, text.find_first_of(",}", at) - at, "1000");
  }
  write_text(file_, text);
  const auto logged = open({matmul_plugin("plain")});
  const auto built = build(*logged->library, file_);
  ASSERT_TRUE(built.ok()) << built.status().message();
  EXPECT_EQ(built->report["cache"]["measured"], 1);
  EXPECT_EQ(built->report["layers"][0]["kernel"], "acme.matmul.plain.f32");
  expect_correct(*logged->library, built->bytes);
}

TEST_F(Plugins, AFastWrongKernelIsRejectedByName) {
  const auto logged = open({matmul_plugin("wrong")});
  const auto built = build(*logged->library, file_);
  ASSERT_TRUE(built.ok()) << built.status().message();
  const json& rejected = built->report["cache"]["rejected"];
  ASSERT_EQ(rejected.size(), 1u) << built->report["cache"];
  EXPECT_NE(rejected[0].get<std::string>().find("acme.matmul.wrong.f32"), std::string::npos) << rejected[0];
  EXPECT_NE(rejected[0].get<std::string>().find("product"), std::string::npos) << rejected[0];
  EXPECT_NE(built->report["layers"][0]["kernel"], "acme.matmul.wrong.f32");
  EXPECT_NE(logged->text.find("acme.matmul.wrong.f32"), std::string::npos) << logged->text;
  expect_correct(*logged->library, built->bytes);
  int seen = 0;
  for (const json& c : explain(*logged->library, file_)) {
    if (c["kernel"] != "acme.matmul.wrong.f32") continue;
    ++seen;
    EXPECT_EQ(c["status"], "rejected");
    EXPECT_FALSE(c["reason"].get<std::string>().empty());
  }
  EXPECT_EQ(seen, 1);
  // It is not tried again.
  const auto again = build(*logged->library, file_);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->report["cache"]["measured"], 0);
}

/// Not a test: what the next one runs in a process of its own.
TEST(PluginsChild, DISABLED_Build) {
  const char* file = std::getenv("TENON_E2E_CACHE");
  ASSERT_NE(file, nullptr);
  const auto logged = open({matmul_plugin("crash")});
  const auto built = build(*logged->library, file);
  EXPECT_TRUE(built.ok()) << built.status().message();
}

TEST_F(Plugins, ACrashingKernelIsQuarantinedInTheNextBuild) {
  setenv("TENON_E2E_CACHE", file_.c_str(), 1);
  const Outcome crashed =
      run_program({fs::read_symlink("/proc/self/exe").string(), "--gtest_filter=PluginsChild.DISABLED_Build",
                   "--gtest_also_run_disabled_tests"});
  ASSERT_EQ(crashed.status, 1000 + SIGABRT) << crashed.out << crashed.err;

  const auto logged = open({matmul_plugin("crash")});
  const auto built = build(*logged->library, file_);
  ASSERT_TRUE(built.ok()) << built.status().message();
  EXPECT_EQ(built->report["cache"]["measured"], 0);
  EXPECT_NE(built->report["layers"][0]["kernel"], "acme.matmul.crash.f32");
  EXPECT_NE(logged->text.find("acme.matmul.crash.f32"), std::string::npos) << logged->text;
  EXPECT_NE(logged->text.find("quarantine"), std::string::npos) << logged->text;
  expect_correct(*logged->library, built->bytes);
  int seen = 0;
  for (const json& m : measurements(*logged->library, file_)) {
    if (m["kernel"] != "acme.matmul.crash.f32") continue;
    ++seen;
    EXPECT_EQ(m["kind"], "quarantined");
  }
  EXPECT_EQ(seen, 1);
  for (const json& c : explain(*logged->library, file_)) {
    if (c["kernel"] != "acme.matmul.crash.f32") continue;
    EXPECT_EQ(c["status"], "rejected") << c;
  }
}

// An engine said only which plugin it missed first, and loading that one led to the next error.
TEST(EngineWithoutItsPlugins, OneErrorListsAllOfThem) {
  const TempDir dir;
  const std::string file = dir.path() / "abc.tenon";
  const char* const needed[] = {"matmul", "softmax", "activation"};
  {
    Library library = Library::create().value();
    for (const char* plugin : needed) ASSERT_TRUE(library.load_plugin(ours(plugin)).ok()) << plugin;
    Network network = Network::create(library).value();
    const auto x = network.add_input("x", {kSize, kSize}).value();
    const auto w = network.add_constant("w", {kSize, kSize}, numbers(3)).value();
    const auto product = network.add_layer("tenon.matmul/1", "product", {x, w}).value();
    const auto rows = network.add_layer("tenon.softmax/1", "rows", {product}, R"({"axis": 1})").value();
    const auto y = network.add_layer("tenon.relu/1", "relu", {rows});
    ASSERT_TRUE(y.ok()) << y.status().message();
    ASSERT_TRUE(network.mark_output(*y).ok());
    BuilderConfig config = BuilderConfig::create().value();
    const auto built = Builder(library).build(network, config);
    ASSERT_TRUE(built.ok()) << built.status().message();
    dir.write("abc.tenon", built->bytes());
  }
  const auto inspect = [&] {
    TnText* text = nullptr;
    ASSERT_EQ(tn_inspect_file(file.c_str(), "json", &text), TN_OK) << tn_last_error();
    const json layers = parse_json(tenon::detail::take(text));
    EXPECT_GE(layers.size(), 2u);
  };
  inspect();
  Library library = Library::create().value();
  const Runtime runtime(library, "cpu");
  const auto message_with = [&](std::set<std::string> loaded) {
    const auto engine = runtime.load(file);
    EXPECT_FALSE(engine.ok());
    const std::string message = engine.status().message();
    for (const char* plugin : needed) {
      const std::string id = std::string("tenon.") + plugin;
      const bool listed = message.find(id) != std::string::npos;
      EXPECT_EQ(listed, loaded.count(plugin) == 0) << id << ": " << message;
      if (!listed) continue;
      EXPECT_NE(message.find(id + " version 1"), std::string::npos) << message;
      EXPECT_NE(message.find(std::string(plugin) + ".tnp.so"), std::string::npos) << message;
      EXPECT_NE(message.find("0x"), std::string::npos) << message;
    }
    inspect();
  };
  message_with({});
  ASSERT_TRUE(library.load_plugin(ours("softmax")).ok());
  message_with({"softmax"});
  ASSERT_TRUE(library.load_plugin(ours("matmul")).ok());
  ASSERT_TRUE(library.load_plugin(ours("activation")).ok());
  const auto engine = runtime.load(file);
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  EXPECT_TRUE(ExecutionContext::create(*engine).ok());
  inspect();
}

}  // namespace
}  // namespace tenon::e2e
