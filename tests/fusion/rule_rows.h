// The small networks of rules_test.cc: one for each thing that a rule does, or must not do.
#ifndef TENON_TESTS_FUSION_RULE_ROWS_H
#define TENON_TESTS_FUSION_RULE_ROWS_H

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/fusion/network_maker.h"
#include "tests/fusion/random_network.h"

namespace tenon::fusion {

struct Row {
  std::string rule;
  std::string what;
  int count = 0;  ///< how often the rule applies
  std::function<void(NetworkMaker&)> make;
};

/// Collects rows of one rule.
class Rows {
 public:
  Rows(std::vector<Row>* rows, std::string rule) : rows_(rows), rule_(std::move(rule)) {}
  /// A network whose only output make() returns.
  void add(const std::string& what, int count, std::function<Value(NetworkMaker&)> make) const {
    rows_->push_back({rule_, what, count, [make](NetworkMaker& network) { network.output(make(network)); }});
  }

 private:
  std::vector<Row>* rows_;
  std::string rule_;
};

inline Value numbers(NetworkMaker& make, const Dims& dims, double low = -1, double high = 1) {
  return make.constant(dims, Random(make.num_names()).numbers(elements(dims), low, high));
}
inline Value image(NetworkMaker& make) { return make.input({2, 4, 6, 5}); }
inline Value conv(NetworkMaker& make, const Value& x, std::int64_t filters, bool bias, std::int64_t groups = 1) {
  std::vector<Value> inputs = {x, numbers(make, {filters, x.dims[1] / groups, 3, 3})};
  if (bias) inputs.push_back(numbers(make, {filters}));
  return make.op("conv2d", inputs, {{"pads", {1, 1, 1, 1}}, {"groups", groups}});
}

/// Rows of normalisations, softmax and attention.
void add_transformers(std::vector<Row>* rows);

/// Rows of the rules about transposes, reshapes, shuffles and pads.
void add_moving_rows(std::vector<Row>* rows);

/// Rows of the rules about quantize and dequantize.
void add_quantized_rows(std::vector<Row>* rows);

}  // namespace tenon::fusion

#endif  // TENON_TESTS_FUSION_RULE_ROWS_H
