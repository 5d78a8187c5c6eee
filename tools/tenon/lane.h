// A context with random inputs in memory of its own: what bench measures and the build report counts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tools/tenon/common.h"

namespace tenon::cli {

/// Enough for any dtype.
inline std::size_t bytes_of(const TensorInfo& info) {
  std::size_t bytes = 8;
  for (const std::int64_t size : info.dims) bytes *= static_cast<std::size_t>(size);
  return bytes;
}

/// A context with memory of its own on the device for all inputs and outputs. Inputs hold normal numbers.
struct Lane {
  std::vector<std::shared_ptr<void>> memory;
  ExecutionContext context;

  /// `shapes`: dims of inputs, where they are not those of the engine.
  Lane(const Engine& engine, bool use_graph, const std::map<std::string, std::vector<std::int64_t>>& shapes)
      : context(check(ExecutionContext::create(engine))) {
    check(context.use_graph(use_graph));
    for (const auto& [name, dims] : shapes) check(context.set_input_dims(name, dims));
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    const auto bind = [&](const std::vector<TensorInfo>& tensors, bool fill) {
      for (TensorInfo info : tensors) {
        info.dims = check(context.dims(info.name));
        std::vector<float> values(bytes_of(info) / sizeof(float));
        if (fill && info.dtype == TN_F32) std::generate(values.begin(), values.end(), [&] { return normal(random); });
        memory.push_back(check(engine.allocate(bytes_of(info))));
        check(engine.upload(memory.back().get(), values.data(), bytes_of(info)));
        check(context.set_tensor(info.name, memory.back().get()));
      }
    };
    bind(engine.inputs(), true);
    bind(engine.outputs(), false);
  }
};

}  // namespace tenon::cli
