#include "importers/onnx/rules.h"

namespace tenon::onnx {

std::span<const Rule> normalization_rules() { return {}; }

}  // namespace tenon::onnx
