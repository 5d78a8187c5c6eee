#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <type_traits>

#include "core/plan/file_header.h"
#include "core/plan/plan_check.h"
#include "core/plan/plan_file.h"
#include "core/plan/plan_layout.h"
#include "plan_generated.h"

namespace tenon {
namespace {

Status damaged(const std::string& what) {
  return {Code::kInvalid, "the engine file is damaged: " + what + "; copy it again or build it again"};
}

Status check_version(const EngineHeader& info) {
  if (info.format_version != kFormatVersion) {
    return {
        Code::kVersion,
        fmt::format("the engine file has format version {} (written by Tenon {}), this Tenon reads version {}; build "
                    "the engine again with this Tenon",
                    info.format_version, info.tenon_version, kFormatVersion)};
  }
  if (info.os != this_os() || info.arch != this_arch()) {
    return {Code::kVersion, fmt::format("the engine was built for {} on {}, this is {} on {}; build it again here",
                                        info.os, info.arch, this_os(), this_arch())};
  }
  return {};
}

Status check_sections(const FileHeader& header, const std::uint8_t* bytes, std::size_t size) {
  if (header.info.file_bytes > size) {
    return damaged(fmt::format("it is cut off, {} of {} bytes are there", size, header.info.file_bytes));
  }
  if (header.info.file_bytes < size) {
    return damaged(fmt::format("{} bytes follow its end at {}", size - header.info.file_bytes, header.info.file_bytes));
  }
  const Section& plan = header.plan;
  const Section& constants = header.constants;
  if (plan.offset != kHeaderBytes || plan.size > kLargestPlanSection || plan.size > size - kHeaderBytes ||
      constants.offset != align_up(plan.offset + plan.size, kSectionAlignment) || constants.offset > size ||
      constants.size != size - constants.offset) {
    return damaged(fmt::format("its sections ({} bytes at {}, {} bytes at {}) do not fill its {} bytes", plan.size,
                               plan.offset, constants.size, constants.offset, size));
  }
  const auto text = [&](std::uint64_t from, std::uint64_t to) {
    return std::string_view(reinterpret_cast<const char*>(bytes) + from, to - from);
  };
  if (hash64(text(plan.offset, plan.offset + plan.size)) != plan.checksum) {
    return damaged("the checksum of its plan section does not fit");
  }
  if (text(plan.offset + plan.size, constants.offset).find_first_not_of('\0') != std::string_view::npos) {
    return damaged("there is something between its sections");
  }
  if (hash64(text(constants.offset, size)) != constants.checksum) {
    return damaged("the checksum of its constants section does not fit");
  }
  return {};
}

// Turns a verified FlatBuffers plan into a Plan. The first failure is kept and what follows is empty.
class PlanReader {
 public:
  PlanReader(const fb::Plan& root, std::uint64_t plan_bytes, const std::uint8_t* constants,
             std::uint64_t constants_bytes, std::shared_ptr<const void> keep_alive)
      : root_(root),
        budget_(plan_bytes),
        constants_(constants),
        constants_bytes_(constants_bytes),
        keep_alive_(std::move(keep_alive)) {}

  Result<Plan> read() {
    Plan plan;
    plan.tenon_version = text(root_.tenon_version());
    plan.device_kind = text(root_.device_kind());
    plan.device_signature = text(root_.device_signature());
    plan.threads = root_.threads();
    plan.verbosity = static_cast<Verbosity>(root_.verbosity());
    plan.tensors = each(root_.tensors(), [this](const fb::Tensor& tensor) { return read(tensor); });
    plan.nodes = each(root_.nodes(), [this](const fb::Node& node) { return read(node); });
    plan.shape_nodes = each(root_.shape_nodes(), [this](const fb::ShapeNode& node) { return read(node); });
    plan.inputs = each(root_.inputs(), [&](const fb::Io& io) { return read(io, plan.tensors); });
    plan.outputs = each(root_.outputs(), [&](const fb::Io& io) { return read(io, plan.tensors); });
    plan.constants = each(root_.constants(), [this](const fb::HostTensor& tensor) { return read(tensor); });
    plan.plugins = each(root_.plugins(), [this](const fb::Plugin& plugin) {
      return PluginNeed{text(plugin.id()), text(plugin.version()), text(plugin.library()), text(plugin.build_id())};
    });
    for (const fb::Metadata* entry : *root_.metadata()) {
      if (!plan.metadata.emplace(text(entry->key()), text(entry->text())).second) fail("metadata key occurs twice");
    }
    plan.arena_bytes = root_.arena_bytes();
    plan.arena_lower_bound = root_.arena_lower_bound();
    plan.workspace_bytes = root_.workspace_bytes();
    plan.persistent_bytes = root_.persistent_bytes();
    plan.context_host_bytes = root_.context_host_bytes();
    plan.context_device_bytes = root_.context_device_bytes();
    plan.scratch_bytes = root_.scratch_bytes();
    if (!status_.ok()) return status_;
    return plan;
  }

