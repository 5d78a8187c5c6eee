#include "tests/fusion/engines.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/fusion/network_maker.h"
#include "tests/fusion/random_network.h"

namespace tenon::fusion {
namespace {

using nlohmann::json;

const char* const kLeftOut[Engines::kKinds] = {"", "-onednn", "-onednn,-direct,-depthwise,-tiled"};

std::vector<float> random_input(std::uint64_t seed, std::size_t index, std::int64_t count) {
  return Random(seed * 31 + index + 7).numbers(count, -2, 2);
}

}  // namespace

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Difference difference(const std::string& name, const std::vector<float>& found, const std::vector<float>& wanted) {
  if (found.size() != wanted.size()) return {kInfinity, kInfinity, name};
  double distance = 0, length = 0, farthest = 0, most = 0;
  for (std::size_t n = 0; n < wanted.size(); ++n) {
    const double a = static_cast<double>(found[n]), b = static_cast<double>(wanted[n]);
    if (a == b || (std::isnan(a) && std::isnan(b))) {
      if (std::isfinite(b)) length += b * b, most = std::max(most, std::abs(b));
      continue;
    }
    if (!std::isfinite(a) || !std::isfinite(b)) return {kInfinity, kInfinity, name};
    distance += (a - b) * (a - b);
    length += b * b;
    farthest = std::max(farthest, std::abs(a - b));
    most = std::max(most, std::abs(b));
  }
  const double smallest = static_cast<double>(std::numeric_limits<float>::min());
  return {std::sqrt(distance) / std::max(std::sqrt(length), smallest), farthest / std::max(most, smallest), name};
}

}  // namespace

Differences differences(const Outputs& found, const Outputs& expected) {
  Differences result;
  for (const auto& [name, wanted] : expected) {
    const auto at = found.find(name);
    result[name] = at == found.end() ? Difference{kInfinity, kInfinity, name} : difference(name, at->second, wanted);
  }
  return result;
}

Difference worst(const Differences& all, const Differences& rounding) {
  Difference result;
  for (auto [name, d] : all) {
    const auto at = rounding.find(name);
    if (at != rounding.end()) {
      if (!std::isfinite(at->second.l2)) continue;  // beyond what f32 holds
      d.l2 = std::max(0.0, d.l2 - 10 * at->second.l2);
      d.largest = std::max(0.0, d.largest - 10 * at->second.largest);
    }
    if (10 * d.l2 + d.largest > 10 * result.l2 + result.largest) result = d;
  }
  return result;
}

Engines::Engines(std::string device) : device_(std::move(device)) {
  LibraryOptions options;
  options.log_threshold = TN_LOG_WARNING;
  options.log = [this](int, const std::string& message) { warnings_ += message + "\n"; };
  library_ = must(Library::create(options));
  must(library_->discover());
  must(TimingCache::create(*library_, "", 0, device_).status());  // throws where there is no such device
  const json described = json::parse(must(library_->describe()));
  for (const json& rule : described["rules"]) {
    if (rule["id"] == kFewestLaunches) continue;
    rules_.push_back(rule["id"]);
    if (rule["mode"] == "candidate") candidates_.insert(rule["id"]);
  }
}

std::set<std::string> Engines::all_but(const std::set<std::string>& kept) const {
  std::set<std::string> result(rules_.begin(), rules_.end());
  for (const std::string& rule : kept) result.erase(rule);
  return result;
}

Built Engines::build(const Network& network, const std::set<std::string>& disabled, int kind) {
  BuilderConfig config = must(BuilderConfig::create());
  must(config.set("device", device_));
  must(config.set("threads", "1"));
  must(config.set("time_budget", "1e-9"));
  must(config.set("on_fallback", "allow"));
  must(config.set("verbosity", "none"));
  if (*kLeftOut[kind] != '\0') must(config.set("tactic_sources", kLeftOut[kind]));
  for (const std::string& rule : disabled) must(config.set("disable_rule", rule));
  for (const std::string& rule : candidates_) {
    if (disabled.count(rule) == 0) must(config.set("force_rule", rule));
  }
  warnings_.clear();
  const Result<BuiltEngine> built = Builder(*library_).build(network, config);
  if (!built.ok()) throw std::runtime_error("build: " + built.status().message());
  if (!warnings_.empty()) throw std::runtime_error("a warning of the build: " + warnings_);
  Built result{built->bytes(), {}};
  const json report = json::parse(built->report());
  for (const json& rule : report["rules"]) result.fired[rule["id"]] = rule["count"];
  return result;
}

Outputs Engines::run(const Built& built, std::uint64_t seed, std::int64_t batch) {
  const Engine engine = must(Runtime(*library_, device_, 1).create(built.bytes.data(), built.bytes.size()));
  ExecutionContext context = must(ExecutionContext::create(engine));
  std::vector<std::vector<float>> inputs;
  for (const TensorInfo& input : engine.inputs()) {
    Dims dims = input.dims;
    if (batch != 0 && input.min[0] != input.max[0]) {
      dims[0] = batch;
      must(context.set_input_dims(input.name, dims));
    }
    inputs.push_back(random_input(seed, inputs.size(), elements(dims)));
    must(context.set_tensor(input.name, inputs.back().data()));
  }
  Outputs outputs;
  for (const TensorInfo& output : engine.outputs()) {
    std::vector<float>& values = outputs[output.name];
    values.resize(static_cast<std::size_t>(elements(must(context.dims(output.name)))));
    must(context.set_tensor(output.name, values.data()));
  }
  must(context.execute());
  return outputs;
}

Outputs Engines::reference(const Network& network, std::uint64_t seed) {
  const json described = json::parse(must(network.describe()));
  std::vector<std::vector<float>> inputs;
  std::vector<std::vector<double>> doubles;
  std::vector<const void*> pointers;
  for (const json& input : described["inputs"]) {
    inputs.push_back(random_input(seed, inputs.size(), elements(input["dims"].get<Dims>())));
    doubles.emplace_back(inputs.back().begin(), inputs.back().end());
    pointers.push_back(inputs.back().data());
    if (input["dtype"] == "f64") pointers.back() = doubles.back().data();
  }
  std::set<std::string> wanted;
  for (const json& output : described["outputs"]) wanted.insert(output["name"].get<std::string>());
  TnReferenceRun* run = nullptr;
  must(detail::check(
      tn_reference_run(network.get(), pointers.data(), static_cast<std::uint32_t>(pointers.size()), &run)));
  const detail::Handle<TnReferenceRun, tn_reference_release> held(run);
  Outputs outputs;
  for (std::uint32_t n = 0; n < tn_reference_num_values(run); ++n) {
    const char* name = "";
    TnTensor tensor{};
    must(detail::check(tn_reference_value(run, n, &name, &tensor)));
    if (wanted.count(name) == 0) continue;
    const std::int64_t count = elements(detail::list(tensor.dims));
    if (tensor.dtype == TN_F64) {
      const auto* values = static_cast<const double*>(tensor.data);
      outputs[name].assign(values, values + count);
    } else {
      const auto* values = static_cast<const float*>(tensor.data);
      outputs[name].assign(values, values + count);
    }
  }
  return outputs;
}

}  // namespace tenon::fusion
