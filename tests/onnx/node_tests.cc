// Runs the operator tests that the ONNX project publishes: each folder has model.onnx and test_data_set_N with inputs
// and expected outputs.
//
//   onnx_node_tests FOLDER [--only REGEX] [--device cpu] [--list] [--markdown FILE]
//
// A test passes if every output agrees (floats: |y - e| <= max(1e-7, 2^-24 max |e|) + 1e-3 |e|, the ONNX project's own
// but for the 2^-24; others: exactly), is declined if the importer says by name what it does not do, and fails
// otherwise. An output whose dims depend on data may be smaller than the engine says. Inputs that decide shapes have to
// be known when the model is read: a test that needs it is read again with its integer inputs given, and at last with
// all of them.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <tenon/tenon.hpp>

#include "importers/onnx/onnx.pb.h"
#include "importers/onnx/rules.h"
#include "importers/onnx/tensors.h"
#include "tests/onnx/elements.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;
namespace pb = onnx::pb;

enum class Outcome { kPassed, kPassedWithIntegersGiven, kPassedWithAllGiven, kDeclined, kFailed };
constexpr const char* kOutcomes[] = {"passed", "passed, integer inputs given", "passed, all inputs given", "declined",
                                     "FAILED"};

struct Report {
  Outcome outcome = Outcome::kFailed;
  std::string reason;
};

struct Options {
  fs::path folder, markdown;
  std::regex only{""};
  std::string device = "cpu";
  bool list = false;
};

/// Data of one input or output.
struct Data {
  std::int32_t dtype = TN_DTYPE_NONE;
  std::vector<std::int64_t> dims;
  std::string bytes;
};

