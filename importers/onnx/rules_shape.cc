#include "importers/onnx/rules.h"

namespace tenon::onnx {

std::span<const Rule> shape_rules() { return {}; }

}  // namespace tenon::onnx
