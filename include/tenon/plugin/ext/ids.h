/* Names of the optional interfaces. Those without a header here are reserved: nobody may give them another meaning. */
#ifndef TENON_PLUGIN_EXT_IDS_H
#define TENON_PLUGIN_EXT_IDS_H

#define TN_IFACE_OP_EXPRESSION "tenon.op.expression/1"     /* ext/expression.h */
#define TN_IFACE_OP_CONTROL "tenon.op.control/1"           /* nodes that own graphs: which body runs next */
#define TN_IFACE_OP_VIEW "tenon.op.view/1"                 /* strides and offset of an output inside its input */
#define TN_IFACE_OP_PLACEMENT "tenon.op.placement/1"       /* ext/placement.h */
#define TN_IFACE_OP_SIBLINGS "tenon.op.siblings/1"         /* ext/siblings.h */
#define TN_IFACE_OP_SYMBOLIC "tenon.op.symbolic/1"         /* shape rule over symbols */
#define TN_IFACE_KERNEL_EPILOGUE "tenon.kernel.epilogue/1" /* ext/epilogue.h */
#define TN_IFACE_KERNEL_PROLOGUE "tenon.kernel.prologue/1"
#define TN_IFACE_OP_IMPORTERS "tenon.importer.ops/1" /* ext/op_importers.h */
#define TN_IFACE_CPU_PARALLEL "tenon.cpu.parallel/1" /* ext/parallel.h */
#define TN_IFACE_CODE "tenon.code/1"                 /* ext/code.h */
#define TN_IFACE_CUDA "tenon.cuda/1"
#define TN_IFACE_CUDA_NVRTC "tenon.cuda.nvrtc/1"
#define TN_IFACE_STATE "tenon.state/1"

#endif /* TENON_PLUGIN_EXT_IDS_H */