 private:
  void fail(const std::string& what) {
    if (status_.ok()) status_ = Status(Code::kInvalid, what);
  }

  // FlatBuffers may refer to the same bytes many times; a plan that does would grow without limit when it is read.
  bool take(std::uint64_t bytes) {
    if (bytes > budget_) {
      fail("its plan refers to the same bytes more than once");
      budget_ = 0;
      return false;
    }
    budget_ -= bytes;
    return status_.ok();
  }

  std::string text(const flatbuffers::String* value) {
    if (value == nullptr || !take(value->size())) return {};
    return value->str();
  }

  // The verifier looks at the alignment of a vector's length only, not at that of its elements. An empty vector is
  // written without one.
  template <class T>
  bool aligned(const flatbuffers::Vector<T>& values) {
    constexpr std::size_t alignment = alignof(std::remove_const_t<std::remove_pointer_t<T>>);
    if (values.size() == 0 || reinterpret_cast<std::uintptr_t>(values.Data()) % alignment == 0) return true;
    fail("a list in its plan is not aligned");
    return false;
  }

  template <class T>
  std::vector<T> list(const flatbuffers::Vector<T>* values) {
    if (values == nullptr || !aligned(*values) || !take(std::uint64_t{values->size()} * sizeof(T))) return {};
    return std::vector<T>(values->begin(), values->end());
  }

  template <class Table, class Read>
  std::vector<std::invoke_result_t<Read, const Table&>> each(
      const flatbuffers::Vector<flatbuffers::Offset<Table>>* tables, Read read_one) {
    std::vector<std::invoke_result_t<Read, const Table&>> result;
    // A table has at least its own offset and one to its field table.
    if (tables == nullptr || !take(std::uint64_t{tables->size()} * 8)) return result;
    result.reserve(tables->size());
    for (const Table* table : *tables) {
      if (!status_.ok()) break;
      result.push_back(read_one(*table));
    }
    return result;
  }

  std::vector<std::string> texts(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* values) {
    return each(values, [this](const flatbuffers::String& value) { return text(&value); });
  }

  TnDims dims(const flatbuffers::Vector<std::int64_t>* values) {
    const std::vector<std::int64_t> extents = list(values);
    if (extents.size() > TN_MAX_RANK) {
      fail(fmt::format("a tensor of rank {}, expected at most {}", extents.size(), TN_MAX_RANK));
      return {};
    }
    return make_dims(extents);
  }

  TnFormat read(const fb::Format& stored) {
    TnFormat format{};
    format.kind = stored.kind();
    format.padding = stored.padding();
    const std::vector<std::uint8_t> order = list(stored.order());
    const std::vector<std::uint8_t> axes = list(stored.block_axis());
    const std::vector<std::uint16_t> sizes = list(stored.block_size());
    const std::string opaque = text(stored.opaque());
    if (order.size() > TN_MAX_RANK || axes.size() > TN_MAX_BLOCKS || sizes.size() != axes.size() ||
        opaque.size() >= sizeof(format.opaque)) {
      fail(fmt::format("a format with {} axes, {} blocks and a name of {} bytes", order.size(), axes.size(),
                       opaque.size()));
      return {};
    }
    format.rank = static_cast<std::uint8_t>(order.size());
    format.num_blocks = static_cast<std::uint8_t>(axes.size());
    std::copy(order.begin(), order.end(), format.order);
    std::copy(axes.begin(), axes.end(), format.block_axis);
    std::copy(sizes.begin(), sizes.end(), format.block_size);
    std::copy(opaque.begin(), opaque.end(), format.opaque);
    return format;
  }

  // A piece of the constants section, or an empty one if it lies outside.
  std::span<const std::uint8_t> read(const fb::Blob& blob) {
    if (blob.size() == 0) return {};
    if (blob.offset() % kBlobAlignment != 0 || blob.offset() > constants_bytes_ ||
        blob.size() > constants_bytes_ - blob.offset()) {
      fail(fmt::format("{} bytes at {} lie outside the constants section of {} bytes", blob.size(), blob.offset(),
                       constants_bytes_));
      return {};
    }
    return {constants_ + blob.offset(), blob.size()};
  }

