#include "importers/onnx/rules.h"

namespace tenon::onnx {

std::span<const Rule> cast_rules() { return {}; }

}  // namespace tenon::onnx
