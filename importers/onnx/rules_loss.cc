#include "importers/onnx/rules.h"

namespace tenon::onnx {

std::span<const Rule> loss_rules() { return {}; }

}  // namespace tenon::onnx
