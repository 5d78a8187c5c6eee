#include "importers/onnx/rules.h"

namespace tenon::onnx {

std::span<const Rule> indexing_rules() { return {}; }

}  // namespace tenon::onnx
