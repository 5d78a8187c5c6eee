#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <type_traits>

#include "core/plan/file_header.h"
#include "core/plan/plan_check.h"
#include "core/plan/plan_file.h"
#include "core/plan/plan_layout.h"
#include "plan_generated.h"

namespace tenon {
namespace {

template <class T>
using Offset = flatbuffers::Offset<T>;

// The constants section under construction: pieces in the order in which they came, equal ones once.
class BlobStore {
 public:
  fb::Blob add(const void* data, std::uint64_t size) {
    if (size == 0) return {0, 0};
    const std::string_view bytes(static_cast<const char*>(data), size);
    std::vector<std::uint64_t>& same_hash = by_hash_[hash128(bytes)];
    for (const std::uint64_t offset : same_hash) {
      if (pieces_.at(offset) == bytes) return {offset, size};
    }
    const std::uint64_t offset = align_up(size_, kBlobAlignment);
    size_ = offset + size;
    pieces_.emplace(offset, bytes);
    same_hash.push_back(offset);
    return {offset, size};
  }
  std::uint64_t size() const { return size_; }
  /// Into zeroed memory of size() bytes.
  void copy_to(std::uint8_t* section) const {
    for (const auto& [offset, bytes] : pieces_) std::copy(bytes.begin(), bytes.end(), section + offset);
  }

 private:
  std::map<std::uint64_t, std::string_view> pieces_;
  std::map<Hash128, std::vector<std::uint64_t>> by_hash_;
  std::uint64_t size_ = 0;
};

class PlanWriter {
 public:
  explicit PlanWriter(const Plan& plan) : plan_(plan) {}

  Result<std::vector<std::uint8_t>> write() {
    TENON_RETURN_IF_ERROR(check_storable());
    build();
    FileHeader header;
    header.info.format_version = kFormatVersion;
    header.info.tenon_version = plan_.tenon_version;
    header.info.os = this_os();
    header.info.arch = this_arch();
    header.info.device_signature = plan_.device_signature;
    header.plan.offset = kHeaderBytes;
    header.plan.size = builder_.GetSize();
    header.constants.offset = align_up(header.plan.offset + header.plan.size, kSectionAlignment);
    header.constants.size = blobs_.size();
    header.info.file_bytes = header.constants.offset + header.constants.size;

    std::vector<std::uint8_t> file(header.info.file_bytes);
    std::memcpy(file.data() + header.plan.offset, builder_.GetBufferPointer(), header.plan.size);
    blobs_.copy_to(file.data() + header.constants.offset);
    const auto checksum = [&](const Section& section) {
      return hash64({reinterpret_cast<const char*>(file.data()) + section.offset, section.size});
    };
    header.plan.checksum = checksum(header.plan);
    header.constants.checksum = checksum(header.constants);
    const std::string text = write_file_header(header);
    std::memcpy(file.data(), text.data(), text.size());
    return file;
  }

 private:
  // What the checks of the plan do not cover: texts that FlatBuffers has no room for, and values without a stored form.
  Status check_storable() const {
    std::uint64_t bytes = 0;
    for (const PlanTensor& tensor : plan_.tensors) bytes += tensor.name.size() + sizeof(PlanTensor);
    for (const auto& [key, text] : plan_.metadata) bytes += key.size() + text.size();
    for (const PlanNode& node : plan_.nodes) {
      bytes += node.name.size() + sizeof(PlanNode) + 2 * sizeof(TnPort) * (node.inputs.size() + node.outputs.size());
      for (const std::string& member : node.members) bytes += member.size();
      for (const Expression& epilogue : node.epilogues) bytes += epilogue.instrs().size() * sizeof(TnExprInstr);
      TENON_RETURN_IF_ERROR(add_bytes(node.name, node.attrs, &bytes));
    }
    for (const ShapeNode& node : plan_.shape_nodes) {
      bytes += node.name.size() + sizeof(ShapeNode) + 4 * (node.inputs.size() + node.outputs.size());
      TENON_RETURN_IF_ERROR(add_bytes(node.name, node.attrs, &bytes));
    }
    if (bytes <= kLargestPlanSection / 2) return {};
    return {Code::kInvalid, fmt::format("{} bytes of names, attributes and metadata, an engine has room for {}", bytes,
                                        kLargestPlanSection / 2)};
  }

