// Choosing a tactic by hand: builds MatMul -> Softmax -> MatMul, writes another tactic for the first MatMul into the
// timing cache, builds again without measuring anything, and proves that nothing else changed.
//
//   editable_timing_cache [--device DEVICE] [--engine FILE] [--log FILE]
//     DEVICE: cpu (default), cuda, auto. The first engine is kept in FILE. The builds' verbose log goes to FILE, or to
//     stderr.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

namespace {

using nlohmann::json;
using tenon::Result;
using tenon::Status;
using tenon::TimingCache;

constexpr int kSize = 128;  // all matrices are kSize x kSize
using Matrix = std::vector<float>;

Matrix random_matrix(unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> values(-1, 1);
  Matrix matrix(kSize * kSize);
  for (float& value : matrix) value = values(engine);
  return matrix;
}

struct Problem {
  Matrix input = random_matrix(1);
  Matrix weights1 = random_matrix(2);
  Matrix weights2 = random_matrix(3);
};

// --- what the engines must compute, by plain loops ---

Matrix multiply(const Matrix& a, const Matrix& b) {
  Matrix result(kSize * kSize);
  for (int row = 0; row < kSize; ++row) {
    for (int column = 0; column < kSize; ++column) {
      double sum = 0;
      for (int k = 0; k < kSize; ++k) sum += double{a[row * kSize + k]} * b[k * kSize + column];
      result[row * kSize + column] = static_cast<float>(sum);
    }
  }
  return result;
}

Matrix softmax_of_rows(Matrix x) {
  for (int row = 0; row < kSize; ++row) {
    float* values = &x[row * kSize];
    float most = values[0];
    for (int n = 1; n < kSize; ++n) most = std::fmax(most, values[n]);
    double sum = 0;
    for (int n = 0; n < kSize; ++n) sum += std::exp(double{values[n]} - most);
    for (int n = 0; n < kSize; ++n) values[n] = static_cast<float>(std::exp(double{values[n]} - most) / sum);
  }
  return x;
}

Matrix plain_result(const Problem& problem) {
  return multiply(softmax_of_rows(multiply(problem.input, problem.weights1)), problem.weights2);
}

// --- the network and its engines ---

Result<tenon::Network> make_network(const tenon::Library& library, const Problem& problem) {
  const std::vector<std::int64_t> dims = {kSize, kSize};
  TENON_ASSIGN(tenon::Network network, tenon::Network::create(library));
  TENON_ASSIGN(const auto input, network.add_input("input", dims));
  TENON_ASSIGN(const auto weights1, network.add_constant("weights1", dims, problem.weights1));
  TENON_ASSIGN(const auto weights2, network.add_constant("weights2", dims, problem.weights2));
  TENON_ASSIGN(const auto product1, network.add_layer("tenon.matmul/1", "matMul1", {input, weights1}));
  TENON_ASSIGN(const auto rows, network.add_layer("tenon.softmax/1", "softmax", {product1}, R"({"axis": 1})"));
  TENON_ASSIGN(const auto product2, network.add_layer("tenon.matmul/1", "matMul2", {rows, weights2}));
  TENON_RETURN_IF_ERROR(network.rename(product2, "output"));
  TENON_RETURN_IF_ERROR(network.mark_output(product2));
  return network;
}

struct Layer {
  std::string name, kernel, tactic;
};

struct Built {
  std::string bytes;
  std::vector<Layer> layers;  // by the engine inspector
  int measured = 0;           // tactics that this build had to time
  Matrix output;
};

Result<Built> build_and_run(const tenon::Library& library, const std::string& device, const tenon::Network& network,
                            TimingCache& cache, Matrix input) {
  TENON_ASSIGN(tenon::BuilderConfig config, tenon::BuilderConfig::create());
  TENON_RETURN_IF_ERROR(config.set("device", device));
  TENON_RETURN_IF_ERROR(config.set("editable_timing_cache", "1"));
  TENON_RETURN_IF_ERROR(config.set("verbosity", "detailed"));  // tactic names go into the engine
  TENON_RETURN_IF_ERROR(config.set_cache(cache));
  TENON_ASSIGN(const tenon::BuiltEngine built, tenon::Builder(library).build(network, config));
  Built result;
  result.bytes = built.bytes();
  result.measured = json::parse(built.report())["cache"]["measured"];

  TENON_ASSIGN(const tenon::Engine engine, tenon::Runtime(library, device).create(built.data(), built.size()));
  const tenon::EngineInspector inspector(engine);
  for (std::uint32_t n = 0; n < inspector.num_layers(); ++n) {
    TENON_ASSIGN(const std::string text, inspector.layer(n, "json"));
    const json layer = json::parse(text);
    result.layers.push_back({layer["name"], layer["kernel"], layer["tactic_hash"]});
  }

  TENON_ASSIGN(tenon::ExecutionContext context, tenon::ExecutionContext::create(engine));
  result.output.resize(kSize * kSize);
  TENON_RETURN_IF_ERROR(context.set_tensor("input", input.data()));
  TENON_RETURN_IF_ERROR(context.set_tensor("output", result.output.data()));
  TENON_RETURN_IF_ERROR(context.execute());
  return result;
}

// --- the edit ---

TimingCache::Key parse_key(const std::string& text) {  // "0x" and 32 hex digits
  TimingCache::Key key{};
  for (int n = 0; n < 16; ++n)
    key.bytes[n] = static_cast<std::uint8_t>(std::stoul(text.substr(2 + 2 * n, 2), nullptr, 16));
  return key;
}

/// Writes another measured tactic for matMul1 into the cache, of another kernel if there is one, and returns its hash.
Result<std::string> choose_another_tactic(TimingCache& cache) {
  TENON_ASSIGN(const std::string text, cache.describe("matMul1"));
  const json entries = json::parse(text);
  if (entries["choices"].size() != 1) return Status(tenon::Code::kInternal, "matMul1 should have one record: " + text);
  const json choice = entries["choices"][0];
  json other;
  for (const json& measured : entries["measured"]) {
    if (measured["kind"] != "measured" || measured["tactic"] == choice["tactic"]) continue;
    if (other.is_null() || (other["kernel"] == choice["kernel"] && measured["kernel"] != choice["kernel"])) {
      other = measured;
    }
  }
  if (other.is_null()) return Status(tenon::Code::kNotFound, "matMul1 has no second tactic: " + text);
  const std::string tactic = other["tactic"];
  TimingCache::Value value{};
  value.tactic = std::stoull(tactic, nullptr, 16);
  value.ms = other["ms"];
  if (!cache.update(parse_key(choice["key"]), value)) {
    return Status(tenon::Code::kInternal, "update refused the record of matMul1: " + text);
  }
  return tactic;
}

// --- what this example promises ---

void print_layers(const char* which, const std::vector<Layer>& layers) {
  std::printf("Layers of the %s engine:\n", which);
  for (std::size_t n = 0; n < layers.size(); ++n) {
    std::printf("#%zu: %s uses %s\n", n, layers[n].name.c_str(), layers[n].kernel.c_str());
  }
}

Status expect(bool holds, const std::string& promise) {
  return holds ? Status() : Status(tenon::Code::kInternal, "does not hold: " + promise);
}

Status check(const Built& first, const Built& second, const std::string& tactic, const Matrix& reference) {
  TENON_RETURN_IF_ERROR(expect(first.measured > 0, "the first build measures"));
  TENON_RETURN_IF_ERROR(expect(second.measured == 0, "the second build measures nothing"));
  TENON_RETURN_IF_ERROR(expect(first.layers.size() == second.layers.size(), "both engines have the same layers"));
  bool seen = false;
  for (std::size_t n = 0; n < first.layers.size(); ++n) {
    const Layer& before = first.layers[n];
    const Layer& after = second.layers[n];
    if (before.name.rfind("matMul1", 0) == 0) {  // a layer's name begins with that of the operator it came from
      seen = true;
      TENON_RETURN_IF_ERROR(expect(after.tactic == tactic && before.tactic != tactic, "matMul1 uses the new tactic"));
    } else {
      TENON_RETURN_IF_ERROR(
          expect(after.name == before.name && after.tactic == before.tactic, before.name + " keeps its tactic"));
    }
  }
  TENON_RETURN_IF_ERROR(expect(seen, "the engines have a layer matMul1"));
  // Rows of the softmax sum to 1 and weights are below 1, so the results are below 1; f32 has a precision of 6e-8, and
  // 128 terms are summed twice.
  for (const Built* built : {&first, &second}) {
    float worst = 0;
    for (std::size_t n = 0; n < reference.size(); ++n) {
      worst = std::fmax(worst, std::fabs(built->output[n] - reference[n]));
    }
    TENON_RETURN_IF_ERROR(
        expect(worst < 1e-4f, "both engines compute what plain loops do; difference " + std::to_string(worst)));
  }
  return {};
}

struct Options {
  std::string device = "cpu";
  std::string engine;
  std::FILE* log = stderr;
};

Status run(const Options& given) {
  tenon::LibraryOptions options;
  options.log_threshold = TN_LOG_VERBOSE;
  options.log = [log = given.log](int, const std::string& message) { std::fprintf(log, "%s\n", message.c_str()); };
  TENON_ASSIGN(tenon::Library library, tenon::Library::create(options));
  TENON_RETURN_IF_ERROR(library.discover().status());

  const Problem problem;
  TENON_ASSIGN(const tenon::Network network, make_network(library, problem));
  TENON_ASSIGN(TimingCache cache, TimingCache::create(library, "", 0, given.device));
  TENON_ASSIGN(const Built first, build_and_run(library, given.device, network, cache, problem.input));

  TENON_ASSIGN(const std::string tactic, choose_another_tactic(cache));
  // What another process would do: the cache travels as bytes.
  TENON_ASSIGN(const std::string bytes, cache.serialize());
  TENON_ASSIGN(TimingCache edited, TimingCache::create(library, bytes, 0, given.device));
  TENON_ASSIGN(const Built second, build_and_run(library, given.device, network, edited, problem.input));

  if (!given.engine.empty()) {
    std::ofstream file(given.engine, std::ios::binary);
    file.write(first.bytes.data(), static_cast<std::streamsize>(first.bytes.size()));
    TENON_RETURN_IF_ERROR(expect(file.good(), "the engine could be written to " + given.engine));
  }
  print_layers("first", first.layers);
  print_layers("second", second.layers);
  return check(first, second, tactic, plain_result(problem));
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int n = 1; n < argc; n += 2) {
    const std::string option = argv[n];
    if (n + 1 == argc || (option != "--device" && option != "--engine" && option != "--log")) {
      std::fprintf(stderr, "usage: editable_timing_cache [--device DEVICE] [--engine FILE] [--log FILE]\n");
      return 2;
    }
    if (option == "--device") options.device = argv[n + 1];
    if (option == "--engine") options.engine = argv[n + 1];
    if (option == "--log") options.log = std::fopen(argv[n + 1], "w");
    if (options.log == nullptr) {
      std::perror(argv[n + 1]);
      return 1;
    }
  }
  const Status status = run(options);
  if (options.log != stderr) std::fclose(options.log);
  if (!status.ok()) std::fprintf(stderr, "editable_timing_cache: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
