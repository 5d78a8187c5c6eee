/// Views of what a kernel is asked about: the site, the combo, the tactic.
#ifndef TENON_SDK_SITE_HPP
#define TENON_SDK_SITE_HPP

#include <cstdint>
#include <cstdlib>
#include <string>

#include "attrs.hpp"
#include "format.hpp"

namespace tenon {
inline namespace sdk {

/// One node with everything known about it; valid during the call. Input numbers of min_dims() and the like run through
/// the op's inputs, then the extra operands of expressions.
class Site {
 public:
  Site(const TnHost* host, const TnSite* site) : host_(host), site_(site) {}

  Attrs attrs() const { return {host_, site_->attrs}; }
  std::string op_id() const { return site_->op_id; }
  int num_inputs() const { return static_cast<int>(site_->num_inputs); }
  int num_extra() const { return static_cast<int>(site_->num_extra); }
  int num_outputs() const { return static_cast<int>(site_->num_outputs); }
  /// False for an optional input that is not there.
  bool has_input(int n) const { return n < num_inputs() && site_->dtypes[n] != TN_DTYPE_NONE; }

  int32_t dtype(int n) const { return site_->dtypes[n]; }
  /// The dims to tune for.
  Dims dims(int n) const { return site_->opt_dims[n]; }
  Dims min_dims(int n) const { return site_->min_dims[n]; }
  Dims max_dims(int n) const { return site_->max_dims[n]; }
  /// First of the extra operands of expressions; extra_dims(k) is that of operand k+1 of an epilogue.
  Dims extra_dims(int n) const { return site_->opt_dims[num_inputs() + n]; }
  int32_t extra_dtype(int n) const { return site_->dtypes[num_inputs() + n]; }
  int32_t output_dtype(int n) const { return site_->dtypes[num_inputs() + num_extra() + n]; }
  Dims output_dims(int n) const { return site_->opt_dims[num_inputs() + num_extra() + n]; }
  Dims max_output_dims(int n) const { return site_->max_dims[num_inputs() + num_extra() + n]; }
  /// Minimum and maximum dims are the same for every tensor.
  bool is_static() const {
    for (int n = 0; n < num_inputs() + num_extra() + num_outputs(); ++n) {
      if (min_dims(n) != max_dims(n)) return false;
    }
    return true;
  }

  /// The contents of a constant input, row-major on the host; has_data() is false if it is not constant.
  Tensor constant(int n) const { return Tensor(site_->constants[n]); }
  bool is_constant(int n) const { return has_input(n) && site_->constants && site_->constants[n].data; }

  /// NULL if there is none.
  const TnExpr* epilogue(int output) const { return site_->epilogues ? site_->epilogues[output] : nullptr; }
  const TnExpr* prologue(int input) const { return site_->prologues ? site_->prologues[input] : nullptr; }

  bool allow_tf32() const { return site_->flags & TN_SITE_ALLOW_TF32; }
  /// Combos may have bf16 for f32 tensors that are not constant.
  bool allow_bf16() const { return site_->flags & TN_SITE_ALLOW_BF16; }
  /// Threads of the CPU pool, at least 1.
  int threads() const { return site_->device && site_->device->threads > 0 ? site_->device->threads : 1; }
  const TnDevice& device() const { return *site_->device; }
  const TnHost* host() const { return host_; }
  const TnSite& raw() const { return *site_; }

 private:
  const TnHost* host_;
  const TnSite* site_;
};

/// The formats of one combo; input numbers beyond its ports mean the last input port.
class Combo {
 public:
  explicit Combo(const TnCombo* combo) : combo_(combo) {}
  const TnPort& input(int n) const {
    const int last = static_cast<int>(combo_->num_inputs) - 1;
    return combo_->ports[n < last ? n : last];
  }
  const TnPort& output(int n) const { return combo_->ports[combo_->num_inputs + static_cast<uint32_t>(n)]; }
  const TnCombo& raw() const { return *combo_; }

 private:
  const TnCombo* combo_;
};

/// The params of a tactic, "tile=64;algo=im2col".
class Params {
 public:
  explicit Params(std::string params) : params_(std::move(params)) {}
  const std::string& text() const { return params_; }
  bool has(const std::string& key) const { return find(key) != std::string::npos; }
  /// Declined if the key is missing: a tactic that is not (or no longer) offered.
  std::string str(const std::string& key) const {
    const size_t begin = find(key);
    if (begin == std::string::npos) {
      throw Declined(sdk::text("no such tactic: expected '", key, "=' in '", params_, "'"));
    }
    return params_.substr(begin, params_.find(';', begin) - begin);
  }
  int64_t i64(const std::string& key) const {
    const std::string value = str(key);
    char* end = nullptr;
    const long long number = std::strtoll(value.c_str(), &end, 10);
    if (value.empty() || *end) {
      throw Declined(sdk::text("no such tactic: expected an integer for '", key, "', found '", value, "'"));
    }
    return number;
  }

 private:
  /// Where the value of `key` begins.
  size_t find(const std::string& key) const {
    const std::string start = key + "=";
    for (size_t at = 0; at < params_.size();) {
      if (params_.compare(at, start.size(), start) == 0) return at + start.size();
      const size_t next = params_.find(';', at);
      if (next == std::string::npos) break;
      at = next + 1;
    }
    return std::string::npos;
  }
  std::string params_;
};

/// What IPlugin::configure gets; valid during the call.
class Config {
 public:
  Config(const TnHost* host, const TnConfig* config) : host_(host), config_(config) {}
  Site site() const { return {host_, config_->site}; }
  Combo combo() const { return Combo(config_->combo); }
  Params params() const { return Params(config_->tactic->params ? config_->tactic->params : ""); }
  const void* blob() const { return config_->tactic->blob; }
  uint32_t blob_size() const { return config_->tactic->blob_size; }
  /// The workspace that the tactic was listed with.
  uint64_t workspace() const { return config_->tactic->workspace; }
  /// Revision of the kernel when the choice was recorded.
  uint32_t revision() const { return config_->revision; }
  const TnHost* host() const { return host_; }

 private:
  const TnHost* host_;
  const TnConfig* config_;
};

/// Where a kernel lists its tactics, the likeliest best first.
class Tactics {
 public:
  explicit Tactics(TnTacticSink* sink) : sink_(sink) {}
  void add(const std::string& params, uint64_t workspace = 0, const void* blob = nullptr, uint32_t blob_size = 0) {
    const TnTactic tactic = {TN_HEADER(TnTactic), blob_size, params.c_str(), blob, workspace};
    check_host(sink_->add(sink_, &tactic));
    ++count_;
  }
  int count() const { return count_; }

 private:
  TnTacticSink* sink_;
  int count_ = 0;
};

}  // namespace sdk
}  // namespace tenon

#endif  // TENON_SDK_SITE_HPP
