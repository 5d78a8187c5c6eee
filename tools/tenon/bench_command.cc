#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <thread>

#include "tools/tenon/lane.h"

namespace tenon::cli {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

double since_ms(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

struct Bench {
  ModelOptions model;
  int iterations = 0, streams = 1;
  double duration = 3;
  bool no_graph = false, profile = false;
  std::string json_file;

  std::vector<double> measure(Lane* lane) const {
    for (Clock::time_point start = Clock::now(); since_ms(start) < 300;) check(lane->context.execute());
    std::vector<double> times;
    const Clock::time_point begin = Clock::now();
    while (iterations > 0 ? static_cast<int>(times.size()) < iterations : since_ms(begin) < duration * 1000) {
      const Clock::time_point start = Clock::now();
      check(lane->context.execute());
      times.push_back(since_ms(start));
    }
    return times;
  }

  json layers(Lane* lane) const {
    constexpr int kRounds = 20;
    json result;
    std::map<std::string, std::vector<double>> times;
    for (int round = 0; round < kRounds; ++round) {
      result = json::parse(check(lane->context.profile()));
      for (const json& layer : result) times[layer["name"]].push_back(layer["ms"]);
    }
    for (json& layer : result) {
      std::vector<double>& all = times[layer["name"]];
      std::nth_element(all.begin(), all.begin() + kRounds / 2, all.end());
      layer["ms"] = all[kRounds / 2];
    }
    return result;
  }

  void run() const {
    check_outputs({json_file});
    const Library library = open_library(model.plugins, model.verbose);
    const Engine engine = open_engine(library, model);
    std::vector<std::unique_ptr<Lane>> lanes;
    for (int i = 0; i < streams; ++i)
      lanes.push_back(std::make_unique<Lane>(engine, !no_graph, fixed_shapes(model.shapes)));
    std::vector<std::vector<double>> times(lanes.size());
    std::vector<std::string> failures(lanes.size());
    const Clock::time_point begin = Clock::now();
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      threads.emplace_back([&, i] {
        try {
          times[i] = measure(lanes[i].get());
        } catch (const std::exception& error) {
          failures[i] = error.what();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    const double wall_s = std::max(1e-9, since_ms(begin) / 1000 - 0.3);  // less the warm-up
    for (const std::string& failure : failures) {
      if (!failure.empty()) throw WorkError(failure);
    }
    std::vector<double> all;
    for (const std::vector<double>& lane : times) all.insert(all.end(), lane.begin(), lane.end());
    std::sort(all.begin(), all.end());
    const auto quantile = [&](double q) {
      return all[static_cast<std::size_t>(q * static_cast<double>(all.size() - 1))];
    };
    const std::vector<TensorInfo> inputs = engine.inputs();
    const std::vector<std::int64_t> dims =
        inputs.empty() ? std::vector<std::int64_t>() : check(lanes[0]->context.dims(inputs[0].name));
    const std::int64_t batch = dims.empty() ? 1 : dims[0];
    const double throughput = static_cast<double>(all.size()) * static_cast<double>(batch) / wall_s;
    json report = {{"latency_ms",
                    {{"min", all.front()}, {"median", quantile(0.5)}, {"p90", quantile(0.9)}, {"p99", quantile(0.99)}}},
                   {"throughput_per_s", throughput},
                   {"batch", batch},
                   {"iterations", all.size()},
                   {"streams", streams},
                   {"device", engine.device()}};
    if (profile) report["layers"] = layers(lanes[0].get());
    if (!json_file.empty()) write_json(json_file, report);
    if (json_file == "-") return;
    std::printf("%s: %zu runs of batch %lld, latency min %s, median %s, p90 %s, p99 %s ms, %.1f a second\n",
                engine.device().c_str(), all.size(), static_cast<long long>(batch), ms_text(all.front()).c_str(),
                ms_text(quantile(0.5)).c_str(), ms_text(quantile(0.9)).c_str(), ms_text(quantile(0.99)).c_str(),
                throughput);
    if (profile) {
      std::vector<std::vector<std::string>> rows = {{"ms", "layer"}};
      for (const json& layer : report["layers"]) rows.push_back({ms_text(layer["ms"]), layer["name"]});
      std::fputs(table(rows).c_str(), stdout);
    }
  }
};

}  // namespace

void add_bench(CLI::App* app) {
  auto command = std::make_shared<Bench>();
  CLI::App* sub = app->add_subcommand("bench", "warm up and measure");
  command->model.add_to(sub, "E.tenon, MODEL or PIPELINE.yaml");
  sub->add_option("--iterations", command->iterations, "runs to measure")->check(CLI::PositiveNumber);
  sub->add_option("--duration", command->duration, "seconds to measure (default 3)")->check(CLI::PositiveNumber);
  sub->add_option("--streams", command->streams, "contexts that run at once, each in a thread of its own")
      ->check(CLI::PositiveNumber);
  sub->add_flag("--no-graph", command->no_graph, "launch layer by layer; without effect on the CPU");
  sub->add_flag("--profile", command->profile, "time each layer");
  sub->add_option("--json", command->json_file, "figures as JSON, to a file or - for stdout");
  sub->callback([command] { command->run(); });
}

}  // namespace tenon::cli
