#include "importers/onnx/rules.h"

namespace tenon::onnx {

std::span<const Rule> reduction_rules() { return {}; }

}  // namespace tenon::onnx
