#include "importers/onnx/rules.h"

namespace tenon::onnx {

std::span<const Rule> pooling_rules() { return {}; }

}  // namespace tenon::onnx
