// The C API as a program in C uses it: handles in any order of release, the caller's memory, errors, strides, two
// threads, and NULL for everything. Ops come from a plugin that is linked in.
#include <gtest/gtest.h>

#include <tenon/c/tenon.h>
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <tenon/sdk/plugin.hpp>
#include <thread>
#include <vector>

namespace {

// --- test.twice/1: y = 2 x, by a kernel that needs workspace, and that waits or fails if a test wants it ---

std::atomic<bool> entered{false}, wait_inside{false}, fail_inside{false};

class Twice final : public tenon::IPlugin {
 public:
  tenon::Sizes sizes() const override {
    tenon::Sizes sizes;
    sizes.workspace = 4096;
    sizes.persistent = 512;
    return sizes;
  }
  void initialize(const tenon::Init& init) override { packed_ = init.persistent<float>(), packed_[0] = 2; }
  void enqueue(const tenon::Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    if (fail_inside) throw tenon::Invalid("the moon is full");
    entered = true;
    while (wait_inside) std::this_thread::yield();
    const int64_t count = tenon::Tensor(inputs[0]).elements();
    float* scratch = exec.workspace<float>();
    for (int64_t i = 0; i < count; ++i) scratch[i] = packed_[0] * static_cast<const float*>(inputs[0].data)[i];
    std::copy_n(scratch, count, static_cast<float*>(outputs[0].data));
  }

 private:
  float* packed_ = nullptr;
};

TENON_LINKED_PLUGIN(twice_plugin, "test.twice", "1", "Apache-2.0",
                    tenon::op("test.twice/1")
                        .doc("y = 2 x")
                        .input("x", "any shape")
                        .output("y", "as x")
                        .infer([](const tenon::Infer& question) {
                          question.output(0, question.input(0).dtype(), question.input(0).dims());
                        })
                        .reference([](const tenon::Reference& call) {
                          const float* x = call.input(0).data<float>();
                          call.fill<float>(0, [&](const int64_t*, int64_t linear) { return 2 * x[linear]; });
                        }),
                    tenon::kernel<Twice>("test.twice/1", "test.twice.plain.f32")
                        .combo({tenon::f32_row()}, {tenon::f32_row()})
                        .tactics([](const tenon::Site&, const tenon::Combo&, tenon::Tactics& tactics) {
                          tactics.add("", 4096);
                        })
                        .deterministic())

// --- what a caller gives ---

struct Errors {
  std::mutex mutex;
  std::vector<std::string> list;
  static void add(void* self, TnStatus, const char* message) {
    auto& errors = *static_cast<Errors*>(self);
    const std::lock_guard lock(errors.mutex);
    errors.list.emplace_back(message);
  }
  std::size_t count() {
    const std::lock_guard lock(mutex);
    return list.size();
  }
};

struct Memory {
  std::mutex mutex;
  std::map<char*, std::size_t> live;
  std::size_t calls = 0;
  bool refuse = false;
  static void* allocate(void* self, std::size_t bytes, std::size_t alignment) {
    auto& memory = *static_cast<Memory*>(self);
    const std::lock_guard lock(memory.mutex);
    if (memory.refuse) return nullptr;
    const std::size_t size = (bytes + alignment - 1) / alignment * alignment;
    auto* data = static_cast<char*>(std::aligned_alloc(alignment, size));
    ++memory.calls;
    memory.live[data] = size;
    return data;
  }
  static void free(void* self, void* data) {
    auto& memory = *static_cast<Memory*>(self);
    const std::lock_guard lock(memory.mutex);
    EXPECT_EQ(memory.live.erase(static_cast<char*>(data)), 1u);
    std::free(data);
  }
};

TnLibraryOptions options_with(Errors* errors, Memory* memory) {
  TnLibraryOptions options{};
  options.struct_size = sizeof(options);
  if (errors != nullptr) options.record_error = Errors::add, options.error_context = errors;
  if (memory != nullptr) {
    options.allocate = Memory::allocate, options.free = Memory::free, options.allocator_context = memory;
  }
  return options;
}

constexpr std::int64_t kRows = 2, kColumns = 3;

TnDims shape() {
  TnDims dims{};
  dims.rank = 2;
  dims.d[0] = kRows, dims.d[1] = kColumns;
  return dims;
}

#define ASSERT_OK(call) ASSERT_EQ(call, TN_OK) << tn_last_error()

/// x [2,3] -> first -> second -> y = 4 x, built, loaded and with a context.
class Api : public ::testing::Test {
 protected:
  enum Handle { kLibrary, kNetwork, kConfig, kCache, kBuild, kEngine, kContext, kNumHandles };

