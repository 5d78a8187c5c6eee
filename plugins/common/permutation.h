// The permutation of tenon.transpose/1, shared by its definition, its kernels and rules.
#ifndef TENON_PLUGINS_COMMON_PERMUTATION_H_
#define TENON_PLUGINS_COMMON_PERMUTATION_H_

#include <vector>

#include <tenon/sdk/attrs.hpp>
#include <tenon/sdk/tensor.hpp>

namespace tenon::plugins {

// perm, or the axes in reverse where it is not given; Invalid unless it names every axis once.
inline std::vector<int> permutation(const Attrs& attrs, int rank) {
  std::vector<int> perm;
  if (!attrs.has_i64s("perm")) {
    for (int axis = rank; axis-- > 0;) perm.push_back(axis);
    return perm;
  }
  const List<int64_t> given = attrs.i64s("perm");
  if (given.size() != rank) throw Invalid(text("attribute 'perm': expected ", rank, " axes, found ", given.size()));
  bool seen[TN_MAX_RANK] = {};
  for (const int64_t entry : given) {
    const int axis = normalize_axis(entry, rank, "perm");
    if (seen[axis]) throw Invalid(text("attribute 'perm': expected every axis once, found ", axis, " twice"));
    seen[axis] = true;
    perm.push_back(axis);
  }
  return perm;
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_PERMUTATION_H_
