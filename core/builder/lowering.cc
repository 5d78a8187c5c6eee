#include "core/builder/lowering.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "core/plan/placement.h"
#include "core/site/instance.h"
#include "core/version.h"

namespace tenon {
namespace {

std::string layer_type(const std::string& op_id) {
  const std::string without_version = op_id.substr(0, op_id.rfind('/'));
  return without_version.substr(without_version.rfind('.') + 1);
}

class Lowering {
 public:
  Lowering(const Graph& graph, const Selection& selection, Reformats* reformats, const BuildOptions& options,
           BuildOutput* output)
      : graph_(graph),
        selection_(selection),
        reformats_(reformats),
        options_(options),
        output_(output),
        plan_(output->plan) {}

  Status run() {
    TENON_RETURN_IF_ERROR(place());
    TENON_RETURN_IF_ERROR(prepare_instances());
    collect_plugins();
    return {};
  }

  /// The plan, but for what the instances of its kernels are asked.
  Status place() {
    plan_.tenon_version = kVersion;
    plan_.device_kind = options_.device->info().kind == TN_CPU ? "cpu" : "cuda";
    plan_.device_signature = options_.device->info().signature;
    plan_.threads = options_.device->info().threads;
    plan_.verbosity = options_.verbosity;
    plan_.metadata = graph_.metadata();
    for (std::size_t i = 0; i < graph_.inputs().size(); ++i) {
      const Value& value = graph_.value(graph_.inputs()[i]);
      const std::uint32_t tensor = add_tensor(value.name, value.dtype, value.dims, row_format(), Storage::kInput);
      plan_.tensors[tensor].index = static_cast<std::uint32_t>(i);
      tensors_[{graph_.inputs()[i], "row"}] = tensor;
      const auto profile = graph_.profiles().find(graph_.inputs()[i]);
      const bool varies = profile != graph_.profiles().end();
      plan_.inputs.push_back(
          {value.name, tensor, varies ? profile->second.min : value.dims, varies ? profile->second.max : value.dims});
    }
    auto shape_node = selection_.shape_nodes.begin();
    for (std::size_t n = 0; n < selection_.order.size(); ++n) {
      for (; shape_node != selection_.shape_nodes.end() && shape_node->second == n; ++shape_node) {
        TENON_RETURN_IF_ERROR(add_shape_node(shape_node->first));
      }
      TENON_RETURN_IF_ERROR(add_node(selection_.order[n], selection_.sites[selection_.node_site[n]]));
    }
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      const ValueId value = graph_.outputs()[i];
      TENON_ASSIGN(const std::uint32_t tensor, in_format(value, "row"));
      plan_.tensors[tensor].storage = Storage::kOutput;
      plan_.tensors[tensor].index = static_cast<std::uint32_t>(i);
      plan_.outputs.push_back({graph_.value(value).name, tensor, graph_.value(value).dims, graph_.value(value).dims});
    }
    TENON_RETURN_IF_ERROR(find_shares());
    return place_tensors(&plan_);
  }

 private:
  std::uint32_t add_tensor(const std::string& name, std::int32_t dtype, const TnDims& dims, const TnFormat& format,
                           Storage storage) {
    PlanTensor tensor;
    tensor.name = name;
    tensor.dtype = dtype;
    tensor.dims = dims;
    tensor.format = format;
    tensor.storage = storage;
    plan_.tensors.push_back(std::move(tensor));
    return static_cast<std::uint32_t>(plan_.tensors.size() - 1);
  }

  /// The tensor of known contents.
  std::uint32_t constant(ValueId id) {
    const auto [found, added] = tensors_.emplace(std::pair(id, std::string("constant")), 0);
    if (!added) return found->second;
    const Value& value = graph_.value(id);
    found->second = add_tensor(value.name, value.dtype, value.dims, row_format(), Storage::kConstant);
    plan_.tensors[found->second].index = static_cast<std::uint32_t>(plan_.constants.size());
    plan_.constants.push_back(value.constant);
    return found->second;
  }

