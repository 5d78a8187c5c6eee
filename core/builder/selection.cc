#include "core/builder/selection.h"

#include <fnmatch.h>

#include <algorithm>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/builder/layout.h"
#include "core/graph/passes.h"
#include "core/site/view.h"

namespace tenon {
namespace {

/// Whether a form has another dtype than the tensor.
bool is_narrow(const std::string& form) { return form.find(':') != std::string::npos; }

bool glob_matches(const std::string& pattern, const Node& node) {
  if (fnmatch(pattern.c_str(), node.name.c_str(), 0) == 0) return true;
  return std::any_of(node.members.begin(), node.members.end(),
                     [&](const std::string& member) { return fnmatch(pattern.c_str(), member.c_str(), 0) == 0; });
}

/// Whether the rule says anything about candidates.
bool narrows(const LayerRule& rule) { return !rule.kernel.empty() || !rule.combo.empty() || rule.tactic; }

std::vector<LayerRule> rules_for(const Node& node, const std::vector<LayerRule>& rules) {
  std::vector<LayerRule> matching;
  for (const LayerRule& rule : rules) {
    if (glob_matches(rule.match, node)) matching.push_back(rule);
  }
  return matching;
}

/// What the key of a site carries beside the site: in editable mode the layer's name, else what the rules ask for, so
/// that of several identical layers those under a rule have a record of their own.
std::string key_scope(const Node& node, const std::vector<LayerRule>& rules, bool editable) {
  if (editable) return node.name;
  std::string scope;
  for (const LayerRule& rule : rules) {
    if (!narrows(rule)) continue;
    scope += fmt::format("{};{};{};", rule.kernel, rule.combo, rule.tactic ? to_text(*rule.tactic) : "");
  }
  return scope;
}

bool allows(const LayerRule& rule, const Candidate& candidate) {
  return (rule.kernel.empty() || rule.kernel == candidate.kernel.kernel->name) &&
         (rule.combo.empty() || rule.combo == candidate.combo_text) && (!rule.tactic || *rule.tactic == candidate.hash);
}

/// What a kernel listed for a combo when it was measured: only of the same library file, whose answer is the same.
std::optional<std::vector<Tactic>> recorded_tactics(const std::vector<CacheMeasurement>& lines, const KernelRef& ref,
                                                    const std::string& combo) {
  if (ref.build_id.empty() || ref.build_id == kLinkedBuild) return std::nullopt;
  std::vector<Tactic> tactics;
  for (const CacheMeasurement& line : lines) {
    if (line.kernel != ref.kernel->name || line.combo != combo) continue;
    if (line.revision != ref.kernel->revision || line.build != ref.build_id) continue;
    tactics.push_back({line.params, line.blob, line.workspace});
  }
  if (tactics.empty()) return std::nullopt;
  return tactics;
}

EnumerateOptions enumerate_options_of(const BuildOptions& options) {
  EnumerateOptions result;
  result.workspace_limit = options.workspace_limit;
  result.allow_nondeterministic = options.allow_nondeterministic;
  result.disabled_sources = options.disabled_sources;
  return result;
}

/// Asks the kernels; where a choice is recorded, not those whose answer is too: some take longer to list their tactics
/// than the rest of the build does.
void enumerate_site(const BuildOptions& options, const std::vector<LayerRule>& rules, TuneSite* tune) {
  EnumerateOptions enumerate_options = enumerate_options_of(options);
  const std::optional<CacheChoice> choice = options.cache->choice(tune->key);
  const bool narrowed = std::any_of(rules.begin(), rules.end(), narrows);
  if (choice && (narrowed || !choice->partial) && (!options.retune || choice->pinned)) {
    enumerate_options.known_tactics = [lines = options.cache->measurements(tune->key)](const KernelRef& ref,
                                                                                       const std::string& combo) {
      return recorded_tactics(lines, ref, combo);
    };
    tune->enumeration = enumerate(*tune->site, *options.registry, enumerate_options);
    const std::vector<Candidate>& candidates = tune->enumeration.candidates;
    const auto is_chosen = [&](const Candidate& candidate) {
      return candidate.hash == choice->tactic &&
             std::all_of(rules.begin(), rules.end(), [&](const LayerRule& rule) { return allows(rule, candidate); });
    };
    if (std::any_of(candidates.begin(), candidates.end(), is_chosen)) return;
    enumerate_options.known_tactics = nullptr;
  }
  tune->enumeration = enumerate(*tune->site, *options.registry, enumerate_options);
}

/// Keeps the candidates that the rules for this node allow. The rules are the caller's words, so nothing left is an
/// error.
Status apply_layer_rules(const Node& node, const std::vector<LayerRule>& rules, TuneSite* site) {
  for (const LayerRule& rule : rules) {
    if (!narrows(rule)) continue;
    std::vector<Candidate>& candidates = site->enumeration.candidates;
    std::vector<Candidate> kept;
    for (const Candidate& candidate : candidates) {
      if (allows(rule, candidate)) kept.push_back(candidate);
    }
    if (kept.empty()) {
      return {
          Code::kInvalid,
          fmt::format("layer {}: the rule for \"{}\" asks for {}{}{}, which no kernel offers here; valid tactics: {}",
                      node.name, rule.match, rule.kernel.empty() ? "" : "kernel " + rule.kernel + " ",
                      rule.combo.empty() ? "" : "combo " + rule.combo + " ",
                      rule.tactic ? "tactic " + to_text(*rule.tactic) : "", valid_tactics_text(*site, nullptr))};
    }
    candidates = std::move(kept);
    site->enumeration.fallback = Candidate();
    site->restricted = true;
  }
  return {};
}

/// Whether all that a node gives is known, but for these dims only: folding has left it for that reason.
bool is_shape_node(const Graph& graph, const std::vector<bool>& varying, NodeId id) {
  const std::vector<ValueId>& outputs = graph.node(id).outputs;
  return can_evaluate(graph, id) && std::all_of(outputs.begin(), outputs.end(), [&](ValueId output) {
           return varying[output] && graph.value(output).constant != nullptr;
         });
}

/// A rule with a mistyped name would otherwise do nothing, in silence.
void warn_of_idle_rules(const Graph& graph, const BuildOptions& options) {
  for (const LayerRule& rule : options.layer_rules) {
    const auto matches = [&](const Node& node) { return node.alive && glob_matches(rule.match, node); };
    if (std::any_of(graph.nodes().begin(), graph.nodes().end(), matches)) continue;
    options.logger->warning(
        fmt::format("the layer rule for \"{}\" matches no layer; the build report lists their names", rule.match));
  }
}

Status no_candidate(const TuneSite& site) {
  std::vector<std::string> reasons;
  for (const Decline& decline : site.enumeration.declines) {
    reasons.push_back(
        fmt::format("{}{}: {}", decline.kernel, decline.combo.empty() ? "" : " " + decline.combo, decline.reason));
  }
  return {Code::kNotFound,
          fmt::format("layer {} (op {}) has no kernel on {}: {}", site.layer, site.site->desc().op_id,
                      site.site->device().info().name,
                      reasons.empty() ? "no loaded plugin has one, and the op has no reference" : join(reasons, "; "))};
}

/// Times the site; if none of its candidates works, the op's reference takes its place.
Result<TuneResult> time_with_fallback(Tuner* tuner, TuneSite* site, int index, int count) {
  if (site->enumeration.candidates.empty()) return no_candidate(*site);
  TENON_ASSIGN(TuneResult result, tuner->time_site(*site, index, count));
  const auto works = [&] {
    return result.fixed || std::any_of(result.times.begin(), result.times.end(),
                                       [](const CandidateTime& time) { return time.usable(); });
  };
  if (!works() && site->enumeration.fallback.kernel) {
    site->enumeration.candidates.push_back(std::exchange(site->enumeration.fallback, Candidate()));
    TENON_ASSIGN(result, tuner->time_site(*site, index, count));
  }
  if (works()) return result;
  std::vector<std::string> reasons;
  for (std::size_t i = 0; i < result.times.size(); ++i) {
    reasons.push_back(fmt::format("{} {}: {}", site->enumeration.candidates[i].kernel.kernel->name,
                                  site->enumeration.candidates[i].tactic.params, result.times[i].reason));
  }
  return Status(Code::kNotFound, fmt::format("layer {} (op {}): no candidate works: {}", site->layer,
                                             site->site->desc().op_id, join(reasons, "; ")));
}

/// Forms of the ports as the layout solver wants them.
LayoutProblem::Option make_option(const Site& site, const Candidate& candidate, double ms) {
  LayoutProblem::Option option;
  option.ms = ms;
  for (std::size_t i = 0; i < candidate.combo.inputs.size(); ++i) {
    const bool matters = candidate.combo.inputs[i].dtype != TN_DTYPE_NONE && site.desc().constants[i] == nullptr;
    option.inputs.push_back(matters ? form_text(candidate.combo.inputs[i], site.desc().dtypes[i]) : "");
  }
  for (std::size_t i = 0; i < candidate.combo.outputs.size(); ++i) {
    option.outputs.push_back(form_text(candidate.combo.outputs[i], site.desc().dtypes[site.desc().num_read() + i]));
  }
  return option;
}

constexpr int kAnyLaunches = std::numeric_limits<int>::max();

/// Of a usable candidate.
int fewest_launches(const TuneResult& result, const std::function<bool(std::size_t)>& eligible) {
  int fewest = kAnyLaunches;
  for (std::size_t i = 0; i < result.times.size(); ++i) {
    if (result.times[i].usable() && eligible(i)) fewest = std::min(fewest, result.times[i].launches);
  }
  return fewest;
}

/// Options of one site: the best candidate of each combo, or the recorded one alone.
std::vector<std::size_t> options_of(const SelectedSite& selected, Prefer prefer) {
  if (selected.result.fixed) return {*selected.result.recorded};
  const std::vector<Candidate>& candidates = selected.tune->enumeration.candidates;
  std::set<std::string> combos;
  std::vector<std::size_t> options;
  for (const Candidate& candidate : candidates) {
    if (!combos.insert(candidate.combo_text).second) continue;
    const auto same_combo = [&](std::size_t i) { return candidates[i].combo_text == candidate.combo_text; };
    const int fewest = prefer == Prefer::kFewLaunches ? fewest_launches(selected.result, same_combo) : kAnyLaunches;
    const auto best = fastest_candidate(
        selected.result, [&](std::size_t i) { return same_combo(i) && selected.result.times[i].launches <= fewest; });
    if (best) options.push_back(*best);
  }
  return options;
}

/// Times every conversion that any pair of options could need.
Status time_conversions(const Graph& graph, const Selection& selection,
                        const std::vector<std::vector<std::size_t>>& options, Reformats* reformats) {
  std::map<ValueId, std::vector<std::string>> produced, wanted;
  const auto add = [](std::vector<std::string>* list, const std::string& format) {
    if (std::find(list->begin(), list->end(), format) == list->end()) list->push_back(format);
  };
  for (std::size_t n = 0; n < selection.order.size(); ++n) {
    const Node& node = graph.node(selection.order[n]);
    const SelectedSite& selected = selection.sites[selection.node_site[n]];
    for (const std::size_t index : options[selection.node_site[n]]) {
      const LayoutProblem::Option option =
          make_option(*selected.tune->site, selected.tune->enumeration.candidates[index], 0);
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (!option.inputs[i].empty()) add(&wanted[node.inputs[i]], option.inputs[i]);
      }
      for (std::size_t i = 0; i < node.outputs.size(); ++i) add(&produced[node.outputs[i]], option.outputs[i]);
    }
  }
  for (const ValueId output : graph.outputs()) add(&wanted[output], "row");
  for (const auto& [value, formats] : wanted) {
    const auto from = produced.find(value);
    const std::vector<std::string> sources = from == produced.end() ? std::vector<std::string>{"row"} : from->second;
    for (const std::string& source : sources) {
      for (const std::string& target : formats) {
        if (source == target) continue;
        const Value& tensor = graph.value(value);
        TENON_RETURN_IF_ERROR(reformats->find(tensor.dtype, tensor.dims, source, target).status());
      }
    }
  }
  return {};
}

Status choose_layout(const Graph& graph, Selection* selection, Reformats* reformats, Prefer prefer) {
  std::vector<std::vector<std::size_t>> options;
  for (const SelectedSite& selected : selection->sites) options.push_back(options_of(selected, prefer));
  TENON_RETURN_IF_ERROR(time_conversions(graph, *selection, options, reformats));

  constexpr double kMoreThanAll = 1e5;  // than whole graphs take
  LayoutProblem problem;
  problem.launch_ms = prefer == Prefer::kFewLaunches ? kMoreThanAll : launch_ms(reformats->on_host());
  problem.num_values = static_cast<int>(graph.values().size());
  for (std::size_t s = 0; s < selection->sites.size(); ++s) {
    const SelectedSite& selected = selection->sites[s];
    problem.sites.emplace_back();
    for (const std::size_t index : options[s]) {
      const Candidate& candidate = selected.tune->enumeration.candidates[index];
      const CandidateTime& time = selected.result.times[index];
      const int launches = is_view_kernel(candidate.kernel) ? 0 : prefer == Prefer::kFewLaunches ? time.launches : 1;
      problem.sites.back().push_back(
          make_option(*selected.tune->site, candidate, time.ms + launches * problem.launch_ms));
    }
  }
  for (std::size_t n = 0; n < selection->order.size(); ++n) {
    const Node& node = graph.node(selection->order[n]);
    LayoutProblem::Node entry;
    entry.site = static_cast<int>(selection->node_site[n]);
    for (const ValueId input : node.inputs) {
      entry.inputs.push_back(input == kNoId || graph.value(input).constant != nullptr ? -1 : static_cast<int>(input));
    }
    for (const ValueId output : node.outputs) entry.outputs.push_back(static_cast<int>(output));
    problem.nodes.push_back(std::move(entry));
  }
  for (const ValueId output : graph.outputs()) problem.row_values.push_back(static_cast<int>(output));
  problem.reformat_ms = [&](int value, const std::string& from, const std::string& to) {
    const Value& tensor = graph.value(static_cast<ValueId>(value));
    const auto found = reformats->find(tensor.dtype, tensor.dims, from, to);
    if (!found.ok() || *found == nullptr) return std::numeric_limits<double>::infinity();
    return (*found)->result.times[(*found)->chosen].ms;
  };
  TENON_ASSIGN(const LayoutSolution solution, solve_layout(problem));
  for (std::size_t s = 0; s < selection->sites.size(); ++s) {
    selection->sites[s].chosen = options[s][static_cast<std::size_t>(solution.options[s])];
  }
  return {};
}

/// A pin says "this layer, whatever happens"; without the layer it can only be a mistake.
Status check_pins(const Graph& graph, const BuildOptions& options) {
  if (!options.editable) return {};
  for (const CacheChoice& choice : options.cache->choices()) {
    if (!choice.pinned || choice.layer.empty() || choice.op == kReformatOp) continue;
    if (!choice.device.empty() && choice.device != options.device->info().signature) continue;
    if (graph.find_node(choice.layer) != kNoId) continue;
    std::vector<std::string> names;
    for (const Node& node : graph.nodes()) {
      if (node.alive) names.push_back(node.name);
    }
    const std::string near = nearest(choice.layer, names);
    return {
        Code::kInvalid,
        fmt::format("the timing cache pins layer {} (key {}), which this network does not have{}; unpin or erase it",
                    choice.layer, to_text(choice.key), near.empty() ? "" : " (nearest: " + near + ")")};
  }
  return {};
}

}  // namespace

