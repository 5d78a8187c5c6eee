#include "core/graph/attributes.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/failure.h"
#include "core/graph/graph.h"
#include "core/graph/test_ops.h"

namespace tenon {
namespace {

std::string last_failure(TnStatus code) { return take_failure(code, "call").message(); }

TEST(AttrText, Canonical) {
  EXPECT_EQ(attr_text(std::int64_t{-7}), "-7");
  EXPECT_EQ(attr_text(0.1), "0.1");
  EXPECT_EQ(attr_text(1.0), "1");
  EXPECT_EQ(attr_text(1e300), "1e+300");
  EXPECT_EQ(attr_text(std::string("a\"b\\c\n\x01")), "\"a\\\"b\\\\c\\n\\u0001\"");
  EXPECT_EQ(attr_text(std::vector<std::int64_t>{1, 2}), "[1,2]");
  EXPECT_EQ(attr_text(std::vector<double>{}), "[]");
  EXPECT_EQ(attr_text(std::vector<std::string>{"a", "b,c"}), "[\"a\",\"b,c\"]");
  EXPECT_EQ(attr_text(DTypeAttr{TN_F16}), "f16");
  EXPECT_EQ(attr_text(test::f32_tensor({2}, {1, 2})).rfind("tensor(f32[2],0x", 0), 0u);
  EXPECT_NE(attr_text(test::f32_tensor({2}, {1, 2})), attr_text(test::f32_tensor({2}, {1, 3})));
  EXPECT_EQ(attr_text(std::make_shared<const Graph>(test::empty_graph())).rfind("graph(0x", 0), 0u);
}

TEST(AttrText, ReadsBack) {
  const AttrValue values[] = {std::int64_t{-5},
                              0.1,
                              -1e-310,
                              std::string("x\"\\\n\t\x02 y"),
                              std::vector<std::int64_t>{3, -4},
                              std::vector<double>{0.5, 1e20},
                              std::vector<std::string>{"a,b", "", "\"c"},
                              std::vector<std::string>{},
                              DTypeAttr{TN_I8}};
  for (const AttrValue& value : values) {
    const Result<AttrValue> back = parse_attr(attr_type(value), attr_text(value));
    ASSERT_TRUE(back.ok()) << back.status().message();
    EXPECT_EQ(*back, value) << attr_text(value);
  }
}

TEST(AttrText, LooseForms) {
  EXPECT_EQ(*parse_attr(TN_ATTR_I64S, "1, 2 ,3"), AttrValue(std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(*parse_attr(TN_ATTR_STR, "same"), AttrValue(std::string("same")));
  EXPECT_EQ(*parse_attr(TN_ATTR_STRS, "a,b"), AttrValue(std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(*parse_attr(TN_ATTR_F64, " 2 "), AttrValue(2.0));
  EXPECT_EQ(*parse_attr(TN_ATTR_I64S, ""), AttrValue(std::vector<std::int64_t>{}));
  EXPECT_EQ(parse_attr(TN_ATTR_I64, "1.5").status().message(), "\"1.5\" is no i64");
  for (const char* text : {"[1", "1,,2", "[1,2]]", "x"}) EXPECT_FALSE(parse_attr(TN_ATTR_I64S, text).ok()) << text;
  EXPECT_FALSE(parse_attr(TN_ATTR_STRS, "\"a").ok());
  EXPECT_FALSE(parse_attr(TN_ATTR_STRS, "\"a\"b").ok());
  EXPECT_FALSE(parse_attr(TN_ATTR_STR, "\"\\u12").ok());
  EXPECT_FALSE(parse_attr(TN_ATTR_TENSOR, "1").ok());
}

TEST(Attrs, TextIsInNameOrder) {
  Attrs attrs;
  attrs.values["b"] = std::int64_t{1};
  attrs.values["alpha"] = 0.1;
  EXPECT_EQ(attrs.text(), "alpha=0.1;b=1");
}

class Schema : public testing::Test {
 protected:
  Status apply(Attrs* attrs) { return apply_schema("op test.x/1", params_, 7, attrs); }
  std::string error(const char* name, AttrValue value) {
    Attrs attrs;
    attrs.values["size"] = std::int64_t{3};
    attrs.values[name] = std::move(value);
    return apply(&attrs).message();
  }

  const TnParam size_ = {TN_HEADER(TnParam), TN_ATTR_I64, "size", 1, nullptr, "[1,)", ""};
  const TnParam alpha_ = {TN_HEADER(TnParam), TN_ATTR_F64, "alpha", 0, "0.1", "(0,1]", ""};
  const TnParam mode_ = {TN_HEADER(TnParam), TN_ATTR_STR, "mode", 0, "same", "same|valid", ""};
  const TnParam pads_ = {TN_HEADER(TnParam), TN_ATTR_I64S, "pads", 0, "0,0", "[0,)", ""};
  const TnParam scales_ = {TN_HEADER(TnParam), TN_ATTR_F64S, "scales", 0, nullptr, nullptr, ""};
  const TnParam level_ = {TN_HEADER(TnParam), TN_ATTR_I64, "level", 0, nullptr, "1|2|4", ""};
  const TnParam to_ = {TN_HEADER(TnParam), TN_ATTR_DTYPE, "to", 0, nullptr, "f32|f16", ""};
  const TnParam* params_[7] = {&size_, &alpha_, &mode_, &pads_, &scales_, &level_, &to_};
};

TEST_F(Schema, AddsDefaultsAndConverts) {
  Attrs attrs;
  attrs.values["size"] = std::int64_t{3};
  attrs.values["alpha"] = std::int64_t{1};
  attrs.values["scales"] = std::vector<std::int64_t>{2, 3};
  ASSERT_TRUE(apply(&attrs).ok());
  EXPECT_EQ(attrs.text(), "alpha=1;mode=\"same\";pads=[0,0];scales=[2,3];size=3");
  EXPECT_EQ(attr_type(attrs.values["alpha"]), TN_ATTR_F64);
  EXPECT_EQ(attr_type(attrs.values["scales"]), TN_ATTR_F64S);
}

TEST_F(Schema, Errors) {
  Attrs none;
  EXPECT_EQ(apply(&none).message(), "op test.x/1: attribute \"size\" (i64) is required but absent");
  EXPECT_TRUE(none.values.empty());
  EXPECT_EQ(error("alpah", 0.1), "op test.x/1 has no attribute \"alpah\"; did you mean \"alpha\"?");
  EXPECT_EQ(error("zzzzzzzzz", 0.1),
            "op test.x/1 has no attribute \"zzzzzzzzz\"; known are size, alpha, mode, pads, scales, level, to");
  EXPECT_EQ(error("size", 2.5), "op test.x/1: attribute \"size\": expected i64, found f64 2.5");
  EXPECT_EQ(error("size", std::int64_t{0}), "op test.x/1: attribute \"size\": 0 is outside [1,)");
  EXPECT_EQ(error("alpha", 0.0), "op test.x/1: attribute \"alpha\": 0 is outside (0,1]");
  EXPECT_EQ(error("alpha", 1.0), "");
  EXPECT_EQ(error("alpha", std::nan("")), "op test.x/1: attribute \"alpha\": nan is outside (0,1]");
  EXPECT_EQ(error("mode", std::string("smae")),
            "op test.x/1: attribute \"mode\": found \"smae\"; expected one of same, valid; did you mean same?");
  EXPECT_EQ(error("pads", std::vector<std::int64_t>{1, -2}), "op test.x/1: attribute \"pads\": -2 is outside [0,)");
  EXPECT_EQ(error("level", std::int64_t{3}),
            "op test.x/1: attribute \"level\": found 3; expected one of 1, 2, 4; did you mean 1?");
  EXPECT_EQ(error("to", DTypeAttr{TN_I64}).rfind("op test.x/1: attribute \"to\": found \"i64\"; expected one of", 0),
            0u);
}

TEST(SchemaFaults, BadRangeAndDefaultAreThePlugins) {
  const TnParam range = {TN_HEADER(TnParam), TN_ATTR_I64, "a", 0, "1", "[1;2]", ""};
  const TnParam value = {TN_HEADER(TnParam), TN_ATTR_I64, "a", 0, "one", nullptr, ""};
  for (const TnParam* param : {&range, &value}) {
    Attrs attrs;
    EXPECT_EQ(apply_schema("op", &param, 1, &attrs).code(), Code::kInternal);
  }
}

TEST(AttrApi, SetsAndGets) {
  const TnAttrApi& api = attr_api();
  TnAttrs* attrs = api.create(nullptr);
  const std::int64_t ints[] = {1, 2, 3};
  const char* texts[] = {"x", "a longer text than the small buffer holds"};
  float data[2] = {1, 2};
  const TnTensor tensor = tensor_view(data, TN_F32, make_dims({2}), row_format(), TN_MEMORY_HOST);
  ASSERT_EQ(api.set_i64(attrs, "i", 5), TN_OK);
  ASSERT_EQ(api.set_f64(attrs, "f", 0.5), TN_OK);
  ASSERT_EQ(api.set_str(attrs, "s", "text"), TN_OK);
  ASSERT_EQ(api.set_i64s(attrs, "is", ints, 3), TN_OK);
  ASSERT_EQ(api.set_f64s(attrs, "fs", nullptr, 0), TN_OK);
  ASSERT_EQ(api.set_strs(attrs, "ss", texts, 2), TN_OK);
  ASSERT_EQ(api.set_tensor(attrs, "t", &tensor), TN_OK);
  ASSERT_EQ(api.set_dtype(attrs, "d", TN_F16), TN_OK);

  TnAttrs* copy = api.create(attrs);
  const char* const* got = nullptr;
  std::uint32_t count = 0;
  ASSERT_EQ(api.get_strs(attrs, "ss", &got, &count), TN_OK);
  const char* const* copied = nullptr;
  ASSERT_EQ(api.get_strs(copy, "ss", &copied, &count), TN_OK);
  EXPECT_NE(got, copied);
  api.destroy(attrs);
  EXPECT_STREQ(copied[1], texts[1]);
  ASSERT_EQ(api.set_strs(copy, "ss", texts, 1), TN_OK);
  ASSERT_EQ(api.get_strs(copy, "ss", &copied, &count), TN_OK);
  EXPECT_EQ(count, 1u);
  EXPECT_STREQ(copied[0], "x");

  std::int64_t i = 0;
  double f = 0;
  const char* s = nullptr;
  const std::int64_t* is = nullptr;
  TnTensor t{};
  std::int32_t d = 0;
  EXPECT_EQ(api.get_i64(copy, "i", &i), TN_OK);
  EXPECT_EQ(i, 5);
  EXPECT_EQ(api.get_f64(copy, "f", &f), TN_OK);
  EXPECT_EQ(f, 0.5);
  EXPECT_EQ(api.get_str(copy, "s", &s), TN_OK);
  EXPECT_STREQ(s, "text");
  EXPECT_EQ(api.get_i64s(copy, "is", &is, &count), TN_OK);
  EXPECT_EQ(is[2], 3);
  EXPECT_EQ(api.get_tensor(copy, "t", &t), TN_OK);
  EXPECT_EQ(static_cast<float*>(t.data)[1], 2);
  EXPECT_EQ(api.get_dtype(copy, "d", &d), TN_OK);
  EXPECT_EQ(d, TN_F16);

  EXPECT_EQ(api.get_i64(copy, "none", &i), TN_NOTFOUND);
  EXPECT_EQ(last_failure(TN_NOTFOUND), "call: attribute \"none\" is absent");
  EXPECT_EQ(api.get_f64(copy, "i", &f), TN_INVALID);
  EXPECT_EQ(last_failure(TN_INVALID), "call: attribute \"i\": asked for f64, but it is i64");
  EXPECT_EQ(api.set_i64(copy, "Bad", 1), TN_INVALID);
  EXPECT_EQ(last_failure(TN_INVALID), "call: attribute name \"Bad\" is not of the form [a-z][a-z0-9_]*");
  EXPECT_EQ(api.set_i64(copy, nullptr, 1), TN_INVALID);
  EXPECT_EQ(api.set_str(copy, "s", nullptr), TN_INVALID);
  EXPECT_EQ(api.set_dtype(copy, "d", 99), TN_INVALID);
  EXPECT_EQ(last_failure(TN_INVALID), "call: attribute \"d\": 99 is no dtype number");
  api.destroy(copy);
}

}  // namespace
}  // namespace tenon