std::size_t bytes_of(std::int32_t dtype, const std::vector<std::int64_t>& dims) {
  std::int64_t count = 1;
  for (const std::int64_t size : dims) count *= size;
  return static_cast<std::size_t>((count * testing::element_bits(dtype) + 7) / 8);
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

/// Nothing if the file holds no tensor that Tenon has (strings, sequences).
std::optional<Data> read_tensor_file(const fs::path& path) {
  pb::TensorProto proto;
  if (!proto.ParseFromString(read_file(path))) return std::nullopt;
  try {
    const onnx::ReadTensor read = onnx::read_tensor(proto, nullptr);
    Data data;
    data.dtype = read.tensor.dtype;
    data.dims.assign(read.tensor.dims.d, read.tensor.dims.d + read.tensor.dims.rank);
    data.bytes.assign(static_cast<const char*>(read.tensor.data), bytes_of(data.dtype, data.dims));
    return data;
  } catch (const onnx::Unsupported&) {
    return std::nullopt;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

/// What differs; empty if nothing does.
std::string difference(const Data& expected, const Data& found) {
  std::ostringstream out;
  if (expected.dtype != found.dtype) {
    out << "expected dtype " << expected.dtype << ", found " << found.dtype;
    return out.str();
  }
  if (expected.dims != found.dims) {
    out << "expected dims [";
    for (const auto size : expected.dims) out << size << " ";
    out << "], found [";
    for (const auto size : found.dims) out << size << " ";
    out << "]";
    return out.str();
  }
  std::int64_t count = 1;
  for (const std::int64_t size : expected.dims) count *= size;
  const bool exact = !testing::is_float(expected.dtype);
  if (exact && testing::element_bits(expected.dtype) >= 8 && expected.bytes == found.bytes) return "";
  double largest = 0;
  for (std::int64_t n = 0; n < count && !exact; ++n) {
    const double e = std::abs(testing::element(expected.bytes.data(), expected.dtype, n));
    if (std::isfinite(e)) largest = std::max(largest, e);
  }
  // Where large numbers cancel, the expected values themselves are off by about half a unit in the last place of f32.
  const double absolute = std::max(1e-7, largest / (1 << 24));
  std::int64_t wrong = 0;
  for (std::int64_t n = 0; n < count; ++n) {
    const double e = testing::element(expected.bytes.data(), expected.dtype, n);
    const double y = testing::element(found.bytes.data(), found.dtype, n);
    bool same = e == y || (std::isnan(e) && std::isnan(y));
    if (!same && !exact) same = std::isfinite(e) && std::abs(y - e) <= absolute + 1e-3 * std::abs(e);
    if (same && exact && testing::element_bits(expected.dtype) == 64) {
      same =
          testing::load<std::int64_t>(expected.bytes.data(), n) == testing::load<std::int64_t>(found.bytes.data(), n);
    }
    if (!same && wrong++ == 0) out << "element " << n << ": expected " << e << ", found " << y;
  }
  if (wrong == 0) return "";
  out << "; " << wrong << " of " << count << " differ";
  return out.str();
}

class Runner {
 public:
  Runner(Library library, Options options) : library_(std::move(library)), options_(std::move(options)) {}

  Report run(const fs::path& test) {
    const std::string text = read_file(test / "model.onnx");
    pb::ModelProto model;
    if (!model.ParseFromString(text)) return {Outcome::kFailed, "model.onnx cannot be read"};
    Report report;
    for (int set = 0; fs::exists(test / ("test_data_set_" + std::to_string(set))); ++set) {
      Report next = run_set(test, model, test / ("test_data_set_" + std::to_string(set)));
      if (set == 0 || next.outcome > report.outcome) report = std::move(next);
    }
    return report;
  }

 private:
  struct Failure {
    Status status;
    bool wrong_answer = false;
  };

  Report run_set(const fs::path& test, const pb::ModelProto& model, const fs::path& set) {
    std::vector<std::pair<std::string, std::optional<Data>>> inputs;
    for (int n = 0; n < model.graph().input_size(); ++n) {
      const fs::path file = set / ("input_" + std::to_string(n) + ".pb");
      if (!fs::exists(file)) continue;
      const bool tensor = model.graph().input(n).type().has_tensor_type();
      inputs.emplace_back(model.graph().input(n).name(), tensor ? read_tensor_file(file) : std::nullopt);
    }
    std::string reasons;
    Status last;
    for (int mode = 0; mode < 3; ++mode) {
      const Failure failure = attempt(test, model, set, inputs, mode);
      if (failure.status.ok() && !failure.wrong_answer) return {static_cast<Outcome>(mode), ""};
      if (failure.wrong_answer) return {Outcome::kFailed, failure.status.message()};
      last = failure.status;
      if (options_.list) reasons += "\n    as " + std::string(kOutcomes[mode]) + ": " + last.message();
    }
    const bool declined =
        last.code() == Code::kVersion ||  // of the opset
        (last.code() == Code::kNotFound && last.message().find("cannot be imported") != std::string::npos);
    return {declined ? Outcome::kDeclined : Outcome::kFailed, last.message() + (declined ? "" : reasons)};
  }

  /// Mode 0: all inputs at run time; 1: integers and bools are given when the model is read; 2: all are.
  Failure attempt(const fs::path& test, const pb::ModelProto& model, const fs::path& set,
                  const std::vector<std::pair<std::string, std::optional<Data>>>& inputs, int mode) {
    const auto given = [&](const Data& data) { return mode == 2 || (mode == 1 && !testing::is_float(data.dtype)); };
    const auto network = Network::create(library_);
    if (!network.ok()) return {network.status()};
    Network net = *network;
    std::string shapes;
    for (const auto& [name, data] : inputs) {
      if (!data) continue;
      if (given(*data)) {
        const TnDims dims = detail::dims(data->dims);
        TnTensorId id = TN_NO_TENSOR;
        if (tn_network_add_constant(net.get(), name.c_str(), data->dtype, &dims, data->bytes.data(), data->bytes.size(),
                                    &id) != TN_OK) {
          return {Status(Code::kInvalid, tn_last_error())};
        }
        continue;
      }
      if (data->dims.empty()) continue;
      shapes += (shapes.empty() ? "" : ";") + name + "=";
      for (std::size_t n = 0; n < data->dims.size(); ++n) shapes += (n ? "x" : "") + std::to_string(data->dims[n]);
    }
    const std::string options = shapes.empty() ? "" : "{\"input_shapes\": \"" + shapes + "\"}";
    Status status = net.import((test / "model.onnx").string(), "onnx", options);
    if (!status.ok()) return {status};
    auto config = BuilderConfig::create();
    if (!config.ok()) return {config.status()};
    for (const auto& [key, value] : {std::pair{"device", options_.device.c_str()}, std::pair{"on_fallback", "allow"}}) {
      status = config->set(key, value);
      if (!status.ok()) return {status};
    }
    const auto built = Builder(library_).build(net, *config);
    if (!built.ok()) return {built.status()};
    const auto engine = Runtime(library_, options_.device).create(built->data(), built->size());
    if (!engine.ok()) return {engine.status()};
    auto context = ExecutionContext::create(*engine);
    if (!context.ok()) return {context.status()};

    std::vector<std::shared_ptr<void>> memory;
    const auto bind = [&](const std::string& name, std::size_t bytes) -> Result<void*> {
      TENON_ASSIGN(memory.emplace_back(), engine->allocate(std::max<std::size_t>(bytes, 1)));
      TENON_RETURN_IF_ERROR(context->set_tensor(name, memory.back().get()));
      return memory.back().get();
    };
    for (const TensorInfo& input : engine->inputs()) {
      const auto found =
          std::find_if(inputs.begin(), inputs.end(), [&](const auto& i) { return i.first == input.name; });
      if (found == inputs.end() || !found->second) return {Status(Code::kInternal, "no data for input " + input.name)};
      const auto data = bind(input.name, found->second->bytes.size());
      if (!data.ok()) return {data.status()};
      status = engine->upload(*data, found->second->bytes.data(), found->second->bytes.size());
      if (!status.ok()) return {status};
    }
    std::map<std::string, Data> outputs;
    std::map<std::string, void*> where;
    for (const TensorInfo& output : engine->outputs()) {
      Data& data = outputs[output.name];
      data.dtype = output.dtype;
      const auto bound = bind(output.name, bytes_of(output.dtype, output.dims));
      if (!bound.ok()) return {bound.status()};
      where[output.name] = *bound;
    }
    status = context->execute();
    if (!status.ok()) return {status};
    for (int n = 0; n < model.graph().output_size(); ++n) {
      const std::string& name = model.graph().output(n).name();
      const fs::path file = set / ("output_" + std::to_string(n) + ".pb");
      if (!fs::exists(file)) continue;
      const auto expected = read_tensor_file(file);
      const auto found = outputs.find(name);
      if (!expected || found == outputs.end())
        return {Status(Code::kInternal, "output " + name + ": nothing to compare"), true};
      Data& data = found->second;
      const auto dims = context->dims(name);
      if (!dims.ok()) return {dims.status()};
      data.dims = *dims;
      data.bytes.resize(bytes_of(data.dtype, data.dims));
      status = engine->download(data.bytes.data(), where[name], data.bytes.size());
      if (!status.ok()) return {status};
      const std::string differs = difference(*expected, data);
      if (!differs.empty()) return {Status(Code::kInternal, "output " + name + ": " + differs), true};
    }
    return {Status(), false};
  }

  Library library_;
  Options options_;
};

/// The operators that a test's model has in its graph, with the version that applies.
std::set<std::string> operators_of(const fs::path& test) {
  pb::ModelProto model;
  std::set<std::string> found;
  if (!model.ParseFromString(read_file(test / "model.onnx"))) return found;
  std::map<std::string, int> opsets;
  for (const auto& import : model.opset_import()) opsets[import.domain()] = static_cast<int>(import.version());
  for (const auto& node : model.graph().node()) {
    const int since = onnx::find_rule(node.domain(), node.op_type(), opsets[node.domain()]).since;
    found.insert((node.domain().empty() ? "" : node.domain() + ".") + node.op_type() + "-" + std::to_string(since));
  }
  return found;
}

/// The importer's message without file and nodes: "Foo-13: attribute x = y".
std::set<std::string> reasons_of(const std::string& message) {
  const std::size_t list = message.find("\n  ");
  if (list == std::string::npos) return {message.substr(message.find("expected"))};
  std::set<std::string> reasons;
  std::istringstream lines(message.substr(list + 1));
  for (std::string line; std::getline(lines, line);) reasons.insert(line.substr(2, line.rfind(" (") - 2));
  return reasons;
}

int run_all(const Options& options) {
  LibraryOptions silent;
  silent.log_threshold = TN_LOG_ERROR;
  auto library = Library::create(silent);
  if (!library.ok() || !library->discover().ok()) {
    std::cerr << "error: the plugins could not be loaded\n";
    return 1;
  }
  Runner runner(*library, options);
  std::map<Outcome, int> counts;
  std::map<std::string, std::map<Outcome, int>> by_operator;
  std::map<std::string, std::set<std::string>> reasons;
  std::set<fs::path> tests;
  for (const auto& entry : fs::directory_iterator(options.folder)) {
    if (fs::exists(entry.path() / "model.onnx") && std::regex_search(entry.path().filename().string(), options.only)) {
      tests.insert(entry.path());
    }
  }
  for (const fs::path& test : tests) {
    const Report report = runner.run(test);
    ++counts[report.outcome];
    for (const std::string& op : operators_of(test)) ++by_operator[op][report.outcome];
    if (report.outcome == Outcome::kDeclined) {
      for (const std::string& reason : reasons_of(report.reason)) reasons[reason].insert(test.filename().string());
    }
    if (report.outcome == Outcome::kFailed || options.list) {
      std::cout << test.filename().string() << ": " << kOutcomes[static_cast<int>(report.outcome)]
                << (report.reason.empty() ? "" : ": ") << report.reason << std::endl;
    }
  }
  for (const auto& [outcome, count] : counts) std::cout << count << " " << kOutcomes[static_cast<int>(outcome)] << "\n";
  if (!options.markdown.empty()) {
    std::ofstream out(options.markdown);
    out << "# ONNX operators\n\nWritten by tests/onnx/node_tests.cc from " << tests.size()
        << " of the operator tests that the ONNX project publishes, on the device " << options.device << ".\n\n";
    for (const auto& [outcome, count] : counts)
      out << "- " << count << " " << kOutcomes[static_cast<int>(outcome)] << "\n";
    out << "\n\"Given\": what decides shapes has to be known when the model is read.\n\n"
        << "| operator and version | passed | with integers given | with all given | declined | failing |\n"
        << "|---|---|---|---|---|---|\n";
    for (auto& [op, row] : by_operator) {
      out << "| " << op;
      for (int n = 0; n < 5; ++n)
        out << " | " << (row.count(static_cast<Outcome>(n)) ? std::to_string(row[static_cast<Outcome>(n)]) : "");
      out << " |\n";
    }
    out << "\n## Declined\n\n";
    for (const auto& [reason, names] : reasons) {
      out << "- " << reason << ":";
      for (const std::string& name : names) out << " " << name;
      out << "\n";
    }
  }
  return tests.empty() || counts[Outcome::kFailed] > 0 ? 1 : 0;
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  tenon::Options options;
  for (int n = 1; n < argc; ++n) {
    const std::string word = argv[n];
    const bool more = n + 1 < argc;
    if (word == "--only" && more) {
      options.only = std::regex(argv[++n]);
    } else if (word == "--device" && more) {
      options.device = argv[++n];
    } else if (word == "--markdown" && more) {
      options.markdown = argv[++n];
    } else if (word == "--list") {
      options.list = true;
    } else if (word[0] != '-' && options.folder.empty()) {
      options.folder = word;
    } else {
      std::cerr << "usage: onnx_node_tests FOLDER [--only REGEX] [--device cpu] [--list] [--markdown FILE]\n";
      return 2;
    }
  }
  return tenon::run_all(options);
}
