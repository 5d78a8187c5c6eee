#include "core/plan/plan_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>

#include "core/plan/plan_check.h"
#include "core/plan/plan_example.h"

namespace tenon {
namespace {

using testing::example_plan;
using testing::with_header_value;

std::shared_ptr<const std::vector<std::uint8_t>> shared(std::vector<std::uint8_t> bytes) {
  return std::make_shared<const std::vector<std::uint8_t>>(std::move(bytes));
}

Result<Plan> read_bytes(const std::vector<std::uint8_t>& bytes) {
  const auto held = shared(bytes);
  return read_plan(held->data(), held->size(), held);
}

class PlanFile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) / ("tenon_plan_file_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_F(PlanFile, EveryFieldSurvives) {
  const Plan plan = example_plan();
  const auto bytes = shared(write_plan(plan).value());
  const Result<Plan> read = read_plan(bytes->data(), bytes->size(), bytes);
  ASSERT_TRUE(read.ok()) << read.status().message();

  EXPECT_EQ(read->tenon_version, plan.tenon_version);
  EXPECT_EQ(read->device_kind, plan.device_kind);
  EXPECT_EQ(read->device_signature, plan.device_signature);
  EXPECT_EQ(read->threads, 2);
  EXPECT_EQ(read->verbosity, Verbosity::kDetailed);
  EXPECT_EQ(read->plugins, plan.plugins);
  EXPECT_EQ(read->metadata, plan.metadata);
  EXPECT_EQ(read->arena_bytes, 1024u);
  EXPECT_EQ(read->arena_lower_bound, 768u);
  EXPECT_EQ(read->workspace_bytes, 4096u);
  EXPECT_EQ(read->persistent_bytes, 1064u);
  EXPECT_EQ(read->context_host_bytes, 16u);
  EXPECT_EQ(read->context_device_bytes, 32u);

  ASSERT_EQ(read->tensors.size(), plan.tensors.size());
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    const PlanTensor &a = plan.tensors[i], &b = read->tensors[i];
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.dtype, b.dtype);
    EXPECT_TRUE(same_dims(a.dims, b.dims));
    EXPECT_TRUE(same_format(a.format, b.format));
    EXPECT_EQ(a.storage, b.storage);
    EXPECT_EQ(a.index, b.index);
    EXPECT_EQ(a.offset, b.offset);
    EXPECT_EQ(a.bytes, b.bytes);
    EXPECT_EQ(a.first_use, b.first_use);
    EXPECT_EQ(a.last_use, b.last_use);
  }
  ASSERT_EQ(read->inputs.size(), 1u);
  EXPECT_EQ(read->inputs[0].name, "data");
  EXPECT_EQ(dims_text(read->inputs[0].min), "[1,3,2,4]");
  EXPECT_EQ(dims_text(read->inputs[0].max), "[8,3,4,4]");
  EXPECT_TRUE(read->has_profile());
  EXPECT_EQ(read->scratch_bytes, 8192u);
  EXPECT_EQ(read->outputs[0].tensor, 3u);
  EXPECT_EQ(dims_text(read->outputs[0].max), dims_text(plan.tensors[3].dims));
  ASSERT_EQ(read->shape_nodes.size(), 1u);
  EXPECT_EQ(read->shape_nodes[0].name, "extents");
  EXPECT_EQ(read->shape_nodes[0].op_id, "acme.extents/1");
  EXPECT_EQ(read->shape_nodes[0].attrs.text(), plan.shape_nodes[0].attrs.text());
  EXPECT_EQ(read->shape_nodes[0].inputs, plan.shape_nodes[0].inputs);
  EXPECT_EQ(read->shape_nodes[0].outputs, plan.shape_nodes[0].outputs);
  EXPECT_EQ(read->shape_nodes[0].position, 1u);
  ASSERT_EQ(read->constants.size(), 2u);
  EXPECT_EQ(std::memcmp(read->constants[0]->data(), plan.constants[0]->data(), plan.constants[0]->bytes()), 0);

  ASSERT_EQ(read->nodes.size(), 2u);
  const PlanNode &a = plan.nodes[0], &b = read->nodes[0];
  EXPECT_EQ(b.name, "conv1+relu1");
  EXPECT_EQ(b.layer_type, a.layer_type);
  EXPECT_EQ(b.members, a.members);
  EXPECT_EQ(b.op_id, a.op_id);
  EXPECT_EQ(b.attrs.text(), a.attrs.text());
  EXPECT_EQ(b.attrs.values.size(), 8u);
  EXPECT_EQ(std::get<std::vector<std::string>>(b.attrs.values.at("names")),
            std::get<std::vector<std::string>>(a.attrs.values.at("names")));
  EXPECT_EQ(b.epilogues, a.epilogues);
  EXPECT_EQ(b.site_flags, a.site_flags);
  EXPECT_EQ(b.inputs, a.inputs);
  EXPECT_EQ(b.outputs, a.outputs);
  EXPECT_EQ(b.kernel, a.kernel);
  EXPECT_EQ(b.kernel_revision, 3u);
  EXPECT_EQ(b.plugin_id, a.plugin_id);
  ASSERT_EQ(b.combo.inputs.size(), 3u);
  EXPECT_EQ(b.combo.inputs[0].flags, static_cast<std::uint32_t>(TN_PORT_ANY_STRIDES));
  EXPECT_EQ(b.combo.inputs[1].alignment, 64u);
  EXPECT_EQ(b.combo.inputs[2].dtype, TN_DTYPE_NONE);
  EXPECT_EQ(read->nodes[1].combo.aliases.at(0).kind, TN_MAY_ALIAS);
  EXPECT_EQ(b.tactic.params, "tile=8x4");
  EXPECT_EQ(b.tactic.blob, a.tactic.blob);
  EXPECT_EQ(b.tactic.workspace, 4096u);
  EXPECT_EQ(b.tactic_hash, a.tactic_hash);
  EXPECT_TRUE(b.fused_epilogue);
  EXPECT_EQ(b.key, a.key);
  EXPECT_EQ(b.ms, a.ms);
  EXPECT_EQ(b.state, a.state);
  EXPECT_EQ(read->nodes[1].stream, 1);
  EXPECT_TRUE(b.has_persistent);
  ASSERT_EQ(b.persistent_data().size(), 1000u);
  EXPECT_EQ(std::memcmp(b.persistent_data().data(), a.persistent.data(), 1000), 0);
  EXPECT_FALSE(read->nodes[1].has_persistent);
}