std::uint32_t site_flags(const BuildOptions& options, const std::vector<LayerRule>& rules) {
  Precision precision = options.precision;
  for (const LayerRule& rule : rules) precision = rule.precision.value_or(precision);
  return (precision == Precision::kTf32 ? unsigned{TN_SITE_ALLOW_TF32} : 0u) |
         (precision == Precision::kBf16 ? unsigned{TN_SITE_ALLOW_BF16} : 0u) |
         (options.allow_nondeterministic ? unsigned{TN_SITE_ALLOW_NONDETERMINISTIC} : 0u);
}

Hash128 structure_key(const Graph& graph, const std::vector<NodeId>& order, const std::string& begin,
                      const std::function<std::string(std::size_t n, NodeId id)>& text_of) {
  std::map<ValueId, std::size_t> numbers;
  std::string text = begin;
  const auto add = [&](const char* role, const std::vector<ValueId>& values) {
    text += role;
    for (const ValueId value : values) {
      text += fmt::format(" {}", numbers.emplace(value, numbers.size()).first->second);
    }
  };
  add("\ninputs", graph.inputs());
  for (std::size_t n = 0; n < order.size(); ++n) {
    text += "\n" + text_of(n, order[n]);
    add("", graph.node(order[n]).inputs);
    add(" >", graph.node(order[n]).outputs);
  }
  add("\noutputs", graph.outputs());
  return hash128(text);
}

