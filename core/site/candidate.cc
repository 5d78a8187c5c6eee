#include "core/site/candidate.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include <tenon/plugin/ext/epilogue.h>
#include <tenon/plugin/ext/ids.h>

#include "core/base/failure.h"
#include "core/base/text.h"
#include "core/site/view.h"

namespace tenon {
namespace {

std::string port_text(const TnPort& port) {
  if (port.dtype == TN_DTYPE_NONE) return "none";
  return dtype_name(port.dtype) + ":" + format_text(port.format);
}

TnStatus TN_CALL collect_combo(TnComboSink* sink, const TnCombo* combo) {
  if (combo == nullptr || (combo->ports == nullptr && combo->num_inputs + combo->num_outputs != 0)) {
    record_failure(TN_INVALID, nullptr, "a combo without ports was added");
    return TN_INVALID;
  }
  Combo owned;
  owned.inputs.assign(combo->ports, combo->ports + combo->num_inputs);
  owned.outputs.assign(combo->ports + combo->num_inputs, combo->ports + combo->num_inputs + combo->num_outputs);
  owned.aliases.assign(combo->aliases, combo->aliases + combo->num_aliases);
  static_cast<std::vector<Combo>*>(sink->context)->push_back(std::move(owned));
  return TN_OK;
}

TnStatus TN_CALL collect_tactic(TnTacticSink* sink, const TnTactic* tactic) {
  if (tactic == nullptr || tactic->blob_size > 256 || (tactic->blob == nullptr && tactic->blob_size != 0)) {
    record_failure(TN_INVALID, nullptr, "a tactic is malformed: its blob must be given and have at most 256 bytes");
    return TN_INVALID;
  }
  Tactic owned;
  owned.params = tactic->params != nullptr ? tactic->params : "";
  const auto* blob = static_cast<const std::uint8_t*>(tactic->blob);
  owned.blob.assign(blob, blob + tactic->blob_size);
  owned.workspace = tactic->workspace;
  static_cast<std::vector<Tactic>*>(sink->context)->push_back(std::move(owned));
  return TN_OK;
}

/// Fits one port to one tensor of the site; "" or why it does not fit.
std::string fit_port(const SiteDesc& desc, std::size_t tensor, const char* role, bool constant, TnPort* port) {
  const std::int32_t dtype = desc.dtypes[tensor];
  if (dtype == TN_DTYPE_NONE) {
    *port = TnPort{};
    return "";
  }
  if (port->dtype == TN_DTYPE_NONE) {
    if (!constant) return fmt::format("{} is present, the combo has it absent", role);
    *port = TnPort{};
    port->dtype = dtype;
    port->format = row_format();
  }
  const bool allowed = (desc.flags & TN_SITE_ALLOW_BF16) != 0 && !constant && narrows(port->dtype, dtype);
  if (port->dtype != dtype && !allowed) {
    return fmt::format("{} is {}, the combo takes {}", role, dtype_name(dtype), dtype_name(port->dtype));
  }
  const TnFormat& format = port->format;
  if (format.kind == TN_FORMAT_AXES && format.rank != desc.dims[tensor].rank) {
    return fmt::format("{} has rank {}, format {} has rank {}", role, desc.dims[tensor].rank, format_text(format),
                       int{format.rank});
  }
  if (constant && format.kind != TN_FORMAT_ROW) {
    return fmt::format("{} is constant, and constants are row-major; pack them in initialize", role);
  }
  const std::uint32_t element = static_cast<std::uint32_t>(std::max(1, dtype_bits(dtype) / 8));
  if (port->alignment > element && format.kind == TN_FORMAT_ROW) {
    return fmt::format("{} is only promised to be aligned to {} bytes, the combo needs {}", role, element,
                       port->alignment);
  }
  return "";
}

/// One port per tensor of the site; "" or why the combo does not fit.
std::string fit_combo(const SiteDesc& desc, Combo* combo) {
  if (combo->outputs.size() != desc.num_outputs) {
    return fmt::format("the combo has {} outputs, the node {}", combo->outputs.size(), desc.num_outputs);
  }
  if (combo->inputs.size() > desc.num_inputs) combo->inputs.resize(desc.num_inputs);
  if (combo->inputs.empty() && desc.num_inputs != 0) return "the combo has no input port";
  while (combo->inputs.size() < desc.num_inputs) combo->inputs.push_back(combo->inputs.back());
  for (std::size_t i = 0; i < desc.num_inputs; ++i) {
    const std::string reason =
        fit_port(desc, i, fmt::format("input {}", i).c_str(), desc.constants[i] != nullptr, &combo->inputs[i]);
    if (!reason.empty()) return reason;
  }
  for (std::size_t i = 0; i < desc.num_outputs; ++i) {
    const std::string reason =
        fit_port(desc, desc.num_read() + i, fmt::format("output {}", i).c_str(), false, &combo->outputs[i]);
    if (!reason.empty()) return reason;
  }
  for (std::size_t i = 0; i < desc.num_extra; ++i) {
    TnPort port = combo->outputs[0];
    port.flags = 0;
    if (desc.constants[desc.num_inputs + i] != nullptr &&
        (port.format.kind != TN_FORMAT_ROW || port.dtype != desc.dtypes[desc.num_inputs + i])) {
      return "an operand of the epilogue is constant, and constants are row-major and of their own dtype";
    }
    combo->inputs.push_back(port);
  }
  for (const TnAlias& alias : combo->aliases) {
    if (alias.output >= desc.num_outputs || alias.input >= desc.num_inputs) return "an alias names no such tensor";
    if (alias.kind == TN_MUST_ALIAS) return "it must run in place, and inputs may still be needed afterwards";
  }
  return "";
}

/// Whether the host could apply the epilogue itself: it evaluates in f32, on a GPU without further operands.
bool host_can_finish(const Site& site) {
  const SiteDesc& desc = site.desc();
  for (std::size_t i = 0; i < desc.epilogues.size(); ++i) {
    if (!desc.epilogues[i].empty() && desc.dtypes[desc.num_read() + i] != TN_F32) return false;
  }
  return desc.num_extra == 0 || site.device().info().on_host();
}

bool source_disabled(std::string_view kernel_name, const std::vector<std::string>& disabled) {
  for (const std::string& source : disabled) {
    if (fmt::format(".{}.", kernel_name).find(fmt::format(".{}.", source)) != std::string::npos) return true;
  }
  return false;
}

/// Everything that one kernel answers about a site.
class Interview {
 public:
  Interview(const Site& site, const EnumerateOptions& options, Enumeration* out)
      : site_(site), options_(options), out_(out) {}