  std::shared_ptr<const HostTensor> read(const fb::HostTensor& stored) {
    const TnDims extents = dims(stored.dims());
    const std::span<const std::uint8_t> data = read(*stored.data());
    if (!status_.ok()) return nullptr;
    const Result<std::uint64_t> bytes = tensor_bytes(stored.dtype(), extents, row_format());
    if (!bytes.ok() || *bytes != data.size()) {
      fail(fmt::format("a constant {}{} has {} bytes", dtype_name(stored.dtype()), dims_text(extents), data.size()));
      return nullptr;
    }
    return HostTensor::borrow(stored.dtype(), extents, data.empty() ? constants_ : data.data(), keep_alive_);
  }

  PlanTensor read(const fb::Tensor& stored) {
    PlanTensor tensor;
    tensor.name = text(stored.name());
    tensor.dtype = stored.dtype();
    tensor.dims = dims(stored.dims());
    tensor.format = read(*stored.format());
    tensor.storage = static_cast<Storage>(stored.storage());
    tensor.index = stored.index();
    tensor.offset = stored.offset();
    tensor.bytes = stored.bytes();
    tensor.first_use = stored.first_use();
    tensor.last_use = stored.last_use();
    return tensor;
  }

  AttrValue value(const fb::Attr& stored) {
    switch (stored.type()) {
      case TN_ATTR_I64:
        return stored.integer();
      case TN_ATTR_F64:
        return stored.real();
      case TN_ATTR_STR:
        return text(stored.text());
      case TN_ATTR_I64S:
        return list(stored.integers());
      case TN_ATTR_F64S:
        return list(stored.reals());
      case TN_ATTR_STRS:
        return texts(stored.texts());
      case TN_ATTR_TENSOR:
        if (stored.tensor() == nullptr) break;
        return read(*stored.tensor());
      case TN_ATTR_DTYPE:
        return DTypeAttr{static_cast<std::int32_t>(stored.integer())};
      default:
        break;
    }
    fail(fmt::format("an attribute of type {} without a value", stored.type()));
    return std::int64_t{0};
  }

  Expression read(const fb::Expression& stored) {
    std::vector<TnExprInstr> instrs;
    if (stored.instrs() == nullptr || !aligned(*stored.instrs())) return {};
    if (!take(std::uint64_t{stored.instrs()->size()} * sizeof(fb::ExprInstr))) return {};
    for (const fb::ExprInstr* i : *stored.instrs()) {
      instrs.push_back({i->primitive(), i->dtype(), i->a(), i->b(), i->c(), i->operand(), i->value()});
    }
    return Expression(std::move(instrs));
  }

  std::vector<Share> read(const flatbuffers::Vector<const fb::Share*>* stored) {
    std::vector<Share> shares;
    if (stored == nullptr || !aligned(*stored) || !take(std::uint64_t{stored->size()} * sizeof(fb::Share))) return {};
    for (const fb::Share* share : *stored) {
      shares.push_back({share->input(), share->output(), share->output_inside(), share->offset()});
    }
    return shares;
  }

  TnPort read(const fb::Port& stored) {
    return {stored.dtype(), stored.memory(), read(*stored.format()), stored.flags(), stored.alignment()};
  }

  Combo read(const fb::Combo& stored) {
    Combo combo;
    combo.inputs = each(stored.inputs(), [this](const fb::Port& port) { return read(port); });
    combo.outputs = each(stored.outputs(), [this](const fb::Port& port) { return read(port); });
    if (stored.aliases() == nullptr || !take(std::uint64_t{stored.aliases()->size()} * sizeof(fb::Alias))) return combo;
    for (const fb::Alias* alias : *stored.aliases()) {
      combo.aliases.push_back({alias->output(), alias->input(), alias->kind(), 0});
    }
    return combo;
  }

  PlanIo read(const fb::Io& stored, const std::vector<PlanTensor>& tensors) {
    PlanIo io;
    io.name = text(stored.name());
    io.tensor = stored.tensor();
    if (io.tensor < tensors.size()) io.min = io.max = tensors[io.tensor].dims;
    if (stored.min() != nullptr) io.min = dims(stored.min());
    if (stored.max() != nullptr) io.max = dims(stored.max());
    return io;
  }

  Attrs read(const flatbuffers::Vector<flatbuffers::Offset<fb::Attr>>* stored) {
    Attrs attrs;
    if (stored == nullptr || !take(std::uint64_t{stored->size()} * 8)) return attrs;
    for (const fb::Attr* attr : *stored) {
      if (!status_.ok()) break;
      if (!attrs.values.emplace(text(attr->name()), value(*attr)).second) fail("an attribute occurs twice");
    }
    return attrs;
  }

