#include "core/plan/plan_example.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "core/base/hash.h"
#include "core/plan/file_header.h"

namespace tenon::testing {
namespace {

std::shared_ptr<const HostTensor> floats(const std::vector<std::int64_t>& extents, float first) {
  const TnDims dims = make_dims(extents);
  std::vector<float> values(static_cast<std::size_t>(element_count(dims).value()));
  std::iota(values.begin(), values.end(), first);
  return HostTensor::create(TN_F32, dims, values.data(), values.size() * sizeof(float)).value();
}

TnPort port(const TnFormat& format, std::uint32_t flags = 0) { return {TN_F32, TN_MEMORY_DEVICE, format, flags, 64}; }

PlanTensor tensor(const std::string& name, const std::vector<std::int64_t>& extents, const TnFormat& format,
                  Storage storage, std::uint32_t index) {
  PlanTensor result;
  result.name = name;
  result.dtype = TN_F32;
  result.dims = make_dims(extents);
  result.format = format;
  result.storage = storage;
  result.index = index;
  result.bytes = tensor_bytes(TN_F32, result.dims, format).value();
  return result;
}

}  // namespace

Plan example_plan() {
  const TnFormat row = row_format();
  const TnFormat blocked = TN_NCHW_BLOCKED_INIT(8);
  Plan plan;
  plan.tenon_version = "0.1.0";
  plan.device_kind = "cpu";
  plan.device_signature = "cpu:avx512:2:Test Processor";
  plan.threads = 2;
  plan.verbosity = Verbosity::kDetailed;
  plan.tensors = {tensor("data", {1, 3, 4, 4}, row, Storage::kInput, 0),
                  tensor("weights", {5, 3, 3, 3}, row, Storage::kConstant, 0),
                  tensor("conv1", {1, 5, 4, 4}, blocked, Storage::kArena, 0),
                  tensor("prob", {1, 5, 4, 4}, row, Storage::kOutput, 0),
                  tensor("extents", {4}, row, Storage::kConstant, 1)};
  plan.tensors[2].offset = 256;
  plan.tensors[2].last_use = 1;
  plan.tensors[3].first_use = plan.tensors[3].last_use = 1;

  PlanNode conv;
  conv.name = "conv1+relu1";
  conv.layer_type = "conv2d";
  conv.members = {"conv1", "relu1"};
  conv.op_id = "tenon.conv2d/1";
  conv.attrs.values = {{"groups", std::int64_t{1}},
                       {"alpha", 0.1},
                       {"mode", std::string("same")},
                       {"pads", std::vector<std::int64_t>{1, -1, std::numeric_limits<std::int64_t>::min()}},
                       {"scales", std::vector<double>{0.5, -0.0}},
                       {"names", std::vector<std::string>{"", "a", "\xC3\xA9"}},
                       {"table", floats({2, 3}, 7)},
                       {"to", DTypeAttr{TN_F16}}};
  conv.epilogues = {Expression({{TN_EX_INPUT, TN_F32, 0, 0, 0, 0, 0},
                                {TN_EX_CONSTANT, TN_F32, 0, 0, 0, 0, 0.0},
                                {TN_EX_MAX, TN_F32, 0, 1, 0, 0, 0}})};
  conv.site_flags = TN_SITE_ALLOW_TF32;
  conv.inputs = {0, 1, kNoTensor};
  conv.outputs = {2};
  conv.kernel = "tenon.conv2d.direct.f32";
  conv.kernel_revision = 3;
  conv.plugin_id = "tenon.conv2d";
  conv.combo.inputs = {port(row, TN_PORT_ANY_STRIDES), port(row), TnPort{}};
  conv.combo.outputs = {port(blocked)};
  conv.tactic = {"tile=8x4", {1, 2, 0xFF}, 4096};
  conv.tactic_hash = 0x665ded9abbf88;
  conv.fused_epilogue = true;
  conv.key = {0x1814870c44ff0f85, 0x74df6e3dda04cbd7};
  conv.ms = 0.011264;
  conv.state = {9, 8, 7};
  conv.persistent_bytes = 1000;
  conv.has_persistent = true;
  conv.persistent.assign(1000, 0xAB);

  PlanNode softmax;
  softmax.name = "prob";
  softmax.layer_type = "softmax";
  softmax.members = {"prob"};
  softmax.op_id = "acme.softmax/2";
  softmax.inputs = {2};
  softmax.outputs = {3};
  softmax.kernel = "acme.softmax.reference";
  softmax.combo.inputs = {port(blocked)};
  softmax.combo.outputs = {port(row)};
  softmax.combo.aliases = {{0, 0, TN_MAY_ALIAS, 0}};
  softmax.ms = 0.5;
  softmax.stream = 1;
  softmax.data_dependent = true;
  softmax.persistent_bytes = 64;

  plan.nodes = {conv, softmax};
  ShapeNode extents;
  extents.name = "extents";
  extents.op_id = "acme.extents/1";
  extents.attrs.values = {{"start", std::int64_t{0}}};
  extents.inputs = {2, kNoTensor};
  extents.outputs = {4};
  extents.position = 1;
  plan.shape_nodes = {extents};

  plan.inputs = {{"data", 0, make_dims({1, 3, 2, 4}), make_dims({8, 3, 4, 4})}};
  plan.outputs = {{"prob", 3, plan.tensors[3].dims, plan.tensors[3].dims}};
  plan.constants = {floats({5, 3, 3, 3}, -10), floats({4}, 1)};
  plan.plugins = {{"acme.softmax", "2.0", "softmax.tnp.so", "0x1234"},
                  {"tenon.conv2d", "0.1.0", "conv2d.tnp.so", "linked"}};
  plan.metadata = {{"labels", "[\"cat\",\"dog\"]"}, {"detection", "{}"}};
  plan.arena_bytes = 1024;
  plan.arena_lower_bound = 768;
  plan.workspace_bytes = 4096;
  plan.persistent_bytes = 1064;
  plan.context_host_bytes = 16;
  plan.context_device_bytes = 32;
  plan.scratch_bytes = 8192;
  return plan;
}

std::vector<std::uint8_t> reseal(std::vector<std::uint8_t> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), kHeaderBytes);
  FileHeader header;
  const auto value = [&](const std::string& key) {
    const std::size_t at = text.find("\n" + key + ": ") + key.size() + 3;
    return std::string(text.substr(at, text.find('\n', at) - at));
  };
  header.info.format_version = static_cast<std::uint32_t>(std::stoul(value("format_version")));
  header.info.tenon_version = value("tenon_version");
  header.info.os = value("os");
  header.info.arch = value("arch");
  header.info.device_signature = value("device");
  header.info.file_bytes = std::stoull(value("file_bytes"));
  const auto section = [&](const std::string& key) {
    const std::string line = value(key);
    Section result{std::stoull(line), std::stoull(line.substr(line.find(' '))), 0};
    if (result.offset <= file.size() && result.size <= file.size() - result.offset) {
      result.checksum = hash64({reinterpret_cast<const char*>(file.data()) + result.offset, result.size});
    }
    return result;
  };
  header.plan = section("plan");
  header.constants = section("constants");
  const std::string sealed = write_file_header(header);
  std::memcpy(file.data(), sealed.data(), sealed.size());
  return file;
}

std::vector<std::uint8_t> with_header_value(std::vector<std::uint8_t> file, const std::string& key,
                                            const std::string& value) {
  std::string text(reinterpret_cast<const char*>(file.data()), kHeaderBytes);
  const std::size_t at = text.find("\n" + key + ": ") + key.size() + 3;
  const std::size_t end = text.find('\n', at);
  const std::size_t padding = text.find("   \n", end);
  text.replace(at, end - at, value);
  // Keeps the length by taking from, or adding to, the run of spaces.
  if (text.size() > kHeaderBytes) text.erase(padding - 1 - (text.size() - kHeaderBytes), text.size() - kHeaderBytes);
  if (text.size() < kHeaderBytes) text.insert(padding - 64, kHeaderBytes - text.size(), ' ');
  std::memcpy(file.data(), text.data(), kHeaderBytes);
  return reseal(std::move(file));
}

}  // namespace tenon::testing
