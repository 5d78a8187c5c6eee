#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>

#include "tools/tenon/common.h"

namespace tenon::cli {
namespace {

using nlohmann::json;

/// Values of one side, by tensor name: f32 ones only.
using Values = std::map<std::string, std::vector<float>>;

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
      values[name].assign(data, data + count);
    }
    return values;
  }

  /// Builds the network with every node's outputs marked, so that nothing is fused away, and runs it.
  Values built(const Library& library, const std::string& device, const json& described,
               const std::vector<std::vector<float>>& given) const {
    pipeline::BuildRequest request = make_request(library, model);
    request.device = device;
    for (const json& node : described["nodes"]) {
      for (const json& output : node["outputs"]) request.mark_outputs.push_back(output["name"]);
    }
    const BuiltEngine bytes = check(pipeline::build_engine(library, request, progress_printer()));
    const Engine engine = check(Runtime(library, device, request.threads).create(bytes.data(), bytes.size()));
    ExecutionContext context = check(ExecutionContext::create(engine));
    const std::vector<TensorInfo> tensors = engine.inputs();
    for (std::size_t i = 0; i < tensors.size(); ++i)
      check(context.set_tensor(tensors[i].name, const_cast<float*>(given[i].data())));
    std::map<std::string, std::vector<double>> memory;
    for (const TensorInfo& info : engine.outputs()) {
      std::size_t count = 1;
      for (const std::int64_t size : info.dims) count *= static_cast<std::size_t>(size);
      memory[info.name].resize(count + 1);
      check(context.set_tensor(info.name, memory[info.name].data()));
    }
    check(context.execute());
    Values values;
    for (const TensorInfo& info : engine.outputs()) {
      if (info.dtype != TN_F32) continue;
      std::vector<float>& out = values[info.name];
      out.resize(memory[info.name].size() - 1);
      std::memcpy(out.data(), memory[info.name].data(), out.size() * sizeof(float));
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
    std::vector<std::vector<std::string>> rows = {{"tensor", "max abs", "max rel", "rel l2", ""}};
    for (const json& node : described["nodes"]) {
      for (const json& output : node["outputs"]) {
        const std::string name = output["name"];
        const auto x = left.find(name), y = right.find(name);
        if (x == left.end() || y == right.end()) continue;
        double max_abs = 0, max_rel = 0, difference = 0, norm = 0;
        for (std::size_t i = 0; i < x->second.size(); ++i) {
          const double p = static_cast<double>(x->second[i]), q = static_cast<double>(y->second[i]);
          max_abs = std::max(max_abs, std::abs(p - q));
          if (p != 0) max_rel = std::max(max_rel, std::abs(p - q) / std::abs(p));
          difference += (p - q) * (p - q);
          norm += p * p;
        }
        const double l2 = norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
        const bool within = l2 <= tolerance;  // false for NaN
        if (!within && first.empty()) first = name;
        layers.push_back({{"name", name}, {"max_abs", max_abs}, {"max_rel", max_rel}, {"l2", l2}, {"within", within}});
        const auto text = [](double v) {
          char buffer[32];
          std::snprintf(buffer, sizeof(buffer), "%.3g", v);
          return std::string(buffer);
        };
        rows.push_back({name, text(max_abs), text(max_rel), text(l2), within ? "" : "over tolerance"});
      }
    }
    if (!json_file.empty())
      write_json(json_file, {{"layers", layers}, {"first_over_tolerance", first.empty() ? json() : json(first)}});
    if (json_file != "-") {
      write_text("-", table(rows));
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
