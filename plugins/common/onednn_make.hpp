// Makers of oneDNN primitive descriptions with one signature for oneDNN 2.6 and 3.x. An empty bias desc means none.
// oneDNN's own exceptions pass through; wrap calls in onednn_or_decline.
#ifndef TENON_PLUGINS_COMMON_ONEDNN_MAKE_HPP_
#define TENON_PLUGINS_COMMON_ONEDNN_MAKE_HPP_

#include <memory>
#include <utility>

#include "plugins/common/onednn.hpp"

namespace tenon::plugins {

inline bool onednn_present(const dnnl::memory::desc& desc) { return desc.get_size() > 0; }

#if DNNL_VERSION_MAJOR >= 3
using OnednnPooling = dnnl::pooling_forward;
using OnednnSoftmax = dnnl::softmax_forward;
template <class Primitive>
using OnednnDesc = typename Primitive::primitive_desc;
#else
using OnednnPooling = dnnl::pooling_v2_forward;
using OnednnSoftmax = dnnl::softmax_v2_forward;

// next_impl of oneDNN 2.x reads the operation's description through a pointer to the caller's, so the two stay
// together.
template <class Primitive>
class OnednnDesc : public Primitive::primitive_desc {
 public:
  using Operation = typename Primitive::desc;
  OnednnDesc(const Operation& operation, const dnnl::primitive_attr& attr, const dnnl::engine& engine)
      : OnednnDesc(std::make_shared<const Operation>(operation), attr, engine) {}

 private:
  OnednnDesc(std::shared_ptr<const Operation> operation, const dnnl::primitive_attr& attr, const dnnl::engine& engine)
      : Primitive::primitive_desc(*operation, attr, engine), operation_(std::move(operation)) {}
  std::shared_ptr<const Operation> operation_;
};
#endif

inline OnednnDesc<dnnl::matmul> make_matmul(const dnnl::memory::desc& a, const dnnl::memory::desc& b,
                                            const dnnl::memory::desc& bias, const dnnl::memory::desc& y,
                                            const dnnl::primitive_attr& attr) {
#if DNNL_VERSION_MAJOR >= 3
  if (!onednn_present(bias)) return {onednn_engine(), a, b, y, attr};
  return {onednn_engine(), a, b, bias, y, attr};
#else
  if (!onednn_present(bias)) return {dnnl::matmul::desc(a, b, y), attr, onednn_engine()};
  return {dnnl::matmul::desc(a, b, bias, y), attr, onednn_engine()};
#endif
}

inline OnednnDesc<dnnl::inner_product_forward> make_inner_product(const dnnl::memory::desc& x,
                                                                  const dnnl::memory::desc& weights,
                                                                  const dnnl::memory::desc& bias,
                                                                  const dnnl::memory::desc& y,
                                                                  const dnnl::primitive_attr& attr) {
  constexpr auto inference = dnnl::prop_kind::forward_inference;
#if DNNL_VERSION_MAJOR >= 3
  if (!onednn_present(bias)) return {onednn_engine(), inference, x, weights, y, attr};
  return {onednn_engine(), inference, x, weights, bias, y, attr};
#else
  using Desc = dnnl::inner_product_forward::desc;
  if (!onednn_present(bias)) return {Desc(inference, x, weights, y), attr, onednn_engine()};
  return {Desc(inference, x, weights, bias, y), attr, onednn_engine()};
#endif
}

struct OnednnWindow {
  dnnl::memory::dims kernel;  // of pooling only; a convolution's is in its weights
  dnnl::memory::dims strides;
  dnnl::memory::dims dilations;  // 1: dense, as everywhere in Tenon; oneDNN counts from 0
  dnnl::memory::dims pads_begin;
  dnnl::memory::dims pads_end;

  dnnl::memory::dims gaps() const {
    dnnl::memory::dims gaps = dilations;
    for (auto& gap : gaps) --gap;
    return gaps;
  }
};

// Weights are [k][c][r][s], or [g][k/g][c/g][r][s] for a grouped convolution.
inline OnednnDesc<dnnl::convolution_forward> make_convolution(dnnl::algorithm algorithm, const dnnl::memory::desc& x,
                                                              const dnnl::memory::desc& weights,
                                                              const dnnl::memory::desc& bias,
                                                              const dnnl::memory::desc& y, const OnednnWindow& window,
                                                              const dnnl::primitive_attr& attr) {
  constexpr auto inference = dnnl::prop_kind::forward_inference;
#if DNNL_VERSION_MAJOR >= 3
  if (!onednn_present(bias)) {
    return {onednn_engine(), inference,         algorithm,       x,   weights, y, window.strides,
            window.gaps(),   window.pads_begin, window.pads_end, attr};
  }
  return {onednn_engine(), inference,         algorithm,       x,   weights, bias, y, window.strides,
          window.gaps(),   window.pads_begin, window.pads_end, attr};
#else
  using Desc = dnnl::convolution_forward::desc;
  if (!onednn_present(bias)) {
    return {
        Desc(inference, algorithm, x, weights, y, window.strides, window.gaps(), window.pads_begin, window.pads_end),
        attr, onednn_engine()};
  }
  return {Desc(inference, algorithm, x, weights, bias, y, window.strides, window.gaps(), window.pads_begin,
               window.pads_end),
          attr, onednn_engine()};
#endif
}

inline OnednnDesc<OnednnPooling> make_pooling(dnnl::algorithm algorithm, const dnnl::memory::desc& x,
                                              const dnnl::memory::desc& y, const OnednnWindow& window,
                                              const dnnl::primitive_attr& attr) {
  constexpr auto inference = dnnl::prop_kind::forward_inference;
#if DNNL_VERSION_MAJOR >= 3
  return {onednn_engine(), inference,         algorithm,       x,   y, window.strides, window.kernel,
          window.gaps(),   window.pads_begin, window.pads_end, attr};
#else
  return {OnednnPooling::desc(inference, algorithm, x, y, window.strides, window.kernel, window.gaps(),
                              window.pads_begin, window.pads_end),
          attr, onednn_engine()};
#endif
}

inline OnednnDesc<OnednnSoftmax> make_softmax(const dnnl::memory::desc& x, const dnnl::memory::desc& y, int axis,
                                              const dnnl::primitive_attr& attr) {
  constexpr auto inference = dnnl::prop_kind::forward_inference;
  constexpr auto algorithm = dnnl::algorithm::softmax_accurate;
#if DNNL_VERSION_MAJOR >= 3
  return {onednn_engine(), inference, algorithm, x, y, axis, attr};
#else
  return {OnednnSoftmax::desc(inference, algorithm, x, y, axis), attr, onednn_engine()};
#endif
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_ONEDNN_MAKE_HPP_
