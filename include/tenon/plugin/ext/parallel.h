/* `tenon.cpu.parallel/1`: the host's CPU pool, reached through TnExec.parallel. One pool for all kernels. */
#ifndef TENON_PLUGIN_EXT_PARALLEL_H
#define TENON_PLUGIN_EXT_PARALLEL_H

#include "../abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TnParallel {
  uint32_t struct_size;
  int32_t threads; /* of the calling context */
  void* context;
  /* Calls body(argument, i) once for every i in [0, count), on up to `threads` threads, and returns when all are done.
   * [run] */
  void(TN_CALL* run)(void* context, int64_t count, void(TN_CALL* body)(void* argument, int64_t index), void* argument);
} TnParallel;

#ifdef __cplusplus
}
#endif
#endif /* TENON_PLUGIN_EXT_PARALLEL_H */
