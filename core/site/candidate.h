// Candidates: what the loaded kernels answer about a site. (kernel, combo, tactic), or a reason for declining.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <tenon/plugin/site.h>
#include <tenon/status.hpp>

#include "core/site/site.h"
#include "registry/registry.h"

namespace tenon {

/// An owned TnCombo, with one port per tensor of the site (absent trailing inputs and variadic ones spelled out).
struct Combo {
  std::vector<TnPort> inputs;
  std::vector<TnPort> outputs;
  std::vector<TnAlias> aliases;

  /// Canonical text: "f32:row,f32:row>f32:row"; "none" for an absent input.
  std::string text() const;
  /// View for the ABI; valid as long as this object is neither changed nor destroyed. `storage` receives the ports.
  TnCombo abi(std::vector<TnPort>* storage) const;
  /// Reads text() back (flags, alignment and aliases are not part of it).
  static Result<Combo> parse(const std::string& text);
};

/// Whether some tensor of the site is narrower in the combo.
bool narrows_any(const Combo& combo, const SiteDesc& desc);

/// An owned TnTactic.
struct Tactic {
  std::string params;
  std::vector<std::uint8_t> blob;
  std::uint64_t workspace = 0;
  /// View for the ABI; valid as long as this object.
  TnTactic abi() const;
};

/// Stays the same across library versions: hash of kernel name + params. Never 2^64-1, which means "invalid".
std::uint64_t tactic_hash(std::string_view kernel_name, std::string_view params);

struct Candidate {
  KernelRef kernel;
  Combo combo;
  Tactic tactic;
  std::uint64_t hash = 0;
  bool fused_epilogue = false;  ///< the kernel applies the site's epilogue itself; otherwise the host does, after it
  std::string combo_text;
};

/// Why a kernel, or one combo of it, is no candidate.
struct Decline {
  std::string kernel;
  std::string combo;   ///< "" if the kernel declined the whole site
  std::string tactic;  ///< "" unless a single tactic was skipped
  std::string reason;
};

struct Enumeration {
  std::vector<Candidate> candidates;  ///< in the fixed order: kernel name, combo as listed, tactic as listed
  std::vector<Decline> declines;
  /// The op's plain reference as a kernel: what runs if no candidate can. Empty kernel: it does not fit the site
  /// either.
  Candidate fallback;
};

struct EnumerateOptions {
  std::uint64_t workspace_limit = ~0ull;
  bool allow_nondeterministic = false;
  /// Sources switched off: vendor library words of kernel names ("onednn", "cudnn"), see --tactic-sources.
  std::vector<std::string> disabled_sources;
  /// What a kernel listed for a combo when it was asked before; nothing: ask it. Some kernels take long to answer.
  std::function<std::optional<std::vector<Tactic>>(const KernelRef& kernel, const std::string& combo)> known_tactics;
};

/// Asks every kernel of the op. The reference kernel becomes the only candidate if no other kernel takes the site;
/// otherwise it is kept as the fallback. Without any candidate the declines say why.
Enumeration enumerate(const Site& site, const Registry& registry, const EnumerateOptions& options);

/// Whether one of the kernels that take the site applies its epilogue itself.
bool epilogue_is_fused(const Site& site, const Registry& registry, const EnumerateOptions& options);

/// Whether the kernel takes the site, in this combo and with this share of its epilogue; tactics are for configure to
/// judge. kInvalid says what it takes instead, or why nothing.
Status check_offered(const Site& site, const Candidate& candidate);

/// The kernel made from an op's reference function; its name is the op id without version plus ".reference".
/// Row-major, one tactic. On a GPU it runs on the host with copies there and back. `device` outlives it.
KernelRef reference_kernel(const OpRef& op, Device& device);
/// Whether a kernel came from reference_kernel.
bool is_reference_kernel(const KernelRef& ref);

/// Finds a kernel by name, reference kernels included; empty if none.
KernelRef find_kernel(const Registry& registry, const std::string& op_id, const std::string& kernel_name,
                      Device& device);

}  // namespace tenon
