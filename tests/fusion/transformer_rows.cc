#include <cmath>

#include "tests/fusion/rule_rows.h"
#include "tests/fusion/transformer_pieces.h"

namespace tenon::fusion {
namespace {

using nlohmann::json;
using Make = std::function<void(NetworkMaker&)>;

void add_norms(std::vector<Row>* rows) {
  for (const std::string& form : norm_forms()) {
    const std::string rule = "tenon.fuse_" + (form == "layer_norm_power" ? "layer_norm" : form) + "/1";
    const auto row = [&](const std::string& what, int count, const Dims& dims, int axes, double off = 0) {
      rows->push_back({rule, form + "_" + what, count, [=](NetworkMaker& make) {
                         const Value x = make.input(dims);
                         const Dims last(dims.end() - axes, dims.end());
                         const Value scale = numbers(make, last, 0.3, 1.5), bias = numbers(make, last);
                         make.output(spell_norm(make, form, x, 0.05, scale, bias, axes, off));
                       }});
    };
    row("rows", 1, {3, 4, 10}, 1);
    row("two_axes", 1, {3, 4, 10}, 2);
    if (form != "rms_norm_inverse" && form != "rms_norm" && form != "layer_norm_power") continue;
    row("another_number", 0, {3, 10}, 1, 2);
  }
  const auto layer = [&](const std::string& what, int count, Make make) {
    rows->push_back({"tenon.fuse_layer_norm/1", what, count, std::move(make)});
  };
  // (x - mean) / sqrt(mean(...) + 0.1), with what differs from a layer normalisation.
  const auto norm = [](NetworkMaker& make, const Value& x, const Value& axes, const Value& variance_axes,
                       const json& attrs, const Value& factor) {
    const Value centred = make.op("sub", {x, make.op("reduce_mean", {x, axes}, attrs)});
    const Value square = make.op("mul", {centred, factor.id == TN_NO_TENSOR ? centred : factor});
    const Value variance = make.op("reduce_mean", {square, variance_axes});
    return make.op("div", {centred, make.op("sqrt", {make.op("add", {variance, make.number(0.1)})})});
  };
  layer("first_axis", 0, [=](NetworkMaker& make) {
    make.output(norm(make, make.input({5, 5}), make.integers({0}), make.integers({0}), nullptr, {}));
  });
  layer("first_and_last_axis", 0, [=](NetworkMaker& make) {
    make.output(norm(make, make.input({4, 3, 5}), make.integers({0, 2}), make.integers({0, 2}), nullptr, {}));
  });
  layer("means_of_other_axes", 0, [=](NetworkMaker& make) {
    make.output(norm(make, make.input({5, 5}), make.integers({0, 1}), make.integers({1}), nullptr, {}));
  });
  layer("mean_without_its_axis", 0, [=](NetworkMaker& make) {
    make.output(norm(make, make.input({5, 5}), make.integers({1}), make.integers({1}), {{"keepdims", 0}}, {}));
  });
  layer("no_square", 0, [=](NetworkMaker& make) {
    const Value x = make.input({5, 5});
    make.output(norm(make, x, make.integers({1}), make.integers({1}), nullptr, make.op("abs", {x})));
  });
  layer("mean_is_an_output", 1, [](NetworkMaker& make) {
    const Value x = make.input({3, 7}), axes = make.integers({-1});
    const Value mean = make.op("reduce_mean", {x, axes}), centred = make.op("sub", {x, mean});
    make.output(mean);
    const Value variance = make.op("reduce_mean", {make.op("mul", {centred, centred}), axes});
    make.output(make.op("div", {centred, make.op("sqrt", {make.op("add", {variance, make.number(0.1)})})}));
  });
  for (const auto& [rule, op] :
       {std::pair<std::string, std::string>{"tenon.fold_norm_scale/1", "mul"}, {"tenon.fold_norm_bias/1", "add"}}) {
    const auto row = [&, op = op](const std::string& what, int count, const Dims& x, const Dims& constant,
                                  const std::string& base = "layer_norm", bool scaled = false, int axis = -1) {
      rows->push_back({rule, what, count, [=](NetworkMaker& make) {
                         std::vector<Value> inputs = {make.input(x)};
                         if (scaled) inputs.push_back(numbers(make, {x.back()}, 0.3, 1.5));
                         const Value y = make.op(base, inputs, {{"axis", axis}});
                         make.output(make.op(op, {numbers(make, constant, 0.3, 1.5), y}));
                       }});
    };
    row("row", 1, {3, 4, 6}, {6});
    row("row_with_ones", 1, {3, 4, 6}, {1, 1, 6});
    row("two_axes", 1, {3, 4, 6}, {4, 6}, "layer_norm", false, -2);
    row("has_scale", op == "add" ? 1 : 0, {3, 4, 6}, {6}, "layer_norm", true);
    row("rms_norm", op == "mul" ? 1 : 0, {3, 4, 6}, {6}, "rms_norm");
    row("a_number_for_each_row", 0, {3, 6, 6}, {6, 1});
    row("one_number", 0, {3, 4, 6}, {1});
    row("of_one_axis_more", 0, {3, 4, 6}, {4, 6});
  }
}

void add_softmax(std::vector<Row>* rows) {
  for (const std::int64_t axis : {0, 1, -1}) {
    rows->push_back({"tenon.fuse_softmax/1", "axis_" + std::to_string(axis + 1), 1, [axis](NetworkMaker& make) {
                       make.output(spell_softmax(make, make.input({3, 4, 5}), axis, false));
                     }});
  }
  rows->push_back({"tenon.fuse_softmax/1", "exponentials_are_an_output", 1, [](NetworkMaker& make) {
                     const Value e = make.op("exp", {make.input({3, 5})});
                     make.output(e);
                     make.output(make.op("div", {e, make.op("reduce_sum", {e, make.integers({1})})}));
                   }});
  const auto softmax = [&](const std::string& what, const std::vector<std::int64_t>& axes, const json& attrs) {
    rows->push_back({"tenon.fuse_softmax/1", what, 0, [=](NetworkMaker& make) {
                       const Value e = make.op("exp", {make.input({5, 5})});
                       make.output(make.op("div", {e, make.op("reduce_sum", {e, make.integers(axes)}, attrs)}));
                     }});
  };
  softmax("two_axes", {0, 1}, nullptr);
  softmax("sum_without_its_axis", {1}, {{"keepdims", 0}});
  const auto shift = [&](const std::string& what, int count, std::int64_t axis, const json& attrs, bool other) {
    rows->push_back({"tenon.drop_softmax_shift/1", what, count, [=](NetworkMaker& make) {
                       const Value x = make.input({5, 5});
                       const Value from = other ? make.op("neg", {x}) : x;
                       const Value most = make.op("reduce_max", {from, make.integers({1})}, attrs);
                       make.output(make.op("softmax", {make.op("sub", {x, most})}, {{"axis", axis}}));
                     }});
  };
  shift("last_axis", 1, -1, nullptr, false);
  shift("maximum_along_another_axis", 0, 0, nullptr, false);
  shift("maximum_without_its_axis", 0, 1, {{"keepdims", 0}}, false);
}

void add_attention(std::vector<Row>* rows) {
  const Dims of_q = {2, 3, 5, 4}, of_k = {2, 3, 7, 4}, of_v = {2, 3, 7, 6};
  const auto row = [&](const std::string& form, const std::string& what, int count, const Dims& q, const Dims& k,
                       const Dims& v, const AttentionSpelling& spelling, const Dims& mask = {}) {
    rows->push_back({"tenon.fuse_attention" + form + "/1", what, count, [=](NetworkMaker& make) {
                       AttentionSpelling own = spelling;
                       const Value x = make.input(q), y = make.input(k), z = make.input(v);
                       if (!mask.empty()) own.mask = make.input(mask);
                       make.output(spell_attention(make, x, y, z, own));
                     }});
  };
  AttentionSpelling plain, b, times, by, before;
  b.transposed_b = true;
  times.scale = by.scale = before.scale = 0.3;
  by.divides = true;
  before.scales_q = true;
  row("", "rank_four", 1, of_q, of_k, of_v, plain);
  row("", "transposed_operand", 1, of_q, of_k, of_v, b);
  row("", "rank_three", 1, {3, 5, 4}, {3, 7, 4}, {3, 7, 6}, plain);
  row("", "rank_two", 1, {5, 4}, {7, 4}, {7, 6}, plain);
  row("", "q_is_scaled", 1, of_q, of_k, of_v, before);
  row("", "keys_of_one_batch", 0, of_q, {1, 3, 7, 4}, of_v, plain);
  row("", "values_of_one_batch", 0, of_q, of_k, {1, 3, 7, 6}, plain);
  row("", "rank_five", 0, {1, 2, 3, 5, 4}, {1, 2, 3, 7, 4}, {1, 2, 3, 7, 6}, plain);
  row("", "large_heads", 0, {2, 257}, {3, 257}, {3, 2}, plain);
  row("_scaled", "product", 1, of_q, of_k, of_v, times);
  row("_scaled", "quotient", 1, of_q, of_k, of_v, by);
  row("_masked", "of_keys", 1, of_q, of_k, of_v, plain, {2, 1, 1, 7});
  row("_masked", "of_queries_and_keys", 1, of_q, of_k, of_v, plain, {5, 7});
  row("_masked", "rank_three", 1, {3, 5, 4}, {3, 7, 4}, {3, 7, 6}, plain, {3, 1, 7});
  row("_masked", "of_queries", 0, of_q, of_k, of_v, plain, {5, 1});
  row("_masked", "more_dims", 0, {1, 3, 5, 4}, {1, 3, 7, 4}, {1, 3, 7, 6}, plain, {2, 3, 5, 7});
  row("_scaled_masked", "product", 1, of_q, of_k, of_v, times, {2, 1, 1, 7});
  row("_scaled_masked", "quotient", 1, of_q, of_k, of_v, by, {5, 7});
  const auto other = [&](const std::string& what, int count, Make make) {
    rows->push_back({"tenon.fuse_attention_scaled/1", what, count, std::move(make)});
  };
  other("scale_and_scaled_q_and_k", 1, [=](NetworkMaker& make) {
    const Value q = make.op("mul", {make.input(of_q), make.number(0.5)});
    const Value k = make.op("transpose", {make.input({2, 7, 3, 4})}, {{"perm", {0, 2, 3, 1}}});
    const Value scaled = make.op("div", {k, make.number(2, {1})});
    const Value scores = make.op("mul", {make.op("matmul", {q, scaled}), make.number(0.7)});
    make.output(make.op("matmul", {make.op("softmax", {scores}), make.input(of_v)}));
  });
  const auto scores_of = [=](NetworkMaker& make, const Value& factor, std::int64_t axis, bool transposed, bool out) {
    const Value q = make.input({2, 3, 5, 5}), k = make.input({2, 3, 5, 5});
    const Value keys = transposed ? make.op("transpose", {k}, {{"perm", {0, 1, 3, 2}}}) : k;
    const Value scores = make.op("mul", {make.op("matmul", {q, keys}), factor});
    const Value weights = make.op("softmax", {scores}, {{"axis", axis}});
    if (out) make.output(weights);
    make.output(make.op("matmul", {weights, make.input({2, 3, 5, 5})}));
  };
  other("factor_of_each_head", 0, [=](NetworkMaker& make) {
    scores_of(make, numbers(make, {3, 1, 1}), -1, true, false);
  });
  other("softmax_along_queries", 0, [=](NetworkMaker& make) { scores_of(make, make.number(0.3), 2, true, false); });
  other("k_as_it_is", 0, [=](NetworkMaker& make) { scores_of(make, make.number(0.3), -1, false, false); });
  other("weights_are_an_output", 0, [=](NetworkMaker& make) { scores_of(make, make.number(0.3), -1, true, true); });
  other("values_are_transposed", 0, [=](NetworkMaker& make) {
    AttentionSpelling none;
    const Value q = make.input({5, 5}), k = make.input({5, 5}), v = make.input({5, 5});
    const Value scores = make.op("mul", {make.op("matmul", {q, k}, {{"transpose_b", 1}}), make.number(0.3)});
    make.output(make.op("matmul", {make.op("softmax", {scores}), v}, {{"transpose_b", 1}}));
  });
  other("q_is_transposed", 0, [=](NetworkMaker& make) {
    const Value q = make.input({5, 5}), k = make.input({5, 5}), v = make.input({5, 5});
    const Value product = make.op("matmul", {q, k}, {{"transpose_a", 1}, {"transpose_b", 1}});
    make.output(make.op("matmul", {make.op("softmax", {make.op("mul", {product, make.number(0.3)})}), v}));
  });
}

void add_heads(std::vector<Row>* rows) {
  const auto split = [&](const std::string& what, int count, Make make) {
    rows->push_back({"tenon.split_heads/1", what, count, std::move(make)});
  };
  const json scale = {{"scale", 0.4}};
  split("all", 1, [=](NetworkMaker& make) {
    const Value q = split_heads(make, make.input({2, 5, 6}), 3), k = split_heads(make, make.input({2, 7, 6}), 3);
    make.output(make.op("attention", {q, k, split_heads(make, make.input({2, 7, 12}), 3)}, scale));
  });
  split("only_q", 1, [=](NetworkMaker& make) {
    const Value q = split_heads(make, make.input({2, 5, 6}), 3);
    make.output(make.op("attention", {q, make.input({2, 3, 7, 2}), make.input({2, 3, 7, 4})}, scale));
  });
  split("only_k_that_several_heads_share", 1, [=](NetworkMaker& make) {
    const Value k = split_heads(make, make.input({2, 7, 4}), 2);
    make.output(make.op("attention", {make.input({2, 4, 5, 2}), k, make.input({2, 2, 7, 3})}, scale));
  });
  split("rows_that_are_no_reshape", 1, [=](NetworkMaker& make) {
    const Value v = make.op("transpose", {make.input({2, 7, 3, 4})}, {{"perm", {0, 2, 1, 3}}});
    make.output(make.op("attention", {make.input({2, 3, 5, 2}), make.input({2, 3, 7, 2}), v}, scale));
  });
  split("rows_that_another_reshape_makes", 1, [=](NetworkMaker& make) {
    const Value shaped = make.op("reshape", {make.input({2, 14, 6})}, {{"shape", {0, 7, 3, 4}}});
    const Value v = make.op("transpose", {shaped}, {{"perm", {0, 2, 1, 3}}});
    make.output(make.op("attention", {make.input({2, 3, 5, 2}), make.input({2, 3, 7, 2}), v}, scale));
  });
  split("other_axes", 0, [=](NetworkMaker& make) {
    const Value v = make.op("transpose", {make.input({2, 3, 4, 7})}, {{"perm", {0, 1, 3, 2}}});
    make.output(make.op("attention", {make.input({2, 3, 5, 2}), make.input({2, 3, 7, 2}), v}, scale));
  });

  const auto merge = [&](const std::string& what, int count, const std::vector<std::int64_t>& perm, bool twice) {
    rows->push_back(
        {"tenon.merge_heads/1", what, count, [=](NetworkMaker& make) {
           const Value k = make.input({2, 5, 5, 2});
           const Value y = make.op("attention", {make.input({2, 5, 5, 2}), k, make.input({2, 5, 5, 3})}, scale);
           if (twice) make.output(y);
           const Value moved = make.op("transpose", {y}, {{"perm", perm}});
           make.output(make.op("reshape", {moved}, {{"shape", {0, 0, -1}}}));
         }});
  };
  merge("rows", 1, {0, 2, 1, 3}, false);
  merge("other_axes", 0, {0, 1, 3, 2}, false);
  merge("attention_is_an_output", 0, {0, 2, 1, 3}, true);

  struct Products {
    Dims x = {2, 5, 4};
    std::int64_t q = 6, k = 6, v = 6;
    bool biased = true, plain_v = false, other_k = false, constant = true, transposed_b = false;
    json attrs = {{"scale", 0.4}, {"heads", 3}};
    Dims mask;
  };
  const auto products = [&](const std::string& what, int count, const Products& p) {
    rows->push_back({"tenon.merge_qkv/1", what, count, [p](NetworkMaker& make) {
                       const Value x = make.input(p.x), other = p.other_k ? make.input(p.x) : x;
                       const auto product = [&](const Value& from, std::int64_t columns, bool plain) {
                         const std::int64_t depth = p.x.back();
                         if (plain) {
                           const Value w = numbers(make, p.transposed_b ? Dims{columns, depth} : Dims{depth, columns});
                           return make.op("matmul", {from, w}, {{"transpose_b", p.transposed_b ? 1 : 0}});
                         }
                         std::vector<Value> inputs = {from, numbers(make, {columns, depth})};
                         if (p.biased) inputs.push_back(numbers(make, {columns}));
                         return make.op("fully_connected", inputs, {{"axis", -1}});
                       };
                       std::vector<Value> inputs = {product(x, p.q, false), product(other, p.k, p.transposed_b),
                                                    product(x, p.v, p.plain_v)};
                       if (!p.mask.empty()) inputs.push_back(make.input(p.mask));
                       make.output(make.op("attention", inputs, p.attrs));
                     }});
  };
  Products p;
  products("biases", 1, p);
  p.mask = {2, 1, 1, 5};
  products("mask", 1, p);
  p.mask = {};
  p.biased = false;
  products("no_bias", 1, p);
  p.biased = p.plain_v = true;
  products("one_without_bias", 1, p);
  p.transposed_b = true;
  products("stored_transposed", 1, p);
  p = Products();
  p.attrs["merge_heads"] = 1;
  p.attrs["causal"] = 1;
  products("attributes", 1, p);
  p = Products();
  p.k = p.v = 2;
  p.attrs["key_heads"] = 1;
  products("shared_keys", 1, p);
  p = Products();
  p.v = 9;
  products("larger_values", 0, p);
  p = Products();
  p.other_k = true;
  products("keys_of_another_value", 0, p);
}

}  // namespace

void add_transformers(std::vector<Row>* rows) {
  add_norms(rows);
  add_softmax(rows);
  add_attention(rows);
  add_heads(rows);
}

}  // namespace tenon::fusion
