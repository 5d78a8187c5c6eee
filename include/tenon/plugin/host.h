/* TnHost: everything the host offers a plugin. One table per plugin and registry; valid from load to unload. */
#ifndef TENON_PLUGIN_HOST_H
#define TENON_PLUGIN_HOST_H

#include "abi.h"
#include "attributes.h"
#include "fusion.h"
#include "graph.h"
#include "importer.h"
#include "kernel.h"
#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif

struct TnHost {
  uint32_t struct_size;
  uint32_t abi_major;
  uint32_t abi_minor;
  uint32_t reserved;
  const char* name;    /* "tenon" */
  const char* version; /* "0.1.0" */
  void* impl;          /* the host's own */

  /* Records the reason of a failure for the calling thread and returns `code`. `where` is "file:line". After a host
   * call that failed, return its code without calling fail again: the host has recorded the reason. [any] */
  TnStatus(TN_CALL* fail)(const TnHost* host, TnStatus code, const char* where, const char* message);
  /* Writes to the caller's logger. [any] */
  void(TN_CALL* log)(const TnHost* host, int32_t level, const char* message);
  /* Memory on the host, at least `align` aligned (a power of two); NULL without memory. [any] but not [run] */
  void*(TN_CALL* alloc)(const TnHost* host, uint64_t bytes, uint64_t align);
  void(TN_CALL* free)(const TnHost* host, void* memory);
  /* A host interface by id (ext/ids.h); NULL if this host has none. [any] */
  const void*(TN_CALL* get_interface)(const TnHost* host, const char* id);

  /* Registration; the struct stays the plugin's and must live until unload. TN_CONFLICT if the id is taken, TN_INVALID
   * with what is wrong with it. [load] */
  TnStatus(TN_CALL* register_op)(const TnHost* host, const TnOp* op);
  TnStatus(TN_CALL* register_kernel)(const TnHost* host, const TnKernel* kernel);
  TnStatus(TN_CALL* register_fusion)(const TnHost* host, const TnFusion* fusion);
  TnStatus(TN_CALL* register_importer)(const TnHost* host, const TnImporter* importer);
  TnStatus(TN_CALL* register_op_importer)(const TnHost* host, const TnOpImporter* importer);

  const TnAttrApi* attrs;
  const TnGraphApi* graph;
};

#ifdef __cplusplus
}
#endif
#endif /* TENON_PLUGIN_HOST_H */