  ShapeNode read(const fb::ShapeNode& stored) {
    ShapeNode node;
    node.name = text(stored.name());
    node.op_id = text(stored.op_id());
    node.attrs = read(stored.attrs());
    node.inputs = list(stored.inputs());
    node.outputs = list(stored.outputs());
    node.position = stored.position();
    return node;
  }

  PlanNode read(const fb::Node& stored) {
    PlanNode node;
    node.name = text(stored.name());
    node.layer_type = text(stored.layer_type());
    node.members = texts(stored.members());
    node.op_id = text(stored.op_id());
    node.attrs = read(stored.attrs());
    node.epilogues = each(stored.epilogues(), [this](const fb::Expression& expression) { return read(expression); });
    node.site_flags = stored.site_flags();
    node.inputs = list(stored.inputs());
    node.outputs = list(stored.outputs());
    node.kernel = text(stored.kernel());
    node.kernel_revision = stored.kernel_revision();
    node.plugin_id = text(stored.plugin_id());
    node.combo = read(*stored.combo());
    node.tactic.params = text(stored.tactic()->params());
    node.tactic.blob = list(stored.tactic()->blob());
    node.tactic.workspace = stored.tactic()->workspace();
    node.tactic_hash = stored.tactic()->hash();
    node.fused_epilogue = stored.fused_epilogue();
    node.key = {stored.key()->high(), stored.key()->low()};
    node.ms = stored.ms();
    const std::span<const std::uint8_t> state = read(*stored.state());
    state_bytes_ += state.size();
    if (state_bytes_ > constants_bytes_ + kSharedStateBytes) fail("its plan refers to the same kernel state too often");
    if (status_.ok()) node.state.assign(state.begin(), state.end());
    node.stream = stored.stream();
    node.data_dependent = stored.data_dependent();
    node.num_extra = stored.num_extra();
    node.shares = read(stored.shares());
    node.persistent_bytes = stored.persistent_bytes();
    node.has_persistent = stored.persistent() != nullptr;
    if (node.has_persistent) {
      const std::span<const std::uint8_t> data = read(*stored.persistent());
      const TnDims extent = make_dims({static_cast<std::int64_t>(data.size())});
      node.stored_persistent = HostTensor::borrow(TN_U8, extent, data.empty() ? constants_ : data.data(), keep_alive_);
    }
    return node;
  }

  // Equal kernels, such as those compiled for one expression, have equal states, which are stored once.
  static constexpr std::uint64_t kSharedStateBytes = std::uint64_t{64} << 20;

  const fb::Plan& root_;
  std::uint64_t budget_;
  const std::uint8_t* constants_;
  std::uint64_t constants_bytes_;
  std::uint64_t state_bytes_ = 0;
  std::shared_ptr<const void> keep_alive_;
  Status status_;
};

// Memory that is aligned as a mapped file is.
std::shared_ptr<std::uint8_t> aligned_copy(const std::uint8_t* bytes, std::size_t size) {
  constexpr auto alignment = static_cast<std::align_val_t>(kBlobAlignment);
  auto* memory = static_cast<std::uint8_t*>(::operator new(size, alignment));
  std::memcpy(memory, bytes, size);
  return {memory, [](std::uint8_t* held) { ::operator delete(held, alignment); }};
}

}  // namespace

Result<Plan> read_plan(const void* bytes, std::size_t size, std::shared_ptr<const void> keep_alive) {
  TENON_ASSIGN(const FileHeader header, parse_file_header(bytes, size));
  TENON_RETURN_IF_ERROR(check_version(header.info));
  const auto* file = static_cast<const std::uint8_t*>(bytes);
  TENON_RETURN_IF_ERROR(check_sections(header, file, size));
  if (reinterpret_cast<std::uintptr_t>(file) % kBlobAlignment != 0) {
    const std::shared_ptr<std::uint8_t> copy = aligned_copy(file, size);
    file = copy.get();
    keep_alive = copy;
  }

  const std::uint8_t* section = file + header.plan.offset;
  // Every table of an honest plan takes at least 8 bytes, so this limit only stops plans that repeat themselves.
  const auto most_tables = static_cast<flatbuffers::uoffset_t>(header.plan.size / 8 + 1);
  flatbuffers::Verifier verifier(section, header.plan.size, /*max_depth=*/16, most_tables);
  if (!fb::VerifyPlanBuffer(verifier)) return damaged("its plan section has no valid structure");
  PlanReader reader(*fb::GetPlan(section), header.plan.size, file + header.constants.offset, header.constants.size,
                    std::move(keep_alive));
  Result<Plan> plan = reader.read();
  if (!plan.ok()) return damaged(plan.status().message());
  const Status status = check_plan(*plan);
  if (!status.ok()) return damaged(status.message());
  return plan;
}

}  // namespace tenon
