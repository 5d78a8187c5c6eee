#include "importers/onnx/rules.h"

namespace tenon::onnx {

std::span<const Rule> vision_rules() { return {}; }

}  // namespace tenon::onnx
