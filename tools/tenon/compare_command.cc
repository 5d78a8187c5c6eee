#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>

#include "pipeline/debug_tensors.h"
#include "tools/tenon/common.h"

namespace tenon::cli {
namespace {

using nlohmann::json;

struct Value {
  std::vector<float> values;
  bool side_run = false;  ///< not of the engine's plan, see DebugTensors
};
/// Values of one side, by tensor name: f32 ones only.
using Values = std::map<std::string, Value>;

/// How far two tensors are apart.
struct Difference {
  double max_abs = 0, max_rel = 0, l2 = 0;

  Difference(const std::vector<float>& a, const std::vector<float>& b) {
    if (a.size() != b.size()) {  // of sizes that depend on data
      max_abs = max_rel = l2 = std::numeric_limits<double>::infinity();
      return;
    }
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double p = static_cast<double>(a[i]), q = static_cast<double>(b[i]);
      max_abs = std::max(max_abs, std::abs(p - q));
      if (p != 0) max_rel = std::max(max_rel, std::abs(p - q) / std::abs(p));
      difference += (p - q) * (p - q);
      norm += p * p;
    }
    l2 = norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
  }
};

std::string number_text(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "%.3g", value);
  return buffer;
}

struct Compare {
  ModelOptions model;
  std::string a = "cpu:reference", b = "cpu", input, json_file;
  double tolerance = 1e-3;
  unsigned seed = 1;

  /// The network's inputs: a picture through the pipeline's preprocessing, or normal numbers.
  std::vector<std::vector<float>> inputs(const Library& library, const Network& network, const json& described) const {
    std::vector<std::vector<float>> result;
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (const json& tensor : described["inputs"]) {
      if (tensor["dtype"] != "f32")
        throw WorkError("input " + tensor["name"].get<std::string>() + " is not f32; compare feeds only f32 inputs");
      std::size_t count = 1;
      for (const json& size : tensor["dims"]) count *= size.get<std::size_t>();
      std::vector<float> values(count);
      std::generate(values.begin(), values.end(), [&] { return normal(random); });
      result.push_back(std::move(values));
    }
    if (!input.empty()) {
      if (result.size() != 1) throw UsageError("--input: the network has not exactly one input");
      const std::vector<std::int64_t> dims = described["inputs"][0]["dims"];
      pipeline::PreprocessOptions options;
      const auto text = network.metadata("pipeline");
      if (text.ok()) options = check(pipeline::parse_settings(*text)).preprocess;
      const auto ready = check(pipeline::preprocess(check(pipeline::read_image(input)), options,
                                                    static_cast<int>(dims.at(3)), static_cast<int>(dims.at(2))));
      for (std::size_t i = 0; i < result[0].size(); ++i) result[0][i] = ready.tensor.data[i % ready.tensor.data.size()];
    }
    (void)library;
    return result;
  }

  static Values reference(const Network& network, const std::vector<std::vector<float>>& given) {
    std::vector<const void*> pointers;
    for (const auto& values : given) pointers.push_back(values.data());
    TnReferenceRun* run = nullptr;
    if (tn_reference_run(network.get(), pointers.data(), static_cast<std::uint32_t>(pointers.size()), &run) != TN_OK)
      throw WorkError(tn_last_error());
    const std::unique_ptr<TnReferenceRun, void (*)(TnReferenceRun*)> owner(run, tn_reference_release);
    Values values;
    for (std::uint32_t i = 0; i < tn_reference_num_values(run); ++i) {
      const char* name = "";
      TnTensor tensor{};
      tn_reference_value(run, i, &name, &tensor);
      if (tensor.dtype != TN_F32) continue;
      std::size_t count = 1;
      for (int axis = 0; axis < tensor.dims.rank; ++axis) count *= static_cast<std::size_t>(tensor.dims.d[axis]);
      const float* data = static_cast<const float*>(tensor.data);
      values[name].values.assign(data, data + count);
    }
    return values;
  }

