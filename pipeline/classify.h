// The best classes of a classifier's output.
//
// Thread rule: free function; call from any thread.
#ifndef TENON_PIPELINE_CLASSIFY_H
#define TENON_PIPELINE_CLASSIFY_H

#include <span>
#include <vector>

#include "pipeline/detection.h"

namespace tenon::pipeline {

/// The `count` classes with the largest values, largest first; of equal values the lower class comes first. Fewer when
/// there are fewer classes. NaN ranks below every number.
std::vector<ClassScore> top_classes(std::span<const float> probabilities, int count);

}  // namespace tenon::pipeline

#endif  // TENON_PIPELINE_CLASSIFY_H
