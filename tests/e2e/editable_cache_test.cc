// The editable timing cache through the API: MatMul -> Softmax -> MatMul, one product with another tactic.
//
// The log is read here as a stranger's program would: by nothing but the forms that the project promises.
#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <tenon/tenon.hpp>

#include "tests/e2e/e2e_testing.h"

namespace tenon::e2e {
namespace {

constexpr int kSize = 128;
using Matrix = std::vector<float>;

// --- the log ---

struct Row {
  int id;
  double ms, ratio;
  std::string kernel, tactic;
};

struct Table {
  std::string key;
  std::vector<Row> rows;
  std::string selected, written;
  double selected_ms = -1;
};

/// The tables of a verbose log by layer.
std::map<std::string, Table> parse_log(const std::string& text) {
  const std::regex title(R"(^.*Autotuning op (.+)\(key: (0x[0-9a-f]{32})\):$)"),
      header(
          R"(^.*tactic_id, cost\(in ms\), cost/fastest_cost, prediction_correlation, kernel_name, tactic_hash, tunable_parameter$)"),
      row(R"(^.*?(\d+), (\d+\.\d{7}), (\d+\.\d{5}), (-?\d+\.\d{5}), ([^,]+), (0x(?:0|[1-9a-f][0-9a-f]{0,15})), (.*)$)"),
      selected(R"(^.*The selected tactic is \(tactic hash, cost\(in ms\)\):(0x[0-9a-f]+), (\d+\.\d{6})$)"),
      written(R"(^.*Writing the best tactic \((0x[0-9a-f]+)\) to cache$)");
  std::map<std::string, Table> tables;
  Table* table = nullptr;
  enum { kNothing, kTitle, kHeader, kRows } expected = kNothing;
  std::smatch match;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_match(line, match, title)) {
      EXPECT_EQ(tables.count(match[1]), 0u) << "two tables of " << match[1];
      table = &tables[match[1]];
      table->key = match[2];
      expected = kTitle;
    } else if (expected == kTitle) {
      EXPECT_TRUE(line.ends_with("Sorted table of all evaluated tactics:")) << line;
      expected = kHeader;
    } else if (expected == kHeader) {
      EXPECT_TRUE(std::regex_match(line, header)) << line;
      expected = kRows;
    } else if (std::regex_match(line, match, selected)) {
      if (table == nullptr) {
        ADD_FAILURE() << "selected before any table: " << line;
        continue;
      }
      table->selected = match[1];
      table->selected_ms = std::stod(match[2]);
      expected = kNothing;
    } else if (std::regex_match(line, match, written)) {
      if (table != nullptr) table->written = match[1];
    } else if (expected == kRows && table != nullptr) {
      EXPECT_TRUE(std::regex_match(line, match, row)) << line;
      if (!match.empty()) {
        table->rows.push_back({std::stoi(match[1]), std::stod(match[2]), std::stod(match[3]), match[5], match[6]});
      }
    }
  }
  return tables;
}

// --- the network ---

Matrix random_matrix(unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> values(-1, 1);
  Matrix matrix(kSize * kSize);
  for (float& value : matrix) value = values(engine);
  return matrix;
}

Matrix multiply(const Matrix& a, const Matrix& b) {
  Matrix result(kSize * kSize);
  for (int m = 0; m < kSize; ++m) {
    for (int n = 0; n < kSize; ++n) {
      double sum = 0;
      for (int k = 0; k < kSize; ++k) sum += double{a[m * kSize + k]} * b[k * kSize + n];
      result[m * kSize + n] = static_cast<float>(sum);
    }
  }
  return result;
}

Matrix softmax(Matrix x) {
  for (int row = 0; row < kSize; ++row) {
    float* values = &x[row * kSize];
    const float most = *std::max_element(values, values + kSize);
    double sum = 0;
    for (int n = 0; n < kSize; ++n) sum += std::exp(double{values[n]} - most);
    for (int n = 0; n < kSize; ++n) values[n] = static_cast<float>(std::exp(double{values[n]} - most) / sum);
  }
  return x;
}

struct Built {
  std::string bytes;
  json report;
  std::vector<json> layers;          ///< by the inspector
  std::vector<std::string> oneline;  ///< likewise
  Matrix output;
};

