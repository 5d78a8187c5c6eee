// oneDNN for the adapters: descriptions, post-ops, choice of an implementation, execution. This is the one file that
// knows the differences between oneDNN 2.6 and 3.x (see onednn_make.hpp for the makers of primitive descriptions).
//
// Use: make a primitive_desc; list onednn_impls() as tactics; in configure, make it again and select_impl() the
// recorded one; create a Primitive; execute() from any number of threads at once, each with its own scratchpad.
#ifndef TENON_PLUGINS_COMMON_ONEDNN_HPP_
#define TENON_PLUGINS_COMMON_ONEDNN_HPP_

#include <dlfcn.h>
#include <omp.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <string>
#include <tenon/sdk/expressions.hpp>
#include <tenon/sdk/plugin_base.hpp>
#include <vector>

#include "plugins/common/bf16.h"
#include "plugins/common/parallel.h"

namespace tenon::plugins {

// Makes oneDNN use `threads` threads of the calling thread's OpenMP team while it lives.
class OnednnThreads {
 public:
  explicit OnednnThreads(int threads) : before_(omp_get_max_threads()) {
    if (threads != before_) omp_set_num_threads(threads);
  }
  OnednnThreads(const OnednnThreads&) = delete;
  OnednnThreads& operator=(const OnednnThreads&) = delete;
  ~OnednnThreads() {
    if (omp_get_max_threads() != before_) omp_set_num_threads(before_);
  }

 private:
  int before_;
};

// Between parallel regions OpenMP's threads wait inside its library. Unloading the last plugin that uses it would take
// the code away from under them, so it stays loaded.
inline void keep_openmp_loaded() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&omp_get_max_threads), &info) == 0 || info.dli_fname == nullptr) return;
  static_cast<void>(dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE));
}

