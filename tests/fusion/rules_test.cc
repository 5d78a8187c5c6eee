// Each rule applies to the small network that it is made for, keeps its numbers, and leaves alone what only looks like
// it. A rule without a row here is a failure: add one, and a mutant to mutate_rules.py.
//
// $TENON_FUSION_DISABLED, ids with commas between them, switches rules off; then their rows have to fail.
#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <functional>
#include <sstream>

#include "tests/fusion/engines.h"
#include "tests/fusion/rule_rows.h"

namespace tenon::fusion {
namespace {

using nlohmann::json;

Value batch_norm(NetworkMaker& make, const Value& x, const json& attrs) {
  const Dims channels = {x.dims[1]};
  return make.op(
      "batch_norm",
      {x, numbers(make, channels), numbers(make, channels), numbers(make, channels), numbers(make, channels, 0.01, 1)},
      attrs);
}

void add_activations(std::vector<Row>* rows) {
  for (const std::string& form : spelled_forms()) {
    const std::string rule = "tenon.fuse_" + form + "/1";
    const auto row = [&](const std::string& what, int count, std::function<void(NetworkMaker&)> make) {
      rows->push_back({rule, what, count, std::move(make)});
    };
    row("spelled", 1, [form](NetworkMaker& make) { make.output(spell(make, form, image(make))); });
    row("twice", 2, [form](NetworkMaker& make) {
      make.output(spell(make, form, spell(make, form, make.op("sin", {image(make)}))));
    });
    row("gate_of_another_value", 0, [form](NetworkMaker& make) {
      const Value x = image(make), other = image(make);
      make.output(spell(make, form, x, 0, other));
    });
    if (form == "swish" || form == "mish") continue;
    row("another_constant", 0, [form](NetworkMaker& make) {
      const Value x = image(make);
      make.output(spell(make, form, x, 0.125, x));
    });
  }
  rows->push_back({"tenon.fuse_swish/1", "gate_is_an_output", 0, [](NetworkMaker& make) {
                     const Value x = image(make), gate = make.op("logistic", {x});
                     make.output(gate);
                     make.output(make.op("mul", {x, gate}));
                   }});
  rows->push_back({"tenon.fuse_swish/1", "gate_is_read_twice", 0, [](NetworkMaker& make) {
                     const Value x = image(make), gate = make.op("logistic", {x});
                     make.output(make.op("add", {make.op("mul", {gate, x}), gate}));
                   }});
  rows->push_back(
      {"tenon.fuse_hard_swish/1", "divisor_with_more_dims", 0, [](NetworkMaker& make) {
         const Value x = make.input({5});
         const Value gate = make.op("clip", {make.op("add", {x, make.number(3)}), make.number(0), make.number(6)});
         make.output(make.op("div", {make.op("mul", {x, gate}), make.number(6, {1, 1})}));
       }});
}

void add_batch_norm(std::vector<Row>* rows) {
  const auto row = [&](const std::string& what, int count, std::function<void(NetworkMaker&)> make) {
    rows->push_back({"tenon.fold_batch_norm/1", what, count, std::move(make)});
  };
  row("bias", 1, [](NetworkMaker& make) {
    make.output(batch_norm(make, conv(make, image(make), 6, true), {{"epsilon", 0.05}}));
  });
  row("no_bias", 1, [](NetworkMaker& make) {
    make.output(batch_norm(make, conv(make, image(make), 3, false), {{"epsilon", 0.05}}));
  });
  row("epsilon_outside", 1, [](NetworkMaker& make) {
    const Value y = conv(make, image(make), 6, true);
    make.output(batch_norm(make, y, {{"epsilon", 0.05}, {"epsilon_place", "outside"}}));
  });
  row("groups", 1, [](NetworkMaker& make) {
    make.output(batch_norm(make, conv(make, image(make), 8, true, 4), {{"epsilon", 0.05}}));
  });
  row("norm_alone", 0, [](NetworkMaker& make) { make.output(batch_norm(make, image(make), nullptr)); });
  row("convolution_is_an_output", 0, [](NetworkMaker& make) {
    const Value y = conv(make, image(make), 6, true);
    make.output(y);
    make.output(batch_norm(make, y, nullptr));
  });
  row("convolution_is_read_twice", 0, [](NetworkMaker& make) {
    const Value y = conv(make, image(make), 6, true);
    make.output(make.op("sub", {batch_norm(make, y, nullptr), y}));
  });
  row("weights_vary", 0, [](NetworkMaker& make) {
    const Value x = image(make), weights = make.input({6, 4, 1, 1});
    make.output(batch_norm(make, make.op("conv2d", {x, weights}), nullptr));
  });
}

void add_folds(std::vector<Row>* rows) {
  for (const auto& [rule, op] :
       {std::pair<std::string, std::string>{"tenon.fold_bias/1", "add"}, {"tenon.fold_scale/1", "mul"}}) {
    const auto row = [&, op = op](const std::string& what, int count, const Dims& dims, bool bias, bool first = false) {
      rows->push_back({rule, what, count, [=](NetworkMaker& make) {
                         const Value y = conv(make, image(make), 6, bias), c = numbers(make, dims);
                         make.output(first ? make.op(op, {c, y}) : make.op(op, {y, c}));
                       }});
    };
    row("channels", 1, {6, 1, 1}, true);
    row("no_bias", 1, {1, 6, 1, 1}, false);
    row("one_number_first", 1, {}, true, true);
    row("along_the_width", 0, {5}, true);
    row("along_the_height", 0, {6, 1}, true);
    row("full", 0, {1, 6, 6, 5}, true);
    row("more_dims", 0, {1, 1, 6, 1, 1}, true);
    rows->push_back({rule, "weights_vary", 0, [op = op](NetworkMaker& make) {
                       const Value x = image(make), weights = make.input({6, 4, 1, 1});
                       make.output(make.op(op, {make.op("conv2d", {x, weights}), numbers(make, {6, 1, 1})}));
                     }});
  }
  const auto row = [&](const std::string& what, int count, const Dims& x, const Dims& w, const json& attrs,
                       const Dims& bias) {
    rows->push_back({"tenon.fuse_matmul_bias/1", what, count, [=](NetworkMaker& make) {
                       const Value y = make.op("matmul", {make.input(x), numbers(make, w)}, attrs);
                       make.output(make.op("add", {y, numbers(make, bias)}));
                     }});
  };
  row("plain", 1, {3, 4}, {4, 6}, nullptr, {6});
  row("transposed_weights", 1, {3, 4}, {6, 4}, {{"transpose_b", 1}}, {1, 6});
  row("transposed_x", 0, {4, 3}, {4, 6}, {{"transpose_a", 1}}, {6});
  row("more_rows", 1, {2, 3, 4}, {4, 6}, nullptr, {6});
  row("more_matrices", 0, {2, 3, 4}, {2, 4, 6}, nullptr, {6});
  row("a_number_for_each_row", 0, {6, 4}, {4, 6}, nullptr, {6, 1});
  row("one_number", 0, {3, 4}, {4, 6}, nullptr, {1});
}

void add_core(std::vector<Row>* rows) {
  const auto folds = [&](const std::string& what, int count, std::function<void(NetworkMaker&)> make) {
    rows->push_back({"tenon.core.fold_constants/1", what, count, std::move(make)});
  };
  folds("one_node", 1, [](NetworkMaker& make) {
    const Value sum = make.op("sub", {numbers(make, {5}), numbers(make, {6, 5})});
    make.output(make.op("add", {image(make), sum}));
  });
  folds("chain", 3, [](NetworkMaker& make) {
    const Value turned = make.op("transpose", {numbers(make, {5, 6})});
    const Value changed = make.op("exp", {make.op("neg", {turned})});
    make.output(make.op("mul", {image(make), changed}));
  });
  folds("output_of_a_constant_stays", 0, [](NetworkMaker& make) {
    make.output(make.op("neg", {numbers(make, {4, 3})}));
    make.output(make.op("neg", {image(make)}));
  });
  folds("dims_that_vary", 0, [](NetworkMaker& make) {
    const Value x = image(make);
    make.output(make.op("mul", {x, make.op("cast", {make.op("shape", {x}, {{"end", 1}})}, {{"to", "f32"}})}));
    must(make.network().set_profile("x0", {1, 4, 6, 5}, x.dims, {3, 4, 6, 5}));
  });
  folds("nothing_constant", 0, [](NetworkMaker& make) { make.output(make.op("sub", {image(make), image(make)})); });

  const auto absorbs = [&](const std::string& what, int count,
                           std::function<Value(NetworkMaker&, const Value&)> after) {
    rows->push_back({"tenon.core.epilogue/1", what, count,
                     [after](NetworkMaker& make) { make.output(after(make, conv(make, image(make), 8, true))); }});
  };
  absorbs("relu", 1, [](NetworkMaker& make, const Value& y) { return make.op("relu", {y}); });
  absorbs("leaky_relu_clip", 2, [](NetworkMaker& make, const Value& y) {
    return make.op("clip", {make.op("leaky_relu", {y}, {{"alpha", 0.3}}), make.number(-0.2), make.number(1.5)});
  });
  absorbs("elu_logistic", 2, [](NetworkMaker& make, const Value& y) {
    return make.op("logistic", {make.op("elu", {y}, {{"alpha", 0.7}})});
  });
  absorbs("residual", 2, [](NetworkMaker& make, const Value& y) {
    return make.op("relu", {make.op("add", {make.input(y.dims), y})});
  });
  absorbs("both_operands_are_convolutions", 1, [](NetworkMaker& make, const Value& y) {
    return make.op("add", {y, conv(make, image(make), 8, false)});
  });
  absorbs("operand_of_fewer_dims", 0, [](NetworkMaker& make, const Value& y) {
    return make.op("add", {y, make.input({6, 5})});
  });
  absorbs("convolution_is_an_output", 0, [](NetworkMaker& make, const Value& y) {
    make.output(y);
    return make.op("relu", {y});
  });
  absorbs("more_dims", 0, [](NetworkMaker& make, const Value& y) {
    return make.op("max", {y, make.number(0, {1, 1, 1, 1, 1})});
  });
  absorbs("slope_from_a_constant", 1, [](NetworkMaker& make, const Value& y) {
    return make.op("prelu", {y, make.number(0.3)});
  });
  absorbs("convolution_is_read_twice", 0, [](NetworkMaker& make, const Value& y) {
    return make.op("sub", {make.op("relu", {y}), make.op("global_avg_pool", {y})});
  });
}

void add_pointwise(std::vector<Row>* rows) {
  const auto row = [&](const std::string& what, int count, std::function<void(NetworkMaker&)> make) {
    rows->push_back({"tenon.core.pointwise/1", what, count, std::move(make)});
  };
  row("chain", 2, [](NetworkMaker& make) {
    const Value x = image(make), y = make.input({6, 5});
    make.output(make.op("exp", {make.op("sub", {y, make.op("sin", {x})})}));
  });
  row("tree", 3, [](NetworkMaker& make) {
    const Value x = image(make), y = image(make);
    make.output(make.op("div", {make.op("tanh", {x}), make.op("exp", {make.op("neg", {y})})}));
  });
  row("one_node", 0, [](NetworkMaker& make) { make.output(make.op("sub", {image(make), image(make)})); });
  row("read_elsewhere", 0, [](NetworkMaker& make) {
    const Value inner = make.op("sin", {image(make)});
    make.output(make.op("neg", {inner}));
    make.output(make.op("exp", {inner}));
  });
  row("inner_value_is_an_output", 0, [](NetworkMaker& make) {
    const Value inner = make.op("sin", {image(make)});
    make.output(inner);
    make.output(make.op("exp", {inner}));
  });
  row("inner_value_has_fewer_dims", 0, [](NetworkMaker& make) {
    make.output(make.op("add", {image(make), make.op("sin", {make.input({6, 5})})}));
  });
}

void add_duplicates(std::vector<Row>* rows) {
  const auto row = [&](const std::string& what, int count, std::function<void(NetworkMaker&)> make) {
    rows->push_back({"tenon.core.merge_duplicates/1", what, count, std::move(make)});
  };
  row("chains", 2, [](NetworkMaker& make) {
    const Value x = image(make);
    const auto chain = [&] { return make.op("softmax", {make.op("tanh", {x})}, {{"axis", 1}}); };
    const Value first = chain();
    make.output(make.op("sub", {first, make.op("sin", {chain()})}));
  });
  row("other_attributes", 0, [](NetworkMaker& make) {
    const Value x = image(make);
    make.output(make.op("sub", {make.op("softmax", {x}, {{"axis", 1}}), make.op("softmax", {x}, {{"axis", 2}})}));
  });
  row("both_are_outputs", 0, [](NetworkMaker& make) {
    const Value x = image(make);
    make.output(make.op("tanh", {x}));
    make.output(make.op("tanh", {x}));
  });
}

void add_siblings(std::vector<Row>* rows) {
  const auto row = [&](const std::string& what, int count, std::function<void(NetworkMaker&)> make) {
    rows->push_back({"tenon.core.join_siblings/1", what, count, std::move(make)});
  };
  const auto relu = [](NetworkMaker& make, const Value& y) { return make.op("relu", {y}); };
  row("convolutions", 1, [](NetworkMaker& make) {
    const Value x = make.input({1, 4, 6, 5});
    const Value a = conv(make, x, 3, true), b = conv(make, x, 2, true);
    make.output(make.op("softmax", {a}, {{"axis", 3}}));
    make.output(make.op("softmax", {b}, {{"axis", 3}}));
  });
  // The first sibling begins the concatenation, so it is the last of the joint result.
  row("inception", 1, [relu](NetworkMaker& make) {
    const Value x = make.input({1, 4, 6, 5});
    const Value a = relu(make, conv(make, x, 3, true)), b = relu(make, conv(make, x, 2, true));
    make.output(make.op("softmax", {make.op("concat", {a, relu(make, conv(make, b, 5, false))}, {{"axis", 1}})},
                        {{"axis", 3}}));
  });
  row("the_last_sibling_ends_a_concatenation", 1, [relu](NetworkMaker& make) {
    const Value x = image(make);
    const Value a = relu(make, conv(make, x, 3, false)), b = relu(make, conv(make, x, 2, false));
    make.output(make.op("softmax", {make.op("concat", {conv(make, a, 5, false), b}, {{"axis", 1}})}, {{"axis", 3}}));
  });
  // The concatenation cannot overlap with the joint result: what follows `a` in it would lie where `b` is.
  row("a_sibling_in_the_middle_of_a_concatenation", 1, [](NetworkMaker& make) {
    const Value x = make.input({1, 4, 6, 5});
    const Value a = conv(make, x, 3, true), b = conv(make, x, 2, true);
    const Value before = make.op("cos", {x}), behind = make.op("sin", {x});
    make.output(make.op("softmax", {make.op("concat", {before, a, behind}, {{"axis", 1}})}, {{"axis", 3}}));
    make.output(make.op("softmax", {b}, {{"axis", 3}}));
  });
  row("three_and_two", 2, [](NetworkMaker& make) {
    const Value x = image(make);
    for (const bool bias : {true, false, true, true, false}) {
      make.output(make.op("softmax", {conv(make, x, 1 + static_cast<std::int64_t>(make.num_names() % 4), bias)},
                          {{"axis", 3}}));
    }
  });
  row("dense", 1, [](NetworkMaker& make) {
    const Value x = make.input({3, 4});
    for (const std::int64_t n : {2, 5}) {
      const Value y = make.op("fully_connected", {x, numbers(make, {n, 4}), numbers(make, {n})});
      make.output(make.op("softmax", {y}, {{"axis", 0}}));
    }
  });
  for (const bool transposed : {false, true}) {
    row(transposed ? "products_transposed" : "products", 1, [transposed](NetworkMaker& make) {
      const Value x = make.input({2, 3, 4});
      for (const std::int64_t n : {2, 5}) {
        const Value b = numbers(make, transposed ? Dims{n, 4} : Dims{4, n});
        const Value y = make.op("matmul", {x, b}, {{"transpose_b", transposed ? 1 : 0}});
        make.output(make.op("softmax", {y}, {{"axis", 1}}));
      }
    });
  }
  row("one_gives_an_output", 0, [](NetworkMaker& make) {
    const Value x = image(make);
    make.output(conv(make, x, 3, true));
    make.output(make.op("softmax", {conv(make, x, 2, true)}, {{"axis", 3}}));
  });
  row("other_attributes", 0, [](NetworkMaker& make) {
    const Value x = image(make);
    for (const json& pads : {json{1, 1, 1, 1}, json{0, 2, 2, 0}}) {  // of equal dims
      const Value y = make.op("conv2d", {x, numbers(make, {3, 4, 3, 3})}, {{"pads", pads}});
      make.output(make.op("softmax", {y}, {{"axis", 3}}));
    }
  });
  row("groups", 0, [](NetworkMaker& make) {
    const Value x = image(make);
    for (int n = 0; n < 2; ++n) make.output(make.op("softmax", {conv(make, x, 4, false, 2)}, {{"axis", 3}}));
  });
  row("other_inputs", 0, [](NetworkMaker& make) {
    for (int n = 0; n < 2; ++n) make.output(make.op("softmax", {conv(make, image(make), 4, true)}, {{"axis", 3}}));
  });
  row("weights_vary", 0, [](NetworkMaker& make) {
    const Value x = image(make);
    for (int n = 0; n < 2; ++n) {
      make.output(make.op("softmax", {make.op("conv2d", {x, make.input({6, 4, 1, 1})})}, {{"axis", 3}}));
    }
  });
}

const std::vector<Row>& rows() {
  static const std::vector<Row> all = [] {
    std::vector<Row> made;
    add_activations(&made);
    add_batch_norm(&made);
    add_folds(&made);
    add_core(&made);
    add_pointwise(&made);
    add_duplicates(&made);
    add_siblings(&made);
    add_transformers(&made);
    add_moving_rows(&made);
    add_quantized_rows(&made);
    return made;
  }();
  return all;
}

Engines& engines() {
  static Engines all("cpu");
  return all;
}

class Rules : public ::testing::TestWithParam<Row> {};

TEST_P(Rules, AppliesAndKeepsTheNumbers) {
  const Row& row = GetParam();
  NetworkMaker make(engines().library());
  row.make(make);
  std::set<std::string> disabled;
  const char* given = std::getenv("TENON_FUSION_DISABLED");
  std::istringstream ids(given != nullptr ? given : "");
  for (std::string id; std::getline(ids, id, ',');) disabled.insert(id);

  const Outputs expected = engines().reference(make.network(), 1);
  // The rule alone, and among all others.
  for (const std::set<std::string>& without : {engines().all_but({row.rule}), std::set<std::string>()}) {
    std::set<std::string> off = without;
    off.insert(disabled.begin(), disabled.end());
    const Built built = engines().build(make.network(), off);
    const auto fired = built.fired.find(row.rule);
    EXPECT_EQ(fired == built.fired.end() ? 0 : fired->second, row.count) << make.network().dump().value();
    const Difference wrong = worst(differences(engines().run(built, 1), expected));
    EXPECT_FALSE(too_large(wrong, engines().tolerance()))
        << "output " << wrong.output << ": relative l2 " << wrong.l2 << ", largest error " << wrong.largest;
  }
}

std::string name_of(const ::testing::TestParamInfo<Row>& info) {
  std::string name = info.param.rule + "_" + info.param.what;
  for (char& letter : name) {
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '_';
  }
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, Rules, ::testing::ValuesIn(rows()), name_of);

TEST(RuleTable, HasEveryRule) {
  for (const std::string& rule : engines().rules()) {
    const bool found =
        std::any_of(rows().begin(), rows().end(), [&](const Row& row) { return row.rule == rule && row.count > 0; });
    EXPECT_TRUE(found) << rule << " has no row in rules_test.cc that it applies to";
  }
}

}  // namespace
}  // namespace tenon::fusion
