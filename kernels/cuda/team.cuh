// Teams: threads of a block that fold a list of elements into one number together.
#ifndef TENON_KERNELS_CUDA_TEAM_CUH_
#define TENON_KERNELS_CUDA_TEAM_CUH_

#include "kernels/cuda/common.cuh"

namespace tenon::cuda {

constexpr int kTeamThreads = 256;  // of a block

// A block is `lanes` teams of `slices` threads each; lanes * slices is kTeamThreads, both are powers of 2. Members are
// neighbours where the elements of a list are (by_row), and otherwise those of the same place in different teams are,
// so that a warp reads neighbouring elements either way.
struct Team {
  int lanes = 1;
  int slices = kTeamThreads;
  bool by_row = true;

  // For `teams` lists of `count` elements. by_row: the elements of a list are neighbours; else those of equal place in
  // neighbouring lists are.
  static Team make(int64_t teams, int64_t count, bool by_row) {
    Team team;
    team.by_row = by_row;
    // Elements that a member folds: with few lists, members must be many.
    const int64_t each = teams >= 64 * 1024 ? 32 : teams >= 4 * 1024 ? 8 : 2;
    int most = by_row ? kTeamThreads : 32;
    while (most < kTeamThreads && most * teams < kTeamThreads) most *= 2;
    team.slices = 1;
    // Members that are neighbours in memory fill whole warps, to read whole lines.
    const int least = by_row ? 32 : 1;
    while (team.slices < most && team.slices * (team.slices < least ? 1 : each) < count) team.slices *= 2;
    team.lanes = kTeamThreads / team.slices;
    return team;
  }
  __device__ __forceinline__ int lane() const { return by_row ? threadIdx.x / slices : threadIdx.x % lanes; }
  __device__ __forceinline__ int slice() const { return by_row ? threadIdx.x % slices : threadIdx.x / lanes; }

  // combine() over the values of the team's members, in the same order every time; every member gets it. All threads of
  // the block call. `shared` holds kTeamThreads values and is free again afterwards.
  template <class A, class Combine>
  __device__ __forceinline__ A fold(A value, A* shared, const Combine& combine) const {
    if (slices == 1) return value;
    if (!by_row) {
      shared[threadIdx.x] = value;
      __syncthreads();
      A result = shared[lane()];
      for (int i = 1; i < slices; ++i) result = combine(result, shared[i * lanes + lane()]);
      __syncthreads();
      return result;
    }
    for (int offset = min(slices, 32) / 2; offset > 0; offset /= 2) {
      value = combine(value, __shfl_xor_sync(0xffffffffu, value, offset));
    }
    if (slices <= 32) return value;
    const int warps = slices / 32;
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
    __syncthreads();
    const A* own = shared + lane() * warps;
    A result = own[0];
    for (int i = 1; i < warps; ++i) result = combine(result, own[i]);
    __syncthreads();
    return result;
  }
};

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_TEAM_CUH_