// One for the library. Primitive descriptions refer to it without owning it, so it outlives them all.
inline const dnnl::engine& onednn_engine() {
  static const dnnl::engine engine = [] {
    keep_openmp_loaded();
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return engine;
}

// Declined for types that oneDNN does not have.
inline dnnl::memory::data_type onednn_type(int32_t dtype) {
  switch (dtype) {
    case TN_F32:
      return dnnl::memory::data_type::f32;
    case TN_F16:
      return dnnl::memory::data_type::f16;
    case TN_BF16:
      return dnnl::memory::data_type::bf16;
    case TN_I32:
      return dnnl::memory::data_type::s32;
    case TN_I8:
      return dnnl::memory::data_type::s8;
    case TN_U8:
      return dnnl::memory::data_type::u8;
    default:
      throw Declined(text("oneDNN has no type for ", dtype_name(dtype)));
  }
}

inline dnnl::memory::dims onednn_dims(const Dims& dims) { return dnnl::memory::dims(dims.begin(), dims.end()); }

// The dims of a description.
inline dnnl::memory::dims onednn_shape(const dnnl::memory::desc& desc) {
#if DNNL_VERSION_MAJOR >= 3
  return desc.get_dims();
#else
  return desc.dims();
#endif
}

// A packed row-major tensor.
inline dnnl::memory::desc onednn_row(int32_t dtype, const Dims& dims) {
  int64_t strides[TN_MAX_RANK] = {};
  row_strides(dims, strides);
  return {onednn_dims(dims), onednn_type(dtype), dnnl::memory::dims(strides, strides + dims.rank)};
}

// A packed tensor in one of row, nhwc, nchw8c and nchw16c; Declined for other formats.
inline dnnl::memory::desc onednn_desc(int32_t dtype, const Dims& dims, const TnFormat& format) {
  if (is_row(format)) return onednn_row(dtype, dims);
  using Tag = dnnl::memory::format_tag;
  if (dims.rank == 4) {
    const int block = channel_block(format);
    const Tag tag = is_nhwc(format) ? Tag::nhwc : block == 8 ? Tag::nChw8c : block == 16 ? Tag::nChw16c : Tag::undef;
    if (tag != Tag::undef) return {onednn_dims(dims), onednn_type(dtype), tag};
  }
  throw Declined("expected the format row, nhwc, nchw8c or nchw16c");
}

// The layout that oneDNN prefers, for constants that are reordered once.
inline dnnl::memory::desc onednn_any(int32_t dtype, const Dims& dims) {
  return {onednn_dims(dims), onednn_type(dtype), dnnl::memory::format_tag::any};
}

// Appends one activation; Declined if oneDNN has no such function.
inline void append_activation(dnnl::post_ops& ops, const Activation& activation) {
  using Algorithm = dnnl::algorithm;
  const auto append = [&](Algorithm algorithm, double alpha, double beta) {
    // Of two post-ops of one algorithm, oneDNN 2.6 computes the second with the numbers of the first.
    for (int i = 0; i < ops.len(); ++i) {
      if (ops.kind(i) != dnnl::primitive::kind::eltwise) continue;
      Algorithm known = Algorithm::undef;
      float known_alpha = 0, known_beta = 0;
#if DNNL_VERSION_MAJOR >= 3
      ops.get_params_eltwise(i, known, known_alpha, known_beta);
#else
      float scale = 1;
      ops.get_params_eltwise(i, scale, known, known_alpha, known_beta);
#endif
      if (known != algorithm) continue;
      if (known_alpha == static_cast<float>(alpha) && known_beta == static_cast<float>(beta)) continue;
      throw Declined("expected the same numbers for a function that comes twice, found others");
    }
#if DNNL_VERSION_MAJOR >= 3
    ops.append_eltwise(algorithm, static_cast<float>(alpha), static_cast<float>(beta));
#else
    ops.append_eltwise(1.0f, algorithm, static_cast<float>(alpha), static_cast<float>(beta));
#endif
  };
  switch (activation.kind) {
    case ActivationKind::kIdentity:
      return;
    case ActivationKind::kRelu:
      return append(Algorithm::eltwise_relu, 0.0, 0.0);
    case ActivationKind::kLeaky:
      return append(Algorithm::eltwise_relu, activation.alpha, 0.0);
    case ActivationKind::kClip:
      return append(Algorithm::eltwise_clip, activation.alpha, activation.beta);
    case ActivationKind::kLogistic:
      return append(Algorithm::eltwise_logistic, 0.0, 0.0);
    case ActivationKind::kTanh:
      return append(Algorithm::eltwise_tanh, 0.0, 0.0);
    case ActivationKind::kSwish:
      return append(Algorithm::eltwise_swish, 1.0, 0.0);
    case ActivationKind::kElu:
      return append(Algorithm::eltwise_elu, activation.alpha, 0.0);
    case ActivationKind::kMish:
      return append(Algorithm::eltwise_mish, 0.0, 0.0);
    case ActivationKind::kGelu:
      return append(Algorithm::eltwise_gelu_erf, 0.0, 0.0);
    case ActivationKind::kGeluTanh:
      return append(Algorithm::eltwise_gelu_tanh, 0.0, 0.0);
#if DNNL_VERSION_MAJOR >= 3
    case ActivationKind::kHardSwish:
      return append(Algorithm::eltwise_hardswish, 1.0 / 6.0, 0.5);
#else
    case ActivationKind::kHardSwish:
      return append(Algorithm::eltwise_hardswish, 0.0, 0.0);
#endif
  }
}

// A binary step of an epilogue: the n-th post-op reads extra operand `extra`.
struct OnednnOperand {
  int post_op;
  int extra;
  dnnl::memory::desc desc;
};

// The epilogue of output 0 as post-ops, and the operands that they read, which come as `port` says; with `seen_as` they
// have the output's dims and are described with these. Declined if the epilogue has a form that oneDNN lacks.
inline dnnl::post_ops onednn_post_ops(const Site& site, const TnPort& port, std::vector<OnednnOperand>* operands,
                                      const std::optional<Dims>& seen_as = std::nullopt) {
  dnnl::post_ops ops;
  const auto steps = match_epilogue(site.epilogue(0));
  if (!steps) throw Declined("the epilogue is no chain of activations and binary operations");
  for (const EpilogueStep& step : *steps) {
    if (step.kind == EpilogueStep::Kind::kActivation) {
      append_activation(ops, step.activation);
      continue;
    }
    const int extra = static_cast<int>(step.operand) - 1;
    Dims dims = site.extra_dims(extra);
    if (dims.rank != site.output_dims(0).rank) throw Declined("an operand of the epilogue has another rank");
    if (seen_as) {
      if (dims != site.output_dims(0)) throw Declined("an operand of the epilogue has other dims");
      dims = *seen_as;
    }
    const dnnl::memory::desc desc = onednn_desc(port.dtype, dims, port.format);
    operands->push_back({ops.len(), extra, desc});
    switch (step.kind) {
      case EpilogueStep::Kind::kAdd:
        ops.append_binary(dnnl::algorithm::binary_add, desc);
        break;
      case EpilogueStep::Kind::kSub:
        ops.append_binary(dnnl::algorithm::binary_sub, desc);
        break;
      case EpilogueStep::Kind::kMul:
        ops.append_binary(dnnl::algorithm::binary_mul, desc);
        break;
      case EpilogueStep::Kind::kDiv:
        ops.append_binary(dnnl::algorithm::binary_div, desc);
        break;
      case EpilogueStep::Kind::kActivation:
        break;
    }
  }
  return ops;
}

// Scratch memory comes from the caller.
inline dnnl::primitive_attr onednn_attr(const dnnl::post_ops& ops = {}) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attr.set_post_ops(ops);
  return attr;
}