bool has_layer_rule(const Node& node, const BuildOptions& options) {
  return !rules_for(node, options.layer_rules).empty();
}

Status check_names(const Graph& graph, const BuildOptions& options) {
  TENON_RETURN_IF_ERROR(check_pins(graph, options));
  warn_of_idle_rules(graph, options);
  return {};
}

Status check_fallbacks(const Selection& selection, const BuildOptions& options) {
  std::vector<std::string> layers;
  for (const SelectedSite& selected : selection.sites) {
    const KernelRef& kernel = selected.tune->enumeration.candidates[selected.chosen].kernel;
    if (!is_reference_kernel(kernel)) continue;
    layers.push_back(fmt::format("{} (op {})", selected.tune->layer, selected.tune->site->desc().op_id));
  }
  if (layers.empty() || options.on_fallback == OnFallback::kAllow) return {};
  const std::string text = fmt::format(
      "no kernel runs {} on {}, so the op's slow reference does{}", join(layers), options.device->info().name,
      options.device->info().on_host() ? "" : ", on the CPU, with copies there and back");
  if (options.on_fallback == OnFallback::kForbid) {
    return {Code::kNotFound, text +
                                 ", which on_fallback forbids; load a plugin with a kernel (tenon explain tells why "
                                 "the present ones decline), or set on_fallback to warn or allow"};
  }
  options.logger->warning(text);
  return {};
}