  void SetUp() override { entered = wait_inside = fail_inside = false; }
  void TearDown() override {
    for (int handle = 0; handle < kNumHandles; ++handle) release(handle);
  }

  void make_network(const TnLibraryOptions* options) {
    ASSERT_OK(tn_library_create(options, &library_));
    ASSERT_OK(tn_library_add_plugin(library_, twice_plugin()));
    ASSERT_OK(tn_network_create(library_, &network_));
    const TnDims dims = shape();
    TnTensorId x = 0, middle = 0, y = 0;
    ASSERT_OK(tn_network_add_input(network_, "x", TN_F32, &dims, &x));
    ASSERT_OK(tn_network_add_layer(network_, "test.twice/1", "first", nullptr, &x, 1, &middle, 1));
    ASSERT_OK(tn_network_add_layer(network_, "test.twice/1", "second", nullptr, &middle, 1, &y, 1));
    ASSERT_OK(tn_network_rename(network_, y, "y"));
    ASSERT_OK(tn_network_mark_output(network_, y));
    ASSERT_OK(tn_config_create(&config_));
    ASSERT_OK(tn_config_set(config_, "threads", "1"));
    ASSERT_OK(tn_cache_create(library_, "cpu", 1, nullptr, 0, &cache_));
    ASSERT_OK(tn_config_set_cache(config_, cache_));
  }
  void make(const TnLibraryOptions* options) {
    ASSERT_NO_FATAL_FAILURE(make_network(options));
    ASSERT_OK(tn_build(library_, network_, config_, &build_));
    ASSERT_OK(
        tn_engine_create(library_, tn_build_engine_data(build_), tn_build_engine_size(build_), "cpu", 1, &engine_));
    ASSERT_OK(tn_context_create(engine_, 1, &context_));
    entered = false;  // the build ran the kernel
  }
  /// Releases a handle that is still held.
  void release(int handle) {
    if (handle == kLibrary) tn_library_release(library_), library_ = nullptr;
    if (handle == kNetwork) tn_network_release(network_), network_ = nullptr;
    if (handle == kConfig) tn_config_release(config_), config_ = nullptr;
    if (handle == kCache) tn_cache_release(cache_), cache_ = nullptr;
    if (handle == kBuild) tn_build_release(build_), build_ = nullptr;
    if (handle == kEngine) tn_engine_release(engine_), engine_ = nullptr;
    if (handle == kContext) tn_context_release(context_), context_ = nullptr;
  }
  void bind(TnContext* context) {
    ASSERT_OK(tn_context_set_tensor(context, "x", x_.data(), nullptr));
    ASSERT_OK(tn_context_set_tensor(context, "y", y_.data(), nullptr));
  }
  /// What still lives works, whatever was released before.
  void use_what_is_left() {
    TnText* text = nullptr;
    if (library_ != nullptr) {
      ASSERT_OK(tn_library_describe(library_, &text));
      EXPECT_NE(std::string(tn_text_data(text)).find("test.twice"), std::string::npos);
      tn_text_release(text);
    }
    if (network_ != nullptr) {
      ASSERT_OK(tn_network_dump(network_, &text));
      EXPECT_NE(std::string(tn_text_data(text)).find("second"), std::string::npos);
      tn_text_release(text);
    }
    if (config_ != nullptr) {
      ASSERT_OK(tn_config_set(config_, "verbosity", "none"));
    }
    if (cache_ != nullptr) {
      EXPECT_EQ(tn_cache_query_keys(cache_, nullptr, 0), 1u);  // equal layers share a record
    }
    if (build_ != nullptr) {
      EXPECT_NE(std::string(tn_build_report(build_)).find("\"layers\""), std::string::npos);
    }
    if (library_ != nullptr && network_ != nullptr && config_ != nullptr) {
      TnBuildResult* again = nullptr;
      ASSERT_OK(tn_build(library_, network_, config_, &again));
      tn_build_release(again);
    }
    if (engine_ != nullptr) {
      EXPECT_EQ(tn_engine_num_layers(engine_), 2u);
      TnContext* other = nullptr;
      ASSERT_OK(tn_context_create(engine_, 1, &other));
      ASSERT_NO_FATAL_FAILURE(bind(other));
      EXPECT_EQ(tn_context_execute(other), TN_OK) << tn_last_error();
      tn_context_release(other);
    }
    if (context_ != nullptr) {
      y_.assign(y_.size(), -1);
      ASSERT_NO_FATAL_FAILURE(bind(context_));
      ASSERT_OK(tn_context_execute(context_));
      EXPECT_EQ(y_, (std::vector<float>{0, 4, 8, 12, 16, 20}));
    }
  }