  /// What a node reads: known contents are constants, as its kernel was told, also where a graph output is computed of
  /// the same value.
  Result<std::uint32_t> read(ValueId id, const std::string& format) {
    if (graph_.value(id).constant != nullptr) return constant(id);
    return in_format(id, format);
  }

  /// The tensor of a value in a format; converts it if it is not there yet.
  Result<std::uint32_t> in_format(ValueId id, const std::string& format) {
    const auto found = tensors_.find({id, format});
    if (found != tensors_.end()) return found->second;
    const Value& value = graph_.value(id);
    const std::string have = value.producer == kNoId ? "row" : produced_.at(id);
    TENON_ASSIGN(const SelectedSite* conversion, reformats_->find(value.dtype, value.dims, have, format));
    if (conversion == nullptr) {
      return Status(Code::kNotFound,
                    fmt::format("value {}: no kernel converts it from {} to {}", value.name, have, format));
    }
    const std::string name = fmt::format("{}.reformat.{}", value.name, format);
    const std::uint32_t from = tensors_.at({id, have});
    const std::uint32_t to = add_tensor(name, conversion->candidate().combo.outputs[0].dtype, value.dims,
                                        conversion->candidate().combo.outputs[0].format, Storage::kArena);
    add_plan_node(name, {}, {from}, {to}, *conversion, conversion->tune->site);
    tensors_[{id, format}] = to;
    return to;
  }

  Status add_shape_node(NodeId id) {
    const Node& node = graph_.node(id);
    ShapeNode added;
    added.name = node.name;
    added.op_id = node.op_id();
    added.attrs = node.attrs;
    added.position = static_cast<std::uint32_t>(plan_.nodes.size());
    for (const ValueId input : node.inputs) {
      if (input == kNoId) {
        added.inputs.push_back(kNoTensor);
        continue;
      }
      // Of what is not known only the dims matter, and these are the same in every format.
      const auto produced = produced_.find(input);
      TENON_ASSIGN(const std::uint32_t tensor, read(input, produced != produced_.end() ? produced->second : "row"));
      added.inputs.push_back(tensor);
    }
    for (const ValueId output : node.outputs) added.outputs.push_back(constant(output));
    plan_.shape_nodes.push_back(std::move(added));
    return {};
  }

