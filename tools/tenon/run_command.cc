#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "pipeline/debug_tensors.h"
#include "pipeline/labels.h"
#include "tools/tenon/common.h"

namespace tenon::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

bool is_array(const fs::path& path) { return path.extension() == ".npy"; }

/// A tensor's name as a file name.
std::string file_name(const std::string& name) {
  std::string result = name;
  for (char& c : result) {
    const bool plain =
        (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
    if (!plain) c = '_';
  }
  return result + ".npy";
}

struct Run {
  ModelOptions model;
  std::vector<std::string> inputs, tensors, debug_outputs;
  std::string output, dump, json_file;
  std::optional<double> threshold;

  /// Pictures and arrays to run: files as given, folders by those in them, in name order.
  std::vector<std::string> input_files() const {
    std::vector<std::string> files;
    for (const std::string& input : inputs) {
      if (!fs::exists(input)) throw WorkError(input + ": no such file");
      if (!fs::is_directory(input)) {
        files.push_back(input);
        continue;
      }
      std::vector<std::string> found;
      for (const fs::directory_entry& entry : fs::directory_iterator(input)) {
        if (entry.is_regular_file() && (is_array(entry.path()) || pipeline::image_suffix_readable(entry.path())))
          found.push_back(entry.path().string());
      }
      std::sort(found.begin(), found.end());
      if (found.empty()) throw WorkError(input + ": the folder holds no picture and no .npy file");
      files.insert(files.end(), found.begin(), found.end());
    }
    return files;
  }

  std::map<std::string, pipeline::NpyArray> arrays(const Engine& engine) const {
    std::map<std::string, pipeline::NpyArray> result;
    for (const std::string& option : tensors) {
      const std::size_t equals = option.find('=');
      if (equals == std::string::npos) throw UsageError("--tensor " + option + ": expected NAME=FILE.npy");
      result[option.substr(0, equals)] = check(pipeline::read_npy(option.substr(equals + 1)));
    }
    std::string missing;
    for (const TensorInfo& info : engine.inputs()) {
      if (result.find(info.name) == result.end()) missing += " " + info.name;
    }
    if (!missing.empty()) throw UsageError("no --tensor for input" + missing);
    return result;
  }

  void print(const pipeline::InputResult& result, const pipeline::PipelineSettings& settings) const {
    if (json_file == "-") return;
    if (!result.input.empty()) std::printf("%s:\n", result.input.c_str());
    for (const pipeline::Detection& d : result.detections) {
      std::printf("  %-16s %5.1f%%  left %.1f, top %.1f, width %.1f, height %.1f\n",
                  pipeline::label_of(settings.labels, d.class_id).c_str(), static_cast<double>(d.score) * 100,
                  static_cast<double>(d.box.left), static_cast<double>(d.box.top), static_cast<double>(d.box.width),
                  static_cast<double>(d.box.height));
    }
    if (settings.postprocess.type == pipeline::PostprocessType::kDetections && result.detections.empty() &&
        !result.input.empty()) {
      std::printf("  nothing found with a score above %.2f\n", static_cast<double>(settings.postprocess.threshold));
    }
    for (const pipeline::ClassScore& c : result.classes) {
      std::printf("  %-28s %6.2f%%\n", pipeline::label_of(settings.labels, c.class_id).c_str(),
                  static_cast<double>(c.score) * 100);
    }
    if (result.detections.empty() && result.classes.empty()) {
      for (const pipeline::OutputInfo& o : result.outputs) {
        if (o.debug) continue;
        std::printf("  output %s %s %s\n", o.name.c_str(), json(o.dims).dump().c_str(), o.dtype.c_str());
      }
    }
    for (const pipeline::OutputInfo& o : result.outputs) {
      if (!o.debug) continue;
      std::printf("  debug output %s %s %s%s\n", o.name.c_str(), json(o.dims).dump().c_str(), o.dtype.c_str(),
                  o.side_run ? ", unfused, side run" : "");
    }
  }

  /// Lets the runner show the tensors of --debug-output.
  void show_debug_outputs(const Library& library, const Engine& engine,
                          const std::optional<pipeline::BuildRequest>& request, pipeline::Runner* runner) const {
    if (debug_outputs.empty()) return;
    auto shown = pipeline::DebugTensors::create(library, engine, debug_outputs, request ? &*request : nullptr,
                                                progress_printer());
    check(shown.status().with_context("--debug-output"));
    if (!shown->left_out().empty()) {
      std::fprintf(
          stderr,
          "warning: --debug-output: %zu tensors that fit are left out, %s among them, for fusion removed them; "
          "give the model in place of the engine file to have them computed unfused in a side run\n",
          shown->left_out().size(), shown->left_out().front().c_str());
    }
    check(runner->debug(std::move(shown).value()));
  }

  void write_dump(const pipeline::Runner& runner, const std::string& input, bool several) const {
    if (dump.empty()) return;
    const fs::path folder = several ? fs::path(dump) / fs::path(input).stem() : fs::path(dump);
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) throw WorkError("--dump-tensors " + folder.string() + ": " + error.message());
    for (const auto& [name, array] : check(runner.outputs()))
      check(pipeline::write_npy(folder / file_name(name), array));
  }

  void run() const {
    if (inputs.empty() == tensors.empty()) {
      throw UsageError(inputs.empty() ? "nothing to run on: give --input FILE or --tensor NAME=FILE.npy"
                                      : "give either --input or --tensor, not both");
    }
    if (!debug_outputs.empty() && dump.empty()) {
      throw UsageError("--debug-output needs --dump-tensors DIR, where the values are written");
    }
    if (threshold && !(*threshold >= 0 && *threshold <= 1)) throw UsageError("--threshold: expected 0 to 1, found nan");
    if (!output.empty() && !pipeline::image_suffix_supported(output)) {
      throw UsageError("--output " + output + ": expected a .png or .jpg file");
    }
    const std::vector<std::string> files = input_files();
    if (!output.empty() && files.size() != 1)
      throw UsageError("--output takes one picture, and there are " + std::to_string(files.size()));
    if (!output.empty() && is_array(files[0])) throw UsageError("--output needs a picture to draw on, not " + files[0]);
    check_outputs({output, json_file});
    const Library library = open_library(model.plugins, model.verbose);
    std::optional<pipeline::BuildRequest> request;
    const Engine engine = open_engine(library, model, debug_outputs.empty() ? nullptr : &request);
    pipeline::Runner runner = check(pipeline::Runner::create(engine));
    if (threshold) runner.settings().postprocess.threshold = static_cast<float>(*threshold);
    show_debug_outputs(library, engine, request, &runner);
    pipeline::RunReport report;
    report.labels = runner.settings().labels;
    report.device = engine.device();
    if (files.empty()) {
      report.results.push_back(check(runner.run_tensors(arrays(engine))));
      print(report.results.back(), runner.settings());
      write_dump(runner, "", false);
    }
    for (const std::string& file : files) {
      pipeline::Image annotated;
      report.results.push_back(check(is_array(file) ? runner.run_array(file)
                                                    : runner.run_image(file, output.empty() ? nullptr : &annotated)));
      print(report.results.back(), runner.settings());
      write_dump(runner, file, files.size() > 1);
      if (!output.empty()) check(pipeline::write_image(output, annotated));
    }
    report.timings_ms = runner.timings();
    if (!json_file.empty()) write_text(json_file, pipeline::run_json_text(report));
    if (json_file == "-") return;
    std::printf("%s: preprocess %s ms, infer %s ms, postprocess %s ms\n", report.device.c_str(),
                ms_text(report.timings_ms.preprocess).c_str(), ms_text(report.timings_ms.infer).c_str(),
                ms_text(report.timings_ms.postprocess).c_str());
    if (!output.empty()) std::printf("Wrote %s\n", output.c_str());
  }
};

}  // namespace

void add_run(CLI::App* app) {
  auto command = std::make_shared<Run>();
  CLI::App* sub = app->add_subcommand("run", "run an engine, a model or a pipeline");
  command->model.add_to(sub, "E.tenon, MODEL or PIPELINE.yaml");
  sub->add_option("--input", command->inputs,
                  "a picture, a .npy file for the only input, or a folder of these; repeatable");
  sub->add_option("--tensor", command->tensors, "NAME=FILE.npy for an input, repeatable");
  sub->add_option("--output", command->output, "the picture with what was found drawn in (.png, .jpg)");
  sub->add_option("--dump-tensors", command->dump, "folder for NAME.npy of every output");
  sub->add_option("--debug-output", command->debug_outputs,
                  "an inner tensor, or a pattern such as \"conv*\", that --dump-tensors writes too, without changing "
                  "the engine; repeatable");
  sub->add_option("--json", command->json_file, "results as JSON, to a file or - for stdout");
  sub->add_option("--threshold", command->threshold, "least score of a detection, in place of the pipeline's")
      ->check(CLI::Range(0.0, 1.0));
  sub->callback([command] { command->run(); });
}

}  // namespace tenon::cli