class EditableCache : public ::testing::Test {
 protected:
  void SetUp() override {
    LibraryOptions options;
    options.log_threshold = TN_LOG_VERBOSE;
    options.log = [this](int, const std::string& message) { log_ += message + "\n"; };
    library_ = Library::create(options).value();
    ASSERT_TRUE(library_->discover().ok());
    network_ = make_network();
    ASSERT_TRUE(network_);
    reference_ = multiply(softmax(multiply(input_, weights1_)), weights2_);
    const std::string reason = why_not(*library_, test_device());
    if (!reason.empty()) GTEST_SKIP() << reason;
    first_cache_ = TimingCache::create(*library_, "", 0, test_device()).value();
    const auto first = build(*first_cache_, false);
    ASSERT_TRUE(first.ok()) << first.status().message();
    first_ = *first;
    first_log_ = log_;
  }

  std::optional<Network> make_network() {
    Network network = Network::create(*library_).value();
    const std::vector<std::int64_t> dims = {kSize, kSize};
    const auto input = network.add_input("input", dims).value();
    const auto weights1 = network.add_constant("weights1", dims, weights1_).value();
    const auto weights2 = network.add_constant("weights2", dims, weights2_).value();
    const auto product1 = network.add_layer("tenon.matmul/1", "matMul1", {input, weights1}).value();
    const auto rows = network.add_layer("tenon.softmax/1", "softmax", {product1}, R"({"axis": 1})").value();
    const auto product2 = network.add_layer("tenon.matmul/1", "matMul2", {rows, weights2}).value();
    if (!network.rename(product2, "output").ok() || !network.mark_output(product2).ok()) return {};
    return network;
  }

  Result<Built> build(const TimingCache& cache, bool frozen) {
    log_.clear();
    TENON_ASSIGN(BuilderConfig config, BuilderConfig::create());
    TENON_RETURN_IF_ERROR(config.set("device", test_device()));
    TENON_RETURN_IF_ERROR(config.set("editable_timing_cache", "1"));
    TENON_RETURN_IF_ERROR(config.set("verbosity", "detailed"));
    TENON_RETURN_IF_ERROR(config.set("frozen_cache", frozen ? "1" : "0"));
    TENON_RETURN_IF_ERROR(config.set_cache(cache));
    TENON_ASSIGN(const BuiltEngine built, Builder(*library_).build(*network_, config));
    Built result;
    result.bytes = built.bytes();
    result.report = json::parse(built.report());
    TENON_ASSIGN(const Engine engine, Runtime(*library_, test_device()).create(built.data(), built.size()));
    const EngineInspector inspector(engine);
    for (std::uint32_t n = 0; n < inspector.num_layers(); ++n) {
      TENON_ASSIGN(const std::string text, inspector.layer(n, "json"));
      TENON_ASSIGN(const std::string line, inspector.layer(n, "oneline"));
      result.layers.push_back(json::parse(text));
      result.oneline.push_back(line);
    }
    TENON_ASSIGN(ExecutionContext context, ExecutionContext::create(engine));
    Matrix input = input_;
    result.output.resize(kSize * kSize);
    TENON_RETURN_IF_ERROR(context.set_tensor("input", input.data()));
    TENON_RETURN_IF_ERROR(context.set_tensor("output", result.output.data()));
    TENON_RETURN_IF_ERROR(context.execute());
    return result;
  }

  /// The cache after the first build, in a cache of its own.
  TimingCache copy() {
    return TimingCache::create(*library_, first_cache_->serialize().value(), 0, test_device()).value();
  }

  json describe(const TimingCache& cache, const std::string& layer) {
    return json::parse(cache.describe(layer).value());
  }

  static TimingCache::Key key_of(const json& choice) {
    const std::string text = choice["key"];
    TimingCache::Key key{};
    for (std::size_t n = 0; n < 16; ++n) {
      key.bytes[n] = static_cast<std::uint8_t>(std::stoul(text.substr(2 + 2 * n, 2), nullptr, 16));
    }
    return key;
  }

  /// A measured tactic of matMul1 that was not chosen and is the only one with its hash.
  json other_tactic() {
    const json entries = describe(*first_cache_, "matMul1");
    const std::string chosen = entries["choices"][0]["tactic"];
    for (const json& m : entries["measured"]) {
      if (m["kind"] == "measured" && m["tactic"] != chosen) return m;
    }
    return {};
  }

  void expect_correct(const Built& built) {
    double worst = 0;
    for (std::size_t n = 0; n < reference_.size(); ++n) {
      worst = std::fmax(worst, std::abs(double{built.output[n]} - double{reference_[n]}));
    }
    EXPECT_LT(worst, 1e-4);  // sums of 128 products below 1 in f32
  }

  static const json* layer(const Built& built, const std::string& prefix) {
    for (const json& l : built.layers) {
      if (l["name"].get<std::string>().starts_with(prefix)) return &l;
    }
    return nullptr;
  }

