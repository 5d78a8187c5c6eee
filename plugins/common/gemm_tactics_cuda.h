// Tactics of kernels that run kernels/cuda's gemm: tile and parts of k, "tile=128x64;split_k=4", and ";cluster" where
// the parts of a tile are one cluster.
#ifndef TENON_PLUGINS_COMMON_GEMM_TACTICS_CUDA_H_
#define TENON_PLUGINS_COMMON_GEMM_TACTICS_CUDA_H_

#include <tenon/sdk/site.hpp>

#include "kernels/cuda/gemm.h"
#include "plugins/common/cuda.h"

namespace tenon::plugins {

inline const char* cuda_tile_name(cuda::GemmTile tile) {
  switch (tile) {
    case cuda::GemmTile::k128x128:
      return "128x128";
    case cuda::GemmTile::k128x64:
      return "128x64";
    case cuda::GemmTile::k64x128:
      return "64x128";
    case cuda::GemmTile::k64x64:
      return "64x64";
    case cuda::GemmTile::k32x32:
      return "32x32";
    case cuda::GemmTile::kSkinny:
      return "skinny";
  }
  return "";
}

inline std::string cuda_gemm_params(const cuda::GemmTactic& tactic) {
  return text("tile=", cuda_tile_name(tactic.tile), ";split_k=", tactic.split_k, tactic.cluster ? ";cluster" : "");
}

// Calls add(tactic) for those worth timing on the site's GPU.
template <class Add>
void for_each_cuda_gemm_tactic(const Site& site, const Add& add) {
  const int cluster_limit = cuda::gemm_cluster_limit(site.device().ordinal);
  for (int i = 0; i < cuda::gemm_tactic_count(); ++i) {
    if (cuda::gemm_tactic_suits(cuda::gemm_tactic(i), cluster_limit)) add(cuda::gemm_tactic(i));
  }
}
inline void add_cuda_gemm_tactics(const Site& site, const cuda::GemmShape& shape, Tactics& tactics) {
  for_each_cuda_gemm_tactic(site, [&](const cuda::GemmTactic& tactic) {
    if (!cuda::gemm_supports(shape, tactic)) return;
    tactics.add(cuda_gemm_params(tactic), cuda::gemm_workspace_bytes(shape, tactic));
  });
}

// For initialize: Invalid if the current GPU has no clusters of this size.
inline void require_cuda_cluster(const cuda::GemmTactic& tactic) {
  if (!tactic.cluster) return;
  int ordinal = 0;
  check_cuda(cudaGetDevice(&ordinal));
  const int limit = cuda::gemm_cluster_limit(ordinal);
  if (tactic.split_k <= limit) return;
  throw Invalid(text("the tactic '", cuda_gemm_params(tactic), "' needs a GPU with clusters of ", tactic.split_k,
                     " thread blocks, found ", limit, "; build the engine again on this GPU"));
}

// Declined for one that is not known.
inline cuda::GemmTactic cuda_gemm_tactic_of(const Params& params) {
  for (int i = 0; i < cuda::gemm_tactic_count(); ++i) {
    if (params.text() == cuda_gemm_params(cuda::gemm_tactic(i))) return cuda::gemm_tactic(i);
  }
  throw Declined(text("no such tactic: '", params.text(), "'"));
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_GEMM_TACTICS_CUDA_H_
