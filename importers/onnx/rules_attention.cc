#include "importers/onnx/rules.h"

namespace tenon::onnx {

std::span<const Rule> attention_rules() { return {}; }

}  // namespace tenon::onnx
