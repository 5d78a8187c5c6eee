// Changes of the element type.
#include "importers/onnx/rules.h"

namespace tenon::onnx {
namespace {

void cast_to(OnnxNode& node, int64_t to) {
  if (to == TN_STRING || node.dtype(0) == TN_STRING) throw Unsupported{"casts from and to strings"};
  if (to < TN_F32 || to > TN_I2) throw Unsupported{text("a cast to ONNX's element type ", to)};
  node.output(0, node.add("tenon.cast/1",
                          node.attrs()
                              .dtype("to", static_cast<int32_t>(to))
                              .i64("saturate", node.flag("saturate", true) ? 1 : 0)
                              .str("round_mode", node.str("round_mode", "up")),
                          {node.input(0)}));
}

void cast(OnnxNode& node) { cast_to(node, node.i64("to")); }

void cast_like(OnnxNode& node) { cast_to(node, node.dtype(1)); }

void bit_cast(OnnxNode& node) {
  const int64_t to = node.i64("to");
  if (to < TN_F32 || to > TN_I2) throw Unsupported{text("a cast to ONNX's element type ", to)};
  node.output(
      0, node.add("tenon.bit_cast/1", node.attrs().dtype("from", node.dtype(0)).dtype("to", static_cast<int32_t>(to)),
                  {node.input(0)}));
}

const Rule kRules[] = {
    {"Cast", {6, 9, 13, 19, 21, 23, 24, 25}, cast},
    {"CastLike", {15, 19, 21, 23, 24, 25}, cast_like},
    {"BitCast", {26}, bit_cast},
};

}  // namespace

std::span<const Rule> cast_rules() { return kRules; }

}  // namespace tenon::onnx
