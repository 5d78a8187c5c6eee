// DebugTensors: the values of any tensors of a network while its engine runs, as it is. Those that the engine computes
// are read from it; those that fusion removed are computed unfused by a second engine, in a side run.
//
// Thread rule: one thread at a time.
#ifndef TENON_PIPELINE_DEBUG_TENSORS_H
#define TENON_PIPELINE_DEBUG_TENSORS_H

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <tenon/status.hpp>
#include <tenon/tenon.hpp>

#include "pipeline/builder.h"
#include "pipeline/npy.h"

namespace tenon::pipeline {

struct DebugTensor {
  NpyArray array;
  bool side_run = false;  ///< not of the engine's plan: computed unfused beside it
};

struct DebugInput {
  std::string name;
  std::vector<std::int64_t> dims;
  const void* data = nullptr;  ///< row-major, packed
};

class DebugTensors {
 public:
  /// `patterns`: names, or patterns for glob_match over the names of the network. `request`: what the engine was built
  /// from; nullptr if only the engine is at hand, and then patterns mean the tensors that it has. Builds the second
  /// engine if it is needed: same options, but a frozen cache is not written and nothing is decided anew. Fails with
  /// kNotFound for a name or pattern that means nothing, and without a request with kDeclined for a tensor that fusion
  /// removed.
  static Result<DebugTensors> create(const Library& library, const Engine& engine,
                                     const std::vector<std::string>& patterns, const BuildRequest* request,
                                     const std::function<bool(const BuildProgress&)>& progress);

  /// From now on runs of this context of the engine give their values here.
  Status observe(ExecutionContext* context) const;
  /// The side run, if there is one, with the inputs of the context's run.
  Status run_side(const std::vector<DebugInput>& inputs);
  /// Both, with a context of its own.
  Status run(const std::vector<DebugInput>& inputs);

  /// Of the latest runs, by name.
  const std::map<std::string, DebugTensor>& values() const { return *values_; }
  /// Names of the tensors that only the side run gives.
  const std::vector<std::string>& unfused() const { return unfused_; }
  /// Tensors that fit a pattern but cannot be computed, for only the engine is at hand.
  const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  struct Bench;  ///< an engine with a context and memory for all its outputs
  explicit DebugTensors(Engine engine) : engine_(std::move(engine)) {}
  Status find(const std::vector<std::string>& patterns, const Network* network);
  Status build_side(const Library& library, const BuildRequest& request,
                    const std::function<bool(const BuildProgress&)>& progress);
  Status observe(ExecutionContext* context, const std::vector<std::string>& names, bool side_run) const;

  Engine engine_;
  std::vector<std::string> held_, unfused_, left_out_;
  std::shared_ptr<Bench> own_, side_;
  std::shared_ptr<std::map<std::string, DebugTensor>> values_ = std::make_shared<std::map<std::string, DebugTensor>>();
};

}  // namespace tenon::pipeline

#endif  // TENON_PIPELINE_DEBUG_TENSORS_H
