#include "importers/onnx/rules.h"

namespace tenon::onnx {

std::span<const Rule> matmul_rules() { return {}; }

}  // namespace tenon::onnx