  Status add_node(NodeId id, const SelectedSite& selected) {
    const Node& node = graph_.node(id);
    const Combo& combo = selected.candidate().combo;
    std::vector<std::uint32_t> inputs, outputs;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoId) {
        inputs.push_back(kNoTensor);
        continue;
      }
      TENON_ASSIGN(const std::uint32_t tensor,
                   read(node.inputs[i], form_text(combo.inputs[i], graph_.value(node.inputs[i]).dtype)));
      inputs.push_back(tensor);
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const Value& value = graph_.value(node.outputs[i]);
      const std::string format = form_text(combo.outputs[i], value.dtype);
      outputs.push_back(
          add_tensor(value.name, combo.outputs[i].dtype, value.dims, combo.outputs[i].format, Storage::kArena));
      tensors_[{node.outputs[i], format}] = outputs.back();
      produced_[node.outputs[i]] = format;
    }
    // Identical layers share one record but not their weights: each node is a site of its own from here on.
    add_plan_node(node.name, node.members, inputs, outputs, selected,
                  Site::create(describe_site(graph_, id, selected.tune->site->desc().flags), *options_.device));
    plan_.nodes.back().num_extra = node.num_extra;
    plan_.nodes.back().data_dependent = !node.outputs.empty() && graph_.value(node.outputs[0]).bound;
    return {};
  }

  void add_plan_node(const std::string& name, const std::vector<std::string>& members,
                     const std::vector<std::uint32_t>& inputs, const std::vector<std::uint32_t>& outputs,
                     const SelectedSite& selected, std::shared_ptr<const Site> site) {
    const SiteDesc& desc = selected.tune->site->desc();
    const Candidate& candidate = selected.candidate();
    PlanNode node;
    node.name = name;
    node.layer_type = layer_type(desc.op_id);
    node.members = members;
    node.op_id = desc.op_id;
    node.attrs = desc.attrs;
    node.epilogues = desc.epilogues;
    node.site_flags = desc.flags;
    node.inputs = inputs;
    node.outputs = outputs;
    node.kernel = candidate.kernel.kernel->name;
    node.kernel_revision = candidate.kernel.kernel->revision;
    node.plugin_id = candidate.kernel.plugin_id;
    node.combo = candidate.combo;
    node.tactic = candidate.tactic;
    node.tactic_hash = candidate.hash;
    node.fused_epilogue = candidate.fused_epilogue;
    node.key = selected.tune->key;
    node.ms = selected.result.times[selected.chosen].ms;
    plan_.nodes.push_back(std::move(node));
    output_->layers.push_back({name, members, selected.tune, selected.result, selected.chosen, 0});
    sites_.push_back(std::move(site));
  }

  /// Of views: what need not be copied. Sizes that data decide change while the memory stays where it is.
  Status find_shares() {
    const bool data_decide =
        std::any_of(plan_.nodes.begin(), plan_.nodes.end(), [](const PlanNode& node) { return node.data_dependent; });
    if (data_decide) return {};
    for (std::size_t n = 0; n < plan_.nodes.size(); ++n) {
      const LayerTrace& layer = output_->layers[n];
      const Candidate& candidate = layer.site->enumeration.candidates[layer.chosen];
      if (!is_view_kernel(candidate.kernel)) continue;
      TENON_ASSIGN(plan_.nodes[n].shares, shares_of(layer.site->op, sites_[n]->desc(), candidate.combo));
    }
    return {};
  }

  /// Configures each chosen candidate once more to learn its sizes and state, and packs what may travel packed.
  Status prepare_instances() {
    TENON_ASSIGN(const std::unique_ptr<Stream> stream, options_.device->create_stream());
    std::set<std::tuple<std::string, std::uint64_t, std::uint64_t>> packed;  // as the engine shares them
    for (std::size_t n = 0; n < plan_.nodes.size(); ++n) {
      PlanNode& node = plan_.nodes[n];
      LayerTrace& layer = output_->layers[n];
      const Candidate& candidate = layer.site->enumeration.candidates[layer.chosen];
      TENON_ASSIGN(const std::unique_ptr<Instance> instance, Instance::configure(sites_[n], candidate));
      const TnSizes& sizes = instance->sizes();
      if (sizes.workspace > options_.workspace_limit) {
        return {Code::kInvalid,
                fmt::format("layer {}: kernel {} now wants {} bytes of workspace, over the limit of {}; "
                            "raise --workspace or choose another tactic",
                            node.name, node.kernel, sizes.workspace, options_.workspace_limit)};
      }
      node.persistent_bytes = sizes.persistent;
      layer.workspace = sizes.workspace;
      plan_.workspace_bytes = std::max(plan_.workspace_bytes, sizes.workspace);
      plan_.context_host_bytes += (sizes.context_host + 255) / 256 * 256;
      plan_.context_device_bytes += (sizes.context_device + 255) / 256 * 256;
      const bool shared = (sizes.pack_key[0] != 0 || sizes.pack_key[1] != 0) &&
                          !packed.emplace(node.plugin_id, sizes.pack_key[0], sizes.pack_key[1]).second;
      if (!shared) plan_.persistent_bytes += sizes.persistent;
      const bool relocatable = (candidate.kernel.kernel->flags & TN_KERNEL_RELOCATABLE) != 0;
      if (relocatable && sizes.persistent != 0) {
        TENON_RETURN_IF_ERROR(pack(*sites_[n], instance.get(), *stream, &node));
      }
      TENON_ASSIGN(node.state, instance->serialize());
    }
    return {};
  }

  Status pack(const Site& site, Instance* instance, Stream& stream, PlanNode* node) {
    TENON_ASSIGN(const DeviceBuffer memory, DeviceBuffer::allocate(options_.device, node->persistent_bytes));
    TENON_RETURN_IF_ERROR(options_.device->fill(memory.data(), 0, memory.size(), stream));
    std::vector<DeviceBuffer> buffers;
    std::vector<void*> constants;
    for (const auto& constant : site.desc().constants) {
      if (constant == nullptr) {
        constants.push_back(nullptr);
        continue;
      }
      TENON_ASSIGN(DeviceBuffer buffer, DeviceBuffer::allocate(options_.device, constant->bytes()));
      TENON_RETURN_IF_ERROR(
          options_.device->copy_to_device(buffer.data(), constant->data(), constant->bytes(), stream));
      constants.push_back(buffer.data());
      buffers.push_back(std::move(buffer));
    }
    TENON_RETURN_IF_ERROR(stream.synchronize());
    TENON_RETURN_IF_ERROR(instance->initialize(*options_.device, stream, memory.data(), false, constants));
    node->persistent.resize(node->persistent_bytes);
    TENON_RETURN_IF_ERROR(options_.device->copy_to_host(node->persistent.data(), memory.data(), memory.size(), stream));
    node->has_persistent = true;
    return stream.synchronize();
  }

  void collect_plugins() {
    std::set<PluginNeed> needs;
    for (const PlanNode& node : plan_.nodes) {
      needs.insert(options_.registry->owner_of_op(node.op_id));
      if (!node.plugin_id.empty()) needs.insert(options_.registry->owner_of_kernel(node.kernel));
    }
    for (const ShapeNode& node : plan_.shape_nodes) needs.insert(options_.registry->owner_of_op(node.op_id));
    for (const PluginNeed& need : needs) {
      if (!need.id.empty()) plan_.plugins.push_back(need);
    }
  }

  const Graph& graph_;
  const Selection& selection_;
  Reformats* reformats_;
  const BuildOptions& options_;
  BuildOutput* output_;
  Plan& plan_;
  std::map<std::pair<ValueId, std::string>, std::uint32_t> tensors_;
  std::map<ValueId, std::string> produced_;
  std::vector<std::shared_ptr<const Site>> sites_;  ///< one per plan node, with that node's own constants
};

}  // namespace