// What all adapters need: dims that are known when the primitive is made, and something to compute. Declined otherwise.
inline void onednn_supports(const Site& site) {
  if (!site.is_static()) throw Declined("oneDNN primitives are made for fixed dims");
  for (int n = 0; n < site.num_inputs(); ++n) {
    if (site.has_input(n) && site.dims(n).elements() == 0) throw Declined("an input is empty");
  }
  if (site.output_dims(0).elements() == 0) throw Declined("the output is empty");
}

inline uint64_t onednn_scratchpad(const dnnl::primitive_desc_base& desc) { return desc.scratchpad_desc().get_size(); }

struct OnednnImpl {
  std::string name;  // oneDNN's own, such as "brgemm:avx512_core"
  uint64_t workspace;
};

// The implementations that oneDNN offers, in its order, each name once, without its slow reference ones.
// Consumes the iteration state of `desc`.
template <class Desc>
std::vector<OnednnImpl> onednn_impls(Desc desc) {
  std::vector<OnednnImpl> impls;
  do {
    const std::string name = desc.impl_info_str();
    const bool known =
        std::any_of(impls.begin(), impls.end(), [&](const OnednnImpl& impl) { return impl.name == name; });
    if (!known && name.compare(0, 3, "ref") != 0) impls.push_back({name, onednn_scratchpad(desc)});
  } while (desc.next_impl());
  if (impls.empty()) throw Declined("oneDNN has only its plain reference for this site");
  return impls;
}

// Moves `desc` to the first implementation of that name. Declined if there is none (any more).
template <class Desc>
void select_impl(Desc* desc, const std::string& name) {
  while (desc->impl_info_str() != name) {
    if (!desc->next_impl())
      throw Declined(text("oneDNN ", DNNL_VERSION_MAJOR, ".", DNNL_VERSION_MINOR, " offers no implementation '", name,
                          "' for this site"));
  }
}

// Lists the implementations of the descriptions that make(threads) gives as tactics "impl=<name>". A primitive opens a
// parallel region however little there is to do.
template <class Make>
void add_onednn_tactics(const Site& site, int64_t work, Make&& make, Tactics& tactics) {
  for (const int threads : worthwhile_threads(site, work)) {
    for (const OnednnImpl& impl : onednn_impls(make(threads))) {
      tactics.add("impl=" + impl.name + threads_param(site, threads), impl.workspace);
    }
  }
}
template <class Desc>
void add_onednn_tactics(Desc desc, Tactics& tactics) {
  for (const OnednnImpl& impl : onednn_impls(std::move(desc))) tactics.add("impl=" + impl.name, impl.workspace);
}

// Runs `body`, turning oneDNN's "cannot do that" into Declined; other failures of oneDNN keep their text.
template <class Body>
auto onednn_or_decline(Body&& body) {
  try {
    return body();
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_unimplemented || error.status == dnnl_invalid_arguments) {
      throw Declined(text("oneDNN: ", error.what()));
    }
    throw;
  }
}

// One argument of an execution; one without a desc is left out.
struct OnednnArg {
  int number;  // DNNL_ARG_*
  const dnnl::memory::desc* desc;
  const void* data;
};