TEST_F(PlanFile, EqualPlansGiveEqualBytesAlsoAfterReading) {
  const std::vector<std::uint8_t> bytes = write_plan(example_plan()).value();
  EXPECT_EQ(write_plan(example_plan()).value(), bytes);
  const auto held = shared(bytes);
  EXPECT_EQ(write_plan(read_plan(held->data(), held->size(), held).value()).value(), bytes);
}

TEST_F(PlanFile, EqualStatesAreStoredOnce) {
  Plan plan = example_plan();
  const auto with_states = [&](int count) {
    Plan all = plan;
    all.nodes[0].state.assign(1u << 20, 7);
    // The same layer over and over; what it writes is the same, too.
    for (int n = 1; n < count; ++n) all.nodes.insert(all.nodes.begin(), all.nodes[0]);
    return write_plan(all);
  };
  const auto some = with_states(8);
  ASSERT_TRUE(some.ok()) << some.status().message();
  EXPECT_LT(some->size(), 2u << 20);
  const Result<Plan> read = read_bytes(*some);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->nodes[7].state, std::vector<std::uint8_t>(1u << 20, 7));
  // A small file must not grow without limit when it is read.
  const Result<Plan> bomb = read_bytes(with_states(80).value());
  EXPECT_NE(bomb.status().message().find("the same kernel state too often"), std::string::npos)
      << bomb.status().message();
}

