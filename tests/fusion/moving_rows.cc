#include <limits>

#include "tests/fusion/rule_rows.h"

namespace tenon::fusion {
namespace {

using nlohmann::json;
using Ints = std::vector<std::int64_t>;

Value reshape(NetworkMaker& make, const Value& x, const Ints& shape) {
  return make.op("reshape", {x}, {{"shape", shape}});
}
Value transpose(NetworkMaker& make, const Value& x, const Ints& perm) {
  return make.op("transpose", {x}, {{"perm", perm}});
}
const Ints kLast = {0, 2, 3, 1}, kFirst = {0, 3, 1, 2};  // channels last, and back

void add_shuffles(std::vector<Row>* rows) {
  const Rows found(rows, "tenon.find_channel_shuffle/1");
  const auto spelled = [&](const std::string& what, int count, const Dims& dims, const Ints& split, const Ints& perm,
                           const Ints& joined) {
    found.add(what, count, [=](NetworkMaker& make) {
      return reshape(make, transpose(make, reshape(make, make.input(dims), split), perm), joined);
    });
  };
  const Dims x = {2, 12, 6, 5};
  const Ints perm = {0, 2, 1, 3, 4};
  spelled("numbers", 1, x, {2, 3, 4, 6, 5}, perm, {2, 12, 6, 5});
  spelled("any_batch", 1, x, {-1, 2, 6, 6, 5}, perm, {-1, 12, 6, 5});
  spelled("batch_is_copied", 1, x, {0, 4, 3, -1, 5}, perm, {0, 12, 6, 5});
  spelled("pixels_joined", 1, x, {0, 4, 3, -1}, {0, 2, 1, 3}, {0, 12, 6, 5});
  spelled("no_pixels", 1, {3, 12}, {3, 4, 3}, {0, 2, 1}, {3, 12});
  spelled("one_picture", 1, {1, 12, 6, 5}, {3, 4, 6, 5}, {1, 0, 2, 3}, {1, 12, 6, 5});
  spelled("pixels_move_too", 0, x, {2, 3, 4, 6, 5}, {0, 2, 1, 4, 3}, {2, 12, 6, 5});
  spelled("height_is_split", 0, x, {2, 12, 2, 3, 5}, {0, 1, 3, 2, 4}, {2, 12, 6, 5});
  spelled("batch_is_split", 0, x, {4, 6, 6, 5}, {1, 0, 2, 3}, {2, 12, 6, 5});
  spelled("groups_cross_pictures", 0, x, {1, 3, 8, 6, 5}, perm, {2, 12, 6, 5});
  spelled("nothing_moves", 0, x, {2, 3, 4, 6, 5}, {0, 1, 2, 3, 4}, {2, 12, 6, 5});
  spelled("other_dims", 0, x, {2, 3, 4, 6, 5}, perm, {2, 12, 30});
  spelled("groups_are_worked_out", 0, x, {0, -1, 4, 6, 5}, perm, {0, 12, 6, 5});
  spelled("batch_is_a_number", 0, {1, 12, 6, 5}, {1, 3, 4, -1, 5}, perm, {1, 12, 6, 5});
  found.add("shapes_are_inputs", 1, [](NetworkMaker& make) {
    const Value split = make.op("reshape", {make.input({2, 6, 4, 3}), make.integers({2, 3, 2, 4, 3})});
    const Value turned = transpose(make, split, {0, 2, 1, 3, 4});
    return make.op("reshape", {turned, make.integers({2, 6, 4, 3})});
  });
  found.add("parts_are_read_twice", 0, [](NetworkMaker& make) {
    const Value split = reshape(make, make.input({2, 6, 4, 3}), {2, 3, 2, 4, 3});
    make.output(make.op("sin", {split}));
    return reshape(make, transpose(make, split, {0, 2, 1, 3, 4}), {2, 6, 4, 3});
  });

  const auto shuffled = [](NetworkMaker& make, const Value& y, std::int64_t groups) {
    return make.op("channel_shuffle", {y}, {{"groups", groups}});
  };
  const Rows folded(rows, "tenon.fold_channel_shuffle/1");
  for (const bool bias : {true, false}) {
    folded.add(bias ? "bias" : "no_bias", 1,
               [=](NetworkMaker& make) { return shuffled(make, conv(make, image(make), 6, bias), 3); });
  }
  folded.add("groups", 0, [=](NetworkMaker& make) { return shuffled(make, conv(make, image(make), 6, true, 2), 3); });
  folded.add("convolution_is_read_twice", 0, [=](NetworkMaker& make) {
    const Value y = conv(make, image(make), 6, true);
    return make.op("sub", {shuffled(make, y, 2), y});
  });
  folded.add("weights_vary", 0, [=](NetworkMaker& make) {
    const Value y = image(make), weights = make.input({6, 4, 1, 1});
    return shuffled(make, make.op("conv2d", {y, weights}), 2);
  });
  const Rows activated(rows, "tenon.fold_activated_channel_shuffle/1");
  activated.add("relu", 1, [=](NetworkMaker& make) {
    return shuffled(make, make.op("relu", {conv(make, image(make), 8, true)}), 4);
  });
  activated.add("slope", 1, [=](NetworkMaker& make) {
    return shuffled(make, make.op("leaky_relu", {conv(make, image(make), 8, false)}, {{"alpha", 0.3}}), 2);
  });
  activated.add("groups", 0, [=](NetworkMaker& make) {
    return shuffled(make, make.op("relu", {conv(make, image(make), 8, true, 4)}), 4);
  });
  activated.add("activation_is_an_output", 0, [=](NetworkMaker& make) {
    const Value y = make.op("relu", {conv(make, image(make), 8, true)});
    make.output(y);
    return shuffled(make, y, 4);
  });
}

void add_transposes(std::vector<Row>* rows) {
  const Rows merged(rows, "tenon.merge_transposes/1");
  merged.add("two", 1, [](NetworkMaker& make) {
    return transpose(make, transpose(make, image(make), {1, 2, 0, 3}), {0, 3, 1, 2});
  });
  merged.add("three", 2, [](NetworkMaker& make) {
    const Value y = transpose(make, transpose(make, image(make), {1, 2, 0, 3}), {0, 3, 1, 2});
    return transpose(make, y, {3, 1, 0, 2});
  });
  merged.add("reversed", 1, [](NetworkMaker& make) {
    return transpose(make, make.op("transpose", {image(make)}), {0, 3, 1, 2});
  });
  merged.add("undone", 1, [](NetworkMaker& make) {
    const Value y = make.op("softmax", {image(make)});
    return make.op("softmax", {transpose(make, transpose(make, y, kLast), kFirst)}, {{"axis", 1}});
  });
  merged.add("undone_between_names", 0,
             [](NetworkMaker& make) { return transpose(make, transpose(make, image(make), kLast), kFirst); });
  merged.add("first_is_read_twice", 1, [](NetworkMaker& make) {
    const Value y = transpose(make, image(make), kLast);
    make.output(make.op("softmax", {y}));
    return transpose(make, y, {0, 2, 1, 3});
  });
  merged.add("something_between", 0, [](NetworkMaker& make) {
    return transpose(make, make.op("softmax", {transpose(make, image(make), kLast)}), kFirst);
  });

  const Rows dropped(rows, "tenon.drop_transpose/1");
  dropped.add("nothing_moves", 1, [](NetworkMaker& make) {
    return make.op("softmax", {transpose(make, image(make), {0, 1, 2, 3})});
  });
  dropped.add("equal_dims_move", 0, [](NetworkMaker& make) {
    return make.op("softmax", {transpose(make, make.input({3, 3}), {1, 0})});
  });
  dropped.add("from_name_to_name", 0, [](NetworkMaker& make) { return transpose(make, image(make), {0, 1, 2, 3}); });

  const Rows around(rows, "tenon.undo_transposes_around/1");
  around.add("activation", 1, [](NetworkMaker& make) {
    return transpose(make, make.op("elu", {transpose(make, image(make), kLast)}, {{"alpha", 0.4}}), kFirst);
  });
  around.add("another_order", 0, [](NetworkMaker& make) {
    return transpose(make, make.op("elu", {transpose(make, image(make), kLast)}), kLast);
  });
  around.add("activation_is_read_twice", 0, [](NetworkMaker& make) {
    const Value y = make.op("tanh", {transpose(make, image(make), kLast)});
    make.output(make.op("softmax", {y}));
    return transpose(make, y, kFirst);
  });
  const Rows clip(rows, "tenon.undo_transposes_around_clip/1");
  clip.add("bounds", 1, [](NetworkMaker& make) {
    const Value y = transpose(make, image(make), kLast);
    return transpose(make, make.op("clip", {y, make.number(-0.3), make.number(0.6)}), kFirst);
  });
  clip.add("one_bound", 1, [](NetworkMaker& make) {
    const Value y = transpose(make, image(make), kLast);
    return transpose(make, make.op("clip", {y, Value(), make.number(0.2)}), kFirst);
  });
  clip.add("another_order", 0, [](NetworkMaker& make) {
    const Value y = transpose(make, image(make), kLast);
    return transpose(make, make.op("clip", {y, make.number(-0.3)}), {0, 2, 1, 3});
  });
  const Rows number(rows, "tenon.undo_transposes_around_number/1");
  number.add("sub", 1, [](NetworkMaker& make) {
    return transpose(make, make.op("sub", {transpose(make, image(make), kLast), make.number(0.7)}), kFirst);
  });
  number.add("first", 1, [](NetworkMaker& make) {
    return transpose(make, make.op("mul", {make.number(0.7, {1, 1}), transpose(make, image(make), kLast)}), kFirst);
  });
  number.add("vector", 0, [](NetworkMaker& make) {
    return transpose(make, make.op("add", {transpose(make, image(make), kLast), numbers(make, {4})}), kFirst);
  });
  number.add("another_order", 0, [](NetworkMaker& make) {
    return transpose(make, make.op("add", {transpose(make, image(make), kLast), make.number(1)}), {3, 0, 1, 2});
  });
  const Rows two(rows, "tenon.undo_transposes_around_two/1");
  const auto both = [](NetworkMaker& make, const Ints& first, const Dims& other, const Ints& second, const Ints& back) {
    const Value x = transpose(make, image(make), first), y = transpose(make, make.input(other), second);
    return transpose(make, make.op("sub", {x, y}), back);
  };
  two.add("sub", 1, [=](NetworkMaker& make) { return both(make, kLast, {2, 4, 6, 5}, kLast, kFirst); });
  two.add("broadcast", 1, [=](NetworkMaker& make) { return both(make, kLast, {1, 4, 1, 1}, kLast, kFirst); });
  two.add("second_in_another_order", 0, [=](NetworkMaker& make) {
    return both(make, kLast, {2, 4, 5, 6}, {0, 3, 2, 1}, kFirst);
  });
  two.add("first_in_another_order", 0, [=](NetworkMaker& make) {
    return both(make, {0, 3, 2, 1}, {2, 5, 4, 6}, {0, 1, 3, 2}, {0, 1, 3, 2});
  });

  for (const char side : {'a', 'b'}) {
    const Rows matmul(rows, std::string("tenon.fold_transpose_") + side + "/1");
    const std::string flag = std::string("transpose_") + side;
    const auto product = [&](const std::string& what, int count, const Dims& a, const Dims& b, const Ints& perm,
                             const json& attrs) {
      matmul.add(what, count, [=](NetworkMaker& make) {
        Value x = make.input(a), y = make.input(b);
        (side == 'a' ? x : y) = transpose(make, side == 'a' ? x : y, perm);
        return make.op("matmul", {x, y}, attrs);
      });
    };
    if (side == 'a') {
      product("matrices", 1, {4, 3}, {4, 5}, {1, 0}, nullptr);
      product("batches", 1, {2, 4, 3}, {2, 4, 5}, {0, 2, 1}, nullptr);
      product("is_transposed_already", 1, {3, 4}, {4, 5}, {1, 0}, {{flag, 1}});
      product("batches_move", 0, {3, 4, 3}, {3, 3, 5}, {2, 0, 1}, {{flag, 1}});
    } else {
      product("matrices", 1, {3, 4}, {5, 4}, {1, 0}, nullptr);
      product("batches", 1, {2, 3, 4}, {2, 5, 4}, {0, 2, 1}, nullptr);
      product("is_transposed_already", 1, {3, 4}, {4, 5}, {1, 0}, {{flag, 1}});
      product("batches_move", 0, {3, 5, 3}, {3, 4, 3}, {2, 0, 1}, nullptr);
    }
  }
}

void add_reshapes(std::vector<Row>* rows) {
  const Rows merged(rows, "tenon.merge_reshapes/1");
  const auto both = [&](const std::string& what, int count, const Ints& first, const Ints& last) {
    merged.add(what, count, [=](NetworkMaker& make) { return reshape(make, reshape(make, image(make), first), last); });
  };
  both("numbers", 1, {8, 30}, {2, 120});
  both("copies", 1, {0, -1, 10}, {0, 3, 0, -1});
  both("worked_out", 1, {-1, 8, 5}, {0, 40});
  both("worked_out_twice", 0, {-1, 10, 4}, {0, 2, 20, -1});
  both("batch_in_another_place", 1, {4, -1}, {0, 6, -1});
  merged.add("copies_of_other_axes", 1, [](NetworkMaker& make) {
    const Value y = make.op("reshape", {image(make)}, {{"shape", {0, 0, 5, 4}}, {"copies", {0, 2, -1, -1}}});
    return make.op("reshape", {y}, {{"shape", {4, 0, 0, 5}}, {"copies", {-1, 1, 0, -1}}});
  });
  merged.add("first_is_read_twice", 1, [](NetworkMaker& make) {
    const Value y = reshape(make, image(make), {8, 30});
    make.output(make.op("softmax", {y}));
    return reshape(make, y, {30, 8});
  });
  merged.add("batch_that_varies", 1, [](NetworkMaker& make) {
    const Value y = reshape(make, image(make), {0, 4, 30});
    must(make.network().set_profile("x0", {1, 4, 6, 5}, {2, 4, 6, 5}, {3, 4, 6, 5}));
    return make.op("softmax", {reshape(make, y, {-1, 5})});
  });

  const Rows dropped(rows, "tenon.drop_reshape/1");
  const auto same = [&](const std::string& what, int count, const Ints& shape) {
    dropped.add(what, count,
                [=](NetworkMaker& make) { return make.op("softmax", {reshape(make, image(make), shape)}); });
  };
  same("numbers", 1, {2, 4, 6, 5});
  same("any_batch", 1, {-1, 4, 6, 5});
  same("batch_is_copied", 1, {0, 4, -1, 5});
  same("batch_is_a_number", 0, {2, -1, 6, 5});
  same("other_dims", 0, {2, 4, 5, 6});
  dropped.add("copies_of_an_equal_axis", 0, [](NetworkMaker& make) {
    const Value y = make.op("reshape", {make.input({2, 3, 3})}, {{"shape", {0, 0, -1}}, {"copies", {0, 2, -1}}});
    return make.op("softmax", {y});
  });
  dropped.add("from_name_to_name", 0, [](NetworkMaker& make) { return reshape(make, image(make), {2, 4, 6, 5}); });
}

void add_pads(std::vector<Row>* rows) {
  struct Pad {
    Pad(Ints all = {0, 0, 1, 2, 0, 0, 3, 0}, std::vector<float> filling = {}, Ints some_axes = {},
        std::string how = "constant")
        : pads(std::move(all)), value(std::move(filling)), axes(std::move(some_axes)), mode(std::move(how)) {}
    Ints pads;
    std::vector<float> value;
    Ints axes;
    std::string mode;
  };
  const auto padded = [](NetworkMaker& make, const Value& x, const Pad& pad) {
    std::vector<Value> inputs = {x, make.integers(pad.pads), Value(), Value()};
    if (!pad.value.empty()) inputs[2] = make.constant({1}, pad.value);
    if (!pad.axes.empty()) inputs[3] = make.integers(pad.axes);
    if (pad.axes.empty()) inputs.pop_back();
    return make.op("pad", inputs, {{"mode", pad.mode}});
  };
  const Rows conv_rows(rows, "tenon.fold_pad_into_conv2d/1");
  const auto into_conv = [&](const std::string& what, int count, const Pad& pad) {
    conv_rows.add(what, count, [=](NetworkMaker& make) {
      const Value y = padded(make, image(make), pad);
      return make.op("conv2d", {y, numbers(make, {3, y.dims[1], 3, 2}), numbers(make, {3})},
                     {{"pads", {0, 1, 2, 0}}, {"strides", {1, 2}}});
    });
  };
  into_conv("zeros", 1, {});
  into_conv("value", 1, {{0, 0, 1, 2, 0, 0, 3, 0}, {0.0f}});
  into_conv("axes", 1, {{1, 2, 0, 3}, {}, {3, -2}});
  into_conv("another_value", 0, {{0, 0, 1, 2, 0, 0, 3, 0}, {0.5f}});
  into_conv("reflection", 0, {{0, 0, 1, 2, 0, 0, 3, 0}, {}, {}, "reflect"});
  into_conv("cut", 0, {{0, 0, 1, -1, 0, 0, 1, 1}});
  into_conv("channels", 0, {{0, 1, 1, 1, 0, 0, 1, 1}});
  into_conv("pictures", 0, {{0, 0, 1, 1, 1, 0, 1, 1}});
  conv_rows.add("pad_is_read_twice", 0, [=](NetworkMaker& make) {
    const Value y = padded(make, image(make), {});
    make.output(make.op("sin", {y}));
    return make.op("conv2d", {y, numbers(make, {3, 4, 3, 2})});
  });

  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  const auto into_pool = [&](const std::string& op, const std::string& what, int count, const Pad& pad,
                             const json& attrs) {
    Rows(rows, "tenon.fold_pad_into_" + op + "/1").add(what, count, [=](NetworkMaker& make) {
      json all = {{"kernel", {3, 3}}, {"strides", {2, 1}}};
      all.update(attrs);
      return make.op(op, {padded(make, image(make), pad)}, all);
    });
  };
  const Ints one = {0, 0, 1, 1, 0, 0, 1, 1};
  into_pool("max_pool", "lowest", 1, {one, {kLowest}}, json::object());
  into_pool("max_pool", "own_pads_too", 1, {{0, 0, 1, 0, 0, 0, 0, 1}, {kLowest}}, {{"pads", {0, 1, 1, 1}}});
  into_pool("max_pool", "zeros", 0, {one}, json::object());
  into_pool("max_pool", "rounded_up", 0, {one, {kLowest}}, {{"rounding", "ceil"}});
  into_pool("avg_pool", "zeros", 1, {one}, json::object());
  into_pool("avg_pool", "own_pads_count", 1, {{0, 0, 1, 0, 0, 0, 0, 1}},
            {{"pads", {0, 1, 1, 1}}, {"count_include_pad", 1}});
  into_pool("avg_pool", "own_pads_do_not_count", 0, {{0, 0, 1, 0, 0, 0, 0, 1}}, {{"pads", {0, 1, 1, 1}}});
  into_pool("avg_pool", "another_value", 0, {one, {1.0f}}, json::object());
  into_pool("avg_pool", "rounded_up", 0, {one}, {{"rounding", "ceil"}});
}

}  // namespace

void add_moving_rows(std::vector<Row>* rows) {
  add_shuffles(rows);
  add_transposes(rows);
  add_reshapes(rows);
  add_pads(rows);
}

}  // namespace tenon::fusion
