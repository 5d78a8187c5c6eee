#include "registry/validate.h"

#include <gtest/gtest.h>

#include <tenon/plugin/ext/ids.h>

#include "registry/testing/support.h"

namespace tenon {
namespace {

using testing::contains;

TEST(Grammar, OpIds) {
  for (const char* good : {"tenon.relu/1", "org.example.roi_align/20", "a.b/1", "a.2d/3"}) {
    EXPECT_TRUE(is_op_id(good)) << good;
  }
  for (const char* bad : {"", "relu/1", "tenon.relu", "tenon.relu/", "tenon.relu/0", "tenon.relu/01", "tenon.relu/1.0",
                          "Tenon.relu/1", "tenon..relu/1", ".relu/1", "tenon.relu./1", "tenon.re lu/1",
                          "tenon.relu/1/2", "tenon.relu/-1", "tenon.relu/9999999999"}) {
    EXPECT_FALSE(is_op_id(bad)) << bad;
  }
}

TEST(Grammar, KernelNames) {
  for (const char* good : {"tenon.conv2d.implicit_gemm.f16.sm90", "a.b.c", "a.b.c.f32"}) {
    EXPECT_TRUE(is_kernel_name(good)) << good;
  }
  for (const char* bad : {"", "scalar", "a.b", "a.b.c.d.e.f", "a.b.C", "a..c", "a.b.c.", "a.b.c/1", "a.b-x.c"}) {
    EXPECT_FALSE(is_kernel_name(bad)) << bad;
  }
}

TEST(Grammar, PrintableUtf8) {
  for (const char* good : {"", "plain",
                           "Stra\xC3\x9F"
                           "e",
                           "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xF4\x8F\xBF\xBF", "\xEE\x80\x80"}) {
    EXPECT_TRUE(is_printable_utf8(good)) << good;
  }
  // Lone continuation, cut sequences, overlong forms, a surrogate, beyond U+10FFFF, control characters.
  for (const char* bad : {"\x80", "\xC3", "\xE2\x82", "\xC0\x80", "\xE0\x80\x80", "\xF0\x80\x80\x80", "\xED\xA0\x80",
                          "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "a\tb", "\x7F", "\xC2\x85", "\xC3("}) {
    EXPECT_FALSE(is_printable_utf8(bad)) << bad;
  }
}

TnStatus infer(const TnHost*, const TnOp*, TnInfer*) { return TN_OK; }
TnStatus reference(const TnHost*, const TnOp*, const TnReference*) { return TN_OK; }
TnStatus configure(const TnHost*, const TnKernel*, const TnConfig*, TnInst**) { return TN_OK; }
TnStatus enqueue(const TnHost*, const TnInst*, const TnExec*, const TnTensor*, const TnTensor*) { return TN_OK; }
TnStatus more_combos(const TnHost*, const TnKernel*, const TnSite*, TnComboSink*) { return TN_OK; }
TnStatus rewrite(const TnHost*, const TnFusion*, TnGraph*, const TnMatch*) { return TN_OK; }
std::int32_t probe(const TnHost*, const TnImporter*, const void*, std::uint64_t, const char*) { return 0; }
TnStatus import_model(const TnHost*, const TnImporter*, const TnSource*, const TnAttrs*, TnGraph*) { return TN_OK; }
TnStatus import_op(const TnHost*, const TnOpImporter*, const TnForeignOp*, TnGraph*, TnValueId*, std::uint32_t*) {
  return TN_OK;
}

/// `check` must reject a copy of `good` after each damage, with the text beside it.
template <class T, class Check>
void expect_rejected(const T& good, Check check, const std::vector<std::pair<void (*)(T*), const char*>>& cases) {
  const Status status = check(&good);
  EXPECT_TRUE(status.ok()) << status.message();
  for (const auto& [damage, text] : cases) {
    T bad = good;
    damage(&bad);
    const Status answer = check(&bad);
    EXPECT_EQ(answer.code(), Code::kInvalid) << text;
    EXPECT_TRUE(contains(answer.message(), text)) << "expected \"" << text << "\" in: " << answer.message();
  }
  EXPECT_EQ(check(static_cast<const T*>(nullptr)).code(), Code::kInvalid);
}

const TnParam kAlpha = {TN_HEADER(TnParam), TN_ATTR_F64, "alpha", 0, "0.5", "[0,1]", "weight"};
const TnParam kBadDefault = {TN_HEADER(TnParam), TN_ATTR_I64, "axis", 0, "soon", nullptr, ""};
const TnParam kOutOfRange = {TN_HEADER(TnParam), TN_ATTR_F64, "beta", 0, "2", "[0,1]", ""};
const TnParam kBadName = {TN_HEADER(TnParam), TN_ATTR_F64, "Alpha", 0, nullptr, nullptr, ""};
const TnParam kBadType = {TN_HEADER(TnParam), 17, "alpha", 0, nullptr, nullptr, ""};
const TnParam kShort = {8, TN_ATTR_F64, "alpha", 0, nullptr, nullptr, ""};
const TnParam* const kParams[] = {&kAlpha};
const TnParam* const kTwice[] = {&kAlpha, &kAlpha};
const TnParam* const kBadDefaults[] = {&kBadDefault};
const TnParam* const kOutOfRanges[] = {&kOutOfRange};
const TnParam* const kBadNames[] = {&kBadName};
const TnParam* const kBadTypes[] = {&kBadType};
const TnParam* const kShorts[] = {&kShort};
const TnParam* const kNulls[] = {nullptr};

const TnPortSpec kX = {TN_HEADER(TnPortSpec), 0, "x", ""};
const TnPortSpec kMany = {TN_HEADER(TnPortSpec), TN_PORT_VARIADIC, "many", ""};
const TnPortSpec kUnnamed = {TN_HEADER(TnPortSpec), 0, "", ""};
const TnPortSpec* const kPorts[] = {&kX, &kMany};
const TnPortSpec* const kVariadicFirst[] = {&kMany, &kX};
const TnPortSpec* const kSameName[] = {&kX, &kX};
const TnPortSpec* const kUnnamedPorts[] = {&kUnnamed, &kX};

TnOp good_op() {
  TnOp op = {};
  op.struct_size = TN_HEADER(TnOp);
  op.id = "test.op/1";
  op.params = kParams;
  op.num_params = 1;
  op.num_inputs = 2;
  op.num_outputs = 1;
  op.inputs = kPorts;
  op.outputs = kPorts;
  op.infer = infer;
  op.reference = reference;
  return op;
}

TEST(CheckOp, SaysWhatIsWrong) {
  expect_rejected<TnOp>(
      good_op(), check_op,
      {{[](TnOp* op) { op->struct_size -= 8; }, "TnOp.struct_size is"},
       {[](TnOp* op) { op->id = nullptr; }, "TnOp.id is NULL"},
       {[](TnOp* op) { op->id = "relu"; }, "TnOp.id is \"relu\"; expected the form"},
       {[](TnOp* op) { op->infer = nullptr; }, "op test.op/1: infer is NULL"},
       {[](TnOp* op) { op->reference = nullptr; }, "op test.op/1: reference is NULL"},
       {[](TnOp* op) { op->params = nullptr; }, "params is NULL, but has 1"},
       {[](TnOp* op) { op->num_params = 4000000000u; }, "4000000000 entries of params"},
       {[](TnOp* op) { op->params = kNulls; }, "params[0]: is NULL"},
       {[](TnOp* op) { op->params = kShorts; }, "TnParam.struct_size is 8"},
       {[](TnOp* op) { op->params = kTwice, op->num_params = 2; }, "params[1] (alpha): the name is given twice"},
       {[](TnOp* op) { op->params = kBadNames; }, "TnParam.name is \"Alpha\""},
       {[](TnOp* op) { op->params = kBadTypes; }, "(alpha): type is 17"},
       {[](TnOp* op) { op->params = kBadDefaults; }, "(axis): default"},
       {[](TnOp* op) { op->params = kOutOfRanges; }, "(beta): default"},
       {[](TnOp* op) { op->inputs = nullptr; }, "inputs is NULL"},
       {[](TnOp* op) { op->inputs = kVariadicFirst; }, "inputs[0] (many): only the last"},
       {[](TnOp* op) { op->inputs = kSameName; }, "inputs[1]: the name \"x\" is given twice"},
       {[](TnOp* op) { op->inputs = kUnnamedPorts; }, "inputs[0]: name is missing"},
       {[](TnOp* op) { op->num_outputs = 0; }, "num_outputs is 0"},
       {[](TnOp* op) { op->num_outputs = 65; }, "65 entries of outputs"}});
}

TEST(CheckOp, AnOpThatOwnsGraphsNeedsNoReference) {
  TnOp op = good_op();
  op.reference = nullptr;
  op.get_interface = [](const TnOp*, const char* id) -> const void* {
    return std::string_view(id) == TN_IFACE_OP_CONTROL ? &kX : nullptr;
  };
  EXPECT_TRUE(check_op(&op).ok());
}

TEST(CheckOp, ALongerStructOfANewerHeaderIsFine) {
  TnOp op = good_op();
  op.struct_size += 64;
  EXPECT_TRUE(check_op(&op).ok());
}

const TnPort kGoodPorts[] = {{TN_F32, 0, TN_ROW_INIT, 0, 64}, {TN_F32, 0, TN_NCHW_BLOCKED_INIT(16), 0, 0}};
const TnPort kBadDtype[] = {{99, 0, TN_ROW_INIT, 0, 0}, {TN_F32, 0, TN_ROW_INIT, 0, 0}};
const TnPort kBadMemory[] = {{TN_F32, 9, TN_ROW_INIT, 0, 0}, {TN_F32, 0, TN_ROW_INIT, 0, 0}};
const TnPort kBadAlignment[] = {{TN_F32, 0, TN_ROW_INIT, 0, 48}, {TN_F32, 0, TN_ROW_INIT, 0, 0}};
const TnPort kNoFormat[] = {{TN_F32, 0, {}, 0, 0}, {TN_F32, 0, TN_ROW_INIT, 0, 0}};
const TnPort kBadOrder[] = {{TN_F32, 0, {TN_FORMAT_AXES, 0, 2, 0, {1, 1}, {}, {}, {}}, 0, 0},
                            {TN_F32, 0, TN_ROW_INIT, 0, 0}};
const TnPort kBadBlock[] = {{TN_F32, 0, TN_NCHW_BLOCKED_INIT(0), 0, 0}, {TN_F32, 0, TN_ROW_INIT, 0, 0}};
const TnAlias kGoodAlias = {0, 0, TN_MAY_ALIAS, 0};
const TnAlias kBadAlias = {0, 1, TN_MAY_ALIAS, 0};
const TnCombo kGoodCombo = {kGoodPorts, 1, 1, &kGoodAlias, 1, 0};
const TnCombo kNoOutput = {kGoodPorts, 2, 0, nullptr, 0, 0};
const TnCombo kNoPorts = {nullptr, 1, 1, nullptr, 0, 0};
const TnCombo kWrongAlias = {kGoodPorts, 1, 1, &kBadAlias, 1, 0};
const TnCombo kWrongDtype = {kBadDtype, 1, 1, nullptr, 0, 0};
const TnCombo kWrongMemory = {kBadMemory, 1, 1, nullptr, 0, 0};
const TnCombo kWrongAlignment = {kBadAlignment, 1, 1, nullptr, 0, 0};
const TnCombo kWrongFormat = {kNoFormat, 1, 1, nullptr, 0, 0};
const TnCombo kWrongOrder = {kBadOrder, 1, 1, nullptr, 0, 0};
const TnCombo kWrongBlock = {kBadBlock, 1, 1, nullptr, 0, 0};

TnKernel good_kernel() {
  TnKernel kernel = {};
  kernel.struct_size = TN_HEADER(TnKernel);
  kernel.op_id = "test.op/1";
  kernel.name = "test.op.plain.f32";
  kernel.device = TN_CPU;
  kernel.combos = &kGoodCombo;
  kernel.num_combos = 1;
  kernel.configure = configure;
  kernel.enqueue = enqueue;
  return kernel;
}

TEST(CheckKernel, SaysWhatIsWrong) {
  expect_rejected<TnKernel>(
      good_kernel(), check_kernel,
      {{[](TnKernel* k) { k->struct_size = 4; }, "TnKernel.struct_size is 4"},
       {[](TnKernel* k) { k->name = nullptr; }, "TnKernel.name is NULL"},
       {[](TnKernel* k) { k->name = "scalar"; }, "TnKernel.name is \"scalar\"; expected the form <vendor>"},
       {[](TnKernel* k) { k->op_id = nullptr; }, "kernel test.op.plain.f32: op_id is NULL"},
       {[](TnKernel* k) { k->op_id = "op"; }, "op_id is \"op\""},
       {[](TnKernel* k) { k->device = 0; }, "device is 0"},
       {[](TnKernel* k) { k->configure = nullptr; }, "configure is NULL"},
       {[](TnKernel* k) { k->enqueue = nullptr; }, "enqueue is NULL"},
       {[](TnKernel* k) { k->combos = nullptr; }, "combos is NULL, but has 1"},
       {[](TnKernel* k) { k->num_combos = 0; }, "neither combos nor more_combos"},
       {[](TnKernel* k) { k->combos = &kNoOutput; }, "combos[0]: num_outputs is 0"},
       {[](TnKernel* k) { k->combos = &kNoPorts; }, "combos[0]: ports is NULL"},
       {[](TnKernel* k) { k->combos = &kWrongAlias; }, "alias 0 (output 0, input 1, kind 1) is out of range"},
       {[](TnKernel* k) { k->combos = &kWrongDtype; }, "port 0: dtype 99"},
       {[](TnKernel* k) { k->combos = &kWrongMemory; }, "port 0: memory is 9"},
       {[](TnKernel* k) { k->combos = &kWrongAlignment; }, "port 0: alignment 48"},
       {[](TnKernel* k) { k->combos = &kWrongFormat; }, "port 0: format kind 0"},
       {[](TnKernel* k) { k->combos = &kWrongOrder; }, "port 0: the format's order"},
       {[](TnKernel* k) { k->combos = &kWrongBlock; }, "port 0: block 0 of the format"}});
}

TEST(CheckKernel, CombosMayDependOnTheSite) {
  TnKernel kernel = good_kernel();
  kernel.num_combos = 0;
  kernel.combos = nullptr;
  kernel.more_combos = more_combos;
  EXPECT_TRUE(check_kernel(&kernel).ok());
}

TEST(CheckFusion, SaysWhatIsWrongAndWhereInThePattern) {
  TnFusion good = {};
  good.struct_size = TN_HEADER(TnFusion);
  good.mode = TN_FUSION_ALWAYS;
  good.id = "test.rule/1";
  good.pattern = "test.a/1(test.b/1($x))";
  good.rewrite = rewrite;
  const auto check = [](const TnFusion* fusion) {
    Pattern pattern;
    return check_fusion(fusion, &pattern);
  };
  expect_rejected<TnFusion>(good, check,
                            {{[](TnFusion* f) { f->struct_size = 0; }, "TnFusion.struct_size is 0"},
                             {[](TnFusion* f) { f->id = "rule"; }, "TnFusion.id is \"rule\""},
                             {[](TnFusion* f) { f->mode = 0; }, "fusion rule test.rule/1: mode is 0"},
                             {[](TnFusion* f) { f->pattern = nullptr; }, "pattern is NULL"},
                             {[](TnFusion* f) { f->pattern = "test.a/1(test.b/1($x)"; }, "column 22"},
                             {[](TnFusion* f) { f->rewrite = nullptr; }, "rewrite is NULL"}});
}

TEST(CheckImporter, SaysWhatIsWrong) {
  TnImporter good = {};
  good.struct_size = TN_HEADER(TnImporter);
  good.id = "test.format";
  good.suffixes = ".cfg,.weights";
  good.probe = probe;
  good.import_model = import_model;
  expect_rejected<TnImporter>(good, check_importer,
                              {{[](TnImporter* i) { i->struct_size = 0; }, "TnImporter.struct_size is 0"},
                               {[](TnImporter* i) { i->id = "format"; }, "TnImporter.id is \"format\""},
                               {[](TnImporter* i) { i->suffixes = nullptr; }, "suffixes is NULL"},
                               {[](TnImporter* i) { i->suffixes = "cfg"; }, "suffixes is \"cfg\""},
                               {[](TnImporter* i) { i->suffixes = ".cfg,"; }, "suffixes is \".cfg,\""},
                               {[](TnImporter* i) { i->num_options = 1; }, "options is NULL"},
                               {[](TnImporter* i) { i->probe = nullptr; }, "probe is NULL"},
                               {[](TnImporter* i) { i->import_model = nullptr; }, "import_model is NULL"}});
}

TEST(CheckOpImporter, SaysWhatIsWrong) {
  TnOpImporter good = {};
  good.struct_size = TN_HEADER(TnOpImporter);
  good.importer_id = "test.format";
  good.type = "RoiAlign";
  good.opset_min = 10;
  good.import_op = import_op;
  expect_rejected<TnOpImporter>(good, check_op_importer,
                                {{[](TnOpImporter* i) { i->struct_size = 0; }, "TnOpImporter.struct_size is 0"},
                                 {[](TnOpImporter* i) { i->importer_id = nullptr; }, "importer_id is NULL"},
                                 {[](TnOpImporter* i) { i->type = ""; }, "type is missing"},
                                 {[](TnOpImporter* i) { i->opset_max = 9; }, "opset_max 9 is below opset_min 10"},
                                 {[](TnOpImporter* i) { i->import_op = nullptr; }, "import_op is NULL"}});
}

}  // namespace
}  // namespace tenon