  /// matMul1 has `tactic`, all other layers have what the first engine has; report and inspector agree.
  void expect_only_first_changed(const Built& built, const std::string& tactic) {
    ASSERT_EQ(built.layers.size(), first_.layers.size());
    for (std::size_t n = 0; n < built.layers.size(); ++n) {
      const std::string name = built.layers[n]["name"];
      EXPECT_EQ(first_.layers[n]["name"], name);
      const std::string expected =
          name.starts_with("matMul1") ? tactic : first_.layers[n]["tactic_hash"].get<std::string>();
      EXPECT_EQ(built.layers[n]["tactic_hash"], expected) << name;
      EXPECT_EQ(built.report["layers"][n]["tactic_hash"], expected) << name;
    }
  }

  const Matrix input_ = random_matrix(1), weights1_ = random_matrix(2), weights2_ = random_matrix(3);
  Matrix reference_;
  std::string log_, first_log_;
  std::optional<Library> library_;
  std::optional<Network> network_;
  std::optional<TimingCache> first_cache_;
  Built first_;
};

TEST_F(EditableCache, TheLogTellsWhatWasMeasured) {
  const auto tables = parse_log(first_log_);
  int measured = 0;
  for (const char* name : {"matMul1", "matMul2", "softmax"}) {
    SCOPED_TRACE(name);
    ASSERT_EQ(tables.count(name), 1u) << first_log_;
    const Table& table = tables.at(name);
    EXPECT_EQ(describe(*first_cache_, name)["choices"][0]["key"], table.key);
    ASSERT_FALSE(table.rows.empty());
    std::map<int, int> ids;
    bool selected_has_its_row = false;
    for (std::size_t n = 0; n < table.rows.size(); ++n) {
      const Row& row = table.rows[n];
      EXPECT_EQ(++ids[row.id], 1) << "tactic_id twice";
      EXPECT_NEAR(row.ratio, row.ms / table.rows[0].ms, 1e-4 + 1e-3 * row.ratio);
      EXPECT_GE(row.ms, n > 0 ? table.rows[n - 1].ms : 0) << "not sorted";
      selected_has_its_row |= row.tactic == table.selected && std::abs(row.ms - table.selected_ms) < 1e-6;
    }
    EXPECT_TRUE(selected_has_its_row) << table.selected;
    EXPECT_EQ(table.selected, table.written);
    EXPECT_EQ(describe(*first_cache_, name)["choices"][0]["tactic"], table.selected);
  }
  for (const char* name : {"matMul1", "matMul2"}) {
    std::set<std::string> kernels;
    const json entries = describe(*first_cache_, name);
    for (const json& m : entries["measured"]) kernels.insert(m["kernel"]);
    EXPECT_GE(tables.at(name).rows.size(), test_device() == "cpu" ? 3u : 5u);
    EXPECT_GE(kernels.size(), 2u);
  }
  EXPECT_NE(tables.at("matMul1").key, tables.at("matMul2").key) << "each layer has a record of its own";
  for (const auto& [name, table] : tables) measured += static_cast<int>(table.rows.size());
  EXPECT_EQ(first_.report["cache"]["measured"], measured);
  expect_correct(first_);
}

TEST_F(EditableCache, AnEditChangesOneLayerAndNothingIsMeasured) {
  const json other = other_tactic();
  ASSERT_FALSE(other.is_null());
  TimingCache cache = copy();
  const TimingCache::Key key = key_of(describe(cache, "matMul1")["choices"][0]);
  const std::string tactic = other["tactic"];
  ASSERT_TRUE(cache.update(key, {std::stoull(tactic, nullptr, 16), other["ms"].get<float>(), 0}));
  const auto second = build(cache, false);
  ASSERT_TRUE(second.ok()) << second.status().message();
  EXPECT_EQ(second->report["cache"]["measured"], 0);
  EXPECT_EQ(second->report["cache"]["misses"], 0);
  EXPECT_TRUE(parse_log(log_).empty()) << "a build that measures nothing prints no table:\n" << log_;
  expect_only_first_changed(*second, tactic);
  expect_correct(*second);

  const json* changed = layer(*second, "matMul1");
  ASSERT_NE(changed, nullptr);
  EXPECT_EQ((*changed)["kernel"], other["kernel"]);
  EXPECT_EQ((*changed)["key"], describe(cache, "matMul1")["choices"][0]["key"]);
  const std::regex line(
      R"(^Name: (.+), LayerType: (.+), Inputs: \[ (\{ Name: .+, Dimensions: \[128,128\], Format/Datatype: Float \}.*) \], Outputs: \[ (\{ Name: .+, Dimensions: \[128,128\], Format/Datatype: Float \}) \], TacticName: (.+), StreamId: 0, Metadata: \s*$)");
  for (std::size_t n = 0; n < second->oneline.size(); ++n) {
    std::smatch match;
    ASSERT_TRUE(std::regex_match(second->oneline[n], match, line)) << second->oneline[n];
    EXPECT_EQ(match[1], second->layers[n]["name"].get<std::string>());
    EXPECT_NE(match[5].str().find(second->layers[n]["kernel"].get<std::string>()), std::string::npos) << match[5];
  }
}

