/* TnKernel: one implementation of an op on one device, with its lifecycle. Any plugin may register kernels for any op.
 */
#ifndef TENON_PLUGIN_KERNEL_H
#define TENON_PLUGIN_KERNEL_H

#include "abi.h"
#include "site.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TnKernel TnKernel;

enum {                                       /* TnKernel.flags */
       TN_KERNEL_DETERMINISTIC = 1u << 0,    /* same inputs, same bits; without it the kernel never wins unasked */
       TN_KERNEL_GRAPH_CAPTURABLE = 1u << 1, /* enqueue may be captured in a CUDA graph */
       TN_KERNEL_RELOCATABLE = 1u << 2, /* persistent memory holds no pointers: its bytes may be stored in the engine */
       TN_KERNEL_VALUE_DEPENDENT = 1u << 3 /* speed depends on the contents of the inputs */
};

/* Receives what a kernel lists; add copies its argument. */
typedef struct TnComboSink {
  uint32_t struct_size;
  void* context;
  TnStatus(TN_CALL* add)(struct TnComboSink* self, const TnCombo* combo);
} TnComboSink;
typedef struct TnTacticSink {
  uint32_t struct_size;
  void* context;
  TnStatus(TN_CALL* add)(struct TnTacticSink* self, const TnTactic* tactic);
} TnTacticSink;

/* What configure and deserialize get. */
typedef struct TnConfig {
  uint32_t struct_size;
  uint32_t revision; /* of the kernel when the choice was recorded */
  const TnSite* site;
  const TnCombo* combo;
  const TnTactic* tactic;
} TnConfig;

/* Memory that an instance wants, in bytes, for the site's max dims. */
typedef struct TnSizes {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t persistent;     /* packed constants and tables; shared by all contexts and by instances of equal pack key */
  uint64_t workspace;      /* scratch during enqueue; contents undefined at its start */
  uint64_t context_host;   /* per context, written by set_shapes */
  uint64_t context_device; /* per context, on the device */
  uint64_t init_scratch;   /* scratch during initialize */
  uint64_t pack_key[2];    /* covers constants and layout of the persistent bytes; 0,0: never shared */
} TnSizes;

/* Stream, pool and scratch of one call. */
typedef struct TnExec {
  uint32_t struct_size;
  int32_t threads;      /* CPU threads that this call may use */
  void* stream;         /* cudaStream_t on CUDA; NULL on the CPU */
  const void* handles;  /* shared library handles, see the device's interface; NULL on the CPU */
  const void* parallel; /* const TnParallel* of ext/parallel.h */
  void* workspace;
  uint64_t workspace_size;
  void* context_host;
  void* context_device;
} TnExec;

/* What initialize gets. Pointers to constants stay valid as long as the instance; those to scratch do not. */
typedef struct TnInit {
  uint32_t struct_size;
  uint32_t num_inputs;
  const TnTensor* constants_host;   /* one per input, row-major; data NULL if the input is not constant */
  const TnTensor* constants_device; /* the same on the device, in the combo's format; data NULL if not there */
  void* persistent;
  uint64_t persistent_size;
  int32_t persistent_filled; /* nonzero: loaded from the engine or shared; then it is read-only */
  int32_t reserved;
  void* scratch;
  uint64_t scratch_size;
  const TnExec* exec;
} TnInit;

struct TnKernel {
  uint32_t struct_size;
  uint32_t flags;
  const char* op_id; /* may belong to a plugin that is not loaded yet */
  const char* name;  /* <vendor>.<op>.<algorithm>[.<dtype>][.<arch>] */
  uint32_t revision; /* bump when results or speed change: recorded times of older revisions are measured anew */
  int32_t device;    /* TN_CPU or TN_CUDA */
  const TnCombo* combos;
  uint32_t num_combos;
  uint32_t reserved;

  /* TN_OK, or TN_DECLINED with the reason. NULL: every site. [build] */
  TnStatus(TN_CALL* supports)(const TnHost* host, const TnKernel* kernel, const TnSite* site);
  /* Adds combos that depend on the site. NULL: none. [build] */
  TnStatus(TN_CALL* more_combos)(const TnHost* host, const TnKernel* kernel, const TnSite* site, TnComboSink* sink);
  /* Adds the tactics for one combo, the likeliest best first; TN_DECLINED with the reason if there is none.
   * NULL: one tactic with empty text. [build] */
  TnStatus(TN_CALL* tactics)(const TnHost* host, const TnKernel* kernel, const TnSite* site, const TnCombo* combo,
                             TnTacticSink* sink);
  /* Makes an instance for one choice; copies what it needs, runs no heuristic, touches no device. A tactic that it no
   * longer offers: TN_DECLINED. [build] */
  TnStatus(TN_CALL* configure)(const TnHost* host, const TnKernel* kernel, const TnConfig* config, TnInst** out);
  /* NULL: all zero. [inst] */
  TnStatus(TN_CALL* sizes)(const TnHost* host, const TnInst* inst, TnSizes* out);
  /* Packs constants into persistent memory unless it is filled. Refit calls it again. NULL: nothing to do. [inst] */
  TnStatus(TN_CALL* initialize)(const TnHost* host, TnInst* inst, const TnInit* init);
  /* Dims changed (data pointers are NULL): writes launch data into context memory. NULL: nothing to do. [run] */
  TnStatus(TN_CALL* set_shapes)(const TnHost* host, const TnInst* inst, const TnExec* exec, const TnTensor* inputs,
                                const TnTensor* outputs);
  /* Launches the work on the given stream and returns; on the CPU it returns when the work is done. [run] */
  TnStatus(TN_CALL* enqueue)(const TnHost* host, const TnInst* inst, const TnExec* exec, const TnTensor* inputs,
                             const TnTensor* outputs);
  /* Small private state beyond site, combo, tactic and constants, versioned by itself. NULL: none. [inst] */
  TnStatus(TN_CALL* serialize)(const TnHost* host, const TnInst* inst, TnWriter* writer);
  /* The instance that configure would have made, from serialize's bytes. NULL: configure is called. [build] */
  TnStatus(TN_CALL* deserialize)(const TnHost* host, const TnKernel* kernel, TnReader* reader, const TnConfig* config,
                                 TnInst** out);
  /* Undoes initialize. NULL: nothing to do. [inst] */
  void(TN_CALL* terminate)(const TnHost* host, TnInst* inst);
  /* Frees the instance. NULL: nothing to free. [inst] */
  void(TN_CALL* destroy)(const TnHost* host, TnInst* inst);
  /* A guess of the time in ms, used only when the time budget is spent. NULL: no guess. [build] */
  TnStatus(TN_CALL* estimate)(const TnHost* host, const TnKernel* kernel, const TnConfig* config, double* ms);
  /* Optional interfaces by id (ext/ids.h). NULL: none. [any] */
  const void*(TN_CALL* get_interface)(const TnKernel* kernel, const char* id);
};

#ifdef __cplusplus
}
#endif
#endif /* TENON_PLUGIN_KERNEL_H */
