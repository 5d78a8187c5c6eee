#include "tests/fusion/quantized_pieces.h"
#include "tests/fusion/rule_rows.h"

namespace tenon::fusion {
namespace {

using nlohmann::json;

const Quantization kBytes = {{0.013f}, {117}}, kPositive = {{0.011f}, {0}}, kSigned = {{0.017f}, {-9}, "i8"},
                   kSignedPositive = {{0.009f}, {-128}, "i8"}, kWords = {{7e-5f}, {-1000}, "i16"},
                   kOfChannels = {{0.011f, 0.02f, 0.007f, 0.013f}, {1, 120, 130, 255}};

Quantization with_scale(Quantization how, float scale) { return how.scales = {scale}, how; }
Quantization with_zero(Quantization how, std::int64_t zero) { return how.zeros = {zero}, how; }

/// The integers of x read in two ways, so that they stay integers.
Value read_twice(NetworkMaker& make, const Value& x, const Quantization& how) {
  Quantization doubled = how;
  for (float& scale : doubled.scales) scale *= 2;
  const Value integers = quantize(make, x, how);
  make.output(make.op("softmax", {dequantize(make, integers, doubled)}));
  return dequantize(make, integers, how);
}

void add_pairs(std::vector<Row>* rows) {
  const Rows dropped(rows, "tenon.drop_dequantize_quantize/1");
  const auto again = [&](const std::string& what, int count, const Quantization& first, const Quantization& second) {
    dropped.add(what, count,
                [=](NetworkMaker& make) { return rounded(make, rounded(make, image(make), first), second); });
  };
  again("u8", 1, kBytes, kBytes);
  again("i8", 1, kSigned, kSigned);
  again("i16", 1, kWords, kWords);
  again("no_zero_point", 1, {{0.02f}, {}}, {{0.02f}, {0}});
  again("channels", 1, kOfChannels, kOfChannels);
  again("channels_counted_from_the_end", 1, kOfChannels, [] {
    Quantization last = kOfChannels;
    return last.axis = -3, last;
  }());
  again("another_scale", 0, kBytes, with_scale(kBytes, 0.0131f));
  again("another_zero_point", 0, kBytes, with_zero(kBytes, 118));
  again("another_dtype", 0, with_zero(kBytes, 100), {{0.013f}, {100}, "i8"});
  again("infinite_products", 0, with_scale(kPositive, 3e37f), with_scale(kPositive, 3e37f));
  dropped.add("another_axis", 0, [](NetworkMaker& make) {
    const Quantization rows_of = {kOfChannels.scales, kOfChannels.zeros, "u8", 0}, columns = kOfChannels;
    return rounded(make, rounded(make, make.input({4, 4}), rows_of), columns);
  });
  dropped.add("quantize_dequantize_rounds", 0, [](NetworkMaker& make) { return rounded(make, image(make), kBytes); });
  dropped.add("dequantize_is_read_twice", 1, [](NetworkMaker& make) {
    const Value y = rounded(make, image(make), kBytes);
    make.output(make.op("softmax", {y}));
    return rounded(make, y, kBytes);
  });
}

void add_roundings(std::vector<Row>* rows) {
  const Rows second(rows, "tenon.drop_second_rounding/1");
  const auto between = [&](const std::string& what, int count, const std::string& op, const json& attrs,
                           const Quantization& first = kBytes, const Quantization& last = kBytes) {
    second.add(what, count, [=](NetworkMaker& make) {
      return rounded(make, make.op(op, {rounded(make, image(make), first)}, attrs), last);
    });
  };
  const json pool = {{"kernel", {3, 2}}, {"strides", {2, 1}}, {"pads", {1, 1, 2, 0}}};
  const auto changed = [&](const std::string& name, const json& value) {
    json attrs = pool;
    return attrs[name] = value, attrs;
  };
  between("max_pool", 1, "max_pool", pool);
  between("max_pool_rounded_up", 1, "max_pool", changed("rounding", "ceil"));
  between("windows_outside", 0, "max_pool", changed("pads", {1, 1, 3, 0}));
  between("dilated_windows", 0, "max_pool", changed("dilations", {1, 2}));
  between("avg_pool", 0, "avg_pool", pool);
  between("relu", 1, "relu", nullptr);
  between("transpose", 1, "transpose", nullptr, kSigned, kSigned);
  between("neg", 0, "neg", nullptr, kSigned, kSigned);
  between("another_scale", 0, "relu", nullptr, kBytes, with_scale(kBytes, 0.0131f));
  between("channels", 0, "relu", nullptr, kOfChannels, kOfChannels);
  for (const bool alike : {true, false}) {
    second.add(alike ? "concat" : "concat_of_something_else", alike ? 1 : 0, [=](NetworkMaker& make) {
      const Value a = rounded(make, image(make), kWords), b = alike ? rounded(make, image(make), kWords) : image(make);
      return rounded(make, make.op("relu", {make.op("concat", {a, b}, {{"axis", 1}})}), kWords);
    });
  }
  second.add("integers_are_read_twice", 0, [](NetworkMaker& make) {
    return read_twice(make, make.op("relu", {rounded(make, image(make), kBytes)}), kBytes);
  });

  const Rows fused(rows, "tenon.fuse_quantize_dequantize/1");
  const auto pair = [&](const std::string& what, int count, const Quantization& how) {
    fused.add(what, count, [=](NetworkMaker& make) { return rounded(make, image(make), how); });
  };
  pair("u8", 1, kBytes);
  pair("u8_saturates", 1, {{0.004f}, {200}});
  pair("i8_saturates", 1, {{0.004f}, {-50}, "i8"});
  pair("i16", 1, kWords);
  pair("no_zero_point", 1, {{0.02f}, {}, "i8"});
  pair("channels", 0, kOfChannels);
  fused.add("another_scale", 0, [](NetworkMaker& make) {
    return dequantize(make, quantize(make, image(make), kBytes), with_scale(kBytes, 0.1f));
  });
  fused.add("integers_are_read_twice", 0, [](NetworkMaker& make) { return read_twice(make, image(make), kBytes); });
  // Halves of steps, as far as f32 has them: what divides by the scale in another way rounds some of them to the other
  // side.
  fused.add("ties", 1, [](NetworkMaker& make) {
    const Value whole = make.op("round_even", {make.op("mul", {make.input({5, 1000}), make.number(30)})});
    const Value half = make.op("mul", {make.op("add", {whole, make.number(0.5)}), make.number(0.017f)});
    return rounded(make, half, kSigned);
  });
  fused.add("not_a_number", 1,
            [](NetworkMaker& make) { return rounded(make, make.op("sqrt", {image(make)}), kSigned); });
}

void add_moves(std::vector<Row>* rows) {
  const Rows moved(rows, "tenon.quantize_before_moving/1");
  struct Move {
    std::string op;
    json attrs;
  };
  const Move moves[] = {{"transpose", {{"perm", {0, 2, 3, 1}}}},
                        {"reshape", {{"shape", {0, -1}}}},
                        {"channel_shuffle", {{"groups", 2}}},
                        {"slice", {{"starts", {1}}, {"ends", {3}}, {"axes", {1}}}}};
  for (const Move& move : moves) {
    moved.add(move.op, 1, [=](NetworkMaker& make) {
      const Value x = read_twice(make, image(make), kBytes);
      return read_twice(make, make.op(move.op, {x}, move.attrs), kBytes);
    });
  }
  moved.add("two", 2, [=](NetworkMaker& make) {
    const Value x = read_twice(make, image(make), kSigned);
    return read_twice(make, make.op("reshape", {make.op("slice", {x}, moves[3].attrs)}, moves[1].attrs), kSigned);
  });
  moved.add("of_something_else", 1, [=](NetworkMaker& make) {
    return read_twice(make, make.op("transpose", {image(make)}, moves[0].attrs), kBytes);
  });
  moved.add("part_of_something_else", 0, [=](NetworkMaker& make) {
    return read_twice(make, make.op("slice", {image(make)}, moves[3].attrs), kBytes);
  });
  moved.add("part_that_was_quantized_otherwise", 0, [=](NetworkMaker& make) {
    const Value x = read_twice(make, image(make), kSigned);
    return read_twice(make, make.op("slice", {x}, moves[3].attrs), kBytes);
  });
  moved.add("shape_is_an_input", 1, [=](NetworkMaker& make) {
    const Value x = make.op("reshape", {image(make), make.integers({4, 60})});
    return read_twice(make, x, kBytes);
  });
  moved.add("channels", 0, [](NetworkMaker& make) {
    Quantization how = kOfChannels;
    return read_twice(make, make.op("transpose", {make.input({4, 4})}), how);
  });
  moved.add("read_twice", 0, [=](NetworkMaker& make) {
    const Value y = make.op("transpose", {image(make)}, moves[0].attrs);
    make.output(make.op("softmax", {y}));
    return read_twice(make, y, kBytes);
  });

  const Rows padded(rows, "tenon.quantize_before_pad/1");
  const auto pad = [&](const std::string& what, int count, const json& attrs, std::vector<std::int64_t> pads,
                       std::vector<float> value, const Quantization& how) {
    padded.add(what, count, [=](NetworkMaker& make) {
      std::vector<Value> inputs = {read_twice(make, image(make), kSigned), make.integers(pads)};
      if (!value.empty()) inputs.push_back(make.constant({1}, value));
      return read_twice(make, make.op("pad", inputs, attrs), how);
    });
  };
  const std::vector<std::int64_t> around = {0, 1, 1, 2, 0, 0, 3, 0}, cut = {0, 0, -2, 0, 0, 0, -3, 1};
  pad("zeros", 1, nullptr, around, {}, kBytes);
  pad("zeros_without_zero_point", 1, nullptr, around, {}, {{0.02f}, {}, "i8"});
  pad("value", 1, nullptr, around, {0.7f}, kBytes);
  pad("value_that_saturates", 1, nullptr, around, {-700.0f}, kBytes);
  pad("edge", 1, {{"mode", "edge"}}, around, {}, kBytes);
  pad("cut", 1, nullptr, cut, {}, kSigned);
  pad("cut_from_something_else", 0, nullptr, cut, {}, kBytes);
  padded.add("axes", 1, [](NetworkMaker& make) {
    const Value y = make.op("pad", {image(make), make.integers({1, 2, 0, 3}), Value(), make.integers({3, -2})});
    return read_twice(make, y, kBytes);
  });

  const Rows joined(rows, "tenon.quantize_before_concat/1");
  const auto concat = [&](const std::string& what, int count, const Quantization& first, const Quantization& second,
                          const Quantization& all, std::int64_t axis) {
    joined.add(what, count, [=](NetworkMaker& make) {
      const Value a = read_twice(make, image(make), first), b = read_twice(make, image(make), second);
      return read_twice(make, make.op("concat", {a, b}, {{"axis", axis}}), all);
    });
  };
  concat("alike", 1, kBytes, kBytes, kBytes, 1);
  concat("alike_last_axis", 1, kSigned, kSigned, kSigned, -1);
  concat("one_differs", 0, kBytes, with_zero(kBytes, 3), kBytes, 1);
  concat("result_differs", 0, kBytes, kBytes, kSigned, 1);
  concat("channels", 0, kOfChannels, kOfChannels, kOfChannels, 2);
  joined.add("moved_and_constant", 1, [=](NetworkMaker& make) {
    const Value a = read_twice(make, make.input({2, 5, 6, 4}), kBytes);
    const Value b = make.op("transpose", {a}, {{"perm", {0, 3, 2, 1}}});
    return read_twice(make, make.op("concat", {b, numbers(make, {2, 4, 6, 5}), b}, {{"axis", 1}}), kBytes);
  });
  joined.add("of_something_else", 0, [=](NetworkMaker& make) {
    const Value a = read_twice(make, image(make), kBytes);
    return read_twice(make, make.op("concat", {a, image(make)}, {{"axis", 1}}), kBytes);
  });
}

void add_relus(std::vector<Row>* rows) {
  const Rows before(rows, "tenon.drop_relu_before_quantize/1"), after(rows, "tenon.drop_relu_after_dequantize/1");
  const auto both = [&](const std::string& what, int count, const Quantization& how) {
    before.add(what, count, [=](NetworkMaker& make) { return rounded(make, make.op("relu", {image(make)}), how); });
    after.add(what, count, [=](NetworkMaker& make) {
      return make.op("softmax", {make.op("relu", {rounded(make, image(make), how)})});
    });
  };
  both("u8", 1, kPositive);
  both("u8_without_zero_point", 1, {{0.02f}, {}});
  both("i8", 1, kSignedPositive);
  both("i8_without_zero_point", 0, {{0.02f}, {}, "i8"});
  both("negative_numbers", 0, kBytes);
  both("negative_numbers_in_a_channel", 0, {kOfChannels.scales, {0, 0, 0, 100}});
  both("channels", 1, {kOfChannels.scales, {0, 0, 0, 0}});
  before.add("relu_is_read_twice", 0, [](NetworkMaker& make) {
    const Value y = make.op("relu", {image(make)});
    make.output(make.op("softmax", {y}));
    return rounded(make, y, kPositive);
  });
  after.add("dequantize_is_read_twice", 1, [](NetworkMaker& make) {
    const Value y = rounded(make, image(make), kPositive);
    make.output(make.op("softmax", {y}));
    return make.op("neg", {make.op("relu", {y})});
  });
}

}  // namespace

void add_quantized_rows(std::vector<Row>* rows) {
  add_pairs(rows);
  add_roundings(rows);
  add_moves(rows);
  add_relus(rows);
}

}  // namespace tenon::fusion