// An engine of this kind gave other tactics and other scores when it was built again with the same cache, because the
// recorded times took part in the decision.
TEST_F(EditableCache, FrozenRebuildsAreByteIdenticalWhateverTheTimes) {
  const json other = other_tactic();
  ASSERT_FALSE(other.is_null());
  const std::string tactic = other["tactic"];
  for (const bool pinned : {false, true}) {
    for (const float ms : {9e9f, 0.0f}) {
      SCOPED_TRACE((pinned ? "pinned, " : "not pinned, ") + std::to_string(ms) + " ms");
      TimingCache cache = copy();
      const TimingCache::Key key = key_of(describe(cache, "matMul1")["choices"][0]);
      ASSERT_TRUE(cache.update(key, {std::stoull(tactic, nullptr, 16), ms, 0}));
      ASSERT_TRUE(cache.pin(key, pinned));
      const std::string before = cache.serialize().value();
      std::string bytes;
      for (int round = 0; round < 5; ++round) {
        const auto built = build(cache, true);
        ASSERT_TRUE(built.ok()) << built.status().message();
        EXPECT_EQ(built->report["cache"]["measured"], 0);
        expect_only_first_changed(*built, tactic);
        expect_correct(*built);
        if (round == 0) bytes = built->bytes;
        EXPECT_TRUE(built->bytes == bytes) << "round " << round;
      }
      EXPECT_EQ(cache.serialize().value(), before) << "a frozen build changes nothing in the cache";
      // Not frozen, the written tactic is obeyed just the same.
      const auto warm = build(cache, false);
      ASSERT_TRUE(warm.ok()) << warm.status().message();
      EXPECT_EQ(warm->report["cache"]["measured"], 0);
      expect_only_first_changed(*warm, tactic);
    }
  }
}

TEST_F(EditableCache, AMissingEntryFailsAFrozenBuild) {
  for (const char* name : {"matMul1", "matMul2", "softmax"}) {
    TimingCache cache = copy();
    const json choice = describe(cache, name)["choices"][0];
    ASSERT_TRUE(cache.erase(key_of(choice)));
    const auto built = build(cache, true);
    ASSERT_FALSE(built.ok()) << name;
    EXPECT_NE(built.status().message().find(name), std::string::npos) << built.status().message();
    EXPECT_NE(built.status().message().find(choice["key"].get<std::string>()), std::string::npos)
        << built.status().message();
    // The same through a NaN time, which deletes an entry.
    TimingCache nan = copy();
    EXPECT_TRUE(nan.update(key_of(choice), {std::stoull(choice["tactic"].get<std::string>(), nullptr, 16), NAN, 0}));
    EXPECT_FALSE(build(nan, true).ok());
    EXPECT_FALSE(nan.update(key_of(choice), {1, 1.0f, 0})) << "an absent key is not made by update";
  }
}

