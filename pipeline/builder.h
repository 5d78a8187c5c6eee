// From a model file to an engine: what `tenon build`, `run`, `bench` and the like share.
//
// Thread rule: free functions; a request is used by one thread.
#ifndef TENON_PIPELINE_BUILDER_H
#define TENON_PIPELINE_BUILDER_H

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenon/status.hpp>
#include <tenon/tenon.hpp>

#include "pipeline/config.h"

namespace tenon::pipeline {

/// Everything that decides what is built.
struct BuildRequest {
  std::string model;     ///< the network's file
  std::string importer;  ///< "" : the one that recognises the file
  std::string weights;   ///< "" : found by the importer
  std::map<std::string, std::string> import_options;
  std::map<std::string, std::vector<std::int64_t>> shapes;  ///< of inputs, by name
  /// The least and the largest dims of inputs that vary at run time; `shapes` has the ones that are tuned for.
  std::map<std::string, std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>> profiles;
  int batch = 0;  ///< above 0: the first dim of inputs without a shape
  std::vector<std::string> mark_outputs;
  std::string device = "auto";
  int threads = 0;
  std::vector<std::pair<std::string, std::string>> config;  ///< further keys of BuilderConfig
  std::string timing_cache;                                 ///< file; "" : none
  std::optional<TimingCache> cache;                         ///< in memory, where there is no file
  bool editable = false;
  bool frozen = false;
  std::map<std::string, std::string> metadata;  ///< added to the engine
};

/// The request that a pipeline file makes, with its pre- and post-processing as metadata "pipeline".
BuildRequest request_of(const PipelineConfig& config);

/// Reads the model, applies shapes, batch, profiles and marked outputs. kInvalid if an input has a profile and the
/// importer made something fixed of its dims: the network would be wrong for others.
Result<Network> load_network(const Library& library, const BuildRequest& request);

/// The builder's settings of a request. The timing cache is loaded into *cache if the request names one.
Result<BuilderConfig> builder_config(const Library& library, const BuildRequest& request,
                                     std::optional<TimingCache>* cache);

/// Builds; the timing cache is saved also when the build fails. `progress` may be empty; false from it cancels.
Result<BuiltEngine> build_engine(const Library& library, const BuildRequest& request,
                                 std::function<bool(const BuildProgress&)> progress);

/// What an engine was made from, as metadata "fingerprint": hashes of the files, options, device and plugins.
Result<std::string> fingerprint(const Library& library, const BuildRequest& request);

/// "" if both fingerprints are equal, else what changed: "the model file changed", ...
std::string changed_since(const std::string& recorded, const std::string& current);

}  // namespace tenon::pipeline

#endif  // TENON_PIPELINE_BUILDER_H
