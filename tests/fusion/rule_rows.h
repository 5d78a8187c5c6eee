// The table of rules_test.cc: small networks that a rule is made for, or that only look like it.
#ifndef TENON_TESTS_FUSION_RULE_ROWS_H_
#define TENON_TESTS_FUSION_RULE_ROWS_H_

#include <functional>
#include <string>
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

inline Value numbers(NetworkMaker& make, const Dims& dims, double low = -1, double high = 1) {
  return make.constant(dims, Random(make.num_names()).numbers(elements(dims), low, high));
}

/// Rows of normalisations, softmax and attention.
void add_transformers(std::vector<Row>* rows);

}  // namespace tenon::fusion

#endif  // TENON_TESTS_FUSION_RULE_ROWS_H_
