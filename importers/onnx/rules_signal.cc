#include "importers/onnx/rules.h"

namespace tenon::onnx {

std::span<const Rule> signal_rules() { return {}; }

}  // namespace tenon::onnx