// Whether a primitive is of the implementation that `desc` describes, with the same layout of the weights.
inline bool onednn_is_of(const dnnl::primitive& primitive, const dnnl::primitive_desc_base& desc) {
  const const_dnnl_primitive_desc_t made = primitive.get_primitive_desc();
  const char* name = nullptr;
  if (dnnl_primitive_desc_query(made, dnnl_query_impl_info_str, 0, &name) != dnnl_success) return false;
  if (std::strcmp(name, desc.impl_info_str()) != 0) return false;
  for (const dnnl_query_t what : {dnnl_query_weights_md, dnnl_query_scratchpad_md}) {
    const auto* const has = dnnl_primitive_desc_query_md(made, what, 0);
    const auto* const wants = dnnl_primitive_desc_query_md(desc.get(), what, 0);
    if ((has == nullptr) != (wants == nullptr)) return false;
    if (has != nullptr && dnnl_memory_desc_equal(has, wants) == 0) return false;
  }
  return true;
}

// oneDNN 3 keeps made primitives and takes layouts that differ in dims of size 1 alone, such as nhwc and row with one
// channel, for the same: it may give a primitive of another implementation, with other weights and scratchpad
// (https://github.com/uxlfoundation/oneDNN/pull/1730). Then it is made again without those kept.
inline dnnl::primitive make_onednn_primitive(const dnnl::primitive_desc_base& desc) {
  dnnl::primitive primitive(desc.get());
  if (onednn_is_of(primitive, desc)) return primitive;
  static std::mutex mutex;
  const std::lock_guard<std::mutex> guard(mutex);
  const int capacity = dnnl::get_primitive_cache_capacity();
  dnnl::set_primitive_cache_capacity(0);
  try {
    primitive = dnnl::primitive(desc.get());
  } catch (...) {
    dnnl::set_primitive_cache_capacity(capacity);
    throw;
  }
  dnnl::set_primitive_cache_capacity(capacity);
  if (!onednn_is_of(primitive, desc)) throw Declined("oneDNN made another implementation than was asked for");
  return primitive;
}

// A created primitive. execute is [run]: any number of threads at once.
class OnednnPrimitive {
 public:
  OnednnPrimitive() = default;
  explicit OnednnPrimitive(const dnnl::primitive_desc_base& desc)
      : scratchpad_(desc.scratchpad_desc()), primitive_(make_onednn_primitive(desc)) {}

  // Blocks until the work is done. `scratchpad` holds onednn_scratchpad() bytes. At most kMaxArgs arguments in all.
  void execute(int threads, std::initializer_list<OnednnArg> args, void* scratchpad,
               const std::vector<OnednnArg>& more = {}) const {
    const OnednnThreads scope(threads);
    Arguments arguments;
    for (const OnednnArg& arg : args) arguments.add(arg);
    for (const OnednnArg& arg : more) arguments.add(arg);
    if (scratchpad_.get_size() > 0) arguments.add({DNNL_ARG_SCRATCHPAD, &scratchpad_, scratchpad});
    dnnl::stream stream(onednn_engine());
    dnnl::error::wrap_c_api(dnnl_primitive_execute(primitive_.get(), stream.get(), arguments.count, arguments.list),
                            "could not execute a primitive");
    stream.wait();
  }

 private:
  static constexpr int kMaxArgs = 16;
  // What oneDNN's C function wants, without the hash map of its C++ one. Memory objects are not safe to share.
  struct Arguments {
    dnnl::memory memories[kMaxArgs];
    dnnl_exec_arg_t list[kMaxArgs];
    int count = 0;

    void add(const OnednnArg& arg) {
      if (!arg.desc) return;
      if (count == kMaxArgs) throw Failure(TN_INTERNAL, "too many arguments for a oneDNN primitive");
      memories[count] = dnnl::memory(*arg.desc, onednn_engine(), const_cast<void*>(arg.data));
      list[count] = {arg.number, memories[count].get()};
      ++count;
    }
  };
  dnnl::memory::desc scratchpad_;
  dnnl::primitive primitive_;
};

// Copies a constant from one layout to another, as initialize does with weights.
inline void onednn_reorder(const dnnl::memory::desc& from, const void* source, const dnnl::memory::desc& to,
                           void* destination, int threads) {
  const OnednnThreads scope(threads);
  const dnnl::engine& engine = onednn_engine();
  dnnl::memory input(from, engine, const_cast<void*>(source));
  dnnl::memory output(to, engine, destination);
  dnnl::stream stream(engine);
  dnnl::reorder(input, output).execute(stream, input, output);
  stream.wait();
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_ONEDNN_HPP_