TEST_F(PlanFile, EmptyListsAreReadWhereverTheyLie) {
  Plan plan = example_plan();
  // Names of growing lengths push the lists between them to every alignment.
  for (std::size_t n = 1; n <= 9; ++n) {
    plan.nodes[0].attrs.values[std::string(n, 'i')] = std::vector<std::int64_t>{};
    plan.nodes[0].attrs.values[std::string(n, 'r')] = std::vector<double>{};
  }
  const Result<Plan> read = read_bytes(write_plan(plan).value());
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->nodes[0].attrs.values.size(), plan.nodes[0].attrs.values.size());
}

TEST_F(PlanFile, HeaderIsTextThatPeopleCanRead) {
  Plan plan = example_plan();
  plan.device_signature = "cpu:" + std::string(10'000, 'x') + "\n\xC3\xA9";
  const std::vector<std::uint8_t> bytes = write_plan(plan).value();
  const std::string text(bytes.begin(), bytes.begin() + 4096);
  EXPECT_EQ(text.rfind("TENON ENGINE\nformat_version: 3\ntenon_version: 0.1.0\nos: ", 0), 0u) << text.substr(0, 100);
  for (const char c : text) EXPECT_TRUE(c == '\n' || (c >= ' ' && c <= '~'));
  EXPECT_EQ(text.back(), '\n');

  const Result<EngineHeader> header = read_header(bytes.data(), bytes.size());
  ASSERT_TRUE(header.ok()) << header.status().message();
  EXPECT_EQ(header->format_version, 3u);
  EXPECT_EQ(header->tenon_version, "0.1.0");
  EXPECT_EQ(header->file_bytes, bytes.size());
  EXPECT_EQ(header->device_signature.size(), 512u);
  EXPECT_EQ(read_bytes(bytes)->device_signature, plan.device_signature);  // whole in the plan
}

TEST_F(PlanFile, EqualBytesAreStoredOnce) {
  Plan plan = example_plan();
  const std::size_t before = write_plan(plan)->size();
  for (int i = 0; i < 8; ++i) plan.constants.push_back(plan.constants[0]);
  EXPECT_LT(write_plan(plan)->size(), before + 8 * plan.constants[0]->bytes());
}

// Long foreign names lost bytes in another engine when they were saved and loaded.
TEST_F(PlanFile, PluginIdentitiesKeepTheirBytes) {
  std::string id = "x.";
  for (int i = 0; i < 500; ++i)
    id +=
        "Stra\xC3\x9F"
        "e\xE2\x82\xAC\xF0\x9F\x98\x80";
  Plan plan = example_plan();
  plan.plugins = {{"x", "1", "x.tnp.so", "0x1"}, {id, "01", id + ".tnp.so", "0x2"}};
  for (int i = 0; i < 100; ++i) {
    Result<Plan> read = read_bytes(write_plan(plan).value());
    ASSERT_TRUE(read.ok()) << read.status().message();
    ASSERT_EQ(read->plugins, plan.plugins);
    plan = std::move(*read);
  }
}

TEST_F(PlanFile, MappedConstantsAreNotCopied) {
  const std::filesystem::path path = folder_ / "e.tenon";
  const std::vector<std::uint8_t> bytes = write_plan(example_plan()).value();
  ASSERT_TRUE(write_file_atomically(path, bytes.data(), bytes.size()).ok());
  std::shared_ptr<const MappedFile> file = map_file(path).value();
  ASSERT_EQ(file->size, bytes.size());
  const std::uint8_t* data = file->data;
  Result<Plan> plan = read_plan(file->data, file->size, file);
  file.reset();  // the plan keeps the mapping
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const auto inside = [&](const void* at) { return at >= data && at < data + bytes.size(); };
  EXPECT_TRUE(inside(plan->constants[0]->data()));
  EXPECT_TRUE(inside(plan->nodes[0].persistent_data().data()));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(plan->constants[0]->data()) % 64, 0u);
  EXPECT_EQ(*static_cast<const float*>(plan->constants[0]->data()), -10.0f);
}

