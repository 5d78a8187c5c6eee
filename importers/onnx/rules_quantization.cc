#include "importers/onnx/rules.h"

namespace tenon::onnx {

std::span<const Rule> quantization_rules() { return {}; }

}  // namespace tenon::onnx