  /// Builds the network as it is and runs it; what fusion removed comes from a side run.
  Values built(const Library& library, const std::string& device, const json& described,
               const std::vector<std::vector<float>>& given) const {
    pipeline::BuildRequest request = make_request(library, model);
    request.device = device;
    share_cache(library, &request);
    const BuiltEngine bytes = check(pipeline::build_engine(library, request, progress_printer()));
    const Engine engine = check(Runtime(library, device, request.threads).create(bytes.data(), bytes.size()));
    std::vector<std::string> names;
    for (const json& node : described["nodes"]) {
      for (const json& output : node["outputs"]) names.push_back(output["name"]);
    }
    auto tensors = check(pipeline::DebugTensors::create(library, engine, names, &request, progress_printer()));
    std::vector<pipeline::DebugInput> fed;
    for (std::size_t i = 0; i < given.size(); ++i) {
      const json& tensor = described["inputs"][i];
      fed.push_back({tensor["name"], tensor["dims"], given[i].data()});
    }
    check(tensors.run(fed));
    Values values;
    for (const auto& [name, tensor] : tensors.values()) {
      if (tensor.array.type != pipeline::NpyType::kF4) continue;
      Value& value = values[name];
      value.side_run = tensor.side_run;
      value.values.resize(tensor.array.elements());
      std::memcpy(value.values.data(), tensor.array.bytes.data(), tensor.array.bytes.size());
    }
    return values;
  }

  Values side(const Library& library, const std::string& which, const Network& network, const json& described,
              const std::vector<std::vector<float>>& given) const {
    if (which == "cpu:reference") return reference(network, given);
    return built(library, which, described, given);
  }

  void run() const {
    check_outputs({json_file});
    const Library library = open_library(model.plugins, model.verbose);
    const Network network = check(pipeline::load_network(library, make_request(library, model)));
    const json described = json::parse(check(network.describe()));
    const auto given = inputs(library, network, described);
    const Values left = side(library, a, network, described, given);
    const Values right = side(library, b, network, described, given);
    json layers = json::array();
    std::string first;
    std::size_t unfused = 0;
    std::vector<std::vector<std::string>> rows = {{"tensor", "max abs", "max rel", "rel l2", ""}};
    for (const json& node : described["nodes"]) {
      for (const json& output : node["outputs"]) {
        const std::string name = output["name"];
        const auto x = left.find(name), y = right.find(name);
        if (x == left.end() || y == right.end()) continue;
        const Difference difference(x->second.values, y->second.values);
        const bool within = difference.l2 <= tolerance;  // false for NaN
        const bool side_run = x->second.side_run || y->second.side_run;
        unfused += side_run ? 1 : 0;
        if (!within && first.empty()) first = name;
        layers.push_back({{"name", name},
                          {"max_abs", difference.max_abs},
                          {"max_rel", difference.max_rel},
                          {"l2", difference.l2},
                          {"within", within},
                          {"side_run", side_run}});
        std::string remark = within ? "" : "over tolerance";
        if (side_run) {
          remark += std::string(within ? "" : "; ") + "unfused, side run of " +
                    (!y->second.side_run ? "a" : (x->second.side_run ? "a and b" : "b"));
        }
        rows.push_back({name, number_text(difference.max_abs), number_text(difference.max_rel),
                        number_text(difference.l2), remark});
      }
    }
    if (!json_file.empty()) {
      write_json(json_file, {{"layers", layers},
                             {"first_over_tolerance", first.empty() ? json() : json(first)},
                             {"side_run_tensors", unfused}});
    }
    if (json_file != "-") {
      write_text("-", table(rows));
      if (unfused > 0) {
        std::printf("Fusion removed %zu of %zu tensors; these were computed unfused in a side run.\n", unfused,
                    layers.size());
      }
      std::printf("%s\n", first.empty() ? "All tensors are within the tolerance."
                                        : ("The first tensor over the tolerance is " + first + ".").c_str());
    }
    if (!first.empty())
      throw WorkError("tensor " + first + " differs by more than " + json(tolerance).dump() + " (relative l2)");
  }
};

}  // namespace

void add_compare(CLI::App* app) {
  auto command = std::make_shared<Compare>();
  CLI::App* sub = app->add_subcommand("compare", "run a model in two ways with the same inputs, tensor by tensor");
  command->model.add_to(sub, "MODEL or PIPELINE.yaml");
  sub->add_option("--a", command->a, "cpu:reference (default), cpu or cuda[:N]");
  sub->add_option("--b", command->b, "likewise (default cpu)");
  sub->add_option("--input", command->input, "a picture; default: normal numbers");
  sub->add_option("--seed", command->seed, "of the normal numbers");
  sub->add_option("--tolerance", command->tolerance, "relative l2 of the difference (default 1e-3)");
  sub->add_option("--json", command->json_file, "as JSON, to a file or - for stdout");
  sub->callback([command] { command->run(); });
}

}  // namespace tenon::cli