  /// Whether the kernel takes the site, combos aside; `fused`: and applies the epilogue itself.
  bool takes(const KernelRef& ref, bool* fused) {
    ref_ = &ref;
    const TnKernel& kernel = *ref.kernel;
    if (source_disabled(kernel.name, options_.disabled_sources)) {
      return declined("its tactic source is switched off");
    }
    if ((kernel.flags & TN_KERNEL_DETERMINISTIC) == 0 && !options_.allow_nondeterministic) {
      return declined("it is not deterministic; --allow-nondeterministic lets it take part");
    }
    *fused = takes_epilogue();
    if (site_.has_epilogue() && !*fused && !host_can_finish(site_)) {
      return declined(
          "it does not apply the epilogue, and the host does so only in f32 and, on a GPU, without further operands");
    }
    if (kernel.supports != nullptr) {
      clear_failure();
      const Status status = take_failure(kernel.supports(ref.host, &kernel, &view(*fused)), "supports");
      if (!status.ok()) return declined(status.message());
    }
    return true;
  }

  void ask(const KernelRef& ref) {
    bool fused = false;
    if (!takes(ref, &fused)) return;
    const TnKernel& kernel = *ref.kernel;
    const TnSite& view = this->view(fused);
    std::vector<Combo> combos;
    TnComboSink sink{TN_HEADER(TnComboSink), &combos, &collect_combo};
    for (std::uint32_t i = 0; i < kernel.num_combos; ++i) collect_combo(&sink, &kernel.combos[i]);
    if (kernel.more_combos != nullptr) {
      clear_failure();
      const Status status = take_failure(kernel.more_combos(ref.host, &kernel, &view, &sink), "more_combos");
      if (!status.ok()) decline("", "", status.message());
    }
    if (combos.empty()) return decline("", "", "it lists no combo for this site");
    for (Combo& combo : combos) ask_combo(view, fused, std::move(combo));
  }

