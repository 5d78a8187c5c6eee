#include "importers/onnx/rules.h"

#include <algorithm>

namespace tenon::onnx {
namespace {

constexpr OpVersion kVersions[] = {
#include "importers/onnx/op_versions.inc"
};

}  // namespace

std::span<const OpVersion> op_versions() { return kVersions; }

Found find_rule(std::string_view domain, std::string_view type, int opset) {
  Found found;
  for (const OpVersion& version : kVersions) {
    if (version.domain == domain && version.type == type && version.since <= opset) {
      found.since = std::max(found.since, version.since);
    }
  }
  for (const std::span<const Rule> list :
       {elementwise_rules(), cast_rules(), shape_rules(), indexing_rules(), reduction_rules(), normalization_rules(),
        convolution_rules(), pooling_rules(), vision_rules(), matmul_rules(), quantization_rules(), recurrent_rules(),
        attention_rules(), signal_rules(), loss_rules(), control_rules(), sequence_rules()}) {
    for (const Rule& rule : list) {
      if (rule.domain == domain && rule.type == type &&
          std::find(rule.since.begin(), rule.since.end(), found.since) != rule.since.end()) {
        found.rule = &rule;
      }
    }
  }
  for (const DeclinedOp& op : declined_ops()) {
    if (op.domain == domain && (op.type == type || std::string_view(op.type) == "*")) found.declined = op.reason;
  }
  return found;
}

}  // namespace tenon::onnx
