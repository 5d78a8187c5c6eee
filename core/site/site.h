// Site: one node with everything that is known about it: what a kernel is asked about and what a timing-cache key
// covers.
//
// Thread rule: immutable after creation; share freely.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tenon/plugin/site.h>
#include <tenon/status.hpp>

#include "core/base/hash.h"
#include "core/device/device.h"
#include "core/graph/graph.h"

namespace tenon {

/// What one node is, apart from any graph: enough to make a Site at build time and again when an engine is loaded.
struct SiteDesc {
  std::string op_id;
  Attrs attrs;
  std::vector<TnDims> dims;  ///< inputs, operands of epilogues, outputs; where they vary at run time, the optimum
  std::vector<std::int32_t> dtypes;  ///< as dims; TN_DTYPE_NONE: absent optional input
  std::uint32_t num_inputs = 0;      ///< of the op
  std::uint32_t num_extra = 0;       ///< operands 1, 2... of the epilogues, of dtype and dims of the only output
  std::uint32_t num_outputs = 0;
  std::vector<std::shared_ptr<const HostTensor>> constants;  ///< per input and operand; null if not constant
  std::vector<Expression> epilogues;                         ///< per output, or empty
  std::uint32_t flags = 0;                                   ///< TN_SITE_*
  /// The same node with the least and with the largest dims that it may have at run time; empty: they do not vary.
  /// A kernel is always configured for one set of dims: an engine configures it anew for others.
  std::vector<SiteDesc> extremes;

  std::uint32_t num_read() const { return num_inputs + num_extra; }
};

/// Whether a combo has bf16 for an f32 tensor of a site, which TN_SITE_ALLOW_BF16 allows.
inline bool narrows(std::int32_t port, std::int32_t dtype) { return port == TN_BF16 && dtype == TN_F32; }

/// The description of a node of a graph. TN_SITE_ALLOW_BF16 goes where a tensor is bf16 already, so that wherever the
/// flag is, bf16 means an f32 tensor that a combo narrows.
SiteDesc describe_site(const Graph& graph, NodeId node, std::uint32_t flags);

/// The same graph with the least and with the largest dims of its profiles.
struct Extremes {
  Graph min;
  Graph max;
};
/// kInvalid names the node that cannot have such inputs.
Result<Extremes> extremes_of(const Graph& graph);

/// The description with the dims that the node may have at run time.
SiteDesc describe_site(const Graph& graph, const Extremes& extremes, NodeId node, std::uint32_t flags);

/// A node as optional interfaces of its op are asked about it: after infer, contents of constants included. `desc`
/// outlives it.
class InferredSite {
 public:
  explicit InferredSite(const SiteDesc& desc);
  InferredSite(const InferredSite&) = delete;
  InferredSite& operator=(const InferredSite&) = delete;
  const TnInfer& abi() const { return abi_; }

 private:
  std::vector<TnTensor> inputs_;
  std::vector<TnTensor> outputs_;
  TnInfer abi_{};
};

class Site {
 public:
  /// `device` outlives the site.
  static std::shared_ptr<const Site> create(SiteDesc desc, Device& device);

  const SiteDesc& desc() const { return desc_; }
  Device& device() const { return *device_; }
  /// The ABI struct, with epilogues.
  const TnSite& abi() const { return abi_; }
  /// The same site without epilogues: what a kernel sees that does not accept them.
  const TnSite& abi_plain() const { return abi_plain_; }
  bool has_epilogue() const { return abi_.epilogues != nullptr; }

  /// Canonical text of all that a key covers: op, attributes, dims, dtypes, which inputs are constant, epilogues,
  /// flags, device signature. Contents of constants are not part of it.
  const std::string& text() const { return text_; }
  /// Timing-cache key; `layer` is the layer's name in editable mode and "" otherwise.
  Hash128 key(const std::string& layer) const;

 private:
  Site() = default;
  SiteDesc desc_;
  Device* device_ = nullptr;
  std::string text_;
  std::vector<std::uint32_t> alignments_;
  std::vector<TnTensor> constants_;
  std::vector<TnExpr> expressions_;
  std::vector<const TnExpr*> epilogues_;
  TnSite abi_{};
  TnSite abi_plain_{};
};

}  // namespace tenon
