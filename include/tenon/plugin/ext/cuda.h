/* `tenon.cuda/1`: what the host offers kernels of TN_CUDA beside TnExec.stream. The GPU that a call is for is current
 * on the calling thread in initialize, set_shapes and enqueue. No header of CUDA is needed here: a stream is a
 * cudaStream_t.
 */
#ifndef TENON_PLUGIN_EXT_CUDA_H
#define TENON_PLUGIN_EXT_CUDA_H

#include "../abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TnCudaProperties {
  uint32_t struct_size;
  int32_t ordinal;
  int32_t sm; /* compute capability: 90 for 9.0 */
  int32_t multiprocessors;
  uint64_t memory;                  /* bytes */
  uint64_t l2;                      /* bytes of second-level cache */
  uint64_t shared_memory_per_block; /* bytes, the most that a launch may ask for */
  int32_t driver;                   /* 13000 for CUDA 13.0 */
  int32_t reserved;
} TnCudaProperties;

/* What TnExec.handles points to on CUDA: objects that the kernels of one context share on one stream, such as a cuDNN
 * or cuBLAS handle. Used by one thread at a time. */
typedef struct TnCudaHandles {
  uint32_t struct_size;
  uint32_t reserved;
  void* context;
  /* The object called `key` ("cudnn", "acme.fft/2"), made by `create` at the first call and destroyed by the host with
   * the stream. Ask in set_shapes, where creating is allowed; in enqueue the same call only looks up. A `create` that
   * fails says why with host->fail. `destroy` must stay callable: the host keeps the plugin of `host` loaded. [run] */
  TnStatus(TN_CALL* get)(const struct TnCudaHandles* self, const char* key,
                         TnStatus(TN_CALL* create)(void* stream, void** object), void(TN_CALL* destroy)(void* object),
                         void** object);
} TnCudaHandles;

typedef struct TnCuda {
  uint32_t struct_size;
  uint32_t reserved;
  /* Of the GPU with this ordinal. TN_NOT_FOUND if there is none. [any] */
  TnStatus(TN_CALL* properties)(int32_t ordinal, TnCudaProperties* out);
  /* Device memory in the order of a stream, from the pool of the thread's current GPU; NULL without memory. [any] but
   * not [run] */
  void*(TN_CALL* alloc)(uint64_t bytes, void* stream);
  void(TN_CALL* free)(void* memory, void* stream);
} TnCuda;

#ifdef __cplusplus
}
#endif
#endif /* TENON_PLUGIN_EXT_CUDA_H */