 private:
  void decline(const std::string& combo, const std::string& tactic, const std::string& reason) {
    out_->declines.push_back({ref_->kernel->name, combo, tactic, reason});
  }

  bool declined(const std::string& reason) {
    decline("", "", reason);
    return false;
  }

  const TnSite& view(bool fused) const { return fused ? site_.abi() : site_.abi_plain(); }

  bool takes_epilogue() {
    const TnKernel& kernel = *ref_->kernel;
    if (!site_.has_epilogue() || kernel.get_interface == nullptr) return false;
    const auto* epilogue =
        static_cast<const TnKernelEpilogue*>(kernel.get_interface(&kernel, TN_IFACE_KERNEL_EPILOGUE));
    if (epilogue == nullptr) return false;
    clear_failure();
    const bool accepted = epilogue->accepts(ref_->host, &kernel, &site_.abi()) == TN_OK;
    clear_failure();
    return accepted;
  }

  void ask_combo(const TnSite& view, bool fused, Combo combo) {
    const TnKernel& kernel = *ref_->kernel;
    const std::string reason = fit_combo(site_.desc(), &combo);
    const std::string text = combo.text();
    if (!reason.empty()) return decline(text, "", reason);
    if (site_.has_epilogue() && !fused && narrows_any(combo, site_.desc())) {
      return decline(text, "", "it does not apply the epilogue, and the host does so only in f32");
    }
    std::vector<Tactic> tactics;
    std::optional<std::vector<Tactic>> known;
    if (kernel.tactics != nullptr && options_.known_tactics) known = options_.known_tactics(*ref_, text);
    if (kernel.tactics == nullptr) {
      tactics.emplace_back();
    } else if (known) {
      tactics = std::move(*known);
    } else {
      TnTacticSink sink{TN_HEADER(TnTacticSink), &tactics, &collect_tactic};
      std::vector<TnPort> storage;
      const TnCombo abi = combo.abi(&storage);
      clear_failure();
      const Status status = take_failure(kernel.tactics(ref_->host, &kernel, &view, &abi, &sink), "tactics");
      if (!status.ok()) return decline(text, "", status.message());
      if (tactics.empty()) return decline(text, "", "it offers no tactic for this combo");
    }
    std::set<std::string> seen;
    for (Tactic& tactic : tactics) {
      if (!seen.insert(tactic.params).second) {
        decline(text, tactic.params, "offered twice; that is a fault of the plugin");
        continue;
      }
      if (tactic.workspace > options_.workspace_limit) {
        decline(text, tactic.params,
                fmt::format("needs {} bytes of workspace, the limit is {} (raise --workspace)", tactic.workspace,
                            options_.workspace_limit));
        continue;
      }
      Candidate candidate;
      candidate.kernel = *ref_;
      candidate.combo = combo;
      candidate.combo_text = text;
      candidate.hash = tactic_hash(kernel.name, tactic.params);
      candidate.tactic = std::move(tactic);
      candidate.fused_epilogue = fused;
      out_->candidates.push_back(std::move(candidate));
    }
  }