TEST_F(PlanFile, BytesMayLieAnywhere) {
  const std::vector<std::uint8_t> bytes = write_plan(example_plan()).value();
  std::vector<std::uint8_t> shifted(bytes.size() + 1);
  std::copy(bytes.begin(), bytes.end(), shifted.begin() + 1);
  Result<Plan> plan = read_plan(shifted.data() + 1, bytes.size(), nullptr);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  shifted.clear();
  shifted.shrink_to_fit();
  EXPECT_EQ(*static_cast<const float*>(plan->constants[0]->data()), -10.0f);
}

TEST_F(PlanFile, OtherVersionsAndMachinesAreTyped) {
  const std::vector<std::uint8_t> bytes = write_plan(example_plan()).value();
  const std::pair<const char*, const char*> cases[] = {{"format_version", "7"}, {"os", "plan9"}, {"arch", "riscv64"}};
  for (const auto& [key, value] : cases) {
    const std::vector<std::uint8_t> other = with_header_value(bytes, key, value);
    const Status status = read_bytes(other).status();
    EXPECT_EQ(status.code(), Code::kVersion) << key << ": " << status.message();
    EXPECT_NE(status.message().find(value), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("again"), std::string::npos) << status.message();
    EXPECT_TRUE(read_header(other.data(), other.size()).ok());
  }
}

TEST_F(PlanFile, GraphAttributesAreRefused) {
  Plan plan = example_plan();
  plan.nodes[1].attrs.values["body"] = std::shared_ptr<const Graph>();
  const Status status = write_plan(plan).status();
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find("body"), std::string::npos) << status.message();
}

TEST_F(PlanFile, InconsistentPlansAreNotWritten) {
  const std::pair<const char*, std::function<void(Plan*)>> cases[] = {
      {"tensor id", [](Plan* p) { p->nodes[0].inputs[0] = 5; }},
      {"profile that the dims are not in", [](Plan* p) { p->inputs[0].min = p->inputs[0].max; }},
      {"profile of another rank", [](Plan* p) { p->inputs[0].max.rank = 3; }},
      {"profile extent", [](Plan* p) { p->inputs[0].min.d[0] = -1; }},
      {"shape node's input", [](Plan* p) { p->shape_nodes[0].inputs[0] = 5; }},
      {"shape node's output", [](Plan* p) { p->shape_nodes[0].outputs[0] = 2; }},
      {"shape node's output id", [](Plan* p) { p->shape_nodes[0].outputs[0] = 5; }},
      {"shape node's position", [](Plan* p) { p->shape_nodes[0].position = 3; }},
      {"shape node twice", [](Plan* p) { p->shape_nodes.push_back(p->shape_nodes[0]); }},
      {"huge scratch", [](Plan* p) { p->scratch_bytes = std::uint64_t{1} << 63; }},
      {"absent output", [](Plan* p) { p->nodes[1].outputs[0] = kNoTensor; }},
      {"port count", [](Plan* p) { p->nodes[0].combo.inputs.pop_back(); }},
      {"port dtype", [](Plan* p) { p->nodes[0].combo.inputs[0].dtype = TN_F64; }},
      {"port format", [](Plan* p) { p->nodes[0].combo.inputs[0].format = TN_NHWC_INIT; }},
      {"arena end", [](Plan* p) { p->tensors[2].offset = 1024 - 255; }},
      {"arena overflow", [](Plan* p) { p->tensors[2].offset = ~std::uint64_t{0} - 3; }},
      {"arena alignment", [](Plan* p) { p->tensors[2].offset = 2; }},
      {"bytes", [](Plan* p) { p->tensors[2].bytes = 16; }},
      {"huge bytes", [](Plan* p) { p->tensors[2].bytes = std::uint64_t{1} << 63; }},
      {"huge arena", [](Plan* p) { p->arena_bytes = std::uint64_t{1} << 63; }},
      {"huge workspace", [](Plan* p) { p->nodes[0].tactic.workspace = std::uint64_t{1} << 63; }},
      {"rank", [](Plan* p) { p->tensors[2].dims.rank = 9; }},
      {"extent", [](Plan* p) { p->tensors[2].dims.d[0] = -1; }},
      {"extent overflow", [](Plan* p) { p->tensors[2].dims.d[0] = std::int64_t{1} << 62; }},
      {"dtype", [](Plan* p) { p->tensors[2].dtype = 99; }},
      {"format kind", [](Plan* p) { p->tensors[2].format.kind = 9; }},
      {"format axis", [](Plan* p) { p->tensors[2].format.order[0] = 1; }},
      {"format block", [](Plan* p) { p->tensors[2].format.block_size[0] = 0; }},
      {"storage", [](Plan* p) { p->tensors[2].storage = static_cast<Storage>(4); }},
      {"constant index", [](Plan* p) { p->tensors[1].index = 1; }},
      {"constant dims",
       [](Plan* p) {
         p->tensors[1].dims = make_dims({3, 5, 3, 3});
       }},
      {"constant format", [](Plan* p) { p->tensors[1].format = TN_NHWC_INIT; }},
      {"input index", [](Plan* p) { p->tensors[0].index = 1; }},
      {"input tensor", [](Plan* p) { p->inputs[0].tensor = 2; }},
      {"input tensor id", [](Plan* p) { p->inputs[0].tensor = 77; }},
      {"output that nobody writes", [](Plan* p) { p->nodes.pop_back(); }},
      {"written input", [](Plan* p) { p->nodes[1].outputs[0] = 0; }},
      {"alias", [](Plan* p) { p->nodes[1].combo.aliases[0].input = 1; }},
      {"epilogues", [](Plan* p) { p->nodes[0].epilogues.emplace_back(); }},
      {"epilogue operand",
       [](Plan* p) {
         p->nodes[0].epilogues[0] = Expression({{TN_EX_INPUT, TN_F32, 0, 0, 0, 1, 0}});
       }},
      {"persistent", [](Plan* p) { p->nodes[0].persistent.pop_back(); }},
      {"stream", [](Plan* p) { p->nodes[0].stream = -1; }},
      {"stream 64", [](Plan* p) { p->nodes[0].stream = 64; }},
      {"time", [](Plan* p) { p->nodes[0].ms = std::numeric_limits<double>::quiet_NaN(); }},
      {"life", [](Plan* p) { p->tensors[3].last_use = 0; }},
      {"verbosity", [](Plan* p) { p->verbosity = static_cast<Verbosity>(3); }},
  };
  ASSERT_TRUE(check_plan(example_plan()).ok()) << check_plan(example_plan()).message();
  for (const auto& [name, change] : cases) {
    Plan plan = example_plan();
    change(&plan);
    EXPECT_EQ(check_plan(plan).code(), Code::kInvalid) << name;
    EXPECT_EQ(write_plan(plan).status().code(), Code::kInternal) << name;
  }
}

