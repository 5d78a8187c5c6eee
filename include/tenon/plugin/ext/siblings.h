/* `tenon.op.siblings/1`: nodes of the op that read the same input and differ in their constants can be computed as one:
 * convolutions or products whose constants are joined, and whose results are slices of the joint one. */
#ifndef TENON_PLUGIN_EXT_SIBLINGS_H
#define TENON_PLUGIN_EXT_SIBLINGS_H

#include "../op.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TN_SIBLING_INPUTS 8
#define TN_SAME_VALUE (-1)

/* frozen */
typedef struct TnSiblings {
  int32_t output_axis; /* of the one output: along it the results of the nodes lie one after the other */
  uint32_t num_inputs;
  /* Of each input the axis along which the nodes' constants are joined, or TN_SAME_VALUE: all nodes read the same
   * value. An optional input is absent in all nodes or in none. */
  int32_t input_axes[TN_SIBLING_INPUTS];
} TnSiblings;

typedef struct TnOpSiblings {
  uint32_t struct_size;
  uint32_t reserved;
  /* How a node is joined with others of equal attributes, dtypes, and dims but for the axes of the answer. `inferred`
   * is as after infer. TN_DECLINED with the reason if it cannot be. [build] */
  TnStatus(TN_CALL* describe)(const TnHost* host, const TnOp* op, const TnInfer* inferred, TnSiblings* out);
} TnOpSiblings;

#ifdef __cplusplus
}
#endif
#endif /* TENON_PLUGIN_EXT_SIBLINGS_H */
