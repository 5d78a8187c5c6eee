// Which ONNX operators are translated, and how: one table of (operator, version in which its meaning last changed).
#ifndef TENON_IMPORTERS_ONNX_RULES_H_
#define TENON_IMPORTERS_ONNX_RULES_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "importers/onnx/node.h"

namespace tenon::onnx {

inline constexpr int kOldestOpset = 7;
inline constexpr int kNewestOpset = 27;

/// How nodes of one operator are translated. `since` lists the versions of the operator that mean what `translate`
/// does: those of op_versions.inc, each of which changed the operator in some way.
struct Rule {
  const char* type;
  std::vector<int> since;
  void (*translate)(OnnxNode&);
  const char* domain = "";
};

/// An operator that is left out on purpose.
struct DeclinedOp {
  const char* type;
  const char* reason;
  const char* domain = "";
};

// One list per rules_*.cc.
std::span<const Rule> elementwise_rules();
std::span<const Rule> cast_rules();
std::span<const Rule> shape_rules();
std::span<const Rule> indexing_rules();
std::span<const Rule> reduction_rules();
std::span<const Rule> normalization_rules();
std::span<const Rule> convolution_rules();
std::span<const Rule> pooling_rules();
std::span<const Rule> vision_rules();
std::span<const Rule> matmul_rules();
std::span<const Rule> quantization_rules();
std::span<const Rule> recurrent_rules();
std::span<const Rule> attention_rules();
std::span<const Rule> signal_rules();
std::span<const Rule> loss_rules();
std::span<const Rule> control_rules();
std::span<const Rule> sequence_rules();
std::span<const DeclinedOp> declined_ops();

/// What the table says about an operator at a model's opset.
struct Found {
  const Rule* rule = nullptr;      ///< nullptr: not translated
  int since = 0;                   ///< the newest version not above the opset; 0: ONNX has no such operator then
  const char* declined = nullptr;  ///< the reason, if it is left out on purpose
};
Found find_rule(std::string_view domain, std::string_view type, int opset);

/// Every (operator, version) of the standard up to kNewestOpset, for docs/onnx_support.md.
struct OpVersion {
  const char* domain;
  const char* type;
  int since;
};
std::span<const OpVersion> op_versions();

}  // namespace tenon::onnx

#endif  // TENON_IMPORTERS_ONNX_RULES_H_
