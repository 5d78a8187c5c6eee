/* TnOp: what an operator means. Attribute schema, shape rule, plain reference, tolerance; no fast code. */
#ifndef TENON_PLUGIN_OP_H
#define TENON_PLUGIN_OP_H

#include "abi.h"
#include "attributes.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TnOp TnOp;

enum {                              /* TnOp.flags */
       TN_OP_PURE = 1u << 0,        /* same inputs, same outputs: may be folded and merged */
       TN_OP_COMMUTATIVE = 1u << 1, /* its two inputs may be swapped */
       TN_OP_ELEMENTWISE = 1u << 2, /* output element i depends on element i of each (broadcast) input only */
       TN_OP_RANDOM = 1u << 3,      /* never folded, never merged */
       TN_OP_STATEFUL = 1u << 4     /* keeps state between enqueues (tenon.state/1) */
};

enum { /* TnPortSpec.flags */
       TN_PORT_OPTIONAL = 1u << 0,
       TN_PORT_VARIADIC = 1u << 1,   /* the last port only: it stands for any further number, at least one */
       TN_PORT_HOST_VALUE = 1u << 2, /* shapes, axes, k: infer needs the contents, which live on the host */
       TN_PORT_CONST = 1u << 3,      /* must be constant at build time */
       TN_PORT_DIMS_ONLY = 1u << 4   /* only dims and dtype matter, so the reference may get no data */
};

typedef struct TnPortSpec {
  uint32_t struct_size;
  uint32_t flags;
  const char* name;
  const char* doc;
} TnPortSpec;

/* Shape question. An input's data is set (host, row-major) when its contents are known. The op fills dims and dtype of
 * every output. */
typedef struct TnInfer {
  uint32_t struct_size;
  uint32_t num_inputs;
  uint32_t num_outputs;
  uint32_t reserved;
  const TnAttrs* attrs;
  const TnTensor* inputs;
  TnTensor* outputs;
} TnInfer;

/* One evaluation by plain loops on the CPU: all tensors on the host. Inputs are whole and row-major. Of output i only
 * the box boxes[i] is asked for: outputs[i].dims are the full dims, outputs[i].data holds the box alone, packed
 * row-major with the extents boxes[i].size. A box with an extent of 0 asks for nothing. */
typedef struct TnReference {
  uint32_t struct_size;
  uint32_t num_inputs;
  uint32_t num_outputs;
  uint32_t reserved;
  const TnAttrs* attrs;
  const TnTensor* inputs;
  const TnTensor* outputs;
  const TnBox* boxes;
} TnReference;

/* A kernel's element y passes against the reference's r if |y - r| <= absolute + relative * max(|r|, rms of all r).
 * frozen */
typedef struct TnTolerance {
  double absolute;
  double relative;
} TnTolerance;

struct TnOp {
  uint32_t struct_size;
  uint32_t flags;
  const char* id;  /* "vendor.roialign/2": the number is the semantic version */
  const char* doc; /* one sentence, then the formula and its source */
  const TnParam* const* params;
  uint32_t num_params;
  uint32_t num_inputs;
  uint32_t num_outputs;
  uint32_t reserved;
  const TnPortSpec* const* inputs;
  const TnPortSpec* const* outputs;

  /* Output dims and dtypes from input dims, dtypes and attributes. TN_INVALID names the offending value. [build] or
   * [run] */
  TnStatus(TN_CALL* infer)(const TnHost* host, const TnOp* op, TnInfer* question);
  /* For an op whose output dims depend on the contents of inputs; NULL if they do not. The host asks it in place of
   * infer where the contents of an input with TN_PORT_HOST_VALUE are not known when the graph is built; the answer is
   * the largest dims that the outputs can have, whatever those contents are. While an engine runs, the host waits for
   * these inputs, asks infer with their contents for the exact dims, and runs the kernel or the reference with outputs
   * of exactly these. When a builder measures or checks kernels, outputs have the dims of the bound and inputs random
   * contents: kernel and reference fill what the data do not give with 0 and read nothing outside of the inputs.
   * [build] or [run] */
  TnStatus(TN_CALL* infer_bound)(const TnHost* host, const TnOp* op, TnInfer* question);
  /* The plain evaluation. f32, f64, bool and integers of whole bytes arrive and leave in their own dtype. Smaller ones
   * the host converts: f16, bf16, the 8-bit floats and f4e2m1 are f32 here, u4 and u2 are u8, i4 and i2 are i8, and
   * inputs and outputs say so in their dtype. Of the results small floats are rounded to nearest even, once; what is
   * beyond the largest number becomes infinity (f16, bf16, f8e5m2), NaN (f8e4m3fn, f8e4m3fnuz, f8e5m2fnuz, f8e8m0) or
   * the largest number (f4e2m1); small integers keep their low bits. An op that wants to saturate does so itself. [run]
   */
  TnStatus(TN_CALL* reference)(const TnHost* host, const TnOp* op, const TnReference* call);
  /* Fills the data of all inputs with valid random contents (indices, boxes); NULL: normal numbers will do. Inputs with
   * a dtype of TN_DTYPE_NONE are absent. [build] */
  TnStatus(TN_CALL* generate)(const TnHost* host, const TnOp* op, const TnAttrs* attrs, uint64_t seed, TnTensor* inputs,
                              uint32_t num_inputs);
  /* How far a kernel that computes in `dtype` may be from the reference; NULL: the host's default for the dtype. Where
   * a site allows tf32, its f32 kernels may be as far off as f16's. [build] */
  TnStatus(TN_CALL* tolerance)(const TnHost* host, const TnOp* op, const TnAttrs* attrs, int32_t dtype,
                               TnTolerance* out);
  /* Optional interfaces by id (ext/ids.h); NULL if it has none. [any] */
  const void*(TN_CALL* get_interface)(const TnOp* op, const char* id);
};

#ifdef __cplusplus
}
#endif
#endif /* TENON_PLUGIN_OP_H */
