// Tactics of kernels that run kernels/cuda's gemm: tile and parts of k, "tile=128x64;split_k=4".
#ifndef TENON_PLUGINS_COMMON_GEMM_TACTICS_CUDA_H_
#define TENON_PLUGINS_COMMON_GEMM_TACTICS_CUDA_H_

#include <tenon/sdk/site.hpp>

#include "kernels/cuda/gemm.h"

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
  return text("tile=", cuda_tile_name(tactic.tile), ";split_k=", tactic.split_k);
}

// Declined for one that is not offered.
inline cuda::GemmTactic cuda_gemm_tactic_of(const Params& params) {
  for (int i = 0; i < cuda::gemm_tactic_count(); ++i) {
    if (params.text() == cuda_gemm_params(cuda::gemm_tactic(i))) return cuda::gemm_tactic(i);
  }
  throw Declined(text("no such tactic: '", params.text(), "'"));
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_GEMM_TACTICS_CUDA_H_