  static Status add_bytes(const std::string& node, const Attrs& attrs, std::uint64_t* bytes) {
    for (const auto& [name, value] : attrs.values) {
      if (std::holds_alternative<std::shared_ptr<const Graph>>(value)) {
        return {Code::kInvalid, fmt::format("node '{}', attribute {}: {}", node, name, kGraphAttribute)};
      }
      const auto* tensor = std::get_if<std::shared_ptr<const HostTensor>>(&value);
      if (tensor != nullptr && *tensor == nullptr) {
        return {Code::kInvalid, fmt::format("node '{}', attribute {}: the tensor is missing", node, name)};
      }
      *bytes += name.size() + text_bytes(value);
    }
    return {};
  }

  static std::uint64_t text_bytes(const AttrValue& value) {
    std::uint64_t bytes = 64;
    if (const auto* text = std::get_if<std::string>(&value)) bytes += text->size();
    if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&value)) bytes += integers->size() * 8;
    if (const auto* reals = std::get_if<std::vector<double>>(&value)) bytes += reals->size() * 8;
    if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
      for (const std::string& text : *texts) bytes += text.size() + 16;
    }
    return bytes;
  }

  // Everywhere here arguments are made one by one: the order in which a compiler evaluates a call's is its own choice.
  void build() {
    std::vector<Offset<fb::Tensor>> tensors;
    for (const PlanTensor& tensor : plan_.tensors) tensors.push_back(add(tensor));
    std::vector<Offset<fb::Node>> nodes;
    for (const PlanNode& node : plan_.nodes) nodes.push_back(add(node));
    std::vector<Offset<fb::HostTensor>> constants;
    for (const auto& constant : plan_.constants) constants.push_back(add(*constant));
    std::vector<Offset<fb::Plugin>> plugins;
    for (const PluginNeed& need : plan_.plugins) {
      const auto id = text(need.id);
      const auto need_version = text(need.version);
      const auto library = text(need.library);
      const auto build_id = text(need.build_id);
      plugins.push_back(fb::CreatePlugin(builder_, id, need_version, library, build_id));
    }
    std::vector<Offset<fb::Metadata>> metadata;
    for (const auto& [key, value] : plan_.metadata) {
      const auto key_at = text(key);
      const auto value_at = text(value);
      metadata.push_back(fb::CreateMetadata(builder_, key_at, value_at));
    }
    const auto inputs = add(plan_.inputs);
    const auto outputs = add(plan_.outputs);
    const auto version = text(plan_.tenon_version);
    const auto kind = text(plan_.device_kind);
    const auto signature = text(plan_.device_signature);
    const auto tensors_at = builder_.CreateVector(tensors);
    const auto nodes_at = builder_.CreateVector(nodes);
    const auto constants_at = builder_.CreateVector(constants);
    const auto plugins_at = builder_.CreateVector(plugins);
    const auto metadata_at = builder_.CreateVector(metadata);
    std::vector<Offset<fb::ShapeNode>> shape_nodes;
    for (const ShapeNode& node : plan_.shape_nodes) shape_nodes.push_back(add(node));
    const auto shape_nodes_at = builder_.CreateVector(shape_nodes);
    builder_.Finish(
        fb::CreatePlan(builder_, version, kind, signature, plan_.threads, static_cast<std::int32_t>(plan_.verbosity),
                       tensors_at, nodes_at, inputs, outputs, constants_at, plugins_at, metadata_at, plan_.arena_bytes,
                       plan_.arena_lower_bound, plan_.workspace_bytes, plan_.persistent_bytes, plan_.context_host_bytes,
                       plan_.context_device_bytes, shape_nodes_at, plan_.scratch_bytes),
        fb::PlanIdentifier());
  }

  Offset<flatbuffers::String> text(const std::string& value) { return builder_.CreateString(value); }

  template <class T>
  Offset<flatbuffers::Vector<T>> list(const std::vector<T>& values) {
    return builder_.CreateVector(values.data(), values.size());
  }

  Offset<flatbuffers::Vector<Offset<flatbuffers::String>>> texts(const std::vector<std::string>& values) {
    std::vector<Offset<flatbuffers::String>> offsets;
    for (const std::string& value : values) offsets.push_back(text(value));
    return builder_.CreateVector(offsets);
  }

  Offset<flatbuffers::Vector<std::int64_t>> dims(const TnDims& value) { return list(to_vector(value)); }

  Offset<fb::Format> format(const TnFormat& value) {
    // Only the fields that mean something for the kind are stored, so equal formats give equal bytes.
    if (value.kind == TN_FORMAT_OPAQUE) {
      const auto name = builder_.CreateString(value.opaque);
      return fb::CreateFormat(builder_, value.kind, 0, 0, 0, 0, name);
    }
    if (value.kind != TN_FORMAT_AXES) return fb::CreateFormat(builder_, value.kind);
    const auto order = builder_.CreateVector(value.order, value.rank);
    const auto axes = builder_.CreateVector(value.block_axis, value.num_blocks);
    const auto sizes = builder_.CreateVector(value.block_size, value.num_blocks);
    return fb::CreateFormat(builder_, value.kind, value.padding, order, axes, sizes);
  }

  Offset<fb::HostTensor> add(const HostTensor& tensor) {
    const fb::Blob data = blobs_.add(tensor.data(), tensor.bytes());
    const auto extents = dims(tensor.dims());
    return fb::CreateHostTensor(builder_, tensor.dtype(), extents, &data);
  }

  Offset<fb::Tensor> add(const PlanTensor& tensor) {
    const auto name = text(tensor.name);
    const auto extents = dims(tensor.dims);
    const auto layout = format(tensor.format);
    return fb::CreateTensor(builder_, name, tensor.dtype, extents, layout, static_cast<std::int32_t>(tensor.storage),
                            tensor.index, tensor.offset, tensor.bytes, tensor.first_use, tensor.last_use);
  }

  Offset<fb::Attr> add(const std::string& attr_name, const AttrValue& value) {
    const auto name = text(attr_name);
    const std::int32_t type = attr_type(value);
    std::int64_t integer = 0;
    double real = 0;
    Offset<flatbuffers::String> string;
    Offset<flatbuffers::Vector<std::int64_t>> integers;
    Offset<flatbuffers::Vector<double>> reals;
    Offset<flatbuffers::Vector<Offset<flatbuffers::String>>> strings;
    Offset<fb::HostTensor> tensor;
    std::visit(
        [&](const auto& held) {
          using T = std::decay_t<decltype(held)>;
          if constexpr (std::is_same_v<T, std::int64_t>) integer = held;
          if constexpr (std::is_same_v<T, double>) real = held;
          if constexpr (std::is_same_v<T, std::string>) string = text(held);
          if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) integers = list(held);
          if constexpr (std::is_same_v<T, std::vector<double>>) reals = list(held);
          if constexpr (std::is_same_v<T, std::vector<std::string>>) strings = texts(held);
          if constexpr (std::is_same_v<T, std::shared_ptr<const HostTensor>>) tensor = add(*held);
          if constexpr (std::is_same_v<T, DTypeAttr>) integer = held.dtype;
        },
        value);
    return fb::CreateAttr(builder_, name, type, integer, real, string, integers, reals, strings, tensor);
  }

  Offset<fb::Expression> add(const Expression& expression) {
    std::vector<fb::ExprInstr> instrs;
    for (const TnExprInstr& i : expression.instrs()) {
      instrs.emplace_back(i.primitive, i.dtype, i.a, i.b, i.c, i.operand, i.value);
    }
    return fb::CreateExpression(builder_, builder_.CreateVectorOfStructs(instrs));
  }

  Offset<flatbuffers::Vector<Offset<fb::Port>>> add(const std::vector<TnPort>& list_of_ports) {
    std::vector<Offset<fb::Port>> ports;
    for (const TnPort& port : list_of_ports) {
      const auto layout = format(port.format);
      ports.push_back(fb::CreatePort(builder_, port.dtype, port.memory, layout, port.flags, port.alignment));
    }
    return builder_.CreateVector(ports);
  }

  Offset<fb::Combo> add(const Combo& combo) {
    const auto inputs = add(combo.inputs);
    const auto outputs = add(combo.outputs);
    std::vector<fb::Alias> aliases;
    for (const TnAlias& alias : combo.aliases) aliases.emplace_back(alias.output, alias.input, alias.kind);
    return fb::CreateCombo(builder_, inputs, outputs, builder_.CreateVectorOfStructs(aliases));
  }

  Offset<flatbuffers::Vector<Offset<fb::Io>>> add(const std::vector<PlanIo>& list_of_ends) {
    std::vector<Offset<fb::Io>> ends;
    for (const PlanIo& end : list_of_ends) {
      const auto name = text(end.name);
      const bool varies = !same_dims(end.min, end.max);
      const auto min = varies ? dims(end.min) : 0;
      const auto max = varies ? dims(end.max) : 0;
      ends.push_back(fb::CreateIo(builder_, name, end.tensor, min, max));
    }
    return builder_.CreateVector(ends);
  }

  Offset<flatbuffers::Vector<Offset<fb::Attr>>> add(const Attrs& values) {
    std::vector<Offset<fb::Attr>> attrs;
    for (const auto& [key, value] : values.values) attrs.push_back(add(key, value));
    return builder_.CreateVector(attrs);
  }

  Offset<fb::ShapeNode> add(const ShapeNode& node) {
    const auto name = text(node.name);
    const auto op_id = text(node.op_id);
    const auto attrs = add(node.attrs);
    const auto inputs = list(node.inputs);
    const auto outputs = list(node.outputs);
    return fb::CreateShapeNode(builder_, name, op_id, attrs, inputs, outputs, node.position);
  }

  Offset<fb::Node> add(const PlanNode& node) {
    const auto name = text(node.name);
    const auto layer_type = text(node.layer_type);
    const auto members = texts(node.members);
    const auto op_id = text(node.op_id);
    const auto attrs_at = add(node.attrs);
    std::vector<Offset<fb::Expression>> epilogues;
    for (const Expression& epilogue : node.epilogues) epilogues.push_back(add(epilogue));
    const auto epilogues_at = builder_.CreateVector(epilogues);
    const auto inputs = list(node.inputs);
    const auto outputs = list(node.outputs);
    const auto kernel = text(node.kernel);
    const auto plugin = text(node.plugin_id);
    const auto combo = add(node.combo);
    const auto params = text(node.tactic.params);
    const auto blob = list(node.tactic.blob);
    const auto tactic = fb::CreateTactic(builder_, params, blob, node.tactic.workspace, node.tactic_hash);
    const fb::Key key(node.key.high, node.key.low);
    std::vector<fb::Share> shares;
    for (const Share& share : node.shares) {
      shares.emplace_back(share.input, share.output, share.output_inside, share.offset);
    }
    const auto shares_at = builder_.CreateVectorOfStructs(shares);
    const fb::Blob state = blobs_.add(node.state.data(), node.state.size());
    const std::span<const std::uint8_t> stored = node.persistent_data();
    const fb::Blob persistent = node.has_persistent ? blobs_.add(stored.data(), stored.size()) : fb::Blob();
    return fb::CreateNode(builder_, name, layer_type, members, op_id, attrs_at, epilogues_at, node.site_flags, inputs,
                          outputs, kernel, node.kernel_revision, plugin, combo, tactic, node.fused_epilogue, &key,
                          node.ms, &state, node.stream, node.persistent_bytes,
                          node.has_persistent ? &persistent : nullptr, node.data_dependent, node.num_extra, shares_at);
  }

  const Plan& plan_;
  flatbuffers::FlatBufferBuilder builder_;
  BlobStore blobs_;
};

}  // namespace

Result<std::vector<std::uint8_t>> write_plan(const Plan& plan) {
  const Status status = check_plan(plan);
  if (!status.ok()) {
    return Status(Code::kInternal,
                  "cannot write the engine: " + status.message() + "; that is a fault of Tenon, please report it");
  }
  return PlanWriter(plan).write();
}

}  // namespace tenon
