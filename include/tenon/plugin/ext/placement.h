/* `tenon.op.placement/1`: an op that only moves tensors: each lies, as it is, inside another one. Where memory can be
 * planned so that both share it, the host launches nothing: producers write into their part of a concatenation, readers
 * of a slice read from the tensor that it was cut from. */
#ifndef TENON_PLUGIN_EXT_PLACEMENT_H
#define TENON_PLUGIN_EXT_PLACEMENT_H

#include "../op.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  TN_INPUT_IN_OUTPUT = 1, /* the input fills the box of the output that begins at `start` */
  TN_OUTPUT_IN_INPUT = 2, /* the output is the box of the input that begins at `start` */
  TN_SAME_ELEMENTS = 3    /* the output has the input's elements in the same row-major order; dims may differ */
};

/* frozen */
typedef struct TnPlacement {
  uint32_t input;
  uint32_t output;
  int32_t kind;
  int32_t reserved;
  int64_t start[TN_MAX_RANK];
} TnPlacement;

typedef struct TnPlacementSink {
  uint32_t struct_size;
  uint32_t reserved;
  void* context;
  TnStatus(TN_CALL* add)(struct TnPlacementSink* self, const TnPlacement* placement);
} TnPlacementSink;

typedef struct TnOpPlacement {
  uint32_t struct_size;
  uint32_t reserved;
  /* What lies where; together it makes up all outputs. `inferred` is as after infer: with dims of the outputs.
   * TN_DECLINED with the reason if more than moving is to do. [build] or [run] */
  TnStatus(TN_CALL* describe)(const TnHost* host, const TnOp* op, const TnInfer* inferred, TnPlacementSink* sink);
} TnOpPlacement;

#ifdef __cplusplus
}
#endif
#endif /* TENON_PLUGIN_EXT_PLACEMENT_H */