Status lower(const Graph& graph, const Selection& selection, Reformats* reformats, const BuildOptions& options,
             BuildOutput* output) {
  return Lowering(graph, selection, reformats, options, output).run();
}

std::string WholeTime::text() const { return fmt::format("takes {:.6f} ms in {} launches", ms, launches); }

Result<WholeTime> whole_time(const Graph& graph, const Selection& selection, Reformats* reformats,
                             const BuildOptions& options, const std::string& layer) {
  BuildOutput output;
  TENON_RETURN_IF_ERROR(Lowering(graph, selection, reformats, options, &output).place());
  WholeTime whole;
  for (std::size_t n = 0; n < output.layers.size(); ++n) {
    const LayerTrace& trace = output.layers[n];
    const std::vector<Candidate>& candidates = trace.site->enumeration.candidates;
    std::optional<std::size_t> timed = trace.chosen;
    if (is_view_kernel(candidates[trace.chosen].kernel)) {
      if (does_nothing(output.plan, output.plan.nodes[n])) continue;
      // It copies as a kernel of the op does.
      timed = fastest_candidate(trace.result, [&](std::size_t i) {
        return i != trace.chosen && candidates[i].combo_text == candidates[trace.chosen].combo_text;
      });
    }
    const double ms = timed ? trace.result.times[*timed].ms : 0;
    whole.launches += timed ? trace.result.times[*timed].launches : 1;
    whole.ms += ms;
    if (trace.name == layer) whole.layer_ms = ms;
  }
  return whole;
}

}  // namespace tenon
