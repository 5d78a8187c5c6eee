#include "importers/onnx/rules.h"

namespace tenon::onnx {

std::span<const Rule> convolution_rules() { return {}; }

}  // namespace tenon::onnx