std::string form_text(const TnPort& port, std::int32_t dtype) {
  return (port.dtype == dtype ? "" : dtype_name(port.dtype) + ":") + format_text(port.format);
}

Result<const SelectedSite*> Reformats::find(std::int32_t dtype, const TnDims& dims, const std::string& from,
                                            const std::string& to) {
  const Key key(dtype, to_vector(dims), from, to);
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second ? &*known->second : nullptr;
  std::optional<SelectedSite>& entry = known_[key];
  const OpRef op = options_.registry->find_op(kReformatOp);
  if (!op) return nullptr;
  SiteDesc desc;
  desc.op_id = kReformatOp;
  desc.attrs.values["from"] = from;
  desc.attrs.values["to"] = to;
  desc.dims = {dims, dims};
  desc.dtypes = {dtype, dtype};
  desc.num_inputs = desc.num_outputs = 1;
  desc.constants.resize(1);
  // Whatever the build allows: only what narrows or widens is asked for it.
  desc.flags = site_flags(options_) & ~unsigned{TN_SITE_ALLOW_BF16};
  if (is_narrow(from) || is_narrow(to)) desc.flags |= unsigned{TN_SITE_ALLOW_BF16};
  auto tune = std::make_shared<TuneSite>();
  tune->site = Site::create(std::move(desc), *options_.device);
  tune->op = op;
  tune->layer = fmt::format("reformat{}({}>{})", dims_text(dims), from, to);
  tune->key = tune->site->key("");
  enumerate_site(options_, {}, tune.get());
  // A kernel that ignores the attributes would convert between other formats than those asked for.
  std::erase_if(tune->enumeration.candidates, [&](const Candidate& candidate) {
    return form_text(candidate.combo.inputs[0], dtype) != from || form_text(candidate.combo.outputs[0], dtype) != to;
  });
  tune->enumeration.fallback = Candidate();
  if (tune->enumeration.candidates.empty()) return nullptr;
  TENON_ASSIGN(TuneResult result, tuner_->time_site(*tune, 0, 0));
  const std::optional<std::size_t> chosen = result.fixed ? result.recorded : fastest_candidate(result);
  if (!chosen) return nullptr;
  entry = SelectedSite{std::move(tune), std::move(result), *chosen};
  return &*entry;
}