TEST_F(PlanFile, MapFileSaysWhatIsWrong) {
  const auto refused = [&](const std::filesystem::path& path, Code code, const std::string& word) {
    const Status status = map_file(path).status();
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_NE(status.message().find(path.string()), std::string::npos) << status.message();
    EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
  };
  refused(folder_, Code::kIo, "folder");
  refused(folder_ / "missing", Code::kNotFound, "No such file");
  std::ofstream(folder_ / "empty").close();
  refused(folder_ / "empty", Code::kIo, "empty");
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  refused(folder_ / "pipe", Code::kIo, "ordinary");
}

TEST_F(PlanFile, AtomicWritesLeaveNothingBehind) {
  const std::string old_text = "old", new_text = "new text";
  const std::filesystem::path path = folder_ / "f";
  ASSERT_TRUE(write_file_atomically(path, old_text.data(), old_text.size()).ok());
  ASSERT_TRUE(write_file_atomically(path, new_text.data(), new_text.size()).ok());
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), new_text);

  const Status no_folder = write_file_atomically(folder_ / "none" / "f", "x", 1);
  EXPECT_EQ(no_folder.code(), Code::kNotFound) << no_folder.message();
  std::filesystem::create_directory(folder_ / "taken");
  EXPECT_EQ(write_file_atomically(folder_ / "taken", "x", 1).code(), Code::kIo);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"f", "taken"}));
}

}  // namespace
}  // namespace tenon