  TnLibrary* library_ = nullptr;
  TnNetwork* network_ = nullptr;
  TnBuilderConfig* config_ = nullptr;
  TnTimingCache* cache_ = nullptr;
  TnBuildResult* build_ = nullptr;
  TnEngine* engine_ = nullptr;
  TnContext* context_ = nullptr;
  std::vector<float> x_ = {0, 1, 2, 3, 4, 5}, y_ = std::vector<float>(6, -1);
};

TEST_F(Api, HandlesMayBeReleasedInAnyOrder) {
  // Each handle once as the first, once as the last and once in every place between.
  for (int first = 0; first < kNumHandles; ++first) {
    for (const int direction : {1, kNumHandles - 1}) {
      SCOPED_TRACE("from handle " + std::to_string(first) + " in steps of " + std::to_string(direction));
      Memory memory;
      const TnLibraryOptions options = options_with(nullptr, &memory);
      ASSERT_NO_FATAL_FAILURE(make(&options));
      for (int n = 0; n < kNumHandles; ++n) {
        release((first + n * direction) % kNumHandles);
        ASSERT_NO_FATAL_FAILURE(use_what_is_left());
      }
      EXPECT_TRUE(memory.live.empty());
    }
  }
}

TEST_F(Api, DeviceMemoryComesFromTheCallersAllocator) {
  Memory memory;
  Errors errors;
  const TnLibraryOptions options = options_with(&errors, &memory);
  ASSERT_NO_FATAL_FAILURE(make_network(&options));
  EXPECT_EQ(memory.calls, 0u);
  ASSERT_OK(tn_build(library_, network_, config_, &build_));
  EXPECT_GT(memory.calls, 0u) << "a build measures with it";
  EXPECT_TRUE(memory.live.empty()) << "and gives it back";
  ASSERT_OK(tn_engine_create(library_, tn_build_engine_data(build_), tn_build_engine_size(build_), "cpu", 1, &engine_));
  const auto held = [&] {
    std::size_t bytes = 0;
    for (const auto& [data, size] : memory.live) bytes += size;
    return bytes;
  };
  EXPECT_GE(held(), 512u) << "persistent memory of the kernels";
  const std::size_t by_engine = held();
  ASSERT_OK(tn_context_create(engine_, 1, &context_));
  EXPECT_GE(held(), by_engine + tn_engine_scratch_bytes(engine_));
  EXPECT_GE(tn_engine_scratch_bytes(engine_), 4096u);
  ASSERT_NO_FATAL_FAILURE(bind(context_));
  const std::size_t calls = memory.calls;
  ASSERT_OK(tn_context_execute(context_));
  EXPECT_EQ(memory.calls, calls) << "running allocates nothing";
  release(kContext);
  EXPECT_EQ(held(), by_engine);
  // Without memory creation fails, and leaves nothing.
  memory.refuse = true;
  EXPECT_EQ(tn_context_create(engine_, 1, &context_), TN_NOMEM);
  EXPECT_EQ(held(), by_engine);
  TnEngine* none = nullptr;
  EXPECT_EQ(tn_engine_create(library_, tn_build_engine_data(build_), tn_build_engine_size(build_), "cpu", 1, &none),
            TN_NOMEM);
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(held(), by_engine);
  TnBuildResult* no_build = nullptr;
  tn_cache_reset(cache_);
  // The kernel and then the plain reference got none, and the build went on with neither.
  EXPECT_EQ(tn_build(library_, network_, config_, &no_build), TN_NOTFOUND);
  for (const char* word : {"layer first", "test.twice.plain.f32", "test.twice.reference", "could not allocate"}) {
    EXPECT_NE(std::string(tn_last_error()).find(word), std::string::npos) << tn_last_error();
  }
  EXPECT_EQ(held(), by_engine);
  release(kEngine);
  EXPECT_TRUE(memory.live.empty());
}

TEST_F(Api, ScratchMayBeTheCallers) {
  ASSERT_NO_FATAL_FAILURE(make(nullptr));
  release(kContext);
  ASSERT_OK(tn_context_create(engine_, 0, &context_));
  ASSERT_NO_FATAL_FAILURE(bind(context_));
  EXPECT_EQ(tn_context_execute(context_), TN_INVALID);
  EXPECT_NE(std::string(tn_last_error()).find("set_scratch"), std::string::npos) << tn_last_error();
  const std::uint64_t bytes = (tn_engine_scratch_bytes(engine_) + 255) / 256 * 256;
  void* memory = std::aligned_alloc(256, bytes);
  EXPECT_EQ(tn_context_set_scratch(context_, memory, 1), TN_INVALID);
  ASSERT_OK(tn_context_set_scratch(context_, memory, bytes));
  ASSERT_OK(tn_context_execute(context_));
  EXPECT_EQ(y_[5], 20);
  release(kContext);
  std::free(memory);
}

TEST_F(Api, ErrorsOfAContextGoToItsRecorderOnly) {
  Errors library, own;
  const TnLibraryOptions options = options_with(&library, nullptr);
  ASSERT_NO_FATAL_FAILURE(make(&options));
  TnContext* other = nullptr;
  ASSERT_OK(tn_context_create(engine_, 1, &other));
  ASSERT_OK(tn_context_set_recorder(context_, Errors::add, &own));
  ASSERT_NO_FATAL_FAILURE(bind(context_));
  ASSERT_NO_FATAL_FAILURE(bind(other));
  fail_inside = true;
  EXPECT_EQ(tn_context_execute(context_), TN_INVALID);
  ASSERT_EQ(own.count(), 1u);
  for (const char* word : {"the moon is full", "layer 'first'", "test.twice.plain.f32"}) {
    EXPECT_NE(own.list[0].find(word), std::string::npos) << own.list[0];
  }
  EXPECT_EQ(own.list[0], tn_last_error());
  EXPECT_EQ(library.count(), 0u);
  EXPECT_EQ(tn_context_execute(other), TN_INVALID);
  EXPECT_EQ(own.count(), 1u);
  EXPECT_EQ(library.count(), 1u);
  EXPECT_EQ(tn_context_set_tensor(context_, "z", x_.data(), nullptr), TN_NOTFOUND);
  EXPECT_EQ(own.count(), 2u);
  EXPECT_EQ(library.count(), 1u);
  ASSERT_OK(tn_context_set_recorder(context_, nullptr, nullptr));  // back to the library's
  EXPECT_EQ(tn_context_execute(context_), TN_INVALID);
  EXPECT_EQ(own.count(), 2u);
  EXPECT_EQ(library.count(), 2u);
  tn_context_release(other);
}

TEST_F(Api, LastErrorIsOfTheThread) {
  ASSERT_NO_FATAL_FAILURE(make(nullptr));
  EXPECT_EQ(tn_context_set_tensor(context_, "here", x_.data(), nullptr), TN_NOTFOUND);
  std::thread([&] {
    EXPECT_STREQ(tn_last_error(), "");
    TnEngine* none = nullptr;
    EXPECT_EQ(tn_engine_load(library_, "/nonexistent/there.tenon", "cpu", 1, &none), TN_NOTFOUND);
    EXPECT_NE(std::string(tn_last_error()).find("there.tenon"), std::string::npos) << tn_last_error();
  }).join();
  EXPECT_NE(std::string(tn_last_error()).find("'here'"), std::string::npos) << tn_last_error();
}

TEST_F(Api, StridesAreTheCallers) {
  ASSERT_NO_FATAL_FAILURE(make(nullptr));
  // x as columns of three of which two rows are used, y into every second cell of rows of six.
  std::vector<float> columns = {0, 10, 99, 1, 11, 99, 2, 12, 99}, wide(12, -1);
  const std::int64_t x_strides[] = {1, 3}, y_strides[] = {6, 2};
  ASSERT_OK(tn_context_set_tensor(context_, "x", columns.data(), x_strides));
  ASSERT_OK(tn_context_set_tensor(context_, "y", wide.data(), y_strides));
  ASSERT_OK(tn_context_execute(context_));
  EXPECT_EQ(wide, (std::vector<float>{0, -1, 4, -1, 8, -1, 40, -1, 44, -1, 48, -1}));
  const std::int64_t same_row[] = {0, 1};
  ASSERT_OK(tn_context_set_tensor(context_, "x", x_.data(), same_row));
  ASSERT_OK(tn_context_set_tensor(context_, "y", y_.data(), nullptr));
  ASSERT_OK(tn_context_execute(context_));
  EXPECT_EQ(y_, (std::vector<float>{0, 4, 8, 0, 4, 8}));
  EXPECT_EQ(tn_context_set_tensor(context_, "y", y_.data(), same_row), TN_INVALID) << "two elements in one place";
}

TEST_F(Api, ASecondThreadIsToldSo) {
  ASSERT_NO_FATAL_FAILURE(make(nullptr));
  ASSERT_NO_FATAL_FAILURE(bind(context_));
  wait_inside = true;
  std::thread first([&] { EXPECT_EQ(tn_context_execute(context_), TN_OK); });
  while (!entered) std::this_thread::yield();
  TnText* text = nullptr;
  for (const TnStatus status : {tn_context_execute(context_), tn_context_enqueue(context_, nullptr),
                                tn_context_set_tensor(context_, "x", y_.data(), nullptr),
                                tn_context_set_scratch(context_, nullptr, 0), tn_context_profile(context_, &text)}) {
    EXPECT_EQ(status, TN_INVALID);
    EXPECT_NE(std::string(tn_last_error()).find("two threads"), std::string::npos) << tn_last_error();
  }
  EXPECT_EQ(text, nullptr);
  wait_inside = false;
  first.join();
  EXPECT_EQ(y_, (std::vector<float>{0, 4, 8, 12, 16, 20}));
  ASSERT_OK(tn_context_execute(context_));
}

TEST_F(Api, NullIsAnErrorWithAName) {
  ASSERT_NO_FATAL_FAILURE(make(nullptr));
  const TnDims dims = shape();
  TnTensorId id = 0;
  TnText* text = nullptr;
  TnBuildResult* built = nullptr;
  TnEngine* engine = nullptr;
  TnContext* context = nullptr;
  TnReferenceRun* run = nullptr;
  TnTimingCache* cache = nullptr;
  const char* string = nullptr;
  const void* inputs[] = {x_.data()};
  const void* no_input[] = {nullptr};
  const auto is_null = [](TnStatus status, const char* name) {
    EXPECT_EQ(status, TN_INVALID) << name;
    EXPECT_EQ(std::string(tn_last_error()), std::string(name) + " is NULL");
  };
  is_null(tn_library_create(nullptr, nullptr), "out");
  is_null(tn_library_load_plugin(nullptr, "f"), "library");
  is_null(tn_library_load_plugin(library_, nullptr), "path");
  is_null(tn_library_add_plugin(nullptr, twice_plugin()), "library");
  is_null(tn_library_add_plugin(library_, nullptr), "plugin");
  is_null(tn_library_discover(nullptr, nullptr), "library");
  is_null(tn_library_unload_plugin(nullptr, "f"), "library");
  is_null(tn_library_unload_plugin(library_, nullptr), "plugin_id");
  is_null(tn_library_describe(nullptr, &text), "library");
  is_null(tn_library_describe(library_, nullptr), "json");

  is_null(tn_network_create(nullptr, &network_), "library");
  is_null(tn_network_create(library_, nullptr), "out");
  is_null(tn_network_import(nullptr, "f", nullptr, nullptr, nullptr), "network");
  is_null(tn_network_import(network_, nullptr, nullptr, nullptr, nullptr), "path");
  is_null(tn_network_add_input(nullptr, "n", TN_F32, &dims, &id), "network");
  is_null(tn_network_add_input(network_, nullptr, TN_F32, &dims, &id), "name");
  is_null(tn_network_add_input(network_, "n", TN_F32, nullptr, &id), "dims");
  is_null(tn_network_add_input(network_, "n", TN_F32, &dims, nullptr), "out");
  is_null(tn_network_add_constant(nullptr, "n", TN_F32, &dims, x_.data(), 24, &id), "network");
  is_null(tn_network_add_constant(network_, "n", TN_F32, nullptr, x_.data(), 24, &id), "dims");
  is_null(tn_network_add_constant(network_, "n", TN_F32, &dims, x_.data(), 24, nullptr), "out");
  EXPECT_EQ(tn_network_add_constant(network_, "n", TN_F32, &dims, nullptr, 24, &id), TN_INVALID);
  is_null(tn_network_add_layer(nullptr, "test.twice/1", "n", nullptr, &id, 1, &id, 1), "network");
  is_null(tn_network_add_layer(network_, nullptr, "n", nullptr, &id, 1, &id, 1), "op_id");
  is_null(tn_network_add_layer(network_, "test.twice/1", "n", nullptr, nullptr, 1, &id, 1), "inputs");
  is_null(tn_network_add_layer(network_, "test.twice/1", "n", nullptr, &id, 1, nullptr, 1), "outputs");
  is_null(tn_network_mark_output(nullptr, 0), "network");
  is_null(tn_network_mark_output_by_name(nullptr, "x"), "network");
  is_null(tn_network_mark_output_by_name(network_, nullptr), "name");
  is_null(tn_network_set_input_dims(nullptr, "x", &dims), "network");
  is_null(tn_network_set_input_dims(network_, nullptr, &dims), "name");
  is_null(tn_network_set_input_dims(network_, "x", nullptr), "dims");
  is_null(tn_network_rename(nullptr, 0, "n"), "network");
  is_null(tn_network_rename(network_, 0, nullptr), "name");
  is_null(tn_network_describe_tensor(nullptr, 0, nullptr, nullptr, nullptr), "network");
  is_null(tn_network_set_metadata(nullptr, "k", "t"), "network");
  is_null(tn_network_set_metadata(network_, nullptr, "t"), "key");
  is_null(tn_network_set_metadata(network_, "k", nullptr), "text");
  is_null(tn_network_get_metadata(nullptr, "k", &string), "network");
  is_null(tn_network_get_metadata(network_, nullptr, &string), "key");
  is_null(tn_network_get_metadata(network_, "k", nullptr), "text");
  is_null(tn_network_dump(nullptr, &text), "network");
  is_null(tn_network_dump(network_, nullptr), "out");
  is_null(tn_network_describe(nullptr, &text), "network");
  is_null(tn_network_describe(network_, nullptr), "json");

  is_null(tn_cache_create(nullptr, "cpu", 1, nullptr, 0, &cache), "library");
  is_null(tn_cache_create(library_, "cpu", 1, nullptr, 4, &cache), "bytes");
  is_null(tn_cache_create(library_, "cpu", 1, nullptr, 0, nullptr), "out");
  is_null(tn_cache_load(nullptr, "cpu", 1, "f", 0, &cache), "library");
  is_null(tn_cache_load(library_, "cpu", 1, nullptr, 0, &cache), "path");
  is_null(tn_cache_load(library_, "cpu", 1, "f", 0, nullptr), "out");
  is_null(tn_cache_save(nullptr, "f"), "cache");
  is_null(tn_cache_save(cache_, nullptr), "path");
  is_null(tn_cache_serialize(nullptr, &text), "cache");
  is_null(tn_cache_serialize(cache_, nullptr), "out");
  is_null(tn_cache_insert(nullptr, "{}"), "cache");
  is_null(tn_cache_insert(cache_, nullptr), "choice_json");
  is_null(tn_cache_describe(nullptr, nullptr, &text), "cache");
  is_null(tn_cache_describe(cache_, nullptr, nullptr), "json");
  const TnCacheKey key{};
  const TnCacheValue value{1, 1, 0};
  EXPECT_EQ(tn_cache_query(nullptr, &key).tactic, ~0ull);
  EXPECT_LT(tn_cache_query(cache_, nullptr).ms, 0);
  EXPECT_EQ(tn_cache_query_keys(nullptr, nullptr, 5), 0u);
  EXPECT_EQ(tn_cache_query_keys(cache_, nullptr, 5), 1u);
  EXPECT_EQ(tn_cache_update(nullptr, &key, &value), 0);
  EXPECT_EQ(tn_cache_update(cache_, nullptr, &value), 0);
  EXPECT_EQ(tn_cache_update(cache_, &key, nullptr), 0);
  EXPECT_EQ(tn_cache_combine(cache_, nullptr, 0), 0);
  EXPECT_EQ(tn_cache_combine(nullptr, cache_, 0), 0);
  EXPECT_EQ(tn_cache_pin(nullptr, &key, 1), 0);
  EXPECT_EQ(tn_cache_pin(cache_, nullptr, 1), 0);
  EXPECT_EQ(tn_cache_erase(nullptr, &key), 0);
  EXPECT_EQ(tn_cache_erase(cache_, nullptr), 0);
  tn_cache_reset(nullptr);

  is_null(tn_config_create(nullptr), "out");
  is_null(tn_config_set(nullptr, "threads", "1"), "config");
  is_null(tn_config_set(config_, nullptr, "1"), "key");
  is_null(tn_config_set(config_, "threads", nullptr), "value");
  is_null(tn_config_set_cache(nullptr, cache_), "config");
  is_null(tn_config_set_progress(nullptr, nullptr, nullptr), "config");
  EXPECT_EQ(tn_config_set_cache(config_, nullptr), TN_OK);
  is_null(tn_build(nullptr, network_, config_, &built), "library");
  is_null(tn_build(library_, nullptr, config_, &built), "network");
  is_null(tn_build(library_, network_, config_, nullptr), "out");
  EXPECT_EQ(tn_build(library_, network_, nullptr, &built), TN_OK) << tn_last_error();
  tn_build_release(built);
  EXPECT_EQ(tn_build_engine_data(nullptr), nullptr);
  EXPECT_EQ(tn_build_engine_size(nullptr), 0u);
  EXPECT_STREQ(tn_build_report(nullptr), "");
  is_null(tn_explain(nullptr, network_, config_, "first", &text), "library");
  is_null(tn_explain(library_, nullptr, config_, "first", &text), "network");
  is_null(tn_explain(library_, network_, config_, nullptr, &text), "name");
  is_null(tn_explain(library_, network_, config_, "first", nullptr), "json");
  is_null(tn_reference_run(nullptr, inputs, 1, &run), "network");
  is_null(tn_reference_run(network_, nullptr, 1, &run), "inputs");
  is_null(tn_reference_run(network_, no_input, 1, &run), "x");
  is_null(tn_reference_run(network_, inputs, 1, nullptr), "out");
  is_null(tn_reference_value(nullptr, 0, nullptr, nullptr), "run");
  EXPECT_EQ(tn_reference_num_values(nullptr), 0u);

  is_null(tn_engine_load(nullptr, "f", "cpu", 1, &engine), "library");
  is_null(tn_engine_load(library_, nullptr, "cpu", 1, &engine), "path");
  is_null(tn_engine_load(library_, "f", "cpu", 1, nullptr), "out");
  is_null(tn_engine_create(nullptr, x_.data(), 4, "cpu", 1, &engine), "library");
  is_null(tn_engine_create(library_, nullptr, 4, "cpu", 1, &engine), "bytes");
  is_null(tn_engine_create(library_, x_.data(), 4, "cpu", 1, nullptr), "out");
  EXPECT_EQ(tn_engine_create(library_, x_.data(), 0, "cpu", 1, &engine), TN_INVALID);
  EXPECT_EQ(engine, nullptr);
  EXPECT_EQ(tn_engine_num_inputs(nullptr), 0u);
  EXPECT_EQ(tn_engine_num_outputs(nullptr), 0u);
  EXPECT_EQ(tn_engine_num_layers(nullptr), 0u);
  EXPECT_EQ(tn_engine_scratch_bytes(nullptr), 0u);
  EXPECT_STREQ(tn_engine_device(nullptr), "");
  is_null(tn_engine_describe_input(nullptr, 0, nullptr, nullptr, nullptr), "engine");
  is_null(tn_engine_describe_output(nullptr, 0, nullptr, nullptr, nullptr), "engine");
  EXPECT_EQ(tn_engine_describe_input(engine_, 0, nullptr, nullptr, nullptr), TN_OK);
  is_null(tn_engine_get_metadata(nullptr, "k", &string), "engine");
  is_null(tn_engine_get_metadata(engine_, nullptr, &string), "key");
  is_null(tn_engine_get_metadata(engine_, "k", nullptr), "text");
  is_null(tn_inspect_file(nullptr, "json", &text), "path");
  is_null(tn_context_set_observer(nullptr, nullptr, 0, nullptr, nullptr), "context");
  is_null(tn_context_set_observer(context_, nullptr, 1, nullptr, nullptr), "names");
  is_null(tn_context_set_observer(context_, &string, 1, nullptr, nullptr), "name");
  is_null(tn_engine_inspect(nullptr, -1, "json", &text), "engine");
  is_null(tn_engine_inspect(engine_, -1, nullptr, &text), "format");
  is_null(tn_engine_inspect(engine_, -1, "json", nullptr), "out");

  is_null(tn_context_create(nullptr, 1, &context), "engine");
  is_null(tn_context_create(engine_, 1, nullptr), "out");
  is_null(tn_context_set_tensor(nullptr, "x", x_.data(), nullptr), "context");
  is_null(tn_context_set_tensor(context_, nullptr, x_.data(), nullptr), "name");
  EXPECT_EQ(tn_context_set_tensor(context_, "x", nullptr, nullptr), TN_INVALID);
  is_null(tn_context_set_scratch(nullptr, x_.data(), 4), "context");
  is_null(tn_context_set_recorder(nullptr, nullptr, nullptr), "context");
  is_null(tn_context_enqueue(nullptr, nullptr), "context");
  is_null(tn_context_execute(nullptr), "context");
  is_null(tn_context_profile(nullptr, &text), "context");
  ASSERT_NO_FATAL_FAILURE(bind(context_));
  is_null(tn_context_profile(context_, nullptr), "json");
  EXPECT_EQ(text, nullptr);
  EXPECT_STREQ(tn_text_data(nullptr), "");
  EXPECT_EQ(tn_text_size(nullptr), 0u);
  tn_text_release(nullptr), tn_library_release(nullptr), tn_network_release(nullptr), tn_cache_release(nullptr);
  tn_build_release(nullptr), tn_engine_release(nullptr), tn_context_release(nullptr), tn_config_release(nullptr);
  tn_reference_release(nullptr);
}

// Readers of this kind crashed on files that were cut, converted as text, or had bits flipped.
TEST_F(Api, DamagedEnginesAreErrors) {
  Memory memory;
  Errors errors;
  const TnLibraryOptions options = options_with(&errors, &memory);
  ASSERT_NO_FATAL_FAILURE(make(&options));
  release(kContext), release(kEngine);
  const std::string good(static_cast<const char*>(tn_build_engine_data(build_)), tn_build_engine_size(build_));
  std::size_t count = 0;
  const auto refused = [&](const std::string& bytes) {
    const TnStatus status = tn_engine_create(library_, bytes.data(), bytes.size(), "cpu", 1, &engine_);
    ASSERT_TRUE(status == TN_INVALID || status == TN_VERSION) << status << ": " << tn_last_error();
    ASSERT_EQ(engine_, nullptr);
    ASSERT_EQ(errors.count(), ++count);
  };
  std::minstd_rand random(1);
  for (std::size_t size = 0; size < 4096; size += 7) ASSERT_NO_FATAL_FAILURE(refused(good.substr(0, size)));
  for (int i = 0; i < 200; ++i) {
    ASSERT_NO_FATAL_FAILURE(refused(good.substr(0, 4096 + random() % (good.size() - 4096))));
    std::string flipped = good;
    const std::size_t bit = random() % (good.size() * 8);
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    ASSERT_NO_FATAL_FAILURE(refused(flipped));
  }
  std::string converted;
  for (const char c : good) converted += c == '\n' ? std::string("\r\n") : std::string(1, c);
  ASSERT_NO_FATAL_FAILURE(refused(converted));
  ASSERT_NO_FATAL_FAILURE(refused(good + "x"));
  EXPECT_TRUE(memory.live.empty());
  TnText* text = nullptr;
  EXPECT_EQ(tn_engine_load(library_, ::testing::TempDir().c_str(), "cpu", 1, &engine_), TN_IO);
  EXPECT_EQ(tn_inspect_file(::testing::TempDir().c_str(), "json", &text), TN_IO);
  EXPECT_EQ(text, nullptr);
  ASSERT_OK(tn_engine_create(library_, good.data(), good.size(), "cpu", 1, &engine_));
  release(kEngine);  // the allocator ends here
}

TEST_F(Api, AnAllocatorIsBothOrNothing) {
  TnLibraryOptions options{};
  options.struct_size = sizeof(options);
  options.allocate = Memory::allocate;
  EXPECT_EQ(tn_library_create(&options, &library_), TN_INVALID);
  EXPECT_EQ(library_, nullptr);
}

}  // namespace
