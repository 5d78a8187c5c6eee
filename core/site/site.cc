#include "core/site/site.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon {
namespace {

std::string tensor_text(const SiteDesc& desc, std::size_t i) {
  if (desc.dtypes[i] == TN_DTYPE_NONE) return "none";
  const bool constant = i < desc.num_read() && desc.constants[i] != nullptr;
  std::string text = dtype_name(desc.dtypes[i]) + dims_text(desc.dims[i]);
  if (!desc.extremes.empty() && !same_dims(desc.extremes[0].dims[i], desc.extremes[1].dims[i])) {
    text += fmt::format("from{}to{}", dims_text(desc.extremes[0].dims[i]), dims_text(desc.extremes[1].dims[i]));
  }
  return text + (constant ? "const" : "");
}

std::string describe(const SiteDesc& desc, const DeviceInfo& device) {
  std::string text = fmt::format("op={} attrs={{{}}} in=", desc.op_id, desc.attrs.text());
  for (std::size_t i = 0; i < desc.dims.size(); ++i) {
    if (i == desc.num_inputs && desc.num_extra > 0) text += " extra=";
    if (i == desc.num_read()) text += " out=";
    text += tensor_text(desc, i) + ";";
  }
  for (std::size_t i = 0; i < desc.epilogues.size(); ++i) {
    if (!desc.epilogues[i].empty()) text += fmt::format(" epilogue{}={}", i, desc.epilogues[i].text());
  }
  return text + fmt::format(" flags={} device={}", desc.flags, device.signature);
}

}  // namespace

SiteDesc describe_site(const Graph& graph, NodeId id, std::uint32_t flags) {
  const Node& node = graph.node(id);
  SiteDesc desc;
  desc.op_id = node.op_id();
  desc.attrs = node.attrs;
  desc.num_inputs = static_cast<std::uint32_t>(node.inputs.size() - node.num_extra);
  desc.num_extra = node.num_extra;
  desc.num_outputs = static_cast<std::uint32_t>(node.outputs.size());
  desc.epilogues = node.epilogues;
  desc.flags = flags;
  for (const ValueId input : node.inputs) {
    const bool absent = input == kNoId;
    desc.dims.push_back(absent ? TnDims{} : graph.value(input).dims);
    desc.dtypes.push_back(absent ? static_cast<std::int32_t>(TN_DTYPE_NONE) : graph.value(input).dtype);
    desc.constants.push_back(absent ? nullptr : graph.value(input).constant);
  }
  for (const ValueId output : node.outputs) {
    desc.dims.push_back(graph.value(output).dims);
    desc.dtypes.push_back(graph.value(output).dtype);
  }
  if (std::find(desc.dtypes.begin(), desc.dtypes.end(), TN_BF16) != desc.dtypes.end()) {
    desc.flags &= ~unsigned{TN_SITE_ALLOW_BF16};
  }
  return desc;
}

InferredSite::InferredSite(const SiteDesc& desc) {
  const auto view = [&](std::uint32_t i) {
    if (desc.dtypes[i] == TN_DTYPE_NONE) return TnTensor{};
    if (i < desc.num_inputs && desc.constants[i] != nullptr) return desc.constants[i]->view();
    return tensor_view(nullptr, desc.dtypes[i], desc.dims[i], row_format(), TN_MEMORY_HOST);
  };
  for (std::uint32_t i = 0; i < desc.num_inputs; ++i) inputs_.push_back(view(i));
  for (std::uint32_t i = 0; i < desc.num_outputs; ++i) outputs_.push_back(view(desc.num_read() + i));
  abi_ = {TN_HEADER(TnInfer), desc.num_inputs, desc.num_outputs, 0, &desc.attrs, inputs_.data(), outputs_.data()};
}

Result<Extremes> extremes_of(const Graph& graph) {
  Extremes extremes{graph, graph};
  std::vector<std::pair<ValueId, TnDims>> min, max;
  for (const auto& [input, profile] : graph.profiles()) {
    min.emplace_back(input, profile.min);
    max.emplace_back(input, profile.max);
  }
  if (min.empty()) return extremes;
  TENON_RETURN_IF_ERROR(extremes.min.set_input_dims(min).with_context("with the least dims of the profile"));
  TENON_RETURN_IF_ERROR(extremes.max.set_input_dims(max).with_context("with the largest dims of the profile"));
  return extremes;
}

SiteDesc describe_site(const Graph& graph, const Extremes& extremes, NodeId node, std::uint32_t flags) {
  SiteDesc desc = describe_site(graph, node, flags);
  if (graph.profiles().empty()) return desc;
  SiteDesc min = describe_site(extremes.min, node, flags);
  SiteDesc max = describe_site(extremes.max, node, flags);
  if (std::equal(min.dims.begin(), min.dims.end(), max.dims.begin(), same_dims)) return desc;
  desc.extremes = {std::move(min), std::move(max)};
  return desc;
}

std::shared_ptr<const Site> Site::create(SiteDesc desc, Device& device) {
  std::shared_ptr<Site> site(new Site);
  site->desc_ = std::move(desc);
  site->device_ = &device;
  const SiteDesc& own = site->desc_;
  site->text_ = describe(own, device.info());

  for (std::size_t i = 0; i < own.dims.size(); ++i) {
    // The caller's own memory is only promised to be aligned to its elements.
    const int bytes = dtype_bits(own.dtypes[i]) / 8;
    site->alignments_.push_back(static_cast<std::uint32_t>(bytes > 0 ? bytes : 1));
  }
  for (std::uint32_t i = 0; i < own.num_read(); ++i) {
    TnTensor tensor = own.constants[i] != nullptr ? own.constants[i]->view() : TnTensor{};
    if (own.constants[i] == nullptr) {
      tensor.dtype = own.dtypes[i];
      tensor.dims = own.dims[i];
      tensor.format = row_format();
      packed_strides(tensor.dims, tensor.format, tensor.strides);
    }
    site->constants_.push_back(tensor);
  }
  bool any_epilogue = false;
  site->expressions_.reserve(own.epilogues.size());
  for (const Expression& epilogue : own.epilogues) {
    site->expressions_.push_back(epilogue.abi());
    site->epilogues_.push_back(epilogue.empty() ? nullptr : &site->expressions_.back());
    any_epilogue = any_epilogue || !epilogue.empty();
  }

  TnSite& abi = site->abi_;
  abi.struct_size = TN_HEADER(TnSite);
  abi.flags = own.flags;
  abi.num_inputs = own.num_inputs;
  abi.num_extra = own.num_extra;
  abi.num_outputs = own.num_outputs;
  abi.op_id = own.op_id.c_str();
  abi.attrs = &own.attrs;
  abi.min_dims = abi.opt_dims = abi.max_dims = own.dims.data();
  abi.dtypes = own.dtypes.data();
  abi.alignments = site->alignments_.data();
  abi.constants = site->constants_.data();
  abi.used_outputs = own.num_outputs >= 64 ? ~0ull : (1ull << own.num_outputs) - 1;
  abi.device = &device.abi();
  site->abi_plain_ = abi;
  if (any_epilogue) abi.epilogues = site->epilogues_.data();
  return site;
}

Hash128 Site::key(const std::string& layer) const {
  return hash128(layer.empty() ? text_ : fmt::format("{} layer={}", text_, layer));
}

}  // namespace tenon