  const Site& site_;
  const EnumerateOptions& options_;
  Enumeration* out_;
  const KernelRef* ref_ = nullptr;
};

}  // namespace

bool narrows_any(const Combo& combo, const SiteDesc& desc) {
  const auto any = [&](const std::vector<TnPort>& ports, std::size_t first) {
    for (std::size_t i = 0; i < ports.size(); ++i) {
      if (narrows(ports[i].dtype, desc.dtypes[first + i])) return true;
    }
    return false;
  };
  return any(combo.inputs, 0) || any(combo.outputs, desc.num_read());
}

std::string Combo::text() const {
  std::vector<std::string> in, out;
  for (const TnPort& port : inputs) in.push_back(port_text(port));
  for (const TnPort& port : outputs) out.push_back(port_text(port));
  return join(in, ",") + ">" + join(out, ",");
}

TnCombo Combo::abi(std::vector<TnPort>* storage) const {
  *storage = inputs;
  storage->insert(storage->end(), outputs.begin(), outputs.end());
  return {storage->data(), static_cast<std::uint32_t>(inputs.size()),  static_cast<std::uint32_t>(outputs.size()),
          aliases.data(),  static_cast<std::uint32_t>(aliases.size()), 0};
}

Result<Combo> Combo::parse(const std::string& text) {
  const std::size_t arrow = text.find('>');
  if (arrow == std::string::npos) {
    return Status(Code::kInvalid, fmt::format("combo \"{}\" has no '>' between inputs and outputs", text));
  }
  Combo combo;
  const auto read = [&](std::string_view list, std::vector<TnPort>* ports) -> Status {
    while (!list.empty()) {
      const std::string_view item = list.substr(0, list.find(','));
      list.remove_prefix(std::min(list.size(), item.size() + 1));
      TnPort port{};
      if (item != "none") {
        const std::size_t colon = item.find(':');
        if (colon == std::string_view::npos) {
          return {Code::kInvalid, fmt::format("combo \"{}\": \"{}\" is not dtype:format", text, item)};
        }
        TENON_ASSIGN(port.dtype, parse_dtype(item.substr(0, colon)));
        TENON_ASSIGN(port.format, parse_format(item.substr(colon + 1)));
      }
      ports->push_back(port);
    }
    return {};
  };
  TENON_RETURN_IF_ERROR(read(std::string_view(text).substr(0, arrow), &combo.inputs));
  TENON_RETURN_IF_ERROR(read(std::string_view(text).substr(arrow + 1), &combo.outputs));
  return combo;
}

TnTactic Tactic::abi() const {
  return {TN_HEADER(TnTactic), static_cast<std::uint32_t>(blob.size()), params.c_str(), blob.data(), workspace};
}

std::uint64_t tactic_hash(std::string_view kernel_name, std::string_view params) {
  const std::uint64_t hash = hash64(fmt::format("{}\n{}", kernel_name, params));
  return hash == ~0ull ? 0 : hash;
}

namespace {

/// For the dims of the site alone.
Enumeration enumerate_dims(const Site& site, const Registry& registry, const EnumerateOptions& options) {
  Enumeration result;
  Interview interview(site, options, &result);
  for (const KernelRef& ref : registry.find_kernels(site.desc().op_id, site.device().info().kind)) interview.ask(ref);

  const OpRef op = registry.find_op(site.desc().op_id);
  if (!op) return result;
  Enumeration fallback;
  if (op.op->reference != nullptr) Interview(site, options, &fallback).ask(reference_kernel(op, site.device()));
  result.declines.insert(result.declines.end(), fallback.declines.begin(), fallback.declines.end());
  if (result.candidates.empty()) {
    result.candidates = std::move(fallback.candidates);
  } else if (!fallback.candidates.empty()) {
    result.fallback = std::move(fallback.candidates.front());
    result.declines.push_back({result.fallback.kernel.kernel->name, result.fallback.combo_text, "",
                               "the plain reference runs only where no kernel can"});
  }
  if (!source_disabled("op.view", options.disabled_sources)) add_views(site, op, &result);
  return result;
}

/// Takes out what is not offered with other dims too; a tactic may change with the dims, a combo may not.
void keep_offered(const Enumeration& other, const std::string& dims, Enumeration* result) {
  const auto offered = [&](const Candidate& candidate) {
    const auto same = [&](const Candidate& known) {
      return std::string_view(known.kernel.kernel->name) == candidate.kernel.kernel->name &&
             known.combo_text == candidate.combo_text;
    };
    return (other.fallback.kernel && same(other.fallback)) ||
           std::any_of(other.candidates.begin(), other.candidates.end(), same);
  };
  std::erase_if(result->candidates, [&](const Candidate& candidate) {
    if (offered(candidate)) return false;
    result->declines.push_back({candidate.kernel.kernel->name, candidate.combo_text, candidate.tactic.params,
                                fmt::format("it does not take the {} dims of the profile", dims)});
    return true;
  });
  if (result->fallback.kernel && !offered(result->fallback)) result->fallback = Candidate();
  if (result->candidates.empty() && result->fallback.kernel) {
    result->candidates.push_back(std::exchange(result->fallback, Candidate()));
  }
}

}  // namespace

Enumeration enumerate(const Site& site, const Registry& registry, const EnumerateOptions& options) {
  Enumeration result = enumerate_dims(site, registry, options);
  const std::vector<SiteDesc>& extremes = site.desc().extremes;
  for (std::size_t i = 0; i < extremes.size(); ++i) {
    const std::shared_ptr<const Site> other = Site::create(extremes[i], site.device());
    keep_offered(enumerate_dims(*other, registry, options), i == 0 ? "least" : "largest", &result);
  }
  return result;
}

bool epilogue_is_fused(const Site& site, const Registry& registry, const EnumerateOptions& options) {
  Enumeration unused;
  Interview interview(site, options, &unused);
  const std::vector<KernelRef> kernels = registry.find_kernels(site.desc().op_id, site.device().info().kind);
  return std::any_of(kernels.begin(), kernels.end(), [&](const KernelRef& ref) {
    bool fused = false;
    return interview.takes(ref, &fused) && fused;
  });
}

Status check_offered(const Site& site, const Candidate& candidate) {
  const TnKernel& kernel = *candidate.kernel.kernel;
  const auto refuse = [&](const std::string& why) {
    return Status(Code::kInvalid,
                  fmt::format("kernel {} cannot run as the engine says: {}; build the engine again", kernel.name, why));
  };
  if (kernel.device != site.device().info().kind) return refuse("it is one for another device");
  if (site.desc().op_id != kernel.op_id)
    return refuse(fmt::format("it is one of {}, the node is {}", kernel.op_id, site.desc().op_id));
  if (is_view_kernel(candidate.kernel)) {
    const Status status = shares_of(op_of_view(candidate.kernel), site.desc(), candidate.combo).status();
    return status.ok() ? status : refuse(status.message());
  }
  EnumerateOptions options;
  options.allow_nondeterministic = true;
  options.known_tactics = [&](const KernelRef&, const std::string&) { return std::vector<Tactic>{candidate.tactic}; };
  Enumeration offered;
  Interview(site, options, &offered).ask(candidate.kernel);
  std::vector<std::string> others;
  for (const Candidate& one : offered.candidates) {
    if (one.combo_text == candidate.combo.text() && one.fused_epilogue == candidate.fused_epilogue) return {};
    others.push_back(one.combo_text);
  }
  if (others.empty()) return refuse(offered.declines.empty() ? "it takes nothing" : offered.declines.front().reason);
  return refuse(fmt::format("combo {}{}, it takes {}", candidate.combo.text(),
                            candidate.fused_epilogue ? " with the epilogue" : "", join(others)));
}

KernelRef find_kernel(const Registry& registry, const std::string& op_id, const std::string& kernel_name,
                      Device& device) {
  KernelRef ref = registry.find_kernel(kernel_name);
  if (ref) return ref;
  const OpRef op = registry.find_op(op_id);
  if (!op) return {};
  ref = view_kernel(op, device);
  if (kernel_name == ref.kernel->name) return ref;
  if (op.op->reference == nullptr) return {};
  ref = reference_kernel(op, device);
  return kernel_name == ref.kernel->name ? ref : KernelRef{};
}

}  // namespace tenon