void Reformats::record_all() {
  for (auto& [key, entry] : known_) {
    if (entry) tuner_->record_choice(*entry->tune, entry->result, entry->chosen);
  }
}

bool fuses_epilogue(const Graph& graph, const Absorption& absorption, const BuildOptions& options) {
  SiteDesc desc = describe_site(graph, absorption.producer, site_flags(options));
  desc.epilogues.resize(desc.num_outputs);
  desc.epilogues[absorption.output] = absorption.epilogue;
  for (const ValueId id : absorption.operands) {
    const Value& operand = graph.value(id);
    desc.dims.insert(desc.dims.begin() + desc.num_read(), operand.dims);
    desc.dtypes.insert(desc.dtypes.begin() + desc.num_read(), operand.dtype);
    desc.constants.push_back(operand.constant);
    ++desc.num_extra;
  }
  return epilogue_is_fused(*Site::create(std::move(desc), *options.device), *options.registry,
                           enumerate_options_of(options));
}

bool has_kernel(const Graph& graph, NodeId node, const BuildOptions& options) {
  const auto site = Site::create(describe_site(graph, node, site_flags(options)), *options.device);
  const Enumeration found = enumerate(*site, *options.registry, enumerate_options_of(options));
  return !found.candidates.empty() && !is_reference_kernel(found.candidates.front().kernel);
}