// Another engine crashed on files that were written halfway or appended twice.
TEST_F(EditableCache, ABuildRepairsADamagedFile) {
  const TempDir dir;
  const std::string path = dir.path() / "cache.yaml";
  const std::string good = first_cache_->serialize().value();
  const std::size_t choice = good.find("- {choice: "), middle = choice + 40;
  const auto with = [&](const std::string& bytes) { return std::string(good).insert(middle, bytes); };
  std::string byte = good;
  byte[middle] = '\xFF';
  const std::pair<const char*, std::string> cases[] = {{"cut", good.substr(0, middle)},
                                                       {"twice", good.substr(0, good.size() - 1) + good},
                                                       {"torn, then twice", good.substr(0, middle) + good},
                                                       {"0xFF", byte},
                                                       {"UTF-8", with("\xED\xA0\x80")},
                                                       {"zero bytes", with(std::string(16, '\0'))},
                                                       {"empty", ""}};
  for (const auto& [name, text] : cases) {
    SCOPED_TRACE(name);
    write_text(path, text);
    const auto strict = TimingCache::load(*library_, path, true, 0, test_device());
    EXPECT_EQ(strict.ok(), text.empty());
    if (!strict.ok()) {
      EXPECT_NE(strict.status().message().find(path + ", line "), std::string::npos) << strict.status().message();
    }
    const auto cache = TimingCache::load(*library_, path, false, 0, test_device());
    ASSERT_TRUE(cache.ok()) << cache.status().message();
    std::size_t hits = 0;
    for (const char* layer : {"matMul1", "matMul2", "softmax"}) hits += describe(*cache, layer)["choices"].size();
    const auto built = build(*cache, false);
    ASSERT_TRUE(built.ok()) << built.status().message();
    EXPECT_EQ(built->report["cache"]["hits"], hits);
    EXPECT_EQ(built->report["cache"]["misses"], 3 - hits);
    expect_correct(*built);
    ASSERT_TRUE(cache->save(path).ok());
    const auto repaired = TimingCache::load(*library_, path, true, 0, test_device());
    ASSERT_TRUE(repaired.ok()) << repaired.status().message();
    const auto again = build(*repaired, true);
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_TRUE(again->bytes == built->bytes);
  }
}

TEST_F(EditableCache, AnImpossibleTacticFailsNamingTheValidOnes) {
  const auto tables = parse_log(first_log_);
  for (const bool frozen : {false, true}) {
    TimingCache cache = copy();
    const json choice = describe(cache, "matMul1")["choices"][0];
    ASSERT_TRUE(cache.update(key_of(choice), {0xdeadbeef, 0.5f, 0}));
    const auto built = build(cache, frozen);
    ASSERT_FALSE(built.ok());
    const std::string message = built.status().message();
    EXPECT_NE(message.find("matMul1"), std::string::npos) << message;
    EXPECT_NE(message.find(choice["key"].get<std::string>()), std::string::npos) << message;
    EXPECT_NE(message.find("0xdeadbeef"), std::string::npos) << message;
    for (const Row& row : tables.at("matMul1").rows) {
      EXPECT_NE(message.find(row.tactic), std::string::npos) << row.tactic << " is valid: " << message;
    }
  }
}

TEST_F(EditableCache, WithoutEditableModeIdenticalLayersShareOneRecord) {
  const TimingCache cache = TimingCache::create(*library_, "", 0, test_device()).value();
  BuilderConfig config = BuilderConfig::create().value();
  ASSERT_TRUE(config.set("device", test_device()).ok());
  ASSERT_TRUE(config.set_cache(cache).ok());
  const auto built = Builder(*library_).build(*network_, config);
  ASSERT_TRUE(built.ok()) << built.status().message();
  int matmuls = 0;
  const json described = json::parse(cache.describe().value());
  for (const json& choice : described["choices"]) matmuls += choice["op"] == "tenon.matmul/1" ? 1 : 0;
  EXPECT_EQ(matmuls, 1);
}

TEST_F(EditableCache, WhatWasReRankedIsRecordedAndNotDoneAgain) {
  const json described = json::parse(first_cache_->describe().value());
  ASSERT_EQ(described["graphs"].size(), 1u);
  const json& graph = described["graphs"][0];
  ASSERT_EQ(graph["rerank"].size(), first_.report["reranked"].size());
  for (std::size_t n = 0; n < graph["rerank"].size(); ++n) {
    const json &entry = graph["rerank"][n], reported = first_.report["reranked"][n];
    const json choices = describe(*first_cache_, entry["layer"])["choices"];
    ASSERT_EQ(choices.size(), 1u) << entry;
    EXPECT_EQ(entry["key"], choices[0]["key"]);
    EXPECT_EQ(entry["tactic"], choices[0]["tactic"]) << "the choice is the re-ranked one";
    EXPECT_EQ(entry["tactic"], reported["tactic_hash"]);
    EXPECT_EQ(entry["rival"], reported["rival"]);
    EXPECT_NE(first_log_.find("Re-ranking layer " + entry["layer"].get<std::string>()), std::string::npos);
  }
  const TimingCache cache = copy();
  const std::string before = cache.serialize().value();
  const auto second = build(cache, false);
  ASSERT_TRUE(second.ok()) << second.status().message();
  EXPECT_EQ(second->report["cache"]["measured"], 0);
  EXPECT_TRUE(second->report["reranked"].empty());
  EXPECT_EQ(log_.find("e-rank"), std::string::npos) << log_;
  EXPECT_TRUE(second->bytes == first_.bytes);
  EXPECT_EQ(cache.serialize().value(), before);
}

}  // namespace
}  // namespace tenon::e2e
