#include "importers/onnx/rules.h"

namespace tenon::onnx {

std::span<const Rule> recurrent_rules() { return {}; }

}  // namespace tenon::onnx
