/* TnSite: what a kernel is asked about: one node with everything known about it, and the vocabulary of its answers. */
#ifndef TENON_PLUGIN_SITE_H
#define TENON_PLUGIN_SITE_H

#include "abi.h"
#include "ext/expression.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The device that a site will run on. */
typedef struct TnDevice {
  uint32_t struct_size;
  int32_t kind; /* TN_CPU, TN_CUDA */
  int32_t ordinal;
  int32_t threads;       /* CPU: size of the pool */
  const char* name;      /* "AMD EPYC ..." */
  const char* signature; /* what the timing cache keys carry: "cpu:avx512_core:2:..." */
} TnDevice;

enum {                               /* TnSite.flags */
       TN_SITE_ALLOW_TF32 = 1u << 0, /* fp32 may be computed in tf32 */
       TN_SITE_ALLOW_NONDETERMINISTIC = 1u << 1,
       /* A combo may have bf16 for f32 tensors of the site that are not constant; TnTensor.dtype then says so. Of sites
        * without tensors of bf16, on processors that compute with them. */
       TN_SITE_ALLOW_BF16 = 1u << 2
};

typedef struct TnSite {
  uint32_t struct_size;
  uint32_t flags;
  uint32_t num_inputs; /* of the op itself; absent optional ones count, with dtype TN_DTYPE_NONE */
  uint32_t num_extra;  /* operands of prologue and epilogue expressions, following the inputs */
  uint32_t num_outputs;
  uint32_t reserved;
  const char* op_id;
  const TnAttrs* attrs;
  /* One entry per tensor: inputs, extra operands, outputs. */
  const TnDims* min_dims;
  const TnDims* opt_dims;
  const TnDims* max_dims;
  const int32_t* dtypes;
  const int64_t (*strides)[TN_MAX_RANK]; /* guaranteed strides in elements; NULL: packed */
  const uint32_t* alignments;            /* guaranteed alignment of the data in bytes */
  /* One entry per input and extra operand: contents on the host, row-major; data NULL if not constant. */
  const TnTensor* constants;
  /* One entry per input: expression applied to it before the op reads it; NULL (also the array): none. Only kernels
   * with tenon.kernel.prologue/1 see sites that have one. */
  const TnExpr* const* prologues;
  /* One entry per output: expression applied to the result before it is stored; NULL (also the array): none. The host
   * applies it itself after kernels that do not accept it (tenon.kernel.epilogue/1). */
  const TnExpr* const* epilogues;
  uint64_t used_outputs; /* bit i: somebody reads output i */
  const TnDevice* device;
} TnSite;

/* What a kernel accepts for one tensor. frozen */
enum {
  TN_PORT_ANY_STRIDES = 1u << 0 /* reads or writes through TnTensor.strides; otherwise tensors are packed */
};
typedef struct TnPort {
  int32_t dtype;  /* TN_DTYPE_NONE: an absent optional input, or "whatever the site has" for a constant that the
                     kernel reads at initialize only */
  int32_t memory; /* TN_MEMORY_*; 0 means TN_MEMORY_DEVICE */
  TnFormat format;
  uint32_t flags;     /* TN_PORT_ANY_STRIDES */
  uint32_t alignment; /* of the data in bytes; 0: that of the element */
} TnPort;

/* MAY: the output may be given the input's memory if nobody needs the input afterwards. MUST: it has to be. frozen */
enum { TN_MAY_ALIAS = 1, TN_MUST_ALIAS = 2 };
typedef struct TnAlias {
  uint32_t output;
  uint32_t input;
  int32_t kind;
  int32_t reserved;
} TnAlias;

/* Dtype, format and memory of every tensor that a kernel accepts together: inputs, then outputs. If the node has more
 * inputs than ports (a variadic op, absent trailing inputs), the last input port stands for the rest. A format fits
 * tensors of its own rank; constant inputs are always row-major. Operand k of an epilogue, k >= 1, is extra tensor
 * k - 1: a tensor of the only output's dtype and dims in that output's format, given to set_shapes and enqueue behind
 * the inputs. frozen */
typedef struct TnCombo {
  const TnPort* ports;
  uint32_t num_inputs;
  uint32_t num_outputs;
  const TnAlias* aliases;
  uint32_t num_aliases;
  uint32_t reserved;
} TnCombo;

/* One runnable choice of a kernel. The host hashes kernel name + params; cache and engine keep params and blob. */
typedef struct TnTactic {
  uint32_t struct_size;
  uint32_t blob_size; /* at most 256 */
  const char* params; /* canonical text: "algo=21;tile=128x64" */
  const void* blob;
  uint64_t workspace; /* bytes that enqueue will need; more than the limit: the host skips the tactic and says so */
} TnTactic;

#ifdef __cplusplus
}
#endif
#endif /* TENON_PLUGIN_SITE_H */