Result<Selection> select_candidates(const Graph& graph, const BuildOptions& options, Tuner* tuner, Reformats* reformats,
                                    KnownSites* known_sites, Prefer prefer) {
  Selection selection;
  TENON_ASSIGN(const Extremes extremes, extremes_of(graph));
  TENON_ASSIGN(const std::vector<NodeId> order, graph.topological_order());
  TENON_ASSIGN(const std::vector<bool> varying, graph.varying());
  for (const NodeId id : order) {
    const std::vector<ValueId>& outputs = graph.node(id).outputs;
    const bool known = is_shape_node(graph, varying, id);
    if (known) selection.shape_nodes.emplace_back(id, selection.order.size());
    // What the graph gives has to be computed by a kernel, too.
    const bool given =
        std::any_of(outputs.begin(), outputs.end(), [&](ValueId output) { return graph.is_output(output); });
    if (!known || given) selection.order.push_back(id);
  }
  std::map<Hash128, std::size_t> known;
  for (const NodeId id : selection.order) {
    const Node& node = graph.node(id);
    const std::vector<LayerRule> rules = rules_for(node, options.layer_rules);
    auto tune = std::make_shared<TuneSite>();
    tune->site = Site::create(describe_site(graph, extremes, id, site_flags(options, rules)), *options.device);
    tune->op = node.op;
    tune->layer = node.name;
    tune->key = tune->site->key(key_scope(node, rules, options.editable));
    const auto [entry, added] = known.emplace(tune->key, selection.sites.size());
    selection.node_site.push_back(entry->second);
    if (!added) continue;
    if (const auto timed = known_sites->find(tune->key); timed != known_sites->end()) {
      timed->second.tune->layer = tune->layer;
      selection.sites.push_back(timed->second);
      continue;
    }
    enumerate_site(options, rules, tune.get());
    TENON_RETURN_IF_ERROR(apply_layer_rules(node, rules, tune.get()));
    selection.sites.push_back({std::move(tune), {}, 0});
  }
  const int count = static_cast<int>(selection.sites.size());
  for (int i = 0; i < count; ++i) {
    SelectedSite& selected = selection.sites[static_cast<std::size_t>(i)];
    if (known_sites->count(selected.tune->key) != 0) continue;
    TENON_ASSIGN(selected.result, time_with_fallback(tuner, selected.tune.get(), i + 1, count));
    known_sites->emplace(selected.tune->key, selected);
  }
  TENON_RETURN_IF_ERROR(choose_layout(graph, &selection, reformats, prefer));
  return selection;
}

void record_choices(const Selection& selection, Tuner* tuner, Reformats* reformats) {
  for (const SelectedSite& selected : selection.sites) {
    tuner->record_choice(*selected.tune, selected.result, selected.chosen);
  }
  reformats->record_all();
}

}  // namespace tenon
