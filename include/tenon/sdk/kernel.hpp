/// IPlugin and kernel(): one implementation of an op.
///   class Swish : public tenon::IPlugin {
///     void enqueue(const tenon::Exec& exec, const TnTensor* in, const TnTensor* out) const override { ... }
///   };
///   tenon::kernel<Swish>("acme.swish/1", "acme.swish.scalar.f32")
///       .combo({tenon::f32_row()}, {tenon::f32_row()}).deterministic()
/// Everything may throw; see error.hpp. Order of calls and thread tags: ../plugin/threads.h.
#ifndef TENON_SDK_KERNEL_HPP
#define TENON_SDK_KERNEL_HPP

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "../plugin/ext/epilogue.h"
#include "../plugin/ext/ids.h"
#include "definition.hpp"
#include "plugin_base.hpp"
#include "site.hpp"

namespace tenon {
inline namespace sdk {

/// A combo under construction: ports and aliases by value.
struct ComboSpec {
  std::vector<TnPort> inputs;
  std::vector<TnPort> outputs;
  std::vector<TnAlias> aliases;

  ComboSpec(std::initializer_list<Port> in, std::initializer_list<Port> out)
      : inputs(in.begin(), in.end()), outputs(out.begin(), out.end()) {}
  ComboSpec(const std::vector<Port>& in, const std::vector<Port>& out)
      : inputs(in.begin(), in.end()), outputs(out.begin(), out.end()) {}
  /// The output may be given the input's memory.
  ComboSpec& may_alias(uint32_t output, uint32_t input) {
    return aliases.push_back({output, input, TN_MAY_ALIAS, 0}), *this;
  }
  ComboSpec& must_alias(uint32_t output, uint32_t input) {
    return aliases.push_back({output, input, TN_MUST_ALIAS, 0}), *this;
  }
  /// Calls fn with the C form, which is valid during the call.
  template <class Fn>
  auto as_c(Fn&& fn) const {
    std::vector<TnPort> ports(inputs);
    ports.insert(ports.end(), outputs.begin(), outputs.end());
    const TnCombo combo = {ports.data(),   static_cast<uint32_t>(inputs.size()),  static_cast<uint32_t>(outputs.size()),
                           aliases.data(), static_cast<uint32_t>(aliases.size()), 0};
    return fn(combo);
  }
};

/// Where more_combos puts its answers.
class Combos {
 public:
  explicit Combos(TnComboSink* sink) : sink_(sink) {}
  void add(const ComboSpec& spec) {
    check_host(spec.as_c([&](const TnCombo& combo) { return sink_->add(sink_, &combo); }));
  }

 private:
  TnComboSink* sink_;
};

/// The storage behind a registered TnKernel.
class KernelDefinition final : public Definition, public TnKernel {
 public:
  using Factory = std::function<std::unique_ptr<IPlugin>()>;
  KernelDefinition(const std::string& op, const std::string& kernel_name, Factory make);

  TnStatus add_to(const TnHost* host) const override { return host->register_kernel(host, this); }
  void add_combo(const ComboSpec& spec) {
    specs_.push_back(spec);
    bind_combos();
  }
  ComboSpec& last_combo() {
    if (specs_.empty()) throw Invalid("may_alias and must_alias follow the combo that they belong to");
    return specs_.back();
  }
  /// Points the C arrays at the specs, after any change to them.
  void bind_combos() {
    ports_.clear();
    combos_.clear();
    for (const ComboSpec& spec : specs_) {
      std::vector<TnPort>& ports = ports_.emplace_back(spec.inputs);
      ports.insert(ports.end(), spec.outputs.begin(), spec.outputs.end());
      combos_.push_back({ports.data(), static_cast<uint32_t>(spec.inputs.size()),
                         static_cast<uint32_t>(spec.outputs.size()), spec.aliases.data(),
                         static_cast<uint32_t>(spec.aliases.size()), 0});
    }
    combos = combos_.data();
    num_combos = static_cast<uint32_t>(combos_.size());
  }
  static const KernelDefinition& self(const TnKernel* kernel) { return *static_cast<const KernelDefinition*>(kernel); }

  Factory factory;
  std::function<void(Site)> on_supports;
  std::function<void(Site, Combos&)> on_more_combos;
  std::function<void(Site, Combo, Tactics&)> on_tactics;
  std::function<void(Site)> on_epilogue;
  std::function<double(Config)> on_estimate;

 private:
  std::deque<ComboSpec> specs_;
  std::deque<std::vector<TnPort>> ports_;
  std::vector<TnCombo> combos_;
  TnKernelEpilogue epilogue_{};
};

/// The builder.
class Kernel {
 public:
  Kernel(const std::string& op_id, const std::string& name, KernelDefinition::Factory factory)
      : kernel_(new KernelDefinition(op_id, name, std::move(factory))) {}

  /// Bump when results or speed change; 1 at first.
  Kernel& revision(uint32_t number) { return kernel_->TnKernel::revision = number, *this; }
  Kernel& cuda() { return kernel_->device = TN_CUDA, *this; }
  Kernel& deterministic() { return flag(TN_KERNEL_DETERMINISTIC); }
  Kernel& graph_capturable() { return flag(TN_KERNEL_GRAPH_CAPTURABLE); }
  Kernel& relocatable() { return flag(TN_KERNEL_RELOCATABLE); }
  Kernel& value_dependent() { return flag(TN_KERNEL_VALUE_DEPENDENT); }

  Kernel& combo(std::initializer_list<Port> inputs, std::initializer_list<Port> outputs) {
    return kernel_->add_combo(ComboSpec(inputs, outputs)), *this;
  }
  /// The output of the combo before it may (must) be given the input's memory.
  Kernel& may_alias(uint32_t output, uint32_t input) {
    kernel_->last_combo().may_alias(output, input);
    return kernel_->bind_combos(), *this;
  }
  Kernel& must_alias(uint32_t output, uint32_t input) {
    kernel_->last_combo().must_alias(output, input);
    return kernel_->bind_combos(), *this;
  }
  /// Throws Declined with the reason if the kernel cannot serve the site. Default: every site.
  Kernel& supports(std::function<void(Site)> fn);
  Kernel& more_combos(std::function<void(Site, Combos&)> fn);
  /// Lists tactics; listing none is a refusal. Default: one tactic with empty params.
  Kernel& tactics(std::function<void(Site, Combo, Tactics&)> fn);
  /// The kernel applies site.epilogue() itself where fn does not throw Declined.
  Kernel& epilogue(std::function<void(Site)> fn) { return kernel_->on_epilogue = std::move(fn), *this; }
  /// A guess in ms.
  Kernel& estimate(std::function<double(Config)> fn);

  std::shared_ptr<KernelDefinition> definition() const { return kernel_; }

 private:
  Kernel& flag(uint32_t bit) { return kernel_->flags |= bit, *this; }
  std::shared_ptr<KernelDefinition> kernel_;
};

/// A kernel whose instances are Instance objects, made by its default constructor.
template <class Instance>
Kernel kernel(const std::string& op_id, const std::string& name) {
  return Kernel(op_id, name, [] { return std::make_unique<Instance>(); });
}
/// A kernel whose instances `factory` makes.
inline Kernel kernel(const std::string& op_id, const std::string& name, KernelDefinition::Factory factory) {
  return Kernel(op_id, name, std::move(factory));
}

inline KernelDefinition::KernelDefinition(const std::string& op, const std::string& kernel_name, Factory make)
    : TnKernel{}, factory(std::move(make)) {
  struct_size = TN_HEADER(TnKernel);
  op_id = keep(op);
  name = keep(kernel_name);
  revision = 1;
  device = TN_CPU;
  configure = [](const TnHost* host, const TnKernel* kernel, const TnConfig* config, TnInst** out) {
    return guard(host, [&] {
      std::unique_ptr<IPlugin> instance = self(kernel).factory();
      instance->configure(Config(host, config));
      *out = IPlugin::to_c(std::move(instance));
    });
  };
  deserialize = [](const TnHost* host, const TnKernel* kernel, TnReader* reader, const TnConfig* config, TnInst** out) {
    return guard(host, [&] {
      std::unique_ptr<IPlugin> instance = self(kernel).factory();
      instance->deserialize(Reader(reader), Config(host, config));
      *out = IPlugin::to_c(std::move(instance));
    });
  };
  IPlugin::bind(this);
  get_interface = [](const TnKernel* kernel, const char* id) -> const void* {
    return self(kernel).on_epilogue && std::string(id) == TN_IFACE_KERNEL_EPILOGUE ? &self(kernel).epilogue_ : nullptr;
  };
  epilogue_ = {TN_HEADER(TnKernelEpilogue), 0, [](const TnHost* host, const TnKernel* kernel, const TnSite* site) {
                 return guard(host, [&] { self(kernel).on_epilogue(Site(host, site)); });
               }};
}

inline Kernel& Kernel::supports(std::function<void(Site)> fn) {
  kernel_->on_supports = std::move(fn);
  kernel_->TnKernel::supports = [](const TnHost* host, const TnKernel* kernel, const TnSite* site) {
    return guard(host, [&] { KernelDefinition::self(kernel).on_supports(Site(host, site)); });
  };
  return *this;
}

inline Kernel& Kernel::more_combos(std::function<void(Site, Combos&)> fn) {
  kernel_->on_more_combos = std::move(fn);
  kernel_->TnKernel::more_combos = [](const TnHost* host, const TnKernel* kernel, const TnSite* site,
                                      TnComboSink* sink) {
    return guard(host, [&] {
      Combos combos(sink);
      KernelDefinition::self(kernel).on_more_combos(Site(host, site), combos);
    });
  };
  return *this;
}

inline Kernel& Kernel::tactics(std::function<void(Site, Combo, Tactics&)> fn) {
  kernel_->on_tactics = std::move(fn);
  kernel_->TnKernel::tactics = [](const TnHost* host, const TnKernel* kernel, const TnSite* site, const TnCombo* combo,
                                  TnTacticSink* sink) {
    return guard(host, [&] {
      Tactics tactics(sink);
      KernelDefinition::self(kernel).on_tactics(Site(host, site), Combo(combo), tactics);
      if (tactics.count() == 0) throw Declined("no tactic for these dims, dtypes and formats");
    });
  };
  return *this;
}

inline Kernel& Kernel::estimate(std::function<double(Config)> fn) {
  kernel_->on_estimate = std::move(fn);
  kernel_->TnKernel::estimate = [](const TnHost* host, const TnKernel* kernel, const TnConfig* config, double* ms) {
    return guard(host, [&] { *ms = KernelDefinition::self(kernel).on_estimate(Config(host, config)); });
  };
  return *this;
}

}  // namespace sdk
}  // namespace tenon

#endif  // TENON_SDK_KERNEL_HPP
